"""What is found in data, so that data decides how much: places of elements, different elements, counts of each."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.create import filled
from relaylab.frontend.pytorch.table import converts
from relaylab.frontend.slices import numbered_slices
from relaylab.ir import Constant, Expr, TupleWrapper
from relaylab.op.base import call_operator

FIRST, EACH = np.array([0], "int64"), np.array([1], "int64")


@converts("nonzero")
def nonzero(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """A row of indices for each element that is not 0; how many there are is known at run time."""
    return op.cast(op.argwhere(x), "int64")


@converts("nonzero_static")
def nonzero_static(g: TorchGraph, node: AtenNode, x: Expr, *, size: int, fill_value: int = -1) -> Expr:
    """So many rows: what is found and has no room goes, what is left over is filled."""
    places, number = TupleWrapper(call_operator("padded_argwhere", x), 2)
    rows, rank = node.sizes
    missing = rows - int(np.prod(g.shape(x)))
    if missing > 0:
        places = op.concatenate([places, op.zeros((missing, rank), "int32")], axis=0)
    kept = op.strided_slice(op.cast(places, "int64"), [0], [rows], [1], axes=[0])
    found = op.less(op.expand_dims(g.counted(rows), 1), op.cast(number, "int64"))
    return op.where(found, kept, filled(g, node, [rows, rank], fill_value))


@converts("masked_select")
def masked_select(g: TorchGraph, node: AtenNode, x: Expr, mask: Expr) -> Expr:
    if node.sizes_of() != node.sizes_of(1):
        x, mask = op.where(mask, x, x), op.logical_or(mask, op.cast(op.zeros_like(x), "bool"))
    places = op.squeeze(op.argwhere(op.reshape(mask, (-1,))), axis=[1])
    return op.take(op.reshape(x, (-1,)), places, axis=0)


@converts("_unique2")
def unique(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Expr | None]:
    """Different elements in their order, whether that is asked for or not."""
    values, _, inverse, counts = _different(op.reshape(x, (-1,)))
    inverse = op.reshape(inverse, g.sizes(g.all_sizes(x))) if return_inverse else None
    return [values, inverse, counts if return_counts else None]


@converts("unique_dim")
def unique_dim(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Expr | None]:
    """Different slices in the order of their elements: each has a number by which they are told apart and ordered."""
    axis = g.axis(dim, g.rank(x))
    numbers = x if g.rank(x) == 1 else numbered_slices(g, x, axis)
    if numbers is None:
        raise node.error(f"different slices of {g.shape(x)} along axis {axis}", "import.shape")
    _, firsts, inverse, counts = _different(numbers)
    kept = op.take(x, firsts, axis=axis)
    return [kept, inverse if return_inverse else None, counts if return_counts else None]


def _different(x: Expr) -> list[Expr]:
    """The different elements of a vector, where each is first, which one each element is, and how often it occurs."""
    values, firsts, inverse, number, counts = op.unique(x, is_sorted=True, return_counts=True)
    stop = op.cast(number, "int64")
    values, firsts, counts = (
        op.strided_slice(v, Constant(FIRST), stop, Constant(EACH)) for v in (values, firsts, counts)
    )
    return [values, *(op.cast(v, "int64") for v in (firsts, inverse, counts))]


@converts("unique_consecutive")
def unique_consecutive(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> list[Expr | None]:
    """Of equal neighbours the first."""
    axis = 0 if dim is None else g.axis(dim, g.rank(x))
    flat = op.reshape(x, (-1,)) if dim is None else x
    count = g.size(flat, axis)
    at = g.counted(count)
    previous = op.maximum(op.subtract(at, g.const(1, "int64")), g.const(0, "int64"))
    differs = op.not_equal(flat, op.take(flat, previous, axis=axis))
    if g.rank(flat) > 1:
        differs = op.any(differs, axis=[axis], exclude=True)
    first = op.logical_or(differs, op.equal(at, g.const(0, "int64")))
    places = op.cast(op.squeeze(op.argwhere(first), axis=[1]), "int64")
    group = op.subtract(op.cumsum(op.cast(first, "int64"), axis=0, dtype="int64"), g.const(1, "int64"))
    counts = op.scatter_nd(op.zeros_like(group), op.expand_dims(group, 0), op.ones_like(group), "add")
    counts = op.take(counts, op.take(group, places, axis=0), axis=0)
    inverse = op.reshape(group, g.sizes(g.all_sizes(x))) if dim is None else group
    return [op.take(flat, places, axis=axis), inverse if return_inverse else None, counts if return_counts else None]


@converts("bincount")
def bincount(g: TorchGraph, node: AtenNode, x: Expr, weights: Expr | None = None, minlength: Operand = 0) -> Expr:
    """How often each number is there, or the sum of its weights; up to the largest, which is known at run time."""
    places = op.cast(x, "int64")
    if weights is None:
        what = op.ones_like(places)
    else:
        what = weights if g.dtype(weights) in ("float32", "float64") else op.cast(weights, "float64")
    least = g.to(minlength, "int64")
    # the number before all others stands for an empty tensor
    known = op.concatenate([op.reshape(places, (-1,)), op.reshape(g.const(-1, "int64"), (1,))], axis=0)
    size = op.maximum(op.add(op.max(known), g.const(1, "int64")), least)
    empty = op.zeros(op.reshape(size, (1,)), dtype=g.dtype(what))
    return op.scatter_nd(empty, op.expand_dims(places, 0), what, "add")
