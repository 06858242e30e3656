"""Parts of matrices in several formats: diagonals, determinants."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.ir import Constant, Expr


def diagonal(a: Expr, n: int) -> Expr:
    """The diagonals of n x n matrices."""
    one = Constant(np.eye(n, dtype="bool"))
    return op.sum(op.where(one, a, op.zeros_like(a)), axis=[-1])


def sign_and_pivots(g: Graph, a: Expr, n: int) -> tuple[Expr, Expr]:
    """Whether rows of n x n matrices were exchanged an even number of times, as 1 or -1, and the pivots: the product
    of all these is the determinant."""
    triangles, order = op.lu(a)
    later, earlier = op.expand_dims(order, axis=-2), op.expand_dims(order, axis=-1)
    behind = Constant(np.triu(np.ones((n, n), "bool"), 1))
    turned = op.sum(op.cast(op.logical_and(op.greater(earlier, later), behind), "int32"), axis=[-2, -1])
    odd = op.equal(op.floor_mod(turned, g.const(2, "int32")), g.const(1, "int32"))
    one = g.const(1, g.dtype(a))
    return op.where(odd, op.negative(one), one), diagonal(triangles, n)
