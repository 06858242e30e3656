"""InlineCompilerFunctionsBoundTo: functions made for an external compiler come back into the program."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule, rewrite
from relaylab.transform.copying import inlined
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass


def inline_compiler_functions(mod: IRModule, names: Sequence[GlobalVar]) -> IRModule:
    """The module with these functions, and the `Composite` functions in them, in the place of their calls."""
    if not names:
        return mod
    bodies = {gv: rewrite(mod[gv], _without_composites) for gv in names}

    def at(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and new.op in bodies:
            return inlined(bodies[new.op], new.args)  # type: ignore[arg-type, index]
        return new

    kept = {gv: rewrite(f, at) for gv, f in mod.functions.items() if gv not in bodies}
    return mod.with_functions(kept)  # type: ignore[arg-type]


def _without_composites(new: Expr, old: Expr) -> Expr:
    if isinstance(new, Call) and isinstance(new.op, Function) and new.op.attr("Composite"):
        return inlined(new.op, new.args)
    return new


@register_pass(global_vars=[])
def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> Pass:
    """Puts these functions, and the `Composite` functions inside them, in the place of their calls."""

    def run(mod: IRModule, ctx: object) -> IRModule:
        return inline_compiler_functions(mod, [mod.get_global_var(gv.name_hint) for gv in global_vars])

    return ModulePass(PassInfo(0, "InlineCompilerFunctionsBoundTo"), run)
