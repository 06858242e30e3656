"""Slices of a tensor along an axis, told apart and ordered by numbers: what `unique` along an axis is made of."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.ir import Constant, Expr, const

MOST_COMPARED = 1 << 26
"""Elements of the comparison of every slice with every other."""


def numbered_slices(g: Graph, x: Expr, axis: int, in_order: bool = True) -> Expr | None:
    """A number for each slice: how many different slices are before it in the order of their elements, or else where
    the first of its kind is. Every slice is compared with every other; None if there are none, or too many."""
    count, order = g.shape(x)[axis], [axis, *(d for d in range(g.rank(x)) if d != axis)]
    rows = op.reshape(op.transpose(x, order), (count, -1)) if count else None
    if rows is None or not 0 < count * count * g.shape(rows)[1] <= MOST_COMPARED:
        return None
    ours, theirs = op.expand_dims(rows, 1), op.expand_dims(rows, 0)
    differ = op.cast(op.not_equal(ours, theirs), "int32")
    first = op.argmax(differ, axis=[2])
    alike = op.equal(op.max(differ, axis=[2]), const(0, "int32"))
    kind = op.argmax(op.cast(alike, "int32"), axis=[1])
    if not in_order:
        return kind
    at = op.expand_dims(first, 2)
    mine, other = (op.gather(op.broadcast_to(v, g.shape(differ)), 2, at) for v in (ours, theirs))
    before = op.logical_and(op.less(op.squeeze(other, axis=[2]), op.squeeze(mine, axis=[2])), op.logical_not(alike))
    leads = op.equal(kind, Constant(np.arange(count).astype(g.dtype(kind))))
    return op.sum(op.cast(op.logical_and(before, leads), "int32"), axis=[1])
