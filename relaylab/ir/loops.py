"""While loops, written as a recursive closure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from relaylab.ir.expr import Call, Expr, Function, Var
from relaylab.ir.expr import Tuple as TupleExpr
from relaylab.ir.node import expect_all
from relaylab.ir.scope_builder import ScopeBuilder


def while_loop(cond: Callable[..., Expr], loop_vars: Iterable[Var], loop_bodies: Callable[..., Iterable[Expr]]) -> Expr:
    """A closure that repeats `loop_bodies(*vars)` while `cond(*vars)` and returns the tuple of variables.

    The result is a function value: call it with the initial values.
    """
    sb, loop, fresh = ScopeBuilder(), Var("while_loop"), list(loop_vars)
    with sb.if_scope(cond(*fresh)):
        sb.ret(Call(loop, expect_all(loop_bodies(*fresh), Expr, "what a loop's body gives")))
    with sb.else_scope():
        sb.ret(TupleExpr(fresh))
    outer = ScopeBuilder()
    outer.let(loop, Function(fresh, sb.get()))
    outer.ret(loop)
    return outer.get()
