"""Resizing and sampling of images: Resize, Upsample, GridSample, AffineGrid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.contract import product
from relaylab.frontend.onnx.operators.resample import ResampledAxis, matrix
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import image

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize",
    "half_pixel_symmetric",
)  # fmt: skip
ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@converts("Upsample", since=7)
def upsample_attribute(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _scaled(g, node, x, node.need("scales"))


@converts("Upsample", since=9)
@converts("Resize", since=10)
def upsample(g: Graph, node: OnnxNode, x: Expr, scales: Expr) -> Expr:
    return _scaled(g, node, x, g.known(scales, "scales").tolist())


def _scaled(g: Graph, node: OnnxNode, x: Expr, scales: Sequence[float]) -> Expr:
    """The first form of resizing: positions are scaled, nearest is the one before, or behind in a smaller image."""
    method = METHODS[node.choice("mode", "nearest", tuple(METHODS))]
    _check_scales(node, scales, g.rank(x))
    target = [int(np.floor(n * s)) for n, s in zip(g.shape(x), scales)]
    return resized(g, node, x, target, scales, method, "asymmetric", "before")


def _check_scales(node: OnnxNode, scales: Sequence[float], count: int) -> None:
    if len(scales) != count or not all(0 < s < np.inf for s in scales):
        raise node.error(f"scales of {list(scales)} for {count} axes", code="import.shape")


@converts("Resize", since=11)
def resize(
    g: Graph, node: OnnxNode, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None
) -> Expr:
    mode = node.choice("coordinate_transformation_mode", "half_pixel", MODES)
    method = METHODS[node.choice("mode", "nearest", tuple(METHODS))]
    axes = g.axes(node.ints("axes") or range(g.rank(x)), g.rank(x))
    factors, target = _target(g, node, x, scales, sizes, axes)
    region = _region(g, roi, axes, g.rank(x)) if mode == "tf_crop_and_resize" else None
    return resized(
        g, node, x, target, factors, method, mode, node.choice("nearest_mode", "round_prefer_floor", ROUNDING), region
    )


def _target(
    g: Graph, node: OnnxNode, x: Expr, scales: Expr | None, sizes: Expr | None, axes: list[int]
) -> tuple[list[float], list[int]]:
    """How much each axis grows, and its new extent."""
    shape = g.shape(x)
    given = [
        None if v is None or g.shape(v) == (0,) else g.known(v, w).tolist()
        for v, w in ((scales, "scales"), (sizes, "sizes"))
    ]
    if (given[0] is None) == (given[1] is None) or len(given[0] or given[1] or ()) != len(axes):
        raise node.error("either scales or sizes must be given, for all axes", code="import.shape")
    factors, target = [1.0] * len(shape), list(shape)
    policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if given[1] is not None:
        wanted = dict(zip(axes, map(int, given[1])))
        ratios = [wanted[a] / max(shape[a], 1) for a in axes]
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            ratios, wanted = [ratio] * len(axes), {a: int(np.floor(shape[a] * ratio + 0.5)) for a in axes}
        for a, ratio in zip(axes, ratios):
            factors[a], target[a] = ratio, wanted[a]
        return factors, target
    _check_scales(node, given[0] or (), len(axes))
    for a, factor in zip(axes, given[0] or ()):
        factors[a], target[a] = factor, int(np.floor(shape[a] * np.float32(factor)))
    return factors, target


def _region(g: Graph, roi: Expr | None, axes: list[int], rank: int) -> list[float]:
    given = [] if roi is None else g.known(roi, "roi").tolist()
    first, last = [0.0] * rank, [1.0] * rank
    for k, a in enumerate(axes):
        first[a], last[a] = given[k], given[len(axes) + k]
    return first + last


def resized(
    g: Graph,
    node: OnnxNode,
    x: Expr,
    target: list[int],
    factors: Sequence[float],
    method: str,
    mode: str,
    rounding: str,
    region: list[float] | None = None,
) -> Expr:
    """`x` with some axes resampled: by Relay's operator for images where it says the same, else by matrices."""
    shape, rank = g.shape(x), g.rank(x)
    moving = [a for a in range(rank) if target[a] != shape[a] or (region is not None and a >= 2)]
    alpha, exclude = node.get("cubic_coeff_a", -0.75), node.get("exclude_outside", 0)
    fill, antialias = node.get("extrapolation_value", 0.0), bool(node.get("antialias", 0))
    if not moving:
        return x
    if any(not shape[a] for a in moving):
        raise node.error(f"{g.tensor(x)} has nothing to make {target} of", code="import.shape")
    exact = all(abs(shape[a] * factors[a] - target[a]) < 1e-3 for a in moving) or mode == "tf_crop_and_resize"
    if (
        rank == 4
        and min(moving) >= 2
        and exact
        and not antialias
        and mode != "half_pixel_symmetric"
        and method != "nearest_neighbor"
    ):
        roi: dict[str, Any] = {} if region is None else {"roi": [region[2], region[3], region[6], region[7]]}
        return image.resize2d(
            x,
            target[2:],
            method=method,
            coordinate_transformation_mode=mode,
            rounding_method="",
            cubic_alpha=alpha,
            cubic_exclude=exclude,
            extrapolation_value=fill,
            **roi,
        )
    outside = fill if mode == "tf_crop_and_resize" else None
    for a in moving:
        node.bound(shape[a], target[a])
        first, last = (0.0, 1.0) if region is None else (region[a], region[rank + a])
        axis = ResampledAxis(shape[a], target[a], factors[a], first, last)
        x = along(g, x, a, *matrix(axis, method, mode, rounding, alpha, bool(exclude), antialias, outside), fill)
    return x


def along(g: Graph, x: Expr, a: int, weights: np.ndarray, beyond: np.ndarray, fill: float) -> Expr:
    """One axis resampled; rows of a single weight only choose elements."""
    if ((weights == 0) | (weights == 1)).all() and (weights.sum(1) == 1).all():
        out = op.take(x, Constant(weights.argmax(1).astype("int32")), axis=a)
    else:
        rank, dtype = g.rank(x), g.dtype(x)
        order = [d for d in range(rank) if d != a] + [a]
        wide = op.transpose(x, order) if "float" in dtype else op.cast(op.transpose(x, order), "float32")
        out = product(g, wide, g.const(weights.T, wide))
        out = op.transpose(out if g.dtype(out) == dtype else op.cast(out, dtype), [order.index(d) for d in range(rank)])
    if not beyond.any():
        return out
    mask = Constant(beyond.reshape([-1 if d == a else 1 for d in range(g.rank(x))]))
    return op.where(mask, g.const(fill, out), out)


@converts("GridSample", since=16)
def grid_sample(g: Graph, node: OnnxNode, x: Expr, grid: Expr) -> Expr:
    methods = {
        "bilinear": "bilinear",
        "linear": "bilinear",
        "nearest": "nearest",
        "bicubic": "bicubic",
        "cubic": "bicubic",
    }
    method = methods[node.choice("mode", "bilinear", tuple(methods))]
    padding = node.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    rank = g.rank(x)
    order = [0, rank - 1, *range(1, rank - 1)]
    layout = "NCHW" if rank == 4 else "NCDHW"
    corners = bool(node.get("align_corners", 0))
    if method == "nearest":
        grid = _even(g, grid, x, corners)
    return image.grid_sample(x, op.transpose(grid, order), method, layout, padding, corners)


def _even(g: Graph, grid: Expr, x: Expr, corners: bool) -> Expr:
    """The grid with the places in the middle of two pixels moved to the even one, which ONNX takes there; Relay takes
    the one farther from 0.
    """
    size = op.cast(op.reverse(op.strided_slice(op.shape_of(x), [2], [g.rank(x)], [1]), 0), g.dtype(grid))
    one, two, half = (g.const(v, grid) for v in (1, 2, 0.5))
    last = op.subtract(size, one)
    scale, edge = (op.maximum(last, half), g.const(0, grid)) if corners else (size, half)
    place = op.subtract(op.divide(op.multiply(op.add(grid, one), scale), two), edge)
    low = op.floor(place)
    even = op.multiply(op.floor(op.divide(op.add(low, one), two)), two)
    to = op.subtract(op.divide(op.multiply(op.add(even, edge), two), scale), one)
    return op.where(op.equal(op.subtract(place, low), half), to, grid)


@converts("AffineGrid", since=20)
def affine_grid(g: Graph, node: OnnxNode, theta: Expr, size: Expr) -> Expr:
    """Positions of pixels of an image (N, C, H, W) or volume after a linear map; the last axis comes first in them."""
    shape = g.ints(size, "size")
    node.bound(*shape)
    ends = [
        np.linspace(-1, 1, n) if node.get("align_corners", 0) else (2 * np.arange(n) + 1) / n - 1 for n in shape[2:]
    ]
    grid = np.meshgrid(*ends, indexing="ij")[::-1]
    points = np.stack([*(v.ravel() for v in grid), np.ones(grid[0].size)])
    moved = op.sum(op.multiply(op.expand_dims(theta, 3), g.const(points[None, None], theta)), axis=[2])
    return op.reshape(op.transpose(moved, [0, 2, 1]), (shape[0], *shape[2:], len(ends)))
