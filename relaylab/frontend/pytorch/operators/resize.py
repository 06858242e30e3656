"""Resizing of images: nearest, linear and cubic, with torch's scale factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylab.frontend.onnx.operators.resample import ResampledAxis, matrix
from relaylab.frontend.onnx.operators.resize import along
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
from relaylab.op import image


def _resized(
    g: TorchGraph, node: AtenNode, x: Expr, factors: Sequence[float] | None, method: str, mode: str, rounding: str
) -> Expr:
    """Each spatial axis resampled; torch reads by the factor that it was given, also if it does not divide."""
    target = [s for s in node.sizes[2:] if isinstance(s, int)]
    extents = [d for d in g.dims(x)[2:] if isinstance(d, int)]
    if len(target) != g.rank(x) - 2 or len(extents) != len(target):
        raise node.error("the extents of images must be known", "import.dynamic", g.remedy)
    scales = [f if factors else t / n for f, t, n in zip(factors or target, target, extents)]
    exact = all(abs(n * s - t) < 1e-6 for n, s, t in zip(extents, scales, target))
    if len(target) == 2 and exact and method != "nearest_neighbor":
        return image.resize2d(
            x, target, method=method, coordinate_transformation_mode=mode, rounding_method="", cubic_alpha=-0.75
        )
    for k, (n, t, s) in enumerate(zip(extents, target, scales)):
        if n != t or s != 1:
            weights, beyond = matrix(ResampledAxis(n, t, s), method, mode, rounding, -0.75, False, False, None)
            x = along(g, x, k + 2, weights, beyond, 0.0)
    return x


@converts("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def nearest(g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None = None) -> Expr:
    return _resized(g, node, x, factors, "nearest_neighbor", "asymmetric", "floor")


@converts(*(f"_upsample_nearest_exact{n}d.vec" for n in (1, 2, 3)))
def nearest_exact(g: TorchGraph, node: AtenNode, x: Expr, size: object, factors: Sequence[float] | None = None) -> Expr:
    return _resized(g, node, x, factors, "nearest_neighbor", "half_pixel", "round_prefer_ceil")


@converts("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def linear(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, factors: Sequence[float] | None = None
) -> Expr:
    factors = None if corners else factors
    return _resized(g, node, x, factors, "linear", "align_corners" if corners else "half_pixel", "")


@converts("upsample_bicubic2d.vec")
def cubic(
    g: TorchGraph, node: AtenNode, x: Expr, size: object, corners: bool, factors: Sequence[float] | None = None
) -> Expr:
    factors = None if corners else factors
    return _resized(g, node, x, factors, "cubic", "align_corners" if corners else "half_pixel", "")


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
    for axis, t in enumerate(node.sizes[2:]):
        n = g.extent(x, axis + 2)
        factor = factors[axis] if factors else t / n
        if corners:
            factor = (t - 1) / (n - 1) if n > 1 and t > 1 else math.inf
        if n != t or factor != 1:
            weights, beyond = matrix(ResampledAxis(n, t, factor), method, "half_pixel", "", -0.5, True, True, None)
            x = along(g, x, axis + 2, weights, beyond, 0.0)
    return x
