"""Images of open sizes made smaller without patterns: the filter is as wide as a pixel of the smaller image."""

from __future__ import annotations

from relaylab import op
from relaylab.frontend.graph import Graph, is_open, numbered
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Expr, const
from relaylab.op import nn


def open_smoothed(
    g: Graph, x: Expr, axis: int, target: Expr, count: object, factor: float | None, a: float | None
) -> Expr:
    """An axis resampled to `target` elements, `count` as a dimension, as a product with a matrix that is computed when
    the program runs. `factor` is given where it is not what the extents say; `a` is that of the cubic filter, else it
    is linear. Weights outside of the image are shared by the others.
    """
    extent = g.dims(x)[axis]
    many = turns_of(x, axis) if is_open(extent) else const(extent, "int64")
    half, one = const(0.5, "float64"), const(1.0, "float64")
    places, old = (op.add(op.cast(numbered(n, d), "float64"), half) for n, d in ((target, count), (many, extent)))
    sizes = (op.cast(v, "float64") for v in (many, target))
    step = op.divide(*sizes) if factor is None else const(1 / factor, "float64")
    middle = op.expand_dims(op.multiply(places, step), 1)
    distance = op.divide(op.abs(op.subtract(old, middle)), op.maximum(step, one))
    weights = nn.relu(op.subtract(one, distance)) if a is None else _cubic(distance, a)
    weights = op.cast(op.divide(weights, op.sum(weights, axis=1, keepdims=True)), g.dtype(x))
    order = [k for k in range(g.rank(x)) if k != axis] + [axis]
    made = nn.dense(op.transpose(x, order), weights)
    return op.transpose(made, [order.index(k) for k in range(len(order))])


def _cubic(d: Expr, a: float) -> Expr:
    """R. Keys, Cubic convolution interpolation, 1981."""
    number = lambda v: const(v, "float64")
    times = lambda x, v: op.multiply(x, number(v))
    near = op.add(op.multiply(op.multiply(op.subtract(times(d, a + 2), number(a + 3)), d), d), number(1.0))
    far = op.multiply(op.add(op.multiply(op.subtract(times(d, a), number(5 * a)), d), number(8 * a)), d)
    far = op.where(op.less(d, number(2.0)), op.subtract(far, number(4 * a)), number(0.0))
    return op.where(op.less_equal(d, number(1.0)), near, far)
