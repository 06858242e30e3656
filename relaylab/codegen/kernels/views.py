"""Views taken apart and put together: permuted axes, memory orders with halos, and the bytes they span."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from relaylab.codegen.kernels.kernel import MemoryView

Halo = tuple[tuple[int, int], ...]


def laid_out(shape: Sequence[int], dtype: str, order: Sequence[int], halo: Halo = ()) -> MemoryView:
    """A dense buffer whose memory runs over the axes in `order` (outermost first), with zero halos around them."""
    halo = tuple(halo) if any(map(any, halo)) else ()
    around = halo or ((0, 0),) * len(shape)
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis] + sum(around[axis])
    offset = sum(before * stride for (before, _), stride in zip(around, strides))
    return MemoryView(dtype, tuple(shape), tuple(strides), offset, halo)


def span_bytes(view: MemoryView) -> int:
    """Bytes of a buffer that holds the view with its halo."""
    if any(n == 0 and not any(view.halo_of(axis)) for axis, n in enumerate(view.shape)):
        return 0
    last = sum((n - 1 + view.halo_of(axis)[1]) * s for axis, (n, s) in enumerate(zip(view.shape, view.strides)))
    return (view.offset + last + 1) * view.itemsize


def permuted(view: MemoryView, axes: Sequence[int]) -> MemoryView:
    """The view with its axes in the order `axes`."""
    halo = tuple(view.halo[a] for a in axes) if view.halo else ()
    return replace(
        view, shape=tuple(view.shape[a] for a in axes), strides=tuple(view.strides[a] for a in axes), halo=halo
    )


def with_front(view: MemoryView) -> MemoryView:
    """The view with a leading axis of extent 1."""
    step = view.shape[0] * view.strides[0] if view.shape else 1
    halo = ((0, 0), *view.halo) if view.halo else ()
    return replace(view, shape=(1, *view.shape), strides=(step, *view.strides), halo=halo)


def merged_front(view: MemoryView, keep: int) -> MemoryView | None:
    """The view with all axes but the last `keep` as one; None if they do not lie evenly."""
    lead = len(view.shape) - keep
    if lead < 1 or (view.halo and any(map(any, view.halo[:lead]))):
        return None
    steps = [(n, s) for n, s in zip(view.shape[:lead], view.strides[:lead]) if n > 1]
    if any(outer[1] != inner[0] * inner[1] for outer, inner in zip(steps, steps[1:])):
        return None
    step = steps[-1][1] if steps else 1
    halo = ((0, 0), *view.halo[lead:]) if view.halo else ()
    return MemoryView(
        view.dtype, (math.prod(view.shape[:lead]), *view.shape[lead:]), (step, *view.strides[lead:]), view.offset, halo
    )


def same_place(a: MemoryView, b: MemoryView) -> bool:
    """Do both put equal indices at equal byte offsets?"""
    steps = zip(a.shape, a.strides, b.strides)
    even = all(n == 1 or x * a.itemsize == y * b.itemsize for n, x, y in steps)
    return a.shape == b.shape and even and a.offset * a.itemsize == b.offset * b.itemsize


def wider(a: Halo, b: Halo) -> Halo:
    """The smallest halo that contains both."""
    if not a or not b:
        return a or b
    return tuple((max(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b))
