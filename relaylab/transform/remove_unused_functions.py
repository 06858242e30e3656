"""RemoveUnusedFunctions: what cannot be reached from the entry functions goes."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import GlobalVar, IRModule
from relaylab.ir.free import global_vars
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass


def reachable(mod: IRModule, entries: Sequence[str]) -> set[GlobalVar]:
    """The functions that the entry functions refer to, directly or through others; every entry must exist."""
    found: set[GlobalVar] = set()
    stack = [mod.get_global_var(name) for name in entries]
    while stack:
        gv = stack.pop()
        if gv not in found and gv in mod.functions:
            found.add(gv)
            stack.extend(global_vars(mod.functions[gv]))
    return found


@register_pass(idempotent=True)
def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:
    """Drops the functions that the entry functions (default: `main`) never refer to."""
    entries = ("main",) if entry_functions is None else tuple(entry_functions)

    def run(mod: IRModule, ctx: object) -> IRModule:
        kept = reachable(mod, entries)
        return mod.with_functions({gv: func for gv, func in mod.functions.items() if gv in kept})

    return ModulePass(PassInfo(1, "RemoveUnusedFunctions"), run)
