"""ToBasicBlockNormalForm: what is used in several blocks is named in the block around them."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule
from relaylab.ir.scope import lifted
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.purity import PurityAnalysis, changes_state
from relaylab.transform.normal_forms.blocks import LetBlocks


def to_bbnf(func: Function, mod: IRModule) -> Function:
    """A function in which a value used in two blocks is bound by `let` in the innermost block around both."""
    # a new `let` opens a block, which may be one too many for others
    while shared := frozenset(lifted(func)):
        func = LetBlocks(func, (shared | _in_order(func, shared, mod)).__contains__).run()
    return func


def _in_order(func: Function, shared: frozenset[Expr], mod: IRModule) -> frozenset[Expr]:
    """What has effects, if some of what is bound has: it must be bound as well, to stay before or after that."""
    if not changes_state(mod):
        return frozenset()
    purity = PurityAnalysis(mod)
    purity.visit(func)
    acting = frozenset(n for n, p in purity.known.items() if not p.evaluated)
    return frozenset() if acting.isdisjoint(shared) else acting


@pass_(level=1, idempotent=True)
class ToBasicBlockNormalForm(ModulePass):
    """Names the values that several branches or functions use, where all can see the name; the rest stays a graph."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({gv: f if f.attr("Compiler") else to_bbnf(f, mod) for gv, f in mod.functions.items()})
