"""A test that comes before the search: whether a pattern may fit at all, by kinds of nodes and attributes alone.

Most rules fit at few of the nodes at which they are tried; this says so without a generator for each part. What it
lets through the matcher decides: types, values and parts that stand for one node are not looked at.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.nodes import DFPattern

COMMUTATIVE = ("add", "multiply")


def reassociates(wanted: str, found: str) -> bool:
    """Whether a call of one operator may fit a pattern of the other, its factors being taken in another order."""
    return (wanted, found) in (("divide", "multiply"), ("multiply", "divide"))


def attr_of(e: Expr, name: str) -> object:
    """An attribute of a node: its own, else that of its operator; None if it has none of that name."""
    if isinstance(e, Op):
        return e.get_attr(name)
    if isinstance(e, Function):
        return e.attr(name)
    if isinstance(e, Call):
        own = e.attrs.get(name) if e.attrs is not None else None
        return e.op.get_attr(name) if own is None and isinstance(e.op, Op) else own
    return None


def same_attr(found: object, wanted: object) -> bool:
    """Whether an attribute is what a pattern wants; lists and tuples of equal values are equal."""
    if isinstance(wanted, (list, tuple)) or isinstance(found, (list, tuple)):
        return isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)) and list(found) == list(wanted)
    return found is not None and found == wanted


def has_attrs(p: pn.AttrPattern, e: Expr) -> bool:
    """Whether a node has all attributes that a pattern wants."""
    for name, value in p.attrs.items():
        if not same_attr(attr_of(e, name), value):
            return False
    return True


def may_fit(pattern: DFPattern, expr: Expr) -> bool:
    """False if the pattern does not fit the expression, whatever else is known of it."""
    test = _TESTS.get(type(pattern))
    return test is None or test(pattern, expr)


def _call(p: pn.CallPattern, e: Expr) -> bool:
    if not isinstance(e, Call):
        return False
    if p.called is not e.op:
        if p.called is not None:
            return isinstance(e.op, Op) and reassociates(p.called.name, e.op.name)
        if not may_fit(p.op, e.op):
            return False
    if p.args is None:
        return True
    if len(p.args) != len(e.args):
        return False
    return _all(p.args, e.args) or (len(p.args) == 2 and p.op_name in COMMUTATIVE and _all(p.args[::-1], e.args))


def _all(patterns: tuple[DFPattern, ...], exprs: tuple[Expr, ...]) -> bool:
    for pattern, expr in zip(patterns, exprs):  # a generator would take most of the time
        if not may_fit(pattern, expr):
            return False
    return True


def _expr(p: pn.ExprPattern, e: Expr) -> bool:
    return p.expr is e if isinstance(p.expr, Op) or isinstance(e, Op) else type(p.expr) is type(e)


def root_ops(pattern: DFPattern) -> frozenset[str] | None:
    """The operators at which the pattern can fit, or None if it can fit elsewhere."""
    match pattern:
        case pn.CallPattern() if pattern.op_name:
            extra = {"divide": "multiply", "multiply": "divide"}.get(pattern.op_name)
            return frozenset((pattern.op_name, extra) if extra else (pattern.op_name,))
        case pn.AltPattern():
            left, right = root_ops(pattern.left), root_ops(pattern.right)
            return None if left is None or right is None else left | right
        case pn.TypePattern() | pn.DataTypePattern() | pn.ShapePattern() | pn.AttrPattern():
            return root_ops(pattern.pattern)
        case pn.DominatorPattern():
            return root_ops(pattern.child)
        case _:
            return None


def _alternative(p: pn.AltPattern, e: Expr) -> bool:
    if p not in _HEADS:
        _HEADS[p] = root_ops(p)
    heads = _HEADS[p]
    if heads is not None and not (isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in heads):
        return False
    return may_fit(p.left, e) or may_fit(p.right, e)


_HEADS: WeakKeyDictionary[pn.AltPattern, frozenset[str] | None] = WeakKeyDictionary()
_TESTS: dict[type, Callable[[Any, Expr], bool]] = {
    pn.ExprPattern: _expr,
    pn.CallPattern: _call,
    pn.VarPattern: lambda p, e: isinstance(e, Var),
    pn.ConstantPattern: lambda p, e: isinstance(e, Constant),
    pn.FunctionPattern: lambda p, e: isinstance(e, Function),
    pn.IfPattern: lambda p, e: isinstance(e, If),
    pn.LetPattern: lambda p, e: isinstance(e, Let),
    pn.TuplePattern: lambda p, e: isinstance(e, Tuple),
    pn.TupleGetItemPattern: lambda p, e: isinstance(e, TupleGetItem) and may_fit(p.tuple, e.tuple_value),
    pn.AltPattern: _alternative,
    pn.AttrPattern: lambda p, e: may_fit(p.pattern, e) and has_attrs(p, e),
    **dict.fromkeys((pn.TypePattern, pn.DataTypePattern, pn.ShapePattern), lambda p, e: may_fit(p.pattern, e)),
    pn.DominatorPattern: lambda p, e: may_fit(p.child, e),
}
