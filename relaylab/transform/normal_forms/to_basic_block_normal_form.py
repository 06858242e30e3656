"""ToBasicBlockNormalForm: what is used in several blocks is named in the block around them."""

from __future__ import annotations

from relaylab.ir import Function, IRModule
from relaylab.ir.scope import lifted
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.normal_forms.blocks import LetBlocks


def to_bbnf(func: Function) -> Function:
    """A function in which a value used in two blocks is bound by `let` in the innermost block around both."""
    while shared := frozenset(lifted(func)):
        func = LetBlocks(
            func, shared.__contains__
        ).run()  # a new `let` opens a block, which may be one too many for others
    return func


@pass_(level=1, idempotent=True)
class ToBasicBlockNormalForm(ModulePass):
    """Names the values that several branches or functions use, where all can see the name; the rest stays a graph."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({gv: f if f.attr("Compiler") else to_bbnf(f) for gv, f in mod.functions.items()})
