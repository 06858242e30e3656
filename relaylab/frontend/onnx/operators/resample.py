"""Resampling of an axis as a matrix: every way of ONNX's Resize that Relay's own operators do not have.

Positions, nearest neighbours, linear and cubic weights, antialiasing: https://onnx.ai/onnx/operators/onnx__Resize.html

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
