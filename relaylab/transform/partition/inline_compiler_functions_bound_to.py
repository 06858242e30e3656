"""InlineCompilerFunctionsBoundTo: functions made for an external compiler come back into the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.purity import changes_state
from relaylab.transform.engine.renewal import inlined, rewrite_function


def inline_compiler_functions(mod: IRModule, names: Sequence[GlobalVar]) -> IRModule:
    """The module with these functions, and the `Composite` functions in them, in the place of their calls."""
    if not names:
        return mod
    ordered = changes_state(mod)

    def without_composites(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, Function) and new.op.attr("Composite"):
            return inlined(new.op, new, ordered)
        return new

    bodies = {gv: rewrite_function(mod[gv], without_composites) for gv in names}

    def at(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, GlobalVar) and new.op in bodies:
            return inlined(bodies[new.op], new, ordered)
        return new

    kept = {gv: rewrite_function(f, at) for gv, f in mod.functions.items() if gv not in bodies}
    return mod.with_functions(kept)


@pass_(level=0, example={"global_vars": []})
class InlineCompilerFunctionsBoundTo(ModulePass):
    """Puts these functions, and the `Composite` functions inside them, in the place of their calls."""

    global_vars: Annotated[Sequence[GlobalVar], "The functions that are put in place."]

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return inline_compiler_functions(mod, [mod.get_global_var(gv.name_hint) for gv in self.global_vars])
