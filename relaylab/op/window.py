"""Sliding windows: padding tuples and output extents of convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.ir.types import Dim
from relaylab.op.helpers import TypeSolver
from relaylab.op.shapes import derive
from relaylab.support.errors import RelayTypeError, RelayValueError, shown

Pads = tuple[tuple[int, int], ...]


def spread(value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """An int, or a tuple of one, repeated for `n` spatial axes; a tuple of `n` as it is."""
    if not isinstance(value, (int, np.integer, tuple, list, np.ndarray)):
        raise RelayTypeError(
            f"a window has whole numbers or lists of them, not {shown(value)}",
            code="op.window",
            help=f"give one number, or {n}, one for each axis",
        )
    values = tuple(value) if isinstance(value, (tuple, list)) else tuple(np.asarray(value).reshape(-1).tolist())
    return values * n if len(values) == 1 else values


def spread_padding(padding: int | Sequence[int], n: int) -> tuple[int, ...]:
    """Padding as `2n` values, all befores and then all afters, from one value, `n` or `2n`."""
    values = spread(padding, n)
    if len(values) not in (n, 2 * n):
        raise RelayValueError(f"padding {padding!r} must have 1, {n} or {2 * n} values", code="op.padding")
    return values if len(values) == 2 * n else values * 2


def get_pad_tuple1d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """Padding as (left, right), from one value for both or from both."""
    return spread_padding(padding, 1)


def get_pad_tuple2d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """Padding as (top, left, bottom, right), from one value, two or four."""
    return spread_padding(padding, 2)


def get_pad_tuple3d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """Padding as (front, top, left, back, bottom, right), from one value, three or six."""
    return spread_padding(padding, 3)


def pads(padding: Sequence[int], n: int) -> Pads:
    """(before, after) for each of `n` spatial axes."""
    values = spread_padding(tuple(padding), n)
    return tuple(zip(values[:n], values[n:]))


def reach(kernel: int, dilation: int) -> int:
    """How many elements a dilated kernel spans."""
    return (kernel - 1) * dilation + 1


def window_extent(
    s: TypeSolver, extent: Dim, kernel: Dim, stride: int, dilation: int, pad: tuple[int, int], ceil: bool = False
) -> Dim:
    """The number of windows along an axis; fails when not even one fits."""
    spare = stride - 1 if ceil else 0
    if min(pad) < 0:
        s.fail(f"padding cannot be negative: {list(pad)}", help="cut the data: strided_slice, or nn.pad")
    out = derive(lambda n, k: (n + sum(pad) - reach(k, dilation) + spare) // stride + 1, extent, kernel)
    if isinstance(out, int) and out < 1:
        s.fail(f"a window of {kernel} (dilation {dilation}) does not fit into {extent} elements padded by {list(pad)}")
    return out


def each(
    s: TypeSolver, values: Sequence[int], n: int, name: str, least: int = 1, one_for_all: bool = True
) -> tuple[int, ...]:
    """`n` values that are positive (or, with `least` 0, not negative) from one (if that is allowed) or `n`."""
    out = spread(tuple(values), n) if one_for_all else tuple(values)
    if len(out) != n or any(v < least for v in out):
        s.fail(f"`{name}` must be {n} {'positive values' if least else 'values from 0 on'}, not {tuple(values)}")
    return out
