"""Resizing and sampling of images: Resize, Upsample, GridSample, AffineGrid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.onnx.graph import Graph
from relaylab.frontend.onnx.node import Node
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Expr
from relaylab.op import image

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize")
ROUNDING = {"round_prefer_floor": "round_prefer_floor", "round_prefer_ceil": "round_prefer_ceil", "floor": "floor", "ceil": "ceil"}
RESIZE = {1: image.resize1d, 2: image.resize2d, 3: image.resize3d}


@converts("Upsample", since=7)
def upsample_attribute(g: Graph, node: Node, x: Expr) -> Expr:
    return _scaled(g, node, x, node.need("scales"))


@converts("Upsample", since=9)
@converts("Resize", since=10)
def upsample(g: Graph, node: Node, x: Expr, scales: Expr) -> Expr:
    return _scaled(g, node, x, g.known(scales, "scales").tolist())


def _scaled(g: Graph, node: Node, x: Expr, scales: Sequence[float]) -> Expr:
    """The first form of resizing: positions are scaled, nearest is the one before."""
    method = METHODS[node.choice("mode", "nearest", tuple(METHODS))]
    target = [int(np.floor(n * s)) for n, s in zip(g.shape(x), scales)]
    return resized(g, node, x, target, scales, method, "asymmetric", "floor")


@converts("Resize", since=11)
def resize(g: Graph, node: Node, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None) -> Expr:
    mode = node.choice("coordinate_transformation_mode", "half_pixel", MODES)
    method = METHODS[node.choice("mode", "nearest", tuple(METHODS))]
    axes = g.axes(node.ints("axes") or range(g.rank(x)), g.rank(x))
    if node.get("antialias", 0):
        raise node.error("resizing with antialias is not imported", code="import.attribute")
    factors, target = _target(g, node, x, scales, sizes, axes)
    region = _region(g, roi, axes, g.rank(x)) if mode == "tf_crop_and_resize" else None
    return resized(g, node, x, target, factors, method, mode, ROUNDING[node.choice("nearest_mode", "round_prefer_floor", tuple(ROUNDING))], region)


def _target(g: Graph, node: Node, x: Expr, scales: Expr | None, sizes: Expr | None, axes: list[int]) -> tuple[list[float], list[int]]:
    """How much each axis grows, and its new extent."""
    shape = g.shape(x)
    given = [None if v is None or g.shape(v) == (0,) else g.known(v, w).tolist() for v, w in ((scales, "scales"), (sizes, "sizes"))]
    if (given[0] is None) == (given[1] is None) or len(given[0] or given[1] or ()) != len(axes):
        raise node.error("either scales or sizes must be given, for all axes", code="import.shape")
    factors, target = [1.0] * len(shape), list(shape)
    policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if given[1] is not None:
        wanted = dict(zip(axes, map(int, given[1])))
        ratios = [wanted[a] / shape[a] for a in axes]
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            ratios, wanted = [ratio] * len(axes), {a: int(np.floor(shape[a] * ratio + 0.5)) for a in axes}
        for a, ratio in zip(axes, ratios):
            factors[a], target[a] = ratio, wanted[a]
        return factors, target
    for a, factor in zip(axes, given[0]):  # type: ignore[arg-type]
        factors[a], target[a] = factor, int(np.floor(shape[a] * np.float32(factor)))
    return factors, target


def _region(g: Graph, roi: Expr | None, axes: list[int], rank: int) -> list[float]:
    given = [] if roi is None else g.known(roi, "roi").tolist()
    first, last = [0.0] * rank, [1.0] * rank
    for k, a in enumerate(axes):
        first[a], last[a] = given[k], given[len(axes) + k]
    return first + last


def resized(g: Graph, node: Node, x: Expr, target: list[int], factors: Sequence[float], method: str, mode: str, rounding: str,
            region: list[float] | None = None) -> Expr:
    """`x` with its spatial axes resampled; the first two axes must stay as they are, or be unit ones that can be moved."""
    shape, rank = g.shape(x), g.rank(x)
    moving = [a for a in range(rank) if target[a] != shape[a] or (region is not None and a >= 2)]
    _check(node, g, x, target, factors, moving)
    if not moving:
        return x
    axes = list(range(2, rank)) if min(moving) >= 2 and 1 <= rank - 2 <= 3 else moving
    if len(axes) > 3:
        raise node.error(f"{len(axes)} axes change; up to three are imported", code="import.rank")
    still = [a for a in range(rank) if a not in axes]
    order = still + axes
    flat = op.reshape(op.transpose(x, order), (1, int(np.prod([shape[a] for a in still])), *(shape[a] for a in axes)))
    more = {} if region is None else {"roi": _roi(region, axes, rank)}
    out = RESIZE[len(axes)](flat, [target[a] for a in axes], method=method, coordinate_transformation_mode=mode, rounding_method=rounding,
                            cubic_alpha=node.get("cubic_coeff_a", -0.75), cubic_exclude=node.get("exclude_outside", 0),
                            extrapolation_value=node.get("extrapolation_value", 0.0), **more)
    out = op.reshape(out, [*(shape[a] for a in still), *(target[a] for a in axes)])
    return op.transpose(out, [order.index(a) for a in range(rank)])


def _roi(region: list[float], axes: list[int], rank: int) -> list[float]:
    return [region[a] for a in axes] + [region[rank + a] for a in axes]


def _check(node: Node, g: Graph, x: Expr, target: list[int], factors: Sequence[float], moving: list[int]) -> None:
    """A factor that is not the ratio of the extents moves positions in a way that Relay's operator has not."""
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    for a in moving:
        n = g.shape(x)[a]
        exact = abs(n * factors[a] - target[a]) < 1e-3
        if not exact and mode not in ("align_corners", "tf_crop_and_resize"):
            raise node.error(f"the scale {factors[a]} gives {n * factors[a]:g} of {n} elements, which is no whole number", code="import.shape",
                             help="give sizes instead of scales")


@converts("GridSample", since=16)
def grid_sample(g: Graph, node: Node, x: Expr, grid: Expr) -> Expr:
    methods = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}
    method = methods[node.choice("mode", "bilinear", tuple(methods))]
    padding = node.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    rank = g.rank(x)
    order = [0, rank - 1, *range(1, rank - 1)]
    layout = "NCHW" if rank == 4 else "NCDHW"
    return image.grid_sample(x, op.transpose(grid, order), method, layout, padding, bool(node.get("align_corners", 0)))


@converts("AffineGrid", since=20)
def affine_grid(g: Graph, node: Node, theta: Expr, size: Expr) -> Expr:
    """Positions of the pixels of an image (N, C, H, W) after a linear map."""
    shape = g.ints(size, "size")
    if len(shape) != 4:
        raise node.error("grids of images (N, C, H, W) are imported", code="import.rank")
    ends = [np.linspace(-1, 1, n) if node.get("align_corners", 0) else (2 * np.arange(n) + 1) / n - 1 for n in shape[2:]]
    y, x = np.meshgrid(*ends, indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    moved = op.sum(op.multiply(op.expand_dims(theta, 3), g.const(points[None, None], theta)), axis=[2])
    return op.reshape(op.transpose(moved, [0, 2, 1]), (shape[0], *shape[2:], 2))
