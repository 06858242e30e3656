"""Functions that are graphs of operators: one look at each node types them, with nothing to solve.

Passes ask for the types of such functions after every change. Where anything is unknown, or wrong, the function is left
to the rules for all programs, which say what is missing.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from relaylab.analysis.infer.calls import finish_call, is_known
from relaylab.analysis.infer.typed import retyped
from relaylab.analysis.infer.typer import Typer
from relaylab.ir.expr import Call, Expr, Function, Let, Tuple, TupleGetItem
from relaylab.ir.op import Op
from relaylab.ir.trail import kept_trail
from relaylab.ir.types import FuncType, TupleType, Type
from relaylab.ir.visit import LEAVES, children, keep_order, post_order


def typed_graph(func: Function, typer: Typer) -> Function | None:
    """`func` with a type at every node, if it is a graph of operators on tensors and all is right with it; what was
    found until then stays with the typer.
    """
    if func.inferred is not None:
        return func
    if func.type_params or not all(is_known(p.type_annotation) for p in func.params):
        return None
    order, types, untyped = post_order(func), typer.types, dict[Expr, Expr]()
    for node in order:
        kind, found = type(node), node.inferred
        if found is None and kind is not Op:
            rule = _RULES.get(kind)
            found = rule(typer, node) if rule is not None else _function(typer, func) if node is func else None
            if found is None or typer.report:
                return None
            untyped[node] = node
        elif kind not in LEAVES and untyped and not untyped.keys().isdisjoint(children(node)):
            return None
        if found is not None:
            types[node] = found
    return _made(order, untyped, typer) if untyped else func


def _made(order: list[Expr], new: dict[Expr, Expr], typer: Typer) -> Function:
    """The last node of an order with those that are `new` made again, with their types."""
    trail, made = kept_trail(), list[Expr]()
    for node in order:
        if node in new:
            parts = tuple([new.get(c, c) for c in children(node)])
            old, node = node, retyped(node, parts, typer.types[node], typer.type_args.get(cast(Call, node), ()))
            new[old] = node
            if trail is not None:
                trail.record(old, node)
        made.append(node)
    func = cast(Function, made.pop())
    keep_order(func, made)
    return func


def _call(typer: Typer, call: Call) -> Type | None:
    if type(call.op) is not Op or not all(is_known(typer.types.get(a)) for a in call.args):
        return None
    found = typer.types[call] = finish_call(typer, call)
    return found if is_known(found) else None


def _tuple(typer: Typer, node: Tuple) -> Type | None:
    fields = [t for f in node.fields if (t := typer.types.get(f)) is not None]
    return TupleType(fields) if len(fields) == len(node.fields) else None


def _field(typer: Typer, node: TupleGetItem) -> Type | None:
    of = typer.types.get(node.tuple_value)
    return of.fields[node.index] if isinstance(of, TupleType) and node.index < len(of.fields) else None


def _let(typer: Typer, let: Let) -> Type | None:
    stated = let.var.type_annotation
    return typer.types.get(let.body) if is_known(stated) and stated == typer.types.get(let.value) else None


def _function(typer: Typer, func: Function) -> Type | None:
    found, params = typer.types.get(func.body), [typer.types[p] for p in func.params]
    return FuncType(params, found) if is_known(found) and func.ret_type in (None, found) else None


_RULES: dict[type, Callable[[Typer, Any], Type | None]] = {Call: _call, Tuple: _tuple, TupleGetItem: _field, Let: _let}
