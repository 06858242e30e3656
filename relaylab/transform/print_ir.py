"""PrintIR: shows the program where it stands in a pipeline."""

from __future__ import annotations

import logging

from relaylab.ir import IRModule
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass

_log = logging.getLogger("relaylab.PrintIR")


@register_pass(idempotent=True)
def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """Logs the text of the module (logger `relaylab.PrintIR`, level INFO) and leaves it as it is."""

    def run(mod: IRModule, ctx: object) -> IRModule:
        _log.info("PrintIR(%s):\n%s", header, mod.astext(show_meta_data))
        return mod

    return ModulePass(PassInfo(0, "PrintIR"), run)
