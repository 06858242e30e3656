"""Resizing of images: nearest, linear and cubic, with torch's scale factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab import op
from relaylab.frontend.onnx.operators.resample import ResampledAxis, matrix
from relaylab.frontend.onnx.operators.resize import along
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode, Size
from relaylab.frontend.pytorch.table import converts
from relaylab.frontend.smoothing import open_smoothed
from relaylab.ir import AnyDim, Expr
from relaylab.op import image
from relaylab.op.nn.resampling import chosen


def _open(g: TorchGraph, node: AtenNode, x: Expr) -> bool:
    """Whether what the spatial axes have, or are to have, is known only when the program runs."""
    return not all(isinstance(n, int) for n in (*g.dims(x)[2:], *node.sizes[2:]))


def _extents(g: TorchGraph, node: AtenNode, x: Expr) -> tuple[list[int], list[int]]:
    """What the spatial axes have, and what they are to have."""
    found, target = ([n for n in dims[2:] if isinstance(n, int)] for dims in (g.dims(x), node.sizes))
    if not len(found) == len(target) == g.rank(x) - 2:
        raise node.error("the extents of images must be known", "import.dynamic", g.remedy)
    return found, target


def _targets(g: TorchGraph, x: Expr, size: object, factors: Sequence[float] | None) -> list[Operand]:
    """What the spatial axes are to have: numbers, or expressions."""
    if factors is None:
        return cast("list[Operand]", size)
    found = [g.to(g.size(x, k + 2), "float64") for k in range(len(factors))]
    return [op.cast(op.floor(op.multiply(n, g.const(f, n))), "int64") for n, f in zip(found, factors)]


def _resized(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None, method: str, corners: bool
) -> Expr:
    """Each spatial axis resampled; torch reads by the factor that it was given, also if it does not divide."""
    mode = "align_corners" if corners else "half_pixel"
    how = {"method": method, "coordinate_transformation_mode": mode, "rounding_method": "", "cubic_alpha": -0.75}
    if _open(g, node, x) and g.rank(x) < 5 and (corners or all(f == int(f) for f in factors or ())):
        told = [g.dim(n) for n in node.sizes[2:]]
        targets = [n for n in told if n is not None] if None not in told else None
        if g.rank(x) == 4:
            return image.resize2d(x, targets or g.limits(_targets(g, x, size, factors)), **how)
        line = [1, *targets] if targets else g.limits([1, *_targets(g, x, size, factors)])
        return op.squeeze(image.resize2d(op.expand_dims(x, 2), line, **how), axis=[2])
    extents, target = _extents(g, node, x)
    scales = [f if factors and not corners else t / n for f, t, n in zip(factors or target, target, extents)]
    exact = all(abs(n * s - t) < 1e-6 for n, s, t in zip(extents, scales, target))
    if len(target) == 2 and exact:
        return image.resize2d(x, target, **how)
    for k, (n, t, s) in enumerate(zip(extents, target, scales)):
        if n != t or (s != 1 and method == "cubic"):  # linear, torch copies an axis that keeps its extent
            weights, beyond = matrix(ResampledAxis(n, t, s), method, mode, "", -0.75, False, False, None)
            x = along(g, x, k + 2, weights, beyond, 0.0)
    return x


def _nearest(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None, shift: float
) -> Expr:
    """Places in the float32 that torch computes them in."""
    if _open(g, node, x):
        return _open_nearest(g, x, _targets(g, x, size, factors), node.sizes[2:], factors, shift)
    copied = not shift and g.rank(x) == 4  # torch copies an axis of an image that keeps its extent
    for k, (n, t) in enumerate(zip(*_extents(g, node, x))):
        step = np.float32(1 / factors[k]) if factors else np.float32(n) / np.float32(t)
        places = np.minimum((np.arange(t, dtype="float32") + np.float32(shift)) * step, n - 1).astype("int32")
        if n != t or not (copied or (places == np.arange(n)).all()):
            x = chosen(x, k + 2, g.rank(x), n, places)
    return x


def _open_nearest(
    g: TorchGraph,
    x: Expr,
    targets: Sequence[Operand],
    counts: Sequence[Size],
    factors: Sequence[float] | None,
    shift: float,
) -> Expr:
    """The same places, computed when the program runs: exactly, then rounded as float32 products are."""
    for k, target in enumerate(targets):
        n, t = g.to(g.size(x, k + 2), "int64"), g.to(target, "int64")
        step = g.const(1 / factors[k], "float32") if factors else op.divide(*(op.cast(v, "float32") for v in (n, t)))
        numbers = op.arange(g.const(0, "int64"), t, g.const(1, "int64"), dtype="int64")
        at = op.cast(g.refined(numbers, [counts[k]]), "float64")
        at = op.multiply(op.add(at, g.const(shift, at)), op.cast(step, "float64"))
        at = op.cast(op.cast(at, "float32"), "int64")
        x = op.take(x, op.minimum(at, op.subtract(n, g.const(1, n))), axis=k + 2)
    return x


@converts("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def nearest(g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None = None) -> Expr:
    return _nearest(g, node, x, size, factors, 0)


@converts(*(f"_upsample_nearest_exact{n}d.vec" for n in (1, 2, 3)))
def nearest_exact(g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None = None) -> Expr:
    return _nearest(g, node, x, size, factors, 0.5)


@converts("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def linear(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, factors: Sequence[float] | None = None
) -> Expr:
    return _resized(g, node, x, size, factors, "linear", corners)


@converts("upsample_bicubic2d.vec")
def cubic(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, factors: Sequence[float] | None = None
) -> Expr:
    return _resized(g, node, x, size, factors, "cubic", corners)


def _given(scales: Sequence[float | None]) -> list[float] | None:
    """Factors, if each axis has one."""
    return [s for s in scales if s is not None] if scales and None not in scales else None


@converts(*(f"upsample_nearest{n}d" for n in (1, 2, 3)))
def nearest_by(g: TorchGraph, node: AtenNode, x: Expr, size: object, *scales: float | None) -> Expr:
    return nearest(g, node, x, size, _given(scales))


@converts(*(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)))
def nearest_exact_by(g: TorchGraph, node: AtenNode, x: Expr, size: object, *scales: float | None) -> Expr:
    return nearest_exact(g, node, x, size, _given(scales))


@converts("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def linear_by(g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, *scales: float | None) -> Expr:
    return linear(g, node, x, size, corners, _given(scales))


@converts("upsample_bicubic2d")
def cubic_by(g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, *scales: float | None) -> Expr:
    return cubic(g, node, x, size, corners, _given(scales))


@converts("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def smoothed(g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, *scales: float | None) -> Expr:
    """The filter is as wide as a pixel of the smaller image; weights outside of the image are shared by the others."""
    method = "linear" if "bilinear" in node.name else "cubic"
    factors = _given(scales)
    if _open(g, node, x) and not corners and g.dtype(x) in ("float32", "float64"):
        targets, cubic_a = cast("list[Operand]", size), None if method == "linear" else -0.5
        for axis, t in enumerate(node.sizes[2:]):
            told, factor = g.dim(t), factors[axis] if factors else None
            if factor is not None or told != g.dims(x)[axis + 2]:
                many = g.to(targets[axis], "int64")
                x = open_smoothed(g, x, axis + 2, many, AnyDim() if told is None else told, factor, cubic_a)
        return x
    for axis, t in enumerate(node.sizes[2:]):
        n = g.extent(x, axis + 2)
        factor = factors[axis] if factors else t / n
        if corners:
            factor = (t - 1) / (n - 1) if n > 1 and t > 1 else math.inf
        if n != t or factor != 1:
            weights, beyond = matrix(ResampledAxis(n, t, factor), method, "half_pixel", "", -0.5, True, True, None)
            x = along(g, x, axis + 2, weights, beyond, 0.0)
    return x
