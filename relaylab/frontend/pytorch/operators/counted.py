"""Whole numbers: how often each is there, common divisors and multiples."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr


@converts("bincount")
def bincount(g: TorchGraph, node: AtenNode, x: Expr, weights: Expr | None = None, minlength: int = 0) -> Expr:
    """How often each number is there, or the sum of its weights; up to the largest, which is known at run time."""
    places = op.cast(x, "int64")
    if weights is None:
        what = op.ones_like(places)
    else:
        what = weights if g.dtype(weights) in ("float32", "float64") else op.cast(weights, "float64")
    least = g.const(minlength, "int64")
    # the number before all others stands for an empty tensor
    known = op.concatenate([op.reshape(places, (-1,)), op.reshape(g.const(-1, "int64"), (1,))], axis=0)
    size = op.maximum(op.add(op.max(known), g.const(1, "int64")), least)
    empty = op.zeros(op.reshape(size, (1,)), dtype=g.dtype(what))
    return op.scatter_nd(empty, op.expand_dims(places, 0), what, "add")


def _alike(g: TorchGraph, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both of the same shape and data type."""
    dtype = np.result_type(g.dtype(a), g.dtype(b)).name
    shape = np.broadcast_shapes(g.shape(a), g.shape(b))
    first, second = (op.broadcast_to(op.cast(v, dtype), shape) for v in (a, b))
    return first, second


@converts("gcd")
def gcd(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return op.gcd(*_alike(g, a, b))


@converts("lcm")
def lcm(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    a, b = _alike(g, a, b)
    found = op.gcd(a, b)
    return op.abs(op.multiply(op.divide(a, op.maximum(found, g.const(1, found))), b))
