"""Resizing of images: nearest, linear and cubic, with torch's scale factors."""

from __future__ import annotations

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
