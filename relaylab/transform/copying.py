"""Copies of functions for use in other places: every bound variable is renewed, so that each is bound once."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir import Expr, Function, Var, rewrite, walk
from relaylab.ir.free import bound_by
from relaylab.ir.trail import current_trail


def copied(new: Expr, *olds: Expr) -> Expr:
    """Note that `new` was made from `olds`, which stay in the program."""
    trail = current_trail()
    if trail is not None:
        trail.derive(new, olds)
    return new


def fresh(var: Var) -> Var:
    """Another variable of the same name and type."""
    return copied(Var(var.name_hint, var.type_annotation, var.span), var)  # type: ignore[return-value]


def renewed(expr: Expr, binds: dict[Expr, Expr] | None = None) -> Expr:
    """A copy of `expr` in which every variable that it binds is another one, with `binds` put in place of free ones."""
    memo: dict[Expr, Expr] = dict(binds or {})
    for node in walk((expr,)):
        for var in bound_by(node):
            memo.setdefault(var, fresh(var))
    return rewrite(expr, lambda new, old: new, memo=memo) if memo else expr


def inlined(func: Function, args: Iterable[Expr]) -> Expr:
    """The body of `func` with `args` in place of its parameters, as a copy that can stand anywhere."""
    return renewed(func.body, dict(zip(func.params, args, strict=True)))
