"""Arithmetic on shapes with dimensions that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from relaylab.ir.types import AnyDim, Dim, IntImm
from relaylab.support.errors import RelayTypeError


def extent(d: Dim | int) -> int:
    """A dimension as a number; `RelayTypeError` if it is known only at run time."""
    if isinstance(d, AnyDim):
        raise RelayTypeError("a dimension is known only at run time", code="op.unknown-extent")
    return int(d)


def broadcast_shapes(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The shape that two shapes broadcast to, aligned right as in numpy; None if they do not fit."""
    rank = max(len(a), len(b))
    one = IntImm(1)
    out = [broadcast_dims(x, y) for x, y in zip((*[one] * (rank - len(a)), *a), (*[one] * (rank - len(b)), *b))]
    known = tuple(d for d in out if d is not None)
    return known if len(known) == rank else None


def broadcast_dims(x: Dim, y: Dim) -> Dim | None:
    """What two dimensions broadcast to: 1 gives way; an unknown one yields to a known one other than 1."""
    if x == y or (isinstance(y, int) and y == 1):
        return x
    if isinstance(x, int) and x == 1:
        return y
    if isinstance(x, AnyDim) and isinstance(y, AnyDim):
        return AnyDim()
    if isinstance(x, AnyDim) or isinstance(y, AnyDim):
        return y if isinstance(x, AnyDim) else x
    return None


def product(dims: Iterable[Dim | int]) -> Dim:
    """The number of elements; unknown if a dimension is."""
    dims = tuple(dims)
    return AnyDim() if any(isinstance(d, AnyDim) for d in dims) else IntImm(math.prod(map(extent, dims)))


def total(dims: Iterable[Dim]) -> Dim:
    """The sum; unknown if a dimension is."""
    dims = tuple(dims)
    return AnyDim() if any(isinstance(d, AnyDim) for d in dims) else IntImm(sum(map(extent, dims)))


def normalize_axis(axis: int, rank: int) -> int | None:
    """The axis counted from the front, or None if there is no such axis."""
    axis = int(axis)
    return None if not -rank <= axis < rank else axis % rank if rank else None


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dimensions may be equal at run time."""
    return isinstance(a, AnyDim) or isinstance(b, AnyDim) or a == b


def derive(rule: Callable[..., int], *dims: Dim | int) -> Dim:
    """`rule` applied to dimensions; unknown if one of them is."""
    return AnyDim() if any(isinstance(d, AnyDim) for d in dims) else IntImm(rule(*map(extent, dims)))


def normalize_axes(axes: Sequence[int] | None, rank: int, exclude: bool = False) -> tuple[int, ...] | None:
    """Sorted axes counted from the front (None: all; `exclude`: all others); None if one does not exist."""
    if axes is None:
        return tuple(range(rank))
    chosen = {normalize_axis(a, rank) for a in axes}
    if None in chosen:
        return None
    return tuple(d for d in range(rank) if (d in chosen) != exclude)
