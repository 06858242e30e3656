"""ToGraphNormalForm: lets disappear; what was used twice by name becomes a shared node."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, Let
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import FunctionPass


def to_gnf(expr: Expr) -> Expr:
    """An expression with every `let` replaced by its body, and its variable by the value.

    A function that calls itself keeps a `let`: each use of its name becomes `let f = fn ...; f`.
    """

    def bind(let: Let, value: Expr, recursive: bool) -> Expr:
        return Let(let.var, value, let.var) if recursive else value

    return rewrite_lets(expr, lambda new, old: new, bind)


@pass_(level=1, effects=False)
class ToGraphNormalForm(FunctionPass):
    """Replaces every `let` by sharing: what nobody uses is gone, so functions with effects are refused."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return to_gnf(func)
