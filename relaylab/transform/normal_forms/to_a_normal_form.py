"""ToANormalForm: every intermediate value gets a name, in the order of evaluation (Flanagan et al., PLDI 1993)."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.normal_forms.blocks import LetBlocks


def to_anf(func: Function) -> Function:
    """A function with all compound values, constants included, bound by `let`; kernels stay as they are."""
    return LetBlocks(func, lambda node: True, aliases=True).run()


@pass_(level=1)
class ToANormalForm(ModulePass):
    """Names every intermediate value with `let`; each branch, clause and function body keeps its own."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({gv: f if f.attr("Compiler") else to_anf(f) for gv, f in mod.functions.items()})


def ToANormalFormExpr(e: Expr) -> Expr:
    """One expression in A-normal form; it must have no free variables."""
    if isinstance(e, Function):
        return to_anf(e)
    free = free_vars(e)
    if free:
        names = ", ".join(f"%{v.name_hint}" for v in free)
        raise RelayValueError(
            f"the expression has free variables: {names}",
            code="pass.free-variable",
            help="wrap it: relay.Function(params, body)",
        )
    return to_anf(Function((), e)).body
