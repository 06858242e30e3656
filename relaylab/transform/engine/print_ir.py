"""PrintIR: shows the program where it stands in a pipeline."""

from __future__ import annotations

import sys
from typing import Annotated

from relaylab.ir import IRModule
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass


@pass_(level=0, idempotent=True)
class PrintIR(ModulePass):
    """Writes the text of the module to standard error and leaves the module as it is."""

    header: Annotated[str, "What is written above the program."] = ""
    show_meta_data: Annotated[bool, "Write the values of constants too."] = False

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        # not where programs are written to: the output of a command may be read by another
        print(f"PrintIR({self.header}):\n{mod.astext(self.show_meta_data)}", file=sys.stderr)
        return mod
