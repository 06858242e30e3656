"""Resizing and sampling of images: Resize, Upsample, GridSample, AffineGrid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.contract import product
from relaylab.frontend.onnx.operators.resample import OPEN_MODES, ResampledAxis, by_factor, matrix
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.smoothing import open_smoothed
from relaylab.ir import AnyDim, Constant, Expr, const, is_call_to
from relaylab.ir.dims import SymbolicDim
from relaylab.op import image
from relaylab.op.base import call_operator
from relaylab.op.nn.resampling import chosen, weighted
from relaylab.support.errors import RelayValueError

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize",
    "half_pixel_symmetric",
)  # fmt: skip
MOST_TAPS = 8  # of an element, up to which their sum costs less than a product with a matrix
IMAGES = {3: image.resize1d, 4: image.resize2d, 5: image.resize3d}
ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@converts("Upsample")
def upsample_image(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """The first form: images alone, and two factors by their names."""
    return _scaled(g, node, x, [1.0, 1.0, node.need("height_scale"), node.need("width_scale")])


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
    x, scales = _by_fractions(g, node, x, scales, list(range(g.rank(x))), method, "asymmetric", "before")
    target = [_times(g, x, n, s) for n, s in zip(g.dims(x), scales)]
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
    rounding = node.choice("nearest_mode", "round_prefer_floor", ROUNDING)
    axes = g.axes(node.ints("axes") or range(g.rank(x)), g.rank(x))
    scales, sizes = (None if v is None or g.dims(v) == (0,) else v for v in (scales, sizes))
    region = _region(g, roi, axes, g.rank(x)) if mode == "tf_crop_and_resize" else None
    if scales is not None and sizes is None:
        _policy(node)  # means nothing then, and may be written
        given = g.known(scales, "scales").tolist()
        if len(given) == len(axes) and any(type(g.dims(x)[a]) is AnyDim and f > 1 for a, f in zip(axes, given)):
            if all(f == int(f) for f in given):
                own = op.take(op.shape_of(x, "int64"), g.const(axes, "int64"), axis=0)
                grown = op.multiply(own, g.const([int(f) for f in given], "int64"))
                return _to_values(g, node, x, grown, axes, method, mode, rounding)
        if len(given) == len(axes):
            x, given = _by_fractions(g, node, x, given, axes, method, mode, rounding)
        factors, target = _by_scales(g, node, x, given, axes)
    elif sizes is None or scales is not None:
        raise _unclear(node)
    elif (wanted := g.sizes(sizes)) is not None:
        factors, target = _by_sizes(g, node, x, wanted, axes)
    else:
        return _to_values(g, node, x, sizes, axes, method, mode, rounding)
    return resized(g, node, x, target, factors, method, mode, rounding, region)


def _policy(node: OnnxNode) -> str:
    return node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))


def _unclear(node: OnnxNode) -> RelayValueError:
    return node.error("either scales or sizes must be given, for all axes", code="import.shape")


def _by_fractions(
    g: Graph, node: OnnxNode, x: Expr, scales: Sequence[float], axes: list[int], method: str, mode: str, rounding: str
) -> tuple[Expr, list[float]]:
    """`x` resampled along open axes by fractions, or along those without a name; what is left to do."""
    how, direct = _manner(node, method, mode, rounding)
    if not direct or mode not in OPEN_MODES or (method == "cubic" and how["cubic_exclude"]):
        return x, list(scales)
    left = list(scales)
    for k, (a, factor) in enumerate(zip(axes, scales)):
        extent = g.dims(x)[a]
        if factor > 0 and factor != 1 and is_open(extent) and (type(extent) is AnyDim or factor != int(factor)):
            x, left[k] = by_factor(g, x, a, factor, method, mode, rounding, how["cubic_alpha"]), 1.0
    return x, left


def _by_scales(
    g: Graph, node: OnnxNode, x: Expr, scales: Sequence[float], axes: list[int]
) -> tuple[list[float], list[Any]]:
    """How much each axis grows, and its new extent."""
    if len(scales) != len(axes):
        raise _unclear(node)
    _check_scales(node, scales, len(axes))
    target = list(g.dims(x))
    factors = [1.0] * len(target)
    for a, factor in zip(axes, scales):
        factors[a], target[a] = factor, _times(g, x, target[a], np.float32(factor))
    return factors, target


def _times(g: Graph, x: Expr, extent: int | AnyDim, factor: float | np.float32) -> int | AnyDim:
    """An extent times a factor, rounded down; one that is open keeps its name if the factor is whole."""
    if factor == 1:
        return extent
    if isinstance(extent, SymbolicDim) and factor == int(factor):
        return extent * int(factor)
    known = extent if isinstance(extent, int) else g.shape(x)[0]  # which refuses what is open
    return int(np.floor(known * factor))


def _by_sizes(g: Graph, node: OnnxNode, x: Expr, sizes: list[Any], axes: list[int]) -> tuple[list[float], list[Any]]:
    """As `_by_scales`, of extents that are given; what an open axis grows by is known when the program runs."""
    if len(sizes) != len(axes):
        raise _unclear(node)
    shape, target = g.dims(x), list(g.dims(x))
    factors = [1.0] * len(shape)
    policy = _policy(node)
    ratios = [0.0 if is_open(n) or is_open(shape[a]) else n / max(shape[a], 1) for n, a in zip(sizes, axes)]
    if policy != "stretch":
        if any(map(is_open, sizes)):
            raise node.error(f"sizes that are known when it runs only, and {policy}", "import.dynamic", g.remedy)
        ratios = [(min if policy == "not_larger" else max)(ratios)] * len(axes)
        sizes = [int(np.floor(g.shape(x)[a] * ratios[0] + 0.5)) for a in axes]
    for a, n, ratio in zip(axes, sizes, ratios):
        factors[a], target[a] = ratio, n
    return factors, target


def _to_values(
    g: Graph, node: OnnxNode, x: Expr, sizes: Expr, axes: list[int], method: str, mode: str, rounding: str
) -> Expr:
    """Images of a size that is computed when the program runs."""
    how, direct = _manner(node, method, mode, rounding)
    if g.rank(x) != 4 or axes not in ([2, 3], [0, 1, 2, 3]) or not direct or _policy(node) != "stretch":
        g.known(sizes, "sizes")  # refuses what is not known
    spatial = op.strided_slice(sizes, [len(axes) - 2], [len(axes)], [1])
    out = image.resize2d(x, spatial, **how)
    return out if len(axes) == 2 else op.reshape(out, sizes)  # an error where it asks for another batch, or channels


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
    target: list[Any],
    factors: Sequence[float],
    method: str,
    mode: str,
    rounding: str,
    region: list[float] | None = None,
) -> Expr:
    """`x` with some axes resampled: by Relay's operator for images where it says the same, else by matrices."""
    shape, rank = g.dims(x), g.rank(x)
    # a fraction may move elements of an axis that stays as long: 2 x 1.3 are 2
    uneven = lambda a: not is_open(shape[a]) and abs(shape[a] * factors[a] - target[a]) >= 1e-3
    moving = [a for a in range(rank) if target[a] != shape[a] or uneven(a) or (region is not None and a >= 2)]
    how, direct = _manner(node, method, mode, rounding)
    if not moving:
        return x
    if any(not is_open(shape[a]) and not shape[a] for a in moving):
        raise node.error(f"{g.tensor(x)} has nothing to make {target} of", code="import.shape")
    unknown = [a for a in moving if is_open(shape[a]) or is_open(target[a])]
    direct = direct and (mode == "tf_crop_and_resize" or not any(a not in unknown and uneven(a) for a in moving))
    if region is not None:
        how["roi"] = [*region[2:rank], *region[rank + 2 :]]
    if direct and min(moving) >= 2 and rank in ((4,) if region or not unknown else IMAGES):
        if unknown or method != "nearest_neighbor":
            return IMAGES[rank](x, target[2:], **how)
    if unknown and _smooths_openly(node, how, mode) and all(isinstance(target[a], int) for a in moving):
        cubic_a = None if method == "linear" else how["cubic_alpha"]
        for a in moving:
            x = open_smoothed(g, x, a, const(target[a], "int64"), target[a], None, cubic_a)
        return x
    if unknown:
        g.shape(x)  # refuses what is open
    fill = how["extrapolation_value"]
    rest = how["cubic_alpha"], bool(how["cubic_exclude"]), bool(node.get("antialias", 0))
    outside = fill if mode == "tf_crop_and_resize" else None
    outer = [a for a in moving if a != rank - 1]
    # nearest elements of an image that grows: a row is gathered once, and then repeated
    gathered = method == "nearest_neighbor" and rank - 1 in moving and any(target[a] > shape[a] for a in outer)
    for a in [rank - 1, *outer] if gathered else moving:
        node.bound(shape[a], target[a])
        first, last = (0.0, 1.0) if region is None else (region[a], region[rank + a])
        axis = ResampledAxis(shape[a], target[a], factors[a], first, last)
        x = along(g, x, a, *matrix(axis, method, mode, rounding, *rest, outside), fill)
        if gathered and is_call_to(x, "take") and a == rank - 1:
            x = call_operator("annotation.stop_fusion", x)
    return x


def _smooths_openly(node: OnnxNode, how: Mapping[str, Any], mode: str) -> bool:
    """Whether an open image is made smaller as PIL does it, and torch."""
    wide = node.get("antialias", 0) and how["method"] != "nearest_neighbor"
    return bool(wide and how["cubic_exclude"] and mode == "half_pixel")


def _manner(node: OnnxNode, method: str, mode: str, rounding: str) -> tuple[dict[str, Any], bool]:
    """The attributes of Relay's operators for images, and whether they say it all."""
    how = {
        "method": method,
        "coordinate_transformation_mode": mode,
        "rounding_method": {"before": "floor"}.get(rounding, rounding) if method == "nearest_neighbor" else "",
        "cubic_alpha": node.get("cubic_coeff_a", -0.75),
        "cubic_exclude": node.get("exclude_outside", 0),
        "extrapolation_value": node.get("extrapolation_value", 0.0),
    }
    return how, not node.get("antialias", 0) and mode != "half_pixel_symmetric"


def along(g: Graph, x: Expr, a: int, weights: np.ndarray, beyond: np.ndarray, fill: float) -> Expr:
    """One axis resampled; rows of a single weight only choose elements, those of a few are sums of chosen ones."""
    rank, dtype, extent = g.rank(x), g.dtype(x), weights.shape[1]
    if ((weights == 0) | (weights == 1)).all() and (weights.sum(1) == 1).all():
        out = chosen(x, a, rank, extent, weights.argmax(1))
    else:
        wide = x if "float" in dtype else op.cast(x, "float32")
        few = int((weights != 0).sum(1).max()) <= MOST_TAPS and g.dtype(wide) in ("float32", "float64")
        out = weighted(wide, a, rank, extent, _taps(weights, g.dtype(wide))) if few else _by_matrix(g, wide, a, weights)
        out = out if g.dtype(out) == dtype else op.cast(out, dtype)
    if not beyond.any():
        return out
    mask = Constant(beyond.reshape([-1 if d == a else 1 for d in range(g.rank(x))]))
    return op.where(mask, g.const(fill, out), out)


def _taps(weights: np.ndarray, dtype: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places and weights of all rows, as many as the row with the most has: those of others weigh nothing."""
    count = int((weights != 0).sum(1).max())
    order = np.argsort(weights == 0, axis=1, kind="stable")[:, :count]
    found = np.take_along_axis(weights, order, 1)
    order = np.where(found == 0, order[:, :1], order)
    return [(order[:, k], found[:, k].astype(dtype)) for k in range(count)]


def _by_matrix(g: Graph, x: Expr, a: int, weights: np.ndarray) -> Expr:
    rank = g.rank(x)
    order = [d for d in range(rank) if d != a] + [a]
    out = product(g, op.transpose(x, order), g.const(weights.T, x))
    return op.transpose(out, [order.index(d) for d in range(rank)])


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
