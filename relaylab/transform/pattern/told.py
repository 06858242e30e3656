"""What a matcher tells people: what was expected, and what stands there instead, with its place in the source."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType, Type
from relaylab.op.base import OpPattern
from relaylab.support.errors import kind_of
from relaylab.support.source import short_place
from relaylab.support.words import counted
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.nodes import DFPattern


def brief(e: Expr) -> str:
    """A node in a word or two."""
    match e:
        case Op():
            return e.name
        case Call():
            return brief(e.op) if isinstance(e.op, Op) else "a call of a function"
        case Var():
            return f"%{e.name_hint}"
        case Constant():
            return "a constant"
        case TupleGetItem():
            return (
                f"field {e.index} of {brief(e.tuple_value)}"
                if not isinstance(e.tuple_value, TupleGetItem)
                else f"field {e.index}"
            )
        case _:
            return kind_of(e).lower()


def node(e: Expr) -> str:
    """A node in a word or two, names of operators as code."""
    return f"`{brief(e)}`" if isinstance(e, Op) or (isinstance(e, Call) and isinstance(e.op, Op)) else brief(e)


def at(e: Expr) -> str:
    """Where a node comes from, after its name; empty if that is not known."""
    place = short_place(e.span)
    return f" at {place}" if place else ""


def name(pattern: DFPattern) -> str:
    """A part of a pattern in a word or two."""
    match pattern:
        case pn.ExprPattern():
            return node(pattern.expr)
        case pn.VarPattern():
            return f"the variable %{pattern.name_hint}" if pattern.name_hint else "a variable"
        case pn.ConstantPattern():
            return "a constant"
        case pn.WildcardPattern():
            return f"`{pattern.name}`" if pattern.name else "anything"
        case pn.CallPattern():
            return name(pattern.op)
        case pn.TuplePattern():
            return "a tuple"
        case pn.TupleGetItemPattern():
            return f"field {pattern.index} of a tuple" if pattern.index >= 0 else "a field of a tuple"
        case pn.TypePattern() | pn.DataTypePattern() | pn.ShapePattern() | pn.AttrPattern():
            return name(pattern.pattern)
        case pn.AltPattern():
            return f"{name(pattern.left)} or {name(pattern.right)}"
        case _:
            return {pn.FunctionPattern: "a function", pn.IfPattern: "an if", pn.LetPattern: "a let"}.get(
                type(pattern), "what leads to one node"
            )


def met(pattern: DFPattern, e: Expr) -> str:
    """That a part of a pattern fits a node; empty for parts whose own parts say it all."""
    match pattern:
        case pn.WildcardPattern() if isinstance(e, Op):
            return ""
        case pn.WildcardPattern():
            return (
                f"{name(pattern)} stands for {node(e)}{at(e)}" if pattern.name else f"anything fits: {node(e)}{at(e)}"
            )
        case pn.CallPattern() | pn.AltPattern():
            return ""
        case pn.ShapePattern() | pn.DataTypePattern() | pn.TypePattern():
            wanted = {pn.ShapePattern: "shape", pn.DataTypePattern: "data type"}.get(type(pattern), "type")
            return f"{node(e)} has the {wanted} that is expected"
        case pn.AttrPattern():
            return f"{node(e)} has the attributes that are expected"
        case _:
            return f"{name(pattern)} was expected, and is there{at(e)}"


# ---- what stands there instead


def other_op(wanted: str, op: Expr, call: Expr) -> str:
    """Another operator."""
    return f"`{wanted}` was expected, the node is {node(op)}{at(call)}"


def other_kind(wanted: str, e: Expr) -> str:
    """A node of another kind."""
    return f"{wanted} was expected, the node is {node(e)}{at(e)}"


def other(pattern: DFPattern, first: Expr, e: Expr) -> str:
    """Another node than the one that the same part of the pattern stands for."""
    part = f"`{pattern.name}`" if pattern.name else "this part of the pattern"
    return f"{part} stands for {node(first)}{at(first)} already, not for {node(e)}{at(e)}"


def other_count(e: Expr, there: int, wanted: int) -> str:
    """More or fewer parts."""
    return f"{counted(wanted, 'part')} {'was' if wanted == 1 else 'were'} expected, {node(e)}{at(e)} has {there}"


def other_type(wanted: str, e: Expr, found: Type | None) -> str:
    """Another type."""
    there = f"is of {found}" if found is not None else "has no known type"
    return f"the type {wanted} was expected, {node(e)}{at(e)} {there}"


def other_dtype(wanted: str, e: Expr, found: TensorType | None) -> str:
    """Another data type."""
    there = f"is of {found.dtype}" if found else "is no tensor of a known type"
    return f"a tensor of {wanted} was expected, {node(e)}{at(e)} {there}"


def other_shape(wanted: Sequence[object], e: Expr, found: TensorType | None) -> str:
    """Another shape: the first dimension that differs."""
    if found is None:
        return f"a tensor was expected, {node(e)}{at(e)} is no tensor of a known type"
    if len(found.shape) != len(wanted):
        return f"{counted(len(wanted), 'dimension')} expected, {node(e)}{at(e)} has {len(found.shape)}"
    k = next(k for k, (a, b) in enumerate(zip(found.shape, wanted)) if a != b)
    return f"{wanted[k]} was expected in dimension {k}, that of {node(e)}{at(e)} is {found.shape[k]}"


def other_attr(attr: str, wanted: object, e: Expr, found: object) -> str:
    """Another value of an attribute."""
    if attr == "TOpPattern":
        there = _kind(found) if found is not None else "no operator that can be fused"
        return f"{_kind(wanted)} was expected, {node(e)}{at(e)} is {there}"
    there = f"{attr}={_value(found)}" if found is not None else f"no attribute {attr}"
    return f"{attr}={_value(wanted)} was expected, {node(e)}{at(e)} has {there}"


def _kind(value: object) -> str:
    """How an operator may be fused, in words."""
    known = isinstance(value, int) and value in OpPattern.__members__.values()
    return OpPattern(value).words if known else f"an operator of the pattern {value}"


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return value.name.lower()
    return repr(value)
