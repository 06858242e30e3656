"""Views that torch makes by strides: diagonals, windows, any strides; bits read as another data type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.onnx.node import LARGEST
from relaylab.frontend.onnx.operators.conv import put_together
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode, size_of
from relaylab.frontend.pytorch.operators.create import filled
from relaylab.frontend.pytorch.operators.indexing import written
from relaylab.frontend.pytorch.operators.shapes import cut, unbind
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr


def _diagonal_places(g: TorchGraph, x: Expr, offset: int, dim1: int, dim2: int) -> tuple[list[int], Expr]:
    """The order of axes with the two of the planes last, and where the diagonal is in a flattened plane."""
    rank = g.rank(x)
    first, second = g.axes([dim1, dim2], rank)
    rows, columns = (g.to(g.size(x, a), "int64") for a in (first, second))
    down, right = (g.const(max(v, 0), "int64") for v in (-offset, offset))
    count = op.minimum(op.subtract(rows, down), op.subtract(columns, right))
    steps = op.arange(g.const(0, "int64"), op.maximum(count, g.const(0, "int64")), dtype="int64")
    places = op.add(op.multiply(op.add(steps, down), columns), op.add(steps, right))
    return [*(a for a in range(rank) if a not in (first, second)), first, second], places


@converts("diagonal", "diagonal_copy")
def diagonal(g: TorchGraph, node: AtenNode, x: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    """It is the last axis of the result."""
    order, places = _diagonal_places(g, x, offset, dim1, dim2)
    flat = op.reshape(op.transpose(x, order), (*[0] * (len(order) - 2), -3))
    return op.take(flat, places, axis=len(order) - 2)


@converts("diagonal_scatter")
def diagonal_scatter(
    g: TorchGraph, node: AtenNode, x: Expr, source: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Expr:
    order, places = _diagonal_places(g, x, offset, dim1, dim2)
    planes = op.transpose(x, order)
    flat = op.reshape(planes, (*[0] * (len(order) - 2), -3))
    out = written(g, flat, len(order) - 2, places, source)
    return op.transpose(op.reshape(out, g.sizes(g.all_sizes(planes))), [order.index(a) for a in range(len(order))])


@converts("unfold", "unfold_copy")
def unfold(g: TorchGraph, node: AtenNode, x: Expr, dim: int, size: int, step: int) -> Expr:
    """Windows along an axis; their elements are a new last axis."""
    rank = g.rank(x)
    if not rank:
        return op.reshape(x, node.sizes)
    axis = g.axis(dim, rank)
    last = op.add(g.to(g.size(x, axis), "int64"), g.const(1 - size, "int64"))
    starts = g.refined(op.arange(g.const(0, last), last, g.const(step, last), dtype="int64"), [node.sizes[axis]])
    places = op.add(op.expand_dims(starts, 1), g.counted(size))
    out = op.take(x, places, axis=axis)
    return op.transpose(out, [a for a in range(rank + 1) if a != axis + 1] + [axis + 1])


@converts("as_strided", "as_strided_copy")
def as_strided(
    g: TorchGraph, node: AtenNode, x: Expr, size: Sequence[int], stride: Sequence[int], start: int | None = None
) -> Expr:
    """Elements by their distance in memory, where the tensor fills the part of memory that is read."""
    held: Any = node.meta(0)
    steps = [tuple(map(size_of, t.stride())) for t in (node.value, held)]
    if start is None and node.sizes == node.sizes_of() and all(n == 1 or a == b for n, a, b in zip(node.sizes, *steps)):
        return x  # a mean over images whose channels are last is so marked
    order = sorted(range(held.dim()), key=lambda a: (held.stride(a), held.shape[a]), reverse=True)
    taken = [*size, *stride, *held.shape, *held.stride(), held.storage_offset()]
    if not all(isinstance(n, int) for n in (*taken, start or 0)) or math.prod(size) > LARGEST:
        raise node.error("sizes and strides must be known", "import.dynamic", "say the view by slices or reshape")
    if not held.permute(order).is_contiguous():
        raise node.error("the elements of the tensor are not side by side", "import.view", "call .contiguous() before")
    places = np.full(tuple(size), 0 if start is None else start - held.storage_offset())
    for axis, (n, step) in enumerate(zip(size, stride)):
        places += (np.arange(n) * step).reshape(-1, *[1] * (len(size) - axis - 1))
    if places.size and not 0 <= places.min() <= places.max() < held.numel():
        raise node.error(
            "the view reads memory beside the tensor", "import.view", "take the view of the tensor that holds it all"
        )
    flat = op.reshape(op.transpose(x, order) if order != sorted(order) else x, (-1,))
    return op.take(flat, Constant(places.astype("int64")), axis=0)


@converts("view.dtype", "view_copy.dtype")
def bits(g: TorchGraph, node: AtenNode, x: Expr, dtype: object) -> Expr:
    """The same bits as another data type; the last axis grows or shrinks where the widths differ."""
    if np.dtype(g.dtype(x)).itemsize != np.dtype(node.dtype).itemsize:
        raise node.error(f"{g.dtype(x)} and {node.dtype} are not equally wide", "import.dtype")
    return op.reinterpret(x, node.dtype)


@converts("narrow_copy")
def narrow(g: TorchGraph, node: AtenNode, x: Expr, dim: int, start: int, length: int) -> Expr:
    start = start % max(g.extent(x, g.axis(dim, g.rank(x))), 1) if start < 0 else start
    return cut(g, node, x, dim, start, start + length)


@converts("unbind_copy.int")
def unbind_copy(g: TorchGraph, node: AtenNode, x: Expr, dim: int = 0) -> list[Expr]:
    return unbind(g, node, x, dim)


@converts("col2im")
def col2im(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Expr:
    """Sums of overlapping blocks."""
    columns = x if g.rank(x) == 3 else op.expand_dims(x, 0)
    rows = g.extent(x, g.rank(x) - 2)
    taps = kernel[0] * kernel[1]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    counts = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, padding, reach, stride)]
    full = [(c - 1) * s + r - 2 * p for c, s, r, p in zip(counts, stride, reach, padding)]
    spaces = [n - f for n, f in zip(size, full)]
    columns = op.reshape(columns, (-1, taps, *counts))
    out = put_together(g, columns, kernel, stride, dilation, [*padding, *padding], spaces)
    return op.reshape(out, (*[-1] * (g.rank(x) - 2), rows // taps, *size))


@converts("tril_indices")
def tril_indices(g: TorchGraph, node: AtenNode, rows: int, columns: int, offset: int = 0, dtype: object = None) -> Expr:
    return Constant(np.array(np.tril_indices(rows, offset, columns)).astype(node.dtype))


@converts("triu_indices")
def triu_indices(g: TorchGraph, node: AtenNode, rows: int, columns: int, offset: int = 0, dtype: object = None) -> Expr:
    return Constant(np.array(np.triu_indices(rows, offset, columns)).astype(node.dtype))


@converts("fill.Scalar", "fill.Tensor")
def fill(g: TorchGraph, node: AtenNode, x: Expr, value: Operand) -> Expr:
    return filled(g, node, g.all_sizes(x), value)


@converts("empty_strided", "new_empty_strided")
def empty_strided(g: TorchGraph, node: AtenNode, *given: object, dtype: object = None) -> Expr:
    """What torch leaves open holds zeros; strides say where in memory it would be."""
    return filled(g, node, given[-2], 0)
