"""Distances between rows, bags of embeddings, and products of three."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.pointwise import both
from relaylab.frontend.pytorch.operators.reduction import vector_norm
from relaylab.frontend.pytorch.table import converts
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
    total, kind = g.shape(indices)[0], g.dtype(weight)
    bags = g.shape(offsets)[0] - include_last_offset
    starts = op.strided_slice(offsets, [0], [bags], [1], axes=[0])
    if include_last_offset:
        ends = op.strided_slice(offsets, [1], [bags + 1], [1], axes=[0])
    else:
        behind = op.strided_slice(offsets, [min(1, bags)], [bags], [1], axes=[0])
        ends = op.concatenate([behind, g.const([total], "int64")], axis=0)
    places = g.const(np.arange(total)[None], "int64")
    inside = op.logical_and(
        op.greater_equal(places, op.expand_dims(starts, 1)), op.less(places, op.expand_dims(ends, 1))
    )
    if padding_idx >= 0:
        counts = op.not_equal(indices, g.const(padding_idx, "int64"))
        inside = op.logical_and(inside, op.expand_dims(counts, 0))
    rows = op.take(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = op.multiply(rows, op.expand_dims(per_sample_weights, 1))
    wide, zero = op.expand_dims(inside, 2), g.const(0, kind)
    size = op.sum(op.cast(inside, "int64"), axis=[1], keepdims=True)
    if mode == 2:
        out = op.max(op.where(wide, op.expand_dims(rows, 0), g.const(-math.inf, kind)), axis=[1])
        out = op.where(op.greater(size, g.const(0, "int64")), out, zero)
    else:
        out = op.sum(op.where(wide, op.expand_dims(rows, 0), zero), axis=[1])
    if mode == 1:
        out = op.divide(out, op.cast(op.maximum(size, g.const(1, "int64")), kind))
    return [out, None, None, None]


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
