"""Copies of functions for use in other places: every bound variable is renewed, so that each is bound once.

What has an effect is copied as well, also where it reads nothing that is renewed: a node that two copies shared would
be evaluated once for both (`ref(x)` would make them one cell).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, GlobalVar, RefCreate, RefRead, RefWrite, Var
from relaylab.ir.free import bound_by
from relaylab.ir.node import expect
from relaylab.ir.op import Op
from relaylab.ir.trail import current_trail
from relaylab.ir.visit import children, remake, rewrite, walk

E = TypeVar("E", bound=Expr)


def rewrite_function(
    func: Function,
    post: Callable[[Expr, Expr], Expr],
    keep: Callable[[Expr], bool] | None = None,
    memo: dict[Expr, Expr] | None = None,
) -> Function:
    """`rewrite` for a function that stays one; `RelayTypeError` if it does not."""
    return as_function(rewrite(func, post, keep=keep, memo=memo))


def as_function(expr: Expr) -> Function:
    """What became of a function: a function; `RelayTypeError` if it is none."""
    return expect(expr, Function, "what a function becomes")


def copied(new: E, *olds: Expr) -> E:
    """Note that `new` was made from `olds`, which stay in the program."""
    trail = current_trail()
    if trail is not None:
        trail.derive(new, olds)
    return new


def accounted(new: E, old: Expr, stop: Iterable[Expr] = ()) -> E:
    """Note that everything in `new` above `stop` that nobody has accounted for was made from `old`."""
    trail = current_trail()
    if trail is not None and new is not old:
        known = {old, *stop}
        for node in walk((new,), lambda n: () if n in known else children(n)):
            if node not in known and node not in trail.parents and not isinstance(node, (Op, GlobalVar)):
                trail.derive(node, (old,))
    return new


def fresh(var: Var) -> Var:
    """Another variable of the same name and type."""
    return copied(Var(var.name_hint, var.type_annotation, span=var.span), var)


def renewed(expr: Expr, binds: Mapping[Any, Expr] | None = None) -> Expr:
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
        case Call(op=Op() as op):
            effect = op.definition.stateful
        case Call(op=Function() as func):
            effect = not func.is_primitive
        case _:
            effect = isinstance(node, Call) and not isinstance(node.op, Constructor)
    return remake(node, children(node)) if effect else node


def inlined(func: Function, args: Iterable[Expr]) -> Expr:
    """The body of `func` with `args` in place of its parameters, as a copy that can stand anywhere."""
    return renewed(func.body, dict(zip(func.params, args, strict=True)))
