"""Operators about shapes: Reshape, Transpose, Concat, Split, Expand and what is like them."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import FARTHEST, Graph, elements, is_open
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts
from relaylab.ir import AnyDim, Constant, Expr, TupleWrapper, const
from relaylab.op import nn


@converts("Shape")
def shape(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    dims = g.dims(x)
    part = slice(node.get("start", 0), node.get("end"))
    if not any(is_open(d) for d in dims[part]):
        return Constant(np.array([int(d) for d in dims[part]], "int64"))
    first, last, _ = part.indices(len(dims))
    whole = op.shape_of(x, "int64")
    return whole if (first, last) == (0, len(dims)) else op.strided_slice(whole, [first], [last], [1])


@converts("Size")
def size(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return Constant(np.array(math.prod(g.shape(x)), "int64")) if g.is_static(x) else op.ndarray_size(x, "int64")


@converts("Reshape", unused=("consumed_inputs",))
def reshape_attribute(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _reshaped(g, node, x, node.ints("shape") or [], False)


@converts("Reshape", since=5)
def reshape(g: Graph, node: OnnxNode, x: Expr, target: Expr) -> Expr:
    zeros = bool(node.get("allowzero", 0))
    known = g.value(target)
    if known is not None:
        return _reshaped(g, node, x, [int(v) for v in known.reshape(-1)], zeros)
    sizes = g.sizes(target)
    if sizes is None:
        return op.reshape(x, target, allowzero=zeros)
    dims = g.dims(x)
    kept = [dims[k] if not zeros and isinstance(d, int) and d == 0 else d for k, d in enumerate(sizes)]
    out = op.reshape(x, kept, allowzero=True)  # a size that is 0 when the program runs is one
    unknown = any(type(d) is AnyDim for d in g.dims(out)) and not any(type(d) is AnyDim for d in dims)
    return op.reshape(x, target, allowzero=zeros) if unknown else out  # what is left no expression says: it is found


def _reshaped(g: Graph, node: OnnxNode, x: Expr, codes: list[int], zeros: bool) -> Expr:
    if any(c < -1 for c in codes):
        raise node.error(f"the shape {codes} has a negative dimension", code="import.shape")
    if not codes and g.is_static(x) and g.rank(x):
        return op.squeeze(x, axis=list(range(g.rank(x))))
    return op.reshape(x, codes, allowzero=zeros)


@converts("Flatten")
def flatten(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    axis, dims = node.get("axis", 1), g.dims(x)
    axis = axis + len(dims) if axis < 0 else axis
    if axis == 1 and len(dims) > 1:
        return nn.batch_flatten(x)
    if not 0 <= axis <= len(dims):
        raise node.error(f"there is no axis {axis} in {g.tensor(x)}", code="import.axis")
    parts = dims[:axis], dims[axis:]
    unknown = [any(type(d) is AnyDim for d in part) for part in parts]
    if all(unknown):
        own = op.shape_of(x, "int64")
        ends = [op.strided_slice(own, [b], [e], [1]) for b, e in ((0, axis), (axis, len(dims)))]
        return op.reshape(x, op.concatenate([op.prod(end, axis=[0], keepdims=True) for end in ends], 0), allowzero=True)
    return op.reshape(x, [-1 if u else math.prod(part) for u, part in zip(unknown, parts)], allowzero=True)


@converts("Transpose")
def transpose(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.transpose(x, node.ints("perm") or list(range(g.rank(x)))[::-1])


@converts("Squeeze", "Unsqueeze")
def squeeze_attribute(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _squeezed(g, node, x, node.ints("axes"))


@converts("Squeeze", "Unsqueeze", since=13)
def squeeze(g: Graph, node: OnnxNode, x: Expr, axes: Expr | None = None) -> Expr:
    return _squeezed(g, node, x, None if axes is None else g.ints(axes, "axes"))


def _squeezed(g: Graph, node: OnnxNode, x: Expr, axes: list[int] | None) -> Expr:
    if node.op_type == "Squeeze":
        if axes is None:
            axes = [k for k, d in enumerate(g.shape(x)) if d == 1]
        return op.squeeze(x, axis=sorted(g.axes(axes, g.rank(x)))) if axes else x
    if axes is None:
        raise node.error("the attribute `axes` is missing", code="import.attribute")
    for axis in sorted(g.axes(axes, g.rank(x) + len(axes))):
        x = op.expand_dims(x, axis)
    return x


@converts("Concat")
def concat(g: Graph, node: OnnxNode, first: Expr, *rest: Expr) -> Expr:
    dtypes = set(map(g.dtype, (first, *rest)))
    if len(dtypes) > 1:
        raise node.error(f"the inputs have different data types: {', '.join(sorted(dtypes))}", code="import.dtype")
    axis = g.axis(node.get("axis", 1) if node.version < 4 else node.need("axis"), g.rank(first))
    return op.concatenate([first, *rest], axis) if rest else first


@converts("Split")
def split_attribute(g: Graph, node: OnnxNode, x: Expr) -> Expr | TupleWrapper | list[Expr]:
    return _pieces(g, node, x, node.ints("split"))


@converts("Split", since=13)
def split(g: Graph, node: OnnxNode, x: Expr, sizes: Expr | None = None) -> Expr | TupleWrapper | list[Expr]:
    if sizes is None or g.value(sizes) is not None:
        return _pieces(g, node, x, None if sizes is None else g.ints(sizes, "split"))
    return _pieces_by_values(g, node, x, sizes)


def _pieces(g: Graph, node: OnnxNode, x: Expr, sizes: list[int] | None) -> Expr | TupleWrapper | list[Expr]:
    axis = g.axis(node.get("axis", 0), g.rank(x))
    extent, count = g.dims(x)[axis], node.get("num_outputs", len(node.outputs))
    if is_open(extent) and sizes is None and node.version >= 18 and count > 1:
        return _pieces_by_values(g, node, x, _even_sizes(g, x, axis, count))
    if is_open(extent):
        return _open_pieces(g, node, x, axis, sizes)
    if sizes is None:
        sizes = even_sizes(int(extent), count, node.version >= 18)
    if len(sizes) != len(node.outputs) or min(sizes, default=0) < 0 or sum(sizes) != extent:
        raise node.error(
            f"pieces of {sizes} do not make the {extent} of axis {axis} and {len(node.outputs)} outputs",
            code="import.shape",
        )
    if len(sizes) == 1:
        return x
    return op.split(x, np.cumsum(sizes)[:-1].tolist(), axis)


def _pieces_by_values(g: Graph, node: OnnxNode, x: Expr, sizes: Expr) -> list[Expr]:
    """Pieces of sizes that are computed when the program runs, which refuses sizes that do not make the whole."""
    axis, count = g.axis(node.get("axis", 0), g.rank(x)), len(node.outputs)
    if g.dims(sizes) != (count,):
        g.ints(sizes, "split")  # refuses what is not known
    begins = _begins(g.sizes(sizes), g.dims(x)[axis])
    if begins is not None:
        return [elements(x, {axis: b}, {axis: n}) for b, n in zip(begins, g.sizes(sizes) or ())]
    sizes = op.maximum(same(g, sizes, "int64"), const(0, "int64"))
    begins = op.cumsum(sizes, 0, exclusive=True)
    ends = op.concatenate([op.strided_slice(begins, [1], [count], [1]), g.const([FARTHEST], "int64")], 0)
    at = lambda places, k: op.strided_slice(places, [k], [k + 1], [1])
    own, one = op.shape_of(x, "int64"), Constant(np.ones(1, "int64"))
    found = []
    for k in range(count):
        whole = op.concatenate([at(sizes, k) if a == axis else at(own, a) for a in range(g.rank(x))], 0)
        piece = op.strided_slice(x, at(begins, k), at(ends, k), one, axes=[axis])
        found.append(op.reshape(piece, whole, allowzero=True))
    return found


def _begins(sizes: list[Any] | None, extent: object) -> list[int] | None:
    """Where pieces of an open extent begin, counted from an end of it; None if sizes do not tell."""
    if sizes is None or sum(sizes) != extent:
        return None
    found = []
    for k in range(len(sizes)):
        before, behind = sum(sizes[:k]), sum(sizes[k:])
        found.append(before if isinstance(before, int) else -behind if isinstance(behind, int) and behind else None)
    return None if None in found else found


def _open_pieces(g: Graph, node: OnnxNode, x: Expr, axis: int, sizes: list[Any] | None) -> TupleWrapper | Expr:
    """Pieces of an open extent: of given sizes, or equal ones, which the extent must have at run time."""
    if len(node.outputs) == 1:
        return x
    if sizes is not None:
        ends = list(accumulate(sizes))[:-1]
        return op.split(x, ends, axis)
    return op.split(x, len(node.outputs), axis)


def _even_sizes(g: Graph, x: Expr, axis: int, count: int) -> Expr:
    """The same sizes for an extent that is known when the program runs."""
    extent = op.strided_slice(op.shape_of(x, "int64"), [axis], [axis + 1], [1])
    each = op.floor_divide(op.add(extent, const(count - 1, "int64")), const(count, "int64"))
    left = op.subtract(extent, op.multiply(each, Constant(np.arange(count))))
    return op.maximum(op.minimum(each, left), const(0, "int64"))


def even_sizes(extent: int, count: int, smaller: bool) -> list[int]:
    """Equal pieces, the last one `smaller` if need be and allowed."""
    each = -(-extent // count) if smaller else extent // count
    return [max(min(each, extent - k * each), 0) for k in range(count)]


@converts("Expand")
def expand(g: Graph, node: OnnxNode, x: Expr, target: Expr) -> Expr:
    """Broadcast both ways: a dimension of 1 in the target keeps the tensor's."""
    wanted = g.sizes(target)
    if wanted is None:
        return _expanded(g, x, target)
    dims: list[Any] = list(g.dims(x))
    rank = max(len(dims), len(wanted))
    dims, wanted = [1] * (rank - len(dims)) + dims, [1] * (rank - len(wanted)) + wanted
    both = [_larger(d, w) for d, w in zip(dims, wanted)]
    if g.is_static(x) and tuple(both) == g.shape(x):
        return x
    found = [d for d in both if d is not None and type(d) is not AnyDim]
    return op.broadcast_to(x, found) if len(found) == rank else _expanded(g, x, target)


def _larger(own: int | AnyDim, wanted: int | AnyDim) -> int | AnyDim | None:
    """What two dimensions broadcast to; None if only run time tells."""
    if own == wanted or (isinstance(wanted, int) and wanted == 1):
        return own
    if isinstance(own, int):  # an open one can only be 1 or the same
        return wanted if own == 1 or isinstance(wanted, int) else own
    return wanted if isinstance(wanted, int) else None


def _expanded(g: Graph, x: Expr, target: Expr) -> Expr:
    """The same for a target that is not known."""
    rank, wanted = g.rank(x), g.shape(target)[0]
    ones = [Constant(np.ones(abs(rank - wanted), "int64"))] if rank != wanted else []
    own = op.shape_of(x, "int64")
    if rank < wanted:
        own = op.concatenate([*ones, own], 0)
    elif wanted < rank:
        target = op.concatenate([*ones, target], 0)
    return op.broadcast_to(x, larger(own, target))


def larger(a: Expr, b: Expr) -> Expr:
    """What shapes of one rank broadcast to, where only run time knows them."""
    return op.where(op.equal(b, const(1, "int64")), a, b)


@converts("Tile")
def tile_axis(g: Graph, node: OnnxNode, x: Expr, tiles: Expr, axis: Expr) -> Expr:
    """The first form: one axis, both numbers of the data type of `x`."""
    repeats = [1] * g.rank(x)
    repeats[g.axis(g.ints(axis, "axis")[0], len(repeats))] = g.ints(tiles, "tiles")[0]
    return op.tile(x, repeats)


@converts("Tile", since=6)
def tile(g: Graph, node: OnnxNode, x: Expr, repeats: Expr) -> Expr:
    if not g.rank(x):
        return x
    known = g.sizes(repeats)
    return op.tile(x, repeats if known is None or any(map(is_open, known)) else known)


@converts("Trilu", since=14)
def trilu(g: Graph, node: OnnxNode, x: Expr, k: Expr | None = None) -> Expr:
    offset = Constant(np.array(0, "int64")) if k is None else op.reshape(k, ()) if g.rank(k) else k
    return op.trilu(x, offset, upper=bool(node.get("upper", 1)))
