"""Copies of functions for use in other places: every bound variable is renewed, so that each is bound once.

What has an effect is copied as well, also where it reads nothing that is renewed: a node that two copies shared would
be evaluated once for both (`ref(x)` would make them one cell).
"""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Var,
    children,
    rewrite,
    walk,
)
from relaylab.ir.free import bound_by
from relaylab.ir.trail import current_trail
from relaylab.ir.visit import remake


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
    return rewrite(expr, lambda new, old: _again(new) if new is old else new, memo=memo)


def _again(node: Expr) -> Expr:
    """Another node like this if evaluating it may have an effect, else the node."""
    match node:
        case RefCreate() | RefRead() | RefWrite():
            effect = True
        case Call(op=Op()):
            effect = node.op.definition.stateful
        case Call(op=Function()):
            effect = not node.op.is_primitive
        case _:
            effect = isinstance(node, Call) and not isinstance(node.op, Constructor)
    return remake(node, children(node)) if effect else node


def inlined(func: Function, args: Iterable[Expr]) -> Expr:
    """The body of `func` with `args` in place of its parameters, as a copy that can stand anywhere."""
    return renewed(func.body, dict(zip(func.params, args, strict=True)))
