"""Distances between rows, bags of embeddings, and products of three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode, size_of
from relaylab.frontend.pytorch.operators.pointwise import both
from relaylab.frontend.pytorch.operators.reduction import vector_norm
from relaylab.frontend.pytorch.operators.shapes import cut
from relaylab.frontend.pytorch.table import converts, name_of
from relaylab.ir import Constant, Expr


@converts("_cdist_forward")
def cdist(g: TorchGraph, node: AtenNode, a: Expr, b: Expr, p: float, compute_mode: int | None = None) -> Expr:
    """Between each row of one and each row of the other."""
    a, b = op.expand_dims(a, g.rank(a) - 1), op.expand_dims(b, g.rank(b) - 2)
    return vector_norm(g, node, op.subtract(a, b), p, -1)


@converts("_pdist_forward")
def pdist(g: TorchGraph, node: AtenNode, x: Expr, p: float = 2) -> Expr:
    """Between the rows of each pair, in order."""
    first, second = np.triu_indices(g.shape(x)[0], 1)
    rows = [op.take(x, Constant(places.astype("int64")), axis=0) for places in (first, second)]
    return vector_norm(g, node, op.subtract(*rows), p, -1)


@converts("dist")
def dist(g: TorchGraph, node: AtenNode, a: Expr, b: Expr, p: float = 2) -> Expr:
    return vector_norm(g, node, op.subtract(*both(g, node, a, b)), p, None)


@converts("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    g: TorchGraph,
    node: AtenNode,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Expr | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> list[Expr | None]:
    """Sums, means or maxima of the rows of each bag; bags of nothing are 0. Only the first result is imported."""
    chosen(node, mode, (0, 1, 2), "mode")
    offsets, indices = g.to(offsets, "int64"), g.to(indices, "int64")
    kind, empty = g.dtype(weight), -math.inf if mode == 2 else 0
    even = _even_bags(g, node)
    if even:
        indices = op.reshape(indices, even)
    rows = g.to(op.take(weight, indices, axis=0), "float64" if kind == "float64" else "float32")
    if per_sample_weights is not None:
        per_sample_weights = op.reshape(per_sample_weights, even) if even else per_sample_weights
        rows = op.multiply(rows, g.to(op.expand_dims(per_sample_weights, -1), g.dtype(rows)))
    counts = op.not_equal(indices, g.const(padding_idx, "int64"))
    if padding_idx >= 0:
        rows = op.where(op.expand_dims(counts, -1), rows, g.const(empty, rows))
    if even:
        size = op.sum(g.to(counts, "int64"), axis=1, keepdims=True)
        out = op.max(rows, axis=1) if mode == 2 else op.sum(rows, axis=1)
        return [g.to(_of_full_bags(g, out, size, mode), kind), None, None, None]
    behind = op.searchsorted(offsets, g.counted(g.size(indices, 0)), right=True, dtype="int64")
    bag = op.expand_dims(op.subtract(behind, g.const(1, "int64")), 0)
    size = op.scatter_nd(op.zeros_like(offsets), bag, g.to(counts, "int64"), "add")
    size = op.expand_dims(size, 1)
    start = op.full(g.const(empty, rows), g.sizes([g.size(offsets, 0), g.size(weight, 1)]), g.dtype(rows))
    out = op.scatter_nd(start, bag, rows, "max" if mode == 2 else "add")
    out = g.to(_of_full_bags(g, out, size, mode), kind)
    return [cut(g, node, out, 0, 0, -1 if include_last_offset else None), None, None, None]


def _of_full_bags(g: TorchGraph, out: Expr, size: Expr, mode: int) -> Expr:
    """Sums as means of what a bag holds, maxima of nothing as 0."""
    if mode == 2:
        return op.where(op.greater(size, g.const(0, "int64")), out, g.const(0, out))
    return op.divide(out, g.to(op.maximum(size, g.const(1, "int64")), g.dtype(out))) if mode == 1 else out


def _even_bags(g: TorchGraph, node: AtenNode) -> tuple[int, int] | None:
    """How many bags there are and how much each holds, where offsets count in even steps: those of an index of rows."""
    offsets: Any = node.node.args[2]
    if name_of(getattr(offsets, "target", "")) != "arange.start_step" or offsets.args[0] != 0:
        return None
    stop, step = (size_of(v.meta["val"]) if hasattr(v, "meta") else v for v in offsets.args[1:3])
    known = isinstance(stop, int) and isinstance(step, int)
    if stop != node.sizes_of(1)[0] or 0 in (stop, step) or known and stop % step:
        return None
    found = g.dim(stop // step if known else stop / step), g.dim(step)
    return None if None in found else cast("tuple[int, int]", found)


@converts("_trilinear")
def trilinear(
    g: TorchGraph,
    node: AtenNode,
    a: Expr,
    b: Expr,
    c: Expr,
    more_a: Sequence[int],
    more_b: Sequence[int],
    more_c: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Expr:
    """The product of three tensors, each with new axes, summed over some."""
    parts: list[Expr] = []
    for x, axes in zip((a, b, c), (more_a, more_b, more_c)):
        for axis in sorted(axes):
            x = op.expand_dims(x, axis)
        parts.append(x)
    product = op.multiply(op.multiply(parts[0], parts[2]), parts[1])
    return op.sum(product, axis=list(summed)) if summed else product
