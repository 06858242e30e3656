"""Resampling along an axis: where an output position lies in the input, and what is read around it.

Everything is written once, for numpy arrays and for loop-level expressions: a `Maths` does the few
functions in which they differ.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from relaylab.op.helpers import Element, ElementBuilder, Scalar

MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
METHODS = ("nearest_neighbor", "linear", "cubic")
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


class ResamplingArrays:
    """The functions on numpy arrays."""

    floor, ceil = staticmethod(np.floor), staticmethod(np.ceil)

    @staticmethod
    def clamp(x: Any, extent: int) -> Any:
        """A whole number as an index, limited to 0 .. extent-1."""
        return np.clip(x, 0, extent - 1).astype("int64")

    @staticmethod
    def inside(x: Any, extent: int) -> Any:
        """Whether a position lies in 0 .. extent-1."""
        return (x >= 0) & (x <= extent - 1)

    @staticmethod
    def pick(condition: Any, then: Any, otherwise: Any) -> Any:
        """`then` where the condition holds, else `otherwise`."""
        return (
            (then if condition else otherwise) if isinstance(condition, bool) else np.where(condition, then, otherwise)
        )

    @staticmethod
    def real(extent: int) -> int:
        """An extent, for divisions."""
        return extent


class Expressions:
    """The functions on loop-level expressions."""

    def __init__(self, b: ElementBuilder):
        self.b, self.floor, self.ceil = b, b.floor, b.ceil

    def pick(self, condition: bool | Element, then: Scalar, otherwise: Scalar) -> Scalar:
        """`then` where the condition holds, else `otherwise`; decided now where that can be known now."""
        if isinstance(condition, bool):
            return then if condition else otherwise
        return self.b.select(condition, then, otherwise)

    def real(self, extent: int | Element) -> Scalar:
        """An extent that may be a size, for divisions."""
        return extent if isinstance(extent, int) else self.b.cast(extent, "float64")

    def clamp(self, x: Any, extent: int) -> Any:
        """A whole number as an index, limited to 0 .. extent-1."""
        return self.b.clamp_index(self.b.cast(x, "int64"), extent)

    def inside(self, x: Any, extent: int) -> Any:
        """Whether a position lies in 0 .. extent-1."""
        return self.b.all_of(x >= 0.0, x <= self.real(extent) - 1.0)


Maths = ResamplingArrays | Expressions


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an axis is resampled: method, how positions map, how "nearest" rounds, the parameters of cubic."""

    method: str
    mode: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False

    def position(self, m: Maths, x: Any, extent: int, target: int, roi: tuple[float, float] = (0.0, 1.0)) -> Any:
        """Where output position `x` (a float64 of 0 .. target-1) lies among `extent` inputs."""
        extent, target = cast(int, m.real(extent)), cast(int, m.real(target))
        scale = extent / target
        match self.mode:
            case "align_corners":
                return x * m.pick(target > 1, (extent - 1) / m.pick(target > 1, target - 1, 1.0), 0.0)
            case "asymmetric":
                return x * scale
            case "tf_half_pixel_for_nn":
                return (x + 0.5) * scale
            case "tf_crop_and_resize":
                first, last = roi[0] * (extent - 1), roi[1] * (extent - 1)
                # the division stands last, as in ONNX's formula: a product might be fused with the sum, which rounds
                # otherwise and decides what is outside
                several = x * (last - first) / m.pick(target > 1, target - 1.0, 1.0) + first
                return m.pick(target > 1, several, x * 0.0 + 0.5 * (first + last))
        middle = (x + 0.5) * scale - 0.5
        return m.pick(target > 1, middle, x * 0.0) if self.mode == "pytorch_half_pixel" else middle

    def taps(self, m: Maths, at: Any, extent: int) -> list[tuple[Any, Any]]:
        """The (index, weight) that make the value at position `at`."""
        if self.method == "nearest_neighbor":
            return [(m.clamp(self._nearest(m, at), extent), None)]
        low = m.floor(at)
        t = at - low
        weights = [1.0 - t, t] if self.method == "linear" else cubic_weights(t, self.alpha)
        first = 0 if self.method == "linear" else -1
        places = [low + float(first + k) for k in range(len(weights))]
        if self.exclude and self.method == "cubic":
            weights = [m.pick(m.inside(p, extent), w, w * 0.0) for p, w in zip(places, weights)]
            total = weights[0] + weights[1] + weights[2] + weights[3]
            weights = [w / total for w in weights]
        return [(m.clamp(p, extent), w) for p, w in zip(places, weights)]

    def _nearest(self, m: Maths, at: Any) -> Any:
        rounding = self.rounding or ("round" if self.mode == "align_corners" else "floor")
        match rounding:
            case "floor":
                return m.floor(at + 1e-5)
            case "ceil":
                return m.ceil(at - 1e-5)
            case "round_prefer_floor":
                return m.ceil(at - 0.5)
        return m.floor(at + 0.5)

    def along(self, data: np.ndarray, axis: int, target: int, roi: tuple[float, float] = (0.0, 1.0)) -> np.ndarray:
        """`data` (float64) with an axis resampled to `target` positions."""
        extent = data.shape[axis]
        m = ResamplingArrays()
        at = self.position(m, np.arange(target, dtype="float64"), extent, target, roi)
        total = np.zeros(())
        for index, weight in self.taps(m, at, extent):
            values = np.moveaxis(np.take(data, index, axis), axis, -1)
            total = total + (values if weight is None else values * weight)
        return np.moveaxis(total, -1, axis)


def cubic_weights(t: Any, a: float) -> list[Any]:
    """The four weights of cubic interpolation at fraction `t`. Keys, 1981."""
    near = lambda x: ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = lambda x: ((x * a - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


SLACK = 2.0**-12
"""By how much an interpolated value may fall short of a whole number before its fraction is dropped."""


def settled(m: Maths, value: Any, dtype: str) -> Any:
    """`value` (a float64) made ready for `dtype`: rounding errors shall not decide what an integer becomes."""
    return m.pick(value < 0.0, value - SLACK, value + SLACK) if "int" in dtype else value


def blend(read: Any, taps: list[list[tuple[Any, Any]]]) -> Any:
    """The sum over all combinations of the taps of several axes of `read(indices)` times the product of the weights."""
    terms: list[tuple[tuple, Any]] = [((), None)]
    for choices in taps:
        terms = [((*at, k), w if v is None else v if w is None else v * w) for at, v in terms for k, w in choices]
    total = None
    for at, weight in terms:
        value = read(*at) if weight is None else read(*at) * weight
        total = value if total is None else total + value
    return total
