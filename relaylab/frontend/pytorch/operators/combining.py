"""Updates that are combined with what is there, choosing by masks, and places that depend on values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.create import filled
from relaylab.frontend.pytorch.operators.indexing import covering
from relaylab.frontend.pytorch.operators.pointwise import is_float
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr

MODES = {
    "sum": "add", "add": "add", "mean": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"
}  # fmt: skip


def _neutral(g: TorchGraph, x: Expr, mode: str) -> Expr:
    """What an update replaces without a trace."""
    kind = g.dtype(x)
    if mode in ("add", "mul"):
        return g.const(int(mode == "mul"), x)
    if kind == "bool":
        return g.const(mode == "min", x)
    limits = (-np.inf, np.inf) if is_float(kind) else (np.iinfo(kind).min, np.iinfo(kind).max)
    return g.const(limits[mode == "min"], x)


def _combined(
    g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr, reduce: str, include_self: bool
) -> Expr:
    """Along one axis; indices may cover less than the source and the data have."""
    chosen(node, reduce, tuple(MODES), "reduce")
    if not g.rank(x):
        line, places, updates = (op.expand_dims(v, 0) for v in (x, index, source))
        return op.squeeze(_combined(g, node, line, 0, places, updates, reduce, include_self), axis=[0])
    mode, axis, index = MODES[reduce], g.axis(dim, g.rank(x)), g.to(index, "int64")
    if 0 in g.dims(index):
        return x
    source, sizes = covering(g, source, index), g.all_sizes(index)
    grid = [index if a == axis else _along(g, sizes, a) for a in range(g.rank(x))]
    places = op.concatenate([op.expand_dims(a, 0) for a in grid], axis=0)
    count = op.scatter_nd(op.zeros(g.sizes(g.all_sizes(x)), "int64"), places, op.ones_like(index), "add")
    hit = op.greater(count, g.const(0, "int64"))
    start = x if include_self else op.where(hit, _neutral(g, x, mode), x)
    out = op.scatter_nd(start, places, source, mode)
    if reduce != "mean":
        return out
    taps = op.maximum(op.add(count, g.const(int(include_self), "int64")), g.const(1, "int64"))
    return (op.divide if is_float(g.dtype(x)) else op.floor_divide)(out, g.to(taps, g.dtype(x)))


def _along(g: TorchGraph, sizes: Sequence[int | Expr], axis: int) -> Expr:
    """Where along an axis each element of a tensor is."""
    line = op.expand_dims(g.counted(sizes[axis]), 1, len(sizes) - axis - 1)
    return op.broadcast_to(line, g.sizes(sizes))


@converts("scatter_reduce.two")
def scatter_reduce(
    g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr, reduce: str, include_self: bool = True
) -> Expr:
    return _combined(g, node, x, dim, index, source, reduce, include_self)


@converts("scatter.reduce")
def scatter_with(
    g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr, reduce: str = "add"
) -> Expr:
    return _combined(g, node, x, dim, index, source, reduce, True)


@converts("scatter.value_reduce")
def scatter_value_with(
    g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, value: float, reduce: str = "add"
) -> Expr:
    source = filled(g, node, g.all_sizes(index), value)
    return _combined(g, node, x, dim, index, source, reduce, True)


@converts("index_reduce")
def index_reduce(
    g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Expr, source: Expr, reduce: str, include_self: bool = True
) -> Expr:
    """One index for a whole plane of the source."""
    if not g.rank(x):
        return _combined(g, node, x, dim, op.reshape(index, ()), source, reduce, include_self)
    line = op.expand_dims(index, 1, g.rank(x) - g.axis(dim, g.rank(x)) - 1)
    wide = g.refined(op.broadcast_to(line, g.sizes(g.all_sizes(source))), g.dims(source))
    return _combined(g, node, x, dim, wide, source, reduce, include_self)


@converts("put")
def put(g: TorchGraph, node: AtenNode, x: Expr, index: Expr, source: Expr, accumulate: bool = False) -> Expr:
    """Places are counted in the flattened tensor."""
    flat, places = op.reshape(x, (-1,)), op.reshape(g.to(index, "int64"), (1, -1))
    mode = "add" if accumulate else "update"
    return op.reshape(op.scatter_nd(flat, places, op.reshape(source, (-1,)), mode), g.sizes(g.all_sizes(x)))


@converts("masked_scatter")
def masked_scatter(g: TorchGraph, node: AtenNode, x: Expr, mask: Expr, source: Expr) -> Expr:
    """Where the mask is true, the next element of the source."""
    if not all(isinstance(n, int) for n in node.sizes) or node.sizes == node.sizes_of():
        shape = g.sizes(g.all_sizes(x))
    else:  # the mask has more axes
        shape = list(node.sizes)
        x = op.broadcast_to(x, shape)
    mask = op.broadcast_to(mask, shape)
    nth = op.cumsum(op.cast(op.reshape(mask, (-1,)), "int64"), axis=0, dtype="int64")
    nth = op.maximum(op.subtract(nth, g.const(1, "int64")), g.const(0, "int64"))
    taken = op.take(op.reshape(source, (-1,)), op.reshape(nth, shape), axis=0)
    return op.where(mask, taken, x)


@converts("repeat_interleave.Tensor")
def repeated(g: TorchGraph, node: AtenNode, repeats: Expr, output_size: Operand | None = None) -> Expr:
    """Each position as often as it is repeated: the one whose running sum is the first beyond a place."""
    known = g.value(repeats)
    if known is not None:
        return Constant(np.repeat(np.arange(len(known)), known).astype(node.dtype))
    ends = op.cumsum(g.to(repeats, "int64"), axis=0, dtype="int64")
    total = op.sum(g.to(repeats, "int64")) if output_size is None else output_size
    if isinstance(total, int):
        places: Expr = Constant(np.arange(total, dtype="int64"))
    else:
        places = op.arange(g.const(0, "int64"), total, g.const(1, "int64"), dtype="int64")
    return op.searchsorted(ends, places, right=True, dtype=node.dtype)


@converts("histc")
def histc(g: TorchGraph, node: AtenNode, x: Expr, bins: int = 100, low: float = 0, high: float = 0) -> Expr:
    """How many elements fall into each bin of a range, which includes both ends; without one it is that of the data."""
    x = op.reshape(x, (-1,))
    first, last = g.const(low, x), g.const(high, x)
    if low == high:
        if not g.is_static(x) or 0 in g.shape(x):
            raise node.error("the range of data of no known extent", "import.dynamic", "give min and max")
        first, last = op.min(x), op.max(x)
        same = op.cast(op.equal(first, last), g.dtype(x))
        first, last = op.subtract(first, same), op.add(last, same)
    inside = op.logical_and(op.greater_equal(x, first), op.less_equal(x, last))
    place = op.divide(op.multiply(op.subtract(x, first), g.const(bins, x)), op.subtract(last, first))
    place = op.minimum(op.cast(op.where(inside, place, g.const(0, x)), "int64"), g.const(bins - 1, "int64"))
    place = op.where(inside, place, g.const(bins, "int64"))  # a last one for those that do not count
    none = op.full(g.const(0, x), (bins + 1,), g.dtype(x))
    counted = op.scatter_nd(none, op.expand_dims(place, 0), op.ones_like(x), "add")
    return op.strided_slice(counted, [0], [bins], [1])
