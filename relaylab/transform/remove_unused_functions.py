"""RemoveUnusedFunctions: what cannot be reached from the entry functions goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.ir import GlobalVar, IRModule
from relaylab.ir.free import global_vars
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass


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


@pass_(level=1, idempotent=True)
class RemoveUnusedFunctions(ModulePass):
    """Drops the functions that the entry functions (default: `main`) never refer to."""

    entry_functions: Annotated[Sequence[str] | None, "The functions to begin with; None: `main`."] = None

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        kept = reachable(mod, ("main",) if self.entry_functions is None else self.entry_functions)
        return mod.with_functions({gv: func for gv, func in mod.functions.items() if gv in kept})
