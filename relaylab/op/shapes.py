"""Arithmetic on shapes with dimensions that may be unknown, or expressions of sizes with names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, cast

from relaylab.ir.dims import AnyDim, Dim, IntImm, SizeExpr, SizeVar, SymbolicDim, UndecidedSize, differ, dim
from relaylab.support.errors import RelayTypeError


def extent(d: Dim | int) -> int:
    """A dimension as a number; `RelayTypeError` if it is known only at run time."""
    if isinstance(d, SymbolicDim):
        raise RelayTypeError(f"the size `{d}` is known only at run time", code="op.unknown-extent")
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
    """What two dimensions broadcast to: 1 gives way; an unknown one yields to one that is known not to be 1."""
    if x == y or (isinstance(y, int) and y == 1):
        return x
    if isinstance(x, int) and x == 1:
        return y
    if isinstance(x, AnyDim) and isinstance(y, AnyDim):
        return x if differ(x, IntImm(1)) else y if differ(y, IntImm(1)) else AnyDim()
    if isinstance(x, AnyDim) or isinstance(y, AnyDim):
        return y if isinstance(x, AnyDim) else x
    return None


def product(dims: Iterable[Dim | int]) -> Dim:
    """The number of elements; unknown if a dimension is."""
    return derive(lambda *known: math.prod(known), *dims)


def total(dims: Iterable[Dim]) -> Dim:
    """The sum; unknown if a dimension is."""
    return derive(lambda *known: sum(known), *dims)


def normalize_axis(axis: int, rank: int) -> int | None:
    """The axis counted from the front, or None if there is no such axis."""
    axis = int(axis)
    return None if not -rank <= axis < rank else axis % rank if rank else None


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dimensions may be equal at run time."""
    return not differ(a, b)


def better_known(a: Dim, b: Dim) -> Dim:
    """Which of two dimensions that are equal at run time says more: a number, then an expression, then `?`."""
    return b if isinstance(a, AnyDim) and (isinstance(b, int) or type(a) is AnyDim) else a


def derive(rule: Callable[..., int], *dims: Dim | int) -> Dim:
    """`rule` applied to dimensions; unknown if one of them is, or if sizes with names leave the result open."""
    if not any(isinstance(d, AnyDim) for d in dims):
        return IntImm(rule(*map(extent, dims)))
    if any(type(d) is AnyDim for d in dims):
        return AnyDim()
    try:
        return dim(rule(*(cast(int, d) if isinstance(d, SymbolicDim) else extent(d) for d in dims)))
    except UndecidedSize:
        return AnyDim()


FINEST = 8
"""The largest divisor of a factor by which sizes with names are multiplied."""


def scaled(n: Dim | int, factor: float) -> Dim:
    """`n` times a factor, rounded to the nearest whole number, halves to even; 0 for what is less.

    What a size with a name gives repeats with a period, so it is a sum of quotients: of 3 / 2 every four more are six.
    """
    if not isinstance(n, SymbolicDim):
        return derive(lambda d: max(round(d * factor), 0), n)
    exact = Fraction(factor)
    if exact <= 0 or exact.denominator > FINEST:
        return IntImm(0) if exact <= 0 else AnyDim()
    period = exact.denominator if exact.denominator == 1 else 2 * exact.denominator
    steps = [round((k + 1) * exact) - round(k * exact) for k in range(period)]
    return derive(lambda d: sum((d + (period - 1 - k)) // period * step for k, step in enumerate(steps) if step), n)


def normalize_axes(axes: Sequence[int] | None, rank: int, exclude: bool = False) -> tuple[int, ...] | None:
    """Sorted axes counted from the front (None: all; `exclude`: all others); None if one does not exist."""
    if axes is None:
        return tuple(range(rank))
    chosen = {normalize_axis(a, rank) for a in axes}
    if None in chosen:
        return None
    return tuple(d for d in range(rank) if (d in chosen) != exclude)


def floordiv(a: int | SymbolicDim, b: int | SymbolicDim) -> Dim:
    """`a` divided by `b`, rounded down."""
    return dim(a // b)


def floormod(a: int | SymbolicDim, b: int | SymbolicDim) -> Dim:
    """What is left of `a` divided by `b`, rounded down."""
    return dim(a % b)


def rounded(x: float | SymbolicDim) -> Dim:
    """`x` as the nearest whole number, which a size is."""
    return dim(round(x))


def times_in(a: object, b: SymbolicDim) -> Dim | int:
    """`a // b` where `a` is a multiple of `b` whatever the sizes are; a size that divides is not 0. Raises
    `UndecidedSize` where sizes do not tell.
    """
    undecided = UndecidedSize(
        f"{a} // {b} is known only at run time", code="type.symbolic", help="give the size as a number"
    )
    if not isinstance(a, SymbolicDim):
        raise undecided
    (unit, factor), *others = b.terms.items()
    if others:
        many = a.terms.get(unit, 0) // factor
        if not many or a != b * many:
            raise undecided
        return many
    total: Any = 0
    for monomial, times in a.terms.items():
        rest = Counter(monomial)
        rest.subtract(unit)
        if min(rest.values(), default=0) < 0 or factor < 1:
            raise undecided
        atoms = [v if isinstance(v, SizeVar) else SizeExpr({(v,): 1}) for v in rest.elements()]
        total = total + math.prod(cast("list[Any]", atoms)) * times
    return total // factor
