"""Copies of functions for use in other places: every bound variable is renewed, so that each is bound once.

What has an effect is copied as well, also where it reads nothing that is renewed: a node that two copies shared would
be evaluated once for both (`ref(x)` would make them one cell).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from relaylab.ir.base import Expr, placed
from relaylab.ir.expr import Call, Function, FunctionWithFields, GlobalVar, Let, RefCreate, Var
from relaylab.ir.free import bound_by
from relaylab.ir.node import expect
from relaylab.ir.op import Op
from relaylab.ir.trail import kept_trail
from relaylab.ir.types import Type, substitute_type, type_leaves
from relaylab.ir.visit import children, remake, rewrite, walk
from relaylab.transform.engine.purity import acts

E = TypeVar("E", bound=Expr)


def rewrite_function(
    func: Function,
    post: Callable[[Expr, Expr], Expr],
    keep: Callable[[Expr], bool] | None = None,
    memo: dict[Expr, Expr] | None = None,
    only: Collection[str] | None = None,
) -> Function:
    """`rewrite` for a function that stays one; `RelayTypeError` if it does not."""
    return as_function(rewrite(func, post, keep=keep, memo=memo, only=only))


def as_function(expr: Expr) -> Function:
    """What became of a function: a function; `RelayTypeError` if it is none."""
    return expect(expr, Function, "what a function becomes")


def copied(new: E, *olds: Expr) -> E:
    """Note that `new` was made from `olds`, which stay in the program."""
    trail = kept_trail()
    if trail is not None:
        trail.derive(new, olds)
    return new


def accounted(new: E, old: Expr, stop: Iterable[Expr] = ()) -> E:
    """Note that everything in `new` above `stop` that nobody has accounted for was made from `old`."""
    trail = kept_trail()
    if trail is not None and new is not old:
        known = {old, *stop}
        for node in walk((new,), lambda n: () if n in known else children(n)):
            if node not in known and node not in trail.parents and not isinstance(node, (Op, GlobalVar)):
                trail.derive(node, (old,))
    return new


Retype = Callable[[Type | None], Type | None]
"""What becomes of a written type; None stands for one that is not written."""


def fresh(var: Var, retype: Retype | None = None) -> Var:
    """Another variable of the same name, and of the same type or what becomes of it."""
    typ = var.type_annotation if retype is None else retype(var.type_annotation)
    return copied(placed(Var(var.name_hint, typ, span=var.span), var.device), var)


def renewed(
    expr: Expr,
    binds: Mapping[Any, Expr] | None = None,
    retype: Retype | None = None,
    keep: Callable[[Expr], bool] | None = None,
) -> Expr:
    """A copy of `expr` in which every variable that it binds is another one, with `binds` put in place of free ones.

    Nodes for which `keep` holds are left alone, with all below them.
    """
    memo: dict[Expr, Expr] = dict(binds or {})
    for node in walk((expr,), children if keep is None else lambda n: () if keep(n) else children(n)):
        for var in bound_by(node):
            memo.setdefault(var, fresh(var, retype))

    def post(new: Expr, old: Expr) -> Expr:
        new = _again(new) if new is old else new
        return new if retype is None else _retyped(new, retype)

    return rewrite(expr, post, keep=keep, memo=memo)


def _retyped(node: Expr, retype: Retype) -> Expr:
    """The node with what becomes of the types that are written at it."""
    if isinstance(node, Call) and node.type_args:
        types = [t for t in map(retype, node.type_args) if t is not None]
        if len(types) < len(node.type_args) or any(a is not b for a, b in zip(types, node.type_args)):
            return Call(
                node.op, node.args, node.attrs, types if len(types) == len(node.type_args) else (), span=node.span
            )
    if isinstance(node, Function) and (result := retype(node.ret_type)) is not node.ret_type:
        return FunctionWithFields(node, ret_type=result)
    return node


def _again(node: Expr) -> Expr:
    """Another node like this if evaluating it may have an effect, else the node."""
    return remake(node, children(node)) if isinstance(node, RefCreate) or acts(node) else node


def inlined(func: Function, call: Call, ordered: bool = False, keep: Callable[[Expr], bool] | None = None) -> Expr:
    """The body of `func` with the arguments of a call in place of its parameters, as a copy that can stand anywhere.

    If effects are to keep their order (`ordered`), `let` binds the arguments before it: in the place of their
    parameters they would be evaluated later, or not at all.

    Nodes for which `keep` holds, which must read none of the parameters, stand in the copy of a function without type
    parameters as they are.

    Types take the place of type parameters as well; types that name these are left out where the call does not say
    what they are.
    """
    binds: dict[Var, Expr] = dict(zip(func.params, call.args, strict=True))
    if ordered and (named := {p: copied(Var(p.name_hint), p) for p, arg in binds.items() if children(arg)}):
        again = Call(func, [named.get(p, arg) for p, arg in binds.items()], None, call.type_args)
        body = inlined(func, again, keep=keep)
        for p in reversed(named):
            body = copied(Let(named[p], binds[p], body), call)
        return body
    if not func.type_params:
        return renewed(func.body, binds, keep=keep)
    own, given = func.type_params, call.type_args or ()
    known: dict[Type, Type] = dict(zip(own, given)) if len(given) == len(own) else {}

    def retype(t: Type | None) -> Type | None:
        if t is None or known:
            return t and substitute_type(t, known)
        return None if any(part in own for part in type_leaves(t)) else t

    return renewed(func.body, binds, retype)
