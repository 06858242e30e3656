"""`relay.op.memory`: explicit allocation, and tuples of tensors as plain lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylab.ir.expr import Expr, Tuple, TupleGetItem
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.op.vm.machine import alloc_storage, alloc_tensor, kill
from relaylab.support.errors import RelayTypeError

__all__ = ["alloc_storage", "alloc_tensor", "flatten_tuple_type", "from_tuple_type", "kill", "to_tuple_type"]


def flatten_tuple_type(ty: Type) -> list[TensorType]:
    """The tensor types in nested tuple types, left to right; RelayTypeError for other types."""
    if isinstance(ty, TupleType):
        return [leaf for f in ty.fields for leaf in flatten_tuple_type(f)]
    if not isinstance(ty, TensorType):
        raise RelayTypeError(f"a tensor or a tuple of tensors is needed, not {ty}", code="op.tuple-type")
    return [ty]


def from_tuple_type(ty: Type, expr: Expr) -> list[Expr]:
    """The tensors in a value of a type: itself, or projections of it."""
    if not isinstance(ty, TupleType):
        return [expr]
    return [leaf for k, f in enumerate(ty.fields) for leaf in from_tuple_type(f, TupleGetItem(expr, k))]


def to_tuple_type(ty: Type, exprs: Sequence[Expr]) -> Expr:
    """The value of a type made of its tensors, the inverse of `from_tuple_type`; RelayTypeError for another number."""
    count = len(flatten_tuple_type(ty))
    if count != len(exprs):
        raise RelayTypeError(f"{ty} has {count} tensors, {len(exprs)} are given", code="op.tuple-type")
    return _nested(ty, iter(exprs))


def _nested(ty: Type, exprs: Iterator[Expr]) -> Expr:
    return Tuple([_nested(f, exprs) for f in ty.fields]) if isinstance(ty, TupleType) else next(exprs)
