"""PrintIR: shows the program where it stands in a pipeline."""

from __future__ import annotations

import sys

from relaylab.ir import IRModule
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass


@register_pass(idempotent=True)
def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """Writes the text of the module to standard error and leaves the module as it is."""

    def run(mod: IRModule, ctx: object) -> IRModule:
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}", file=sys.stderr)
        return mod

    return ModulePass(PassInfo(0, "PrintIR"), run)
