"""Reading and writing at indices: Gather, Scatter and their kin, OneHot, Compress."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open, numbered
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Constant, Expr, is_call_to


def counted(g: Graph, indices: Expr, extent: Expr | int) -> Expr:
    """Indices counted from the front: negative ones count from the end."""
    known = g.value(indices)
    if known is not None and isinstance(extent, int):
        return Constant(np.where(known < 0, known + extent, known))
    if g.dtype(indices).startswith("uint"):
        return indices
    size = g.const(extent, indices) if isinstance(extent, int) else same(g, extent, g.dtype(indices))
    return op.where(op.less(indices, g.const(0, indices)), op.add(indices, size), indices)


def extent_of(g: Graph, x: Expr, axis: int) -> Expr | int:
    """The extent of an axis: a number, or an expression if it is not known."""
    dim = g.dims(x)[axis]
    return op.take(op.shape_of(x, "int64"), g.const(axis, "int64")) if is_open(dim) else int(dim)


def places_along(g: Graph, x: Expr, axis: int) -> Expr:
    """0, 1, 2, … along an axis of a tensor."""
    extent = g.named(x)[axis]
    if isinstance(extent, int):
        return Constant(np.arange(extent))
    return numbered(turns_of(x, axis), extent)


@converts("Gather")
def gather(g: Graph, node: OnnxNode, x: Expr, indices: Expr) -> Expr:
    axis = g.axis(node.get("axis", 0), g.rank(x))
    extent, known = extent_of(g, x, axis), g.value(indices)
    if (dims := _known_dims(g, x, known)) is not None:
        return dims
    if (
        known is not None
        and isinstance(extent, int)
        and known.size
        and not -extent <= known.min() <= known.max() < extent
    ):
        raise node.error(
            f"an index of {known.min()} … {known.max()} is outside of the {extent} elements of axis {axis}",
            code="import.index",
        )
    return op.take(x, counted(g, indices, extent), axis=axis)


def _known_dims(g: Graph, x: Expr, places: np.ndarray | None) -> Expr | None:
    """Dimensions that are known, chosen from a shape of which others are not."""
    if not is_call_to(x, "shape_of") or places is None:
        return None
    dims = dict(enumerate(g.dims(x.args[0])))
    chosen = [dims.get(int(k) % len(dims)) for k in places.reshape(-1)]
    if any(is_open(d) for d in chosen):
        return None
    return Constant(np.array(chosen, "int64").reshape(places.shape))


@converts("GatherElements")
def gather_elements(g: Graph, node: OnnxNode, x: Expr, indices: Expr) -> Expr:
    """Along the other axes the indices may be shorter than the data, in ONNX but not in Relay."""
    axis = g.axis(node.get("axis", 0), g.rank(x))
    own, given = g.dims(x), g.dims(indices)
    if len(own) == len(given):
        differ = [a for a, (n, k) in enumerate(zip(own, given)) if a != axis and (is_open(n) or is_open(k) or k < n)]
        differ = [a for a in differ if own[a] != given[a]]
    if differ:
        ends = op.take(op.shape_of(indices, "int64"), g.const(differ, "int64"), axis=0)
        x = op.strided_slice(x, [0] * len(differ), ends, [1] * len(differ), axes=differ)
    return op.gather(x, axis, counted(g, indices, extent_of(g, x, axis)))


@converts("GatherND", since=11)
def gather_nd(g: Graph, node: OnnxNode, x: Expr, indices: Expr) -> Expr:
    batch, rank = node.get("batch_dims", 0), g.rank(indices)
    return op.gather_nd(x, op.transpose(indices, [rank - 1, *range(rank - 1)]), batch_dims=batch)


def _positions(g: Graph, x: Expr, indices: Expr) -> Expr:
    """Coordinates without negative ones."""
    known = g.value(indices)
    if known is not None and (known >= 0).all():
        return Constant(known)
    count = g.extents(indices, g.rank(indices) - 1)[0]
    dims, dtype = g.dims(x)[:count], g.dtype(indices)
    if any(map(is_open, dims)):
        sizes = op.cast(op.strided_slice(op.shape_of(x, "int64"), [0], [count], [1]), dtype)
    else:
        sizes = Constant(np.array(dims, dtype))
    return op.where(op.less(indices, g.const(0, indices)), op.add(indices, sizes), indices)


@converts("Scatter", "ScatterElements")
def scatter_elements(g: Graph, node: OnnxNode, x: Expr, indices: Expr, updates: Expr) -> Expr:
    """Written along one axis; with a reduction through coordinates of every element."""
    axis = g.axis(node.get("axis", 0), g.rank(x))
    mode = _reduction(node)
    places = counted(g, indices, extent_of(g, x, axis))
    if mode == "update":
        return op.scatter(x, places, updates, axis)
    places = same(g, places, "int64")
    if g.is_static(indices):
        grid: list[Expr] = [Constant(a.astype("int64")) for a in np.indices(g.shape(indices))]
    else:
        grid = [_along(g, indices, a) for a in range(g.rank(indices))]
    grid[axis] = places
    return op.scatter_nd(x, op.stack(grid, 0), updates, mode)


def _along(g: Graph, x: Expr, axis: int) -> Expr:
    """Where along an axis each element of a tensor of open sizes is."""
    dims = g.named(x)
    return op.broadcast_to(op.expand_dims(places_along(g, x, axis), 1, len(dims) - axis - 1), dims)


REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(node: OnnxNode) -> str:
    return REDUCTIONS[node.choice("reduction", "none", tuple(REDUCTIONS))]


@converts("ScatterND", since=11)
def scatter_nd(g: Graph, node: OnnxNode, x: Expr, indices: Expr, updates: Expr) -> Expr:
    rank = g.rank(indices)
    places = _positions(g, x, indices)
    return op.scatter_nd(x, op.transpose(places, [rank - 1, *range(rank - 1)]), updates, _reduction(node))


@converts("TensorScatter", since=24)
def tensor_scatter(g: Graph, node: OnnxNode, past: Expr, update: Expr, where: Expr | None = None) -> Expr:
    """A piece of `past` along an axis replaced, at a place of its own for each batch."""
    rank, extent = g.rank(past), extent_of(g, past, axis := g.axis(node.get("axis", -2), g.rank(past)))
    circular = node.choice("mode", "linear", ("linear", "circular")) == "circular"
    count = extent_of(g, update, axis)
    if isinstance(count, int):
        places: Expr = Constant(np.arange(count))
    else:
        places = op.arange(g.const(0, "int64"), count, g.const(1, "int64"), dtype="int64")
    places = op.reshape(places, [-1 if a == axis else 1 for a in range(rank)])
    if where is not None:
        places = op.add(places, op.reshape(same(g, where, "int64"), [-1, *[1] * (rank - 1)]))
    if circular:
        places = op.floor_mod(places, g.const(extent, "int64") if isinstance(extent, int) else extent)
    return op.scatter(past, op.broadcast_to_like(places, update), update, axis)


@converts("OneHot", since=9)
def one_hot(g: Graph, node: OnnxNode, indices: Expr, depth: Expr, values: Expr) -> Expr:
    """Indices outside of the depth have no hot place."""
    known = g.value(depth)
    extent = int(known.reshape(())) if known is not None else op.reshape(same(g, depth, "int64"), ())
    dtype, axis = g.dtype(values), node.get("axis", -1)
    axis = g.axis(axis, g.rank(indices) + 1)
    places = counted(g, same(g, indices, "int64"), extent)
    off, on = (op.take(values, g.const(k, "int64"), axis=0) for k in (0, 1))
    return op.one_hot(places, on, off, extent, axis, dtype)


@converts("Compress", since=9)
def compress(g: Graph, node: OnnxNode, x: Expr, condition: Expr) -> Expr:
    axis = node.get("axis")
    if axis is None:
        x, axis = op.reshape(x, (-1,)), 0
    axis = g.axis(axis, g.rank(x))
    known = g.value(condition)
    if known is not None:
        return op.take(x, Constant(np.flatnonzero(known).astype("int64")), axis=axis)
    return op.take(x, op.squeeze(op.argwhere(condition), axis=[1]), axis=axis)


@converts("ReverseSequence", since=10)
def reverse_sequence(g: Graph, node: OnnxNode, x: Expr, lengths: Expr) -> Expr:
    return op.reverse_sequence(x, lengths, seq_axis=node.get("time_axis", 0), batch_axis=node.get("batch_axis", 1))
