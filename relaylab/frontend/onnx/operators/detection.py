"""Object detection: non-maximum suppression, pooling of regions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Constant, Expr, const
from relaylab.op import nn, vision


@converts("NonMaxSuppression", since=10)
def non_max_suppression(
    g: Graph,
    node: OnnxNode,
    boxes: Expr,
    scores: Expr,
    most: Expr | None = None,
    overlap: Expr | None = None,
    least: Expr | None = None,
) -> Expr:
    """Rows of (batch, class, box); how many there are depends on the data. At most none, which is the default, is none:
    Relay's operator takes that for no limit.
    """
    limit = g.value(most)
    if most is None or (limit is not None and limit.reshape(()) <= 0):
        return Constant(np.zeros((0, 3), "int64"))
    boxes = _corners(g, boxes) if node.get("center_point_box", 0) else _ordered(g, boxes)
    most = same(g, op.reshape(most, ()), "int64")
    overlap = _above(g, overlap)
    least = op.reshape(least, ()) if least is not None else const(np.float32(-np.inf))
    rows, count = vision.all_class_non_max_suppression(boxes, scores, most, overlap, least)
    first, count = Constant(np.zeros(1, "int64")), same(g, count, "int64")
    if limit is None:
        count = op.where(op.greater(most, const(0, "int64")), count, op.zeros_like(count))
    return same(g, op.strided_slice(rows, first, count, Constant(np.ones(1, "int64"))), "int64")


def _above(g: Graph, overlap: Expr | None) -> Expr:
    """The next larger number: ONNX removes boxes that overlap more than that, Relay's operator already at that."""
    known = g.value(overlap)
    if overlap is None or known is not None:
        limit = np.float32(0) if known is None else known.reshape(())
        return Constant(np.asarray(np.nextafter(limit, np.float32(np.inf)), "float32"))
    return op.multiply(op.reshape(overlap, ()), const(np.float32(1 + 2**-23)))


def _corners(g: Graph, boxes: Expr) -> Expr:
    """Centres and sizes as corners (y, x)."""
    x, y, w, h = (op.strided_slice(boxes, [k], [k + 1], [1], axes=[2]) for k in range(4))
    half = g.const(0.5, boxes)
    sides = [(y, h, op.subtract), (x, w, op.subtract), (y, h, op.add), (x, w, op.add)]
    return op.concatenate([build(c, op.multiply(s, half)) for c, s, build in sides], 2)


def _ordered(g: Graph, boxes: Expr) -> Expr:
    """The lower corner first: boxes may be given by any two opposite corners."""
    a, b = (op.strided_slice(boxes, [k], [k + 2], [1], axes=[2]) for k in (0, 2))
    return op.concatenate([op.minimum(a, b), op.maximum(a, b)], 2)


@converts("MaxRoiPool")
def max_roi_pool(g: Graph, node: OnnxNode, x: Expr, rois: Expr) -> Expr:
    return vision.roi_pool(x, rois, tuple(node.ints("pooled_shape") or ()), node.get("spatial_scale", 1.0))


@converts("RoiAlign", since=10)
def roi_align(g: Graph, node: OnnxNode, x: Expr, rois: Expr, batch: Expr) -> Expr:
    """Relay's operator makes regions at least one pixel large, as ONNX does without half pixels, and takes means."""
    usual, modes = "half_pixel" if node.version >= 16 else "output_half_pixel", ("half_pixel", "output_half_pixel")
    half = node.choice("coordinate_transformation_mode", usual, modes) == "half_pixel"
    largest = node.choice("mode", "avg", ("avg", "max")) == "max"
    size = node.get("output_height", 1), node.get("output_width", 1)
    count, scale = node.get("sampling_ratio", 0), node.get("spatial_scale", 1.0)
    if half or largest:
        return _sampled(g, node, x, rois, batch, size, count, scale, half, largest)
    regions = op.concatenate([op.expand_dims(same(g, batch, g.dtype(rois)), 1), rois], 1)
    return vision.roi_align(x, regions, size, scale, count or -1)


def _sampled(
    g: Graph, node: OnnxNode, x: Expr, rois: Expr, batch: Expr, size: tuple[int, int], count: int, scale: float,
    half: bool, largest: bool,
) -> Expr:  # fmt: skip
    """Each cell from `count` x `count` samples, a sample from four neighbours; the maximum is that of the neighbours
    times their weights, as ONNX has it."""
    if count < 1:
        raise node.error(
            "how many samples a cell has depends on data",
            code="import.attribute",
            help='sampling_ratio above 0 is imported, and any with "output_half_pixel" and "avg"',
        )
    n, c, h, w = g.shape(x)
    regions = g.dims(rois)[0]
    ys, xs = (_places(g, rois, axis, size[1 - axis], count, scale, half, (w, h)[axis]) for axis in (1, 0))
    flat = op.reshape(op.transpose(x, [0, 2, 3, 1]), (n * h * w, c), allowzero=True)
    image = op.multiply(op.reshape(same(g, batch, "int64"), (-1, 1, 1)), const(h * w, "int64"))
    parts = []
    for row, share in ys:
        for column, part in xs:
            at = op.add(
                op.add(image, op.expand_dims(op.multiply(row, const(w, "int64")), 2)), op.expand_dims(column, 1)
            )
            weight = op.multiply(op.expand_dims(share, 2), op.expand_dims(part, 1))
            parts.append(op.multiply(op.take(flat, at, axis=0), op.expand_dims(weight, 3)))
    total = reduce(op.maximum if largest else op.add, parts)
    rows = regions if isinstance(regions, int) else -1
    cells = op.reshape(total, (rows, size[0], count, size[1], count, c))
    out = op.max(cells, axis=[2, 4]) if largest else op.mean(cells, axis=[2, 4])
    return op.transpose(out, [0, 3, 1, 2])


def _places(
    g: Graph, rois: Expr, axis: int, cells: int, count: int, scale: float, half: bool, extent: int
) -> list[tuple[Expr, Expr]]:
    """Along an axis the lower and the upper neighbour of each sample: (its index, its weight), (regions, samples)."""
    begin, end = (op.strided_slice(rois, [axis + k], [axis + k + 1], [1], axes=[1]) for k in (0, 2))
    number = lambda v: g.const(v, rois)
    begin, end = (op.multiply(v, number(scale)) for v in (begin, end))
    length = op.subtract(end, begin) if half else op.maximum(op.subtract(end, begin), number(1))
    begin = op.subtract(begin, number(0.5)) if half else begin
    steps = (np.arange(cells * count) + 0.5) / (cells * count)
    at = op.add(begin, op.multiply(length, number(steps[None])))
    seen = op.logical_and(op.greater_equal(at, number(-1)), op.less_equal(at, number(extent)))
    at = op.minimum(op.maximum(at, number(0)), number(extent - 1))
    low = op.floor(at)
    share, inside = op.subtract(at, low), op.cast(seen, g.dtype(rois))
    lower = op.cast(low, "int64")
    upper = op.minimum(op.add(lower, const(1, "int64")), const(extent - 1, "int64"))
    return [(lower, op.multiply(inside, op.subtract(number(1), share))), (upper, op.multiply(inside, share))]


@converts("DeformConv", since=19)
def deform_conv(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, offset: Expr, bias: Expr | None = None, mask: Expr | None = None
) -> Expr:
    node.get("kernel_shape")
    shape, groups, parts = g.shape(w), node.get("group", 1), node.get("offset_group", 1)
    moved = partial(
        nn.deformable_conv2d,
        x,
        offset,
        strides=node.ints("strides") or [1, 1],
        padding=node.ints("pads") or [0, 0, 0, 0],
        dilation=node.ints("dilations") or [1, 1],
        deformable_groups=parts,
        kernel_size=shape[2:],
    )
    if mask is None:
        out = moved(w, groups=groups, channels=shape[0])
    else:
        out = _masked(g, moved, x, w, mask, groups, parts)
    return out if bias is None else nn.bias_add(out, bias)


def _masked(g: Graph, moved: Callable[..., Expr], x: Expr, w: Expr, mask: Expr, groups: int, parts: int) -> Expr:
    """The samples themselves, which one-hot kernels read, times the mask; then a convolution of 1 x 1. Zhu et al.,
    Deformable ConvNets v2, 2019."""
    (n, c), (out, each, *kernel) = g.shape(x)[:2], g.shape(w)
    taps = kernel[0] * kernel[1]
    one_hot = g.const(np.tile(np.eye(taps).reshape(taps, 1, *kernel), (c, 1, 1, 1)), w)
    samples = moved(one_hot, groups=c, channels=c * taps)
    size = g.shape(samples)[2:]
    by_part = op.reshape(samples, (n, parts, c // parts, taps, *size), allowzero=True)
    weighted = op.multiply(by_part, op.reshape(mask, (n, parts, 1, taps, *size), allowzero=True))
    return nn.conv2d(
        op.reshape(weighted, (n, c * taps, *size), allowzero=True),
        op.reshape(w, (out, each * taps, 1, 1)),
        groups=groups,
        channels=out,
        kernel_size=(1, 1),
    )
