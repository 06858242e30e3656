"""Arithmetic on shapes with dimensions that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from relaylab.ir.types import Any, Dim, IntImm


def broadcast_shapes(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The shape that two shapes broadcast to, aligned right as in numpy; None if they do not fit."""
    rank = max(len(a), len(b))
    one = IntImm(1)
    out = [broadcast_dims(x, y) for x, y in zip((*[one] * (rank - len(a)), *a), (*[one] * (rank - len(b)), *b))]
    return None if None in out else tuple(out)  # type: ignore[arg-type]


def broadcast_dims(x: Dim, y: Dim) -> Dim | None:
    """What two dimensions broadcast to: 1 gives way; an unknown one yields to a known one other than 1."""
    if x == y or (isinstance(y, int) and y == 1):
        return x
    if isinstance(x, int) and x == 1:
        return y
    if isinstance(x, Any) and isinstance(y, Any):
        return Any()
    if isinstance(x, Any) or isinstance(y, Any):
        return y if isinstance(x, Any) else x
    return None


def product(dims: Iterable[Dim]) -> Dim:
    """The number of elements; unknown if a dimension is."""
    dims = tuple(dims)
    return Any() if any(isinstance(d, Any) for d in dims) else IntImm(math.prod(int(d) for d in dims))  # type: ignore[arg-type]


def total(dims: Iterable[Dim]) -> Dim:
    """The sum; unknown if a dimension is."""
    dims = tuple(dims)
    return Any() if any(isinstance(d, Any) for d in dims) else IntImm(sum(int(d) for d in dims))  # type: ignore[arg-type]


def normalize_axis(axis: int, rank: int) -> int | None:
    """The axis counted from the front, or None if there is no such axis."""
    axis = int(axis)
    return None if not -rank <= axis < rank else axis % rank if rank else None


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dimensions may be equal at run time."""
    return isinstance(a, Any) or isinstance(b, Any) or a == b


def derive(rule: Callable[..., int], *dims: Dim) -> Dim:
    """`rule` applied to dimensions; unknown if one of them is."""
    return Any() if any(isinstance(d, Any) for d in dims) else IntImm(rule(*map(int, dims)))  # type: ignore[arg-type]


def normalize_axes(axes: Sequence[int] | None, rank: int, exclude: bool = False) -> tuple[int, ...] | None:
    """Sorted axes counted from the front (None: all; `exclude`: all others); None if one does not exist."""
    if axes is None:
        return tuple(range(rank))
    chosen = {normalize_axis(a, rank) for a in axes}
    if None in chosen:
        return None
    return tuple(d for d in range(rank) if (d in chosen) != exclude)
