"""Resampling of an axis as a matrix: every way of ONNX's Resize that Relay's own operators do not have.
Of an axis whose extent only a run tells positions and weights are computed then.

Positions, nearest neighbours, linear and cubic weights, antialiasing: https://onnx.ai/onnx/operators/onnx__Resize.html

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, numbered
from relaylab.ir import Expr
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim

OPEN_MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")
FINEST = 64
"""The largest divisor of a factor whose products with sizes are expressions: floats have them exactly."""


@dataclass(frozen=True, slots=True)
class ResampledAxis:
    """How one axis changes: extent before and after, the factor, and the part that is read (for tf_crop_and_resize)."""

    extent: int
    target: int
    factor: float
    first: float = 0.0
    last: float = 1.0

    def positions(self, mode: str) -> np.ndarray:
        """Where each new element lies among the old ones, in the float32 that onnxruntime computes it in."""
        x, factor = np.arange(self.target, dtype="float32"), np.float32(self.factor)
        match mode:
            case "align_corners":
                length = self.factor * self.extent
                return x * (self.extent - 1) / (length - 1) if length > 1 else x * 0
            case "asymmetric":
                return x / factor
            case "pytorch_half_pixel" if self.target <= 1:
                return x * 0 - 0.5
            case "tf_half_pixel_for_nn":
                return (x + 0.5) / factor
            case "half_pixel_symmetric":
                adjustment = self.target / (self.factor * self.extent)
                return self.extent / 2 * (1 - adjustment) + (x + 0.5) / self.factor - 0.5
            case "tf_crop_and_resize":
                span = (self.last - self.first) * (self.extent - 1)
                if self.target == 1:
                    return x * 0 + 0.5 * (self.first + self.last) * (self.extent - 1)
                return self.first * (self.extent - 1) + x * span / (self.target - 1)
        return (x + 0.5) / factor - 0.5


def matrix(
    axis: ResampledAxis,
    method: str,
    mode: str,
    rounding: str,
    alpha: float,
    exclude: bool,
    antialias: bool,
    outside: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The weights (target, extent) of the old elements in the new ones, and which new ones lie outside."""
    at = axis.positions(mode).astype("float64")
    beyond = (at < 0) | (at > axis.extent - 1) if outside is not None else np.zeros(len(at), bool)
    places, weights = taps(axis, at, method, rounding, alpha, antialias)
    if exclude and method != "nearest_neighbor":
        weights = np.where((places < 0) | (places >= axis.extent), 0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    out = np.zeros((axis.target, axis.extent))
    rows = np.repeat(np.arange(axis.target)[:, None], places.shape[1], 1)
    np.add.at(out, (rows, np.clip(places, 0, axis.extent - 1)), weights)
    return out, beyond


def taps(
    axis: ResampledAxis, at: np.ndarray, method: str, rounding: str, alpha: float, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Which old elements each new one is made of, and their weights."""
    if method == "nearest_neighbor":
        rounding = {"before": "ceil" if axis.factor < 1 else "floor"}.get(rounding, rounding)
        return nearest(at, rounding)[:, None], np.ones((len(at), 1))
    shrink = min(axis.factor, 1.0) if antialias else 1.0
    reach = (1 if method == "linear" else 2) / shrink
    low = np.floor(at).astype(int)
    steps = np.arange(1 - int(np.ceil(reach)), int(np.ceil(reach)) + 1)
    places = low[:, None] + steps
    distance = np.abs(places - at[:, None]) * shrink
    weights = np.maximum(1 - distance, 0) if method == "linear" else cubic(distance, alpha)
    return places, weights / weights.sum(1, keepdims=True) if antialias else weights


def nearest(at: np.ndarray, rounding: str) -> np.ndarray:
    """Positions as whole numbers."""
    rules = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    }
    return rules[rounding](at).astype(int)


def cubic(d: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel at a distance. R. Keys, Cubic convolution interpolation, 1981."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def grown(extent: object, factor: float) -> Dim:
    """An open extent times a factor, rounded down, as an expression of sizes; `Any` where it is none."""
    exact = Fraction(float(np.float32(factor)))
    if not isinstance(extent, SymbolicDim) or exact.denominator > FINEST:
        return AnyDim()
    return cast(SymbolicDim, extent * exact.numerator) // exact.denominator


def by_factor(g: Graph, x: Expr, a: int, factor: float, method: str, mode: str, rounding: str, alpha: float) -> Expr:
    """An open axis resampled, in the float32 that onnxruntime computes positions in. `mode` is one of OPEN_MODES."""
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
        self.places = op.cast(numbered(self.count, grown(g.dims(x)[a], factor)), "float32")

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
