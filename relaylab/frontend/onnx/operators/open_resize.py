"""Resizing by a factor of an axis of which only a run tells the extent: positions and weights are computed then.

Positions, nearest neighbours, linear and cubic weights: https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, of_count
from relaylab.ir import Expr
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim

MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")
FINEST = 64
"""The largest divisor of a factor whose products with sizes are expressions: floats have them exactly."""


def grown(extent: object, factor: float) -> Dim:
    """An open extent times a factor, rounded down, as an expression of sizes; `Any` where it is none."""
    exact = Fraction(float(np.float32(factor)))
    if not isinstance(extent, SymbolicDim) or exact.denominator > FINEST:
        return AnyDim()
    return cast(SymbolicDim, extent * exact.numerator) // exact.denominator


def by_factor(g: Graph, x: Expr, a: int, factor: float, method: str, mode: str, rounding: str, alpha: float) -> Expr:
    """An open axis resampled, in the float32 that onnxruntime computes positions in. `mode` is one of MODES."""
    axis = _OpenAxis(g, x, a, factor)
    at = axis.positions(mode)
    if method == "nearest_neighbor":
        return axis.read(x, axis.nearest(at, rounding))
    dtype = g.dtype(x)
    wide = x if "float" in dtype else op.cast(x, "float32")
    low = op.floor(at)
    t = op.cast(op.subtract(at, low), g.dtype(wide))
    weights = _linear(g, t) if method == "linear" else _cubic(g, t, alpha)
    first = 0 if method == "linear" else -1
    total: Expr | None = None
    for k, weight in enumerate(weights):
        place = op.cast(op.add(low, g.const(first + k, low)), "int64")
        value = op.multiply(axis.read(wide, place), axis.along(weight))
        total = value if total is None else op.add(total, value)
    assert total is not None
    return total if g.dtype(wide) == dtype else op.cast(total, dtype)


class _OpenAxis:
    """An axis of a tensor that grows by a factor."""

    def __init__(self, g: Graph, x: Expr, a: int, factor: float):
        self.g, self.a, self.rank, self.factor = g, a, g.rank(x), np.float32(factor)
        self.own = op.take(op.shape_of(x, "int64"), g.const(a, "int64"), axis=0)
        self.extent = op.cast(self.own, "float32")
        self.product = op.multiply(self.extent, g.const(self.factor, self.extent))
        self.count = op.cast(op.floor(self.product), "int64")
        places = op.arange(g.const(0, "int64"), self.count, g.const(1, "int64"), dtype="int64")
        many = grown(g.dims(x)[a], factor)
        self.places = op.cast(places if type(many) is AnyDim else of_count(places, many), "float32")

    def positions(self, mode: str) -> Expr:
        """Where each new element lies among the old ones."""
        g, x = self.g, self.places
        number = lambda v: g.const(v, "float32")
        half = op.add(x, number(0.5))
        if mode == "align_corners":
            length = op.subtract(self.product, number(1))
            several = op.greater(length, number(0))
            divisor = op.where(several, length, number(1))
            at = op.divide(op.multiply(x, op.subtract(self.extent, number(1))), divisor)
            return op.where(several, at, number(0))
        if mode == "asymmetric":
            return op.divide(x, number(self.factor))
        if mode == "tf_half_pixel_for_nn":
            return op.divide(half, number(self.factor))
        at = op.subtract(op.divide(half, number(self.factor)), number(0.5))
        several = op.greater(self.count, g.const(1, "int64"))
        return op.where(several, at, number(-0.5)) if mode == "pytorch_half_pixel" else at

    def nearest(self, at: Expr, rounding: str) -> Expr:
        """Positions as whole numbers."""
        half = self.g.const(0.5, at)
        rounding = {"before": "ceil" if self.factor < 1 else "floor"}.get(rounding, rounding)
        rules = {
            "floor": lambda: op.floor(at),
            "ceil": lambda: op.ceil(at),
            "round_prefer_ceil": lambda: op.floor(op.add(at, half)),
            "round_prefer_floor": lambda: op.ceil(op.subtract(at, half)),
        }
        return op.cast(rules[rounding](), "int64")

    def read(self, x: Expr, place: Expr) -> Expr:
        """The elements at places; those outside are the first or the last."""
        return op.take(x, place, axis=self.a, mode="clip")

    def along(self, weight: Expr) -> Expr:
        """Weights along the axis."""
        behind = self.rank - 1 - self.a
        return op.expand_dims(weight, 1, behind) if behind else weight


def _linear(g: Graph, t: Expr) -> list[Expr]:
    return [op.subtract(g.const(1, t), t), t]


def _cubic(g: Graph, t: Expr, alpha: float) -> list[Expr]:
    """Weights at the distances 1 + t, t, 1 - t and 2 - t. R. Keys, Cubic convolution interpolation, 1981."""
    number = lambda v: g.const(v, t)

    def polynomial(d: Expr, *factors: float) -> Expr:
        total = number(factors[0])
        for factor in factors[1:]:
            total = op.add(op.multiply(total, d), number(factor))
        return total

    near = lambda d: polynomial(d, alpha + 2, -(alpha + 3), 0, 1)
    far = lambda d: polynomial(d, alpha, -5 * alpha, 8 * alpha, -4 * alpha)
    one, rest = op.add(number(1), t), op.subtract(number(1), t)
    return [far(one), near(t), near(rest), far(op.add(number(1), rest))]
