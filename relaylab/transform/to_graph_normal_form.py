"""ToGraphNormalForm: lets disappear; what was used twice by name becomes a shared node."""

from __future__ import annotations

from relaylab.ir import Expr, Let
from relaylab.transform.lets import rewrite_lets
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def to_gnf(expr: Expr) -> Expr:
    """An expression with every `let` replaced by its body, and its variable by the value.

    A function that calls itself keeps a `let`: each use of its name becomes `let f = fn ...; f`.
    """

    def bind(let: Let, value: Expr, recursive: bool) -> Expr:
        return Let(let.var, value, let.var) if recursive else value

    return rewrite_lets(expr, lambda new, old: new, bind)


@register_pass()
def ToGraphNormalForm() -> Pass:
    """Replaces every `let` by sharing; the order of effects is lost."""
    return FunctionPass(PassInfo(1, "ToGraphNormalForm"), lambda func, mod, ctx: to_gnf(func))
