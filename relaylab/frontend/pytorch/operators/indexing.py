"""Choosing elements by indices, and writing to them; the largest and the sorted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.create import filled
from relaylab.frontend.pytorch.operators.shapes import cut, select
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import AnyDim, Constant, Expr
from relaylab.op import image
from relaylab.op.base import call_operator


def _from_front(g: TorchGraph, index: Expr, extent: int | Expr) -> Expr:
    """Indices with those below 0 counted from the end."""
    index = g.to(index, "int64")
    known = g.value(index)
    if known is not None and (known >= 0).all():
        return index
    if known is not None and isinstance(extent, int):
        return Constant(np.where(known < 0, known + extent, known))
    return op.where(op.less(index, g.const(0, "int64")), op.add(index, g.to(extent, "int64")), index)


@converts("embedding")
def embedding(g: TorchGraph, node: AtenNode, weight: Expr, indices: Expr, *more: object) -> Expr:
    return op.take(weight, indices, axis=0)


@converts("index_select")
def index_select(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr) -> Expr:
    index = index if g.rank(index) else op.expand_dims(index, 0)
    if not g.rank(x):  # of one element, and one index
        return op.reshape(op.take(op.expand_dims(x, 0), index, axis=0), ())
    return op.take(x, index, axis=g.axis(dim, g.rank(x)))


@converts("index.Tensor", "_unsafe_index.Tensor")
def index(g: TorchGraph, node: AtenNode, x: Expr, indices: Sequence[Expr | None]) -> Expr:
    """numpy's rule: the axes of indices that stand apart come first."""
    x, given, axes = _plain(g, node, x, indices)
    if len(axes) == 1:
        return op.take(x, given[0], axis=axes[0])
    rank, wide = g.rank(x), max(g.rank(i) for i in given)
    rest = [a for a in range(rank) if a not in axes]
    out = op.gather_nd(op.transpose(x, [*axes, *rest]), _together(g, given))
    if axes != list(range(axes[0], axes[-1] + 1)) or not axes[0]:
        return out
    order = [*range(wide, wide + axes[0]), *range(wide), *range(wide + axes[0], wide + len(rest))]
    return op.transpose(out, order)


def _plain(
    g: TorchGraph, node: AtenNode, x: Expr, indices: Sequence[Expr | None]
) -> tuple[Expr, list[Expr], list[int]]:
    """Indices that are numbers, and the axes that they choose from; masks are joined into one axis of places."""
    given: list[Expr] = []
    axes: list[int] = []
    axis = 0
    for part in indices:
        if part is None:
            axis += 1
        elif g.dtype(part) in ("bool", "uint8"):
            for place in _marked(g, part):
                given.append(place)
                axes.append(axis)
                axis += 1
        else:
            given.append(_from_front(g, part, g.size(x, axis)))
            axes.append(axis)
            axis += 1
    return x, given, axes


def _marked(g: TorchGraph, mask: Expr) -> list[Expr]:
    """Where a mask is true, along each of its axes; how often is known at run time if the mask is computed."""
    known = g.value(mask)
    if known is not None:
        return [Constant(place.astype("int64")) for place in np.nonzero(known)]
    places = op.cast(op.argwhere(mask), "int64")
    return [op.take(places, g.const(axis, "int64"), axis=1) for axis in range(g.rank(mask))]


def _together(g: TorchGraph, given: Sequence[Expr]) -> Expr:
    """Indices broadcast to one shape, along a new first axis."""
    total = given[0]
    for part in given[1:]:
        total = op.add(total, part)
    zero = op.multiply(total, g.const(0, "int64"))
    same = [i if g.dims(i) == g.dims(total) and g.is_static(i) else op.add(i, zero) for i in given]
    return op.concatenate([op.expand_dims(i, 0) for i in same], axis=0)


@converts("index_put", "_unsafe_index_put")
def index_put(
    g: TorchGraph, node: AtenNode, x: Expr, indices: Sequence[Expr | None], values: Expr, accumulate: bool = False
) -> Expr:
    values = g.to(values, node.dtype)
    first = indices[0] if indices else None
    by_mask = first is not None and len(indices) == 1 and g.dtype(first) == "bool" and g.value(first) is None
    if first is not None and by_mask and (not g.rank(values) or g.dims(values) == (1,)):
        mask = op.expand_dims(first, g.rank(first), g.rank(x) - g.rank(first)) if g.rank(x) > g.rank(first) else first
        return op.where(mask, op.add(x, values) if accumulate else values, x)
    x, given, axes = _plain(g, node, x, indices)
    rank, places = g.rank(x), _together(g, given)
    rest = [a for a in range(rank) if a not in axes]
    order = [*axes, *rest]
    shape = [*(g.size(places, a) for a in range(1, g.rank(places))), *(g.size(x, a) for a in rest)]
    wide = len(shape) - len(rest)
    if axes == list(range(axes[0], axes[-1] + 1)) and axes[0]:  # the values have the axes before them first
        target = [*shape[wide : wide + axes[0]], *shape[:wide], *shape[wide + axes[0] :]]
        values = op.broadcast_to(values, g.sizes(target))
        back = [*range(axes[0], axes[0] + wide), *range(axes[0]), *range(axes[0] + wide, len(target))]
        values = op.transpose(values, back)
    else:
        values = op.broadcast_to(values, g.sizes(shape))
    out = op.scatter_nd(op.transpose(x, order), places, values, "add" if accumulate else "update")
    return op.transpose(out, [order.index(a) for a in range(rank)])


@converts("gather")
def gather(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, sparse_grad: bool = False) -> Expr:
    """The indices may cover less of the other axes than the data has."""
    rank = g.rank(x)
    if not rank:
        return x
    axis = g.axis(dim, rank)
    for a, (n, m) in enumerate(zip(node.sizes_of(), node.sizes_of(2))):
        if a != axis and n != m:
            x = cut(g, node, x, a, 0, g.size(index, a))
    return op.gather(x, axis, index)


def covering(g: TorchGraph, source: Expr, index: Expr) -> Expr:
    """The part of the source that has as many elements as the indices."""
    dims, rank = g.dims(index), g.rank(index)
    if not rank or (g.dims(source) == dims and not any(type(d) is AnyDim for d in dims)):
        return source
    part = op.strided_slice(source, g.limits([0] * rank), g.limits(g.all_sizes(index)), g.limits([1] * rank))
    return g.refined(part, dims)


@converts("scatter.src")
def scatter(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    return _scattered(g, op.scatter, x, dim, index, covering(g, source, index))


def _scattered(
    g: TorchGraph, build: Callable[[Expr, Expr, Expr, int], Expr], x: Expr, dim: int, index: Expr, source: Expr
) -> Expr:
    """Updates along one axis; a tensor of no axes is a vector of one element."""
    if g.rank(x):
        return build(x, index, source, g.axis(dim, g.rank(x)))
    line, places, updates = (op.reshape(v, (1,)) for v in (x, index, source))
    return op.squeeze(build(line, places, updates, 0), axis=[0])


@converts("scatter.value")
def scatter_value(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, value: float) -> Expr:
    return _scattered(g, op.scatter, x, dim, index, filled(g, node, g.all_sizes(index), value))


@converts("scatter_add")
def scatter_add(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    return _scattered(g, op.scatter_add, x, dim, index, covering(g, source, index))


@converts("slice_scatter")
def slice_scatter(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    source: Expr,
    dim: int = 0,
    start: Operand | None = None,
    end: Operand | None = None,
    step: int = 1,
) -> Expr:
    at = cut(g, node, g.counted(g.size(x, dim)), 0, start, end, step)
    return written(g, x, g.axis(dim, g.rank(x)), at, source)


@converts("select_scatter")
def select_scatter(g: TorchGraph, node: AtenNode, x: Expr, source: Expr, dim: int, index: Operand) -> Expr:
    axis = g.axis(dim, g.rank(x))
    at = op.expand_dims(select(g, node, g.counted(g.size(x, axis)), 0, index), 0)
    return written(g, x, axis, at, op.expand_dims(source, axis))


MOST_WRITES = 1
"""How many planes are written in one kernel at most: each may read twice what the one before has written."""


def written(g: TorchGraph, x: Expr, axis: int, at: Expr, source: Expr) -> Expr:
    """`x` with the planes `at` of an axis replaced: old and new ones side by side, and one taken of each."""
    extent, at = g.size(x, axis), g.settle(at)
    new = op.add(g.counted(g.size(at, 0)), g.to(extent, "int64"))
    both = op.concatenate([x, g.to(source, g.dtype(x))], axis=axis)
    out = g.settle(op.take(both, op.scatter(g.counted(extent), at, new, 0), axis=axis))
    depth = g.written.get(x, 0) + g.written.get(source, 0) + 1
    if depth > MOST_WRITES and not isinstance(out, Constant):
        return call_operator("annotation.stop_fusion", out)
    g.written[out] = depth
    return out


@converts("topk")
def topk(
    g: TorchGraph, node: AtenNode, x: Expr, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Expr]:
    if not g.rank(x):
        first, place = topk(g, node, op.expand_dims(x, 0), k, 0, largest)
        return [op.reshape(first, node.value[0].shape), op.reshape(place, node.value[0].shape)]
    axis = g.axis(dim, g.rank(x))
    if k == 0:
        none = op.strided_slice(x, [0], [0], [1], axes=[axis])
        return [none, op.cast(none, "int64")]
    found = op.topk(x, k=k, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")
    return list(found)


@converts("sort")
def sort(g: TorchGraph, node: AtenNode, x: Expr, dim: int = -1, descending: bool = False) -> list[Expr]:
    if not g.rank(x):
        return [x, g.const(0, "int64")]
    axis = g.axis(dim, g.rank(x))
    order = op.argsort(x, axis=axis, is_ascend=not descending, dtype="int64")
    return [op.gather(x, axis, order), order]


@converts("sort.stable")
def stable_sort(
    g: TorchGraph, node: AtenNode, x: Expr, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[Expr]:
    return sort(g, node, x, dim, descending)


@converts("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    g: TorchGraph, node: AtenNode, x: Expr, grid: Expr, mode: int, padding: int, align_corners: bool
) -> Expr:
    chosen(node, mode, (0, 1, 2), "interpolation_mode")
    method, outside = ("bilinear", "nearest", "bicubic")[mode], ("zeros", "border", "reflection")[padding]
    if g.rank(x) == 5:
        return image.grid_sample(x, op.transpose(grid, [0, 4, 1, 2, 3]), method, "NCDHW", outside, align_corners)
    return image.grid_sample(x, op.transpose(grid, [0, 3, 1, 2]), method, "NCHW", outside, align_corners)
