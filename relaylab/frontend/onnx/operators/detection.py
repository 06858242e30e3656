"""Object detection: non-maximum suppression, pooling of regions."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.detection import deformed, sampled_regions
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
    """Relay's operator takes the largest of samples, ONNX of weighted pixels."""
    usual, modes = "half_pixel" if node.version >= 16 else "output_half_pixel", ("half_pixel", "output_half_pixel")
    half = node.choice("coordinate_transformation_mode", usual, modes) == "half_pixel"
    largest = node.choice("mode", "avg", ("avg", "max")) == "max"
    size = node.get("output_height", 1), node.get("output_width", 1)
    count, scale = node.get("sampling_ratio", 0), node.get("spatial_scale", 1.0)
    if largest:
        if count < 1:
            raise node.error(
                "how many samples a cell has depends on data",
                code="import.attribute",
                help='sampling_ratio above 0 is imported, and any with "avg"',
            )
        return sampled_regions(g, x, rois, batch, size, count, scale, half)
    regions = op.concatenate([op.expand_dims(same(g, batch, g.dtype(rois)), 1), rois], 1)
    return vision.roi_align(x, regions, size, scale, count or -1, aligned=half)


@converts("DeformConv", since=19)
def deform_conv(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, offset: Expr, bias: Expr | None = None, mask: Expr | None = None
) -> Expr:
    node.get("kernel_shape")
    strides, padding = node.ints("strides") or [1, 1], node.ints("pads") or [0, 0, 0, 0]
    dilation, groups = node.ints("dilations") or [1, 1], node.get("group", 1)
    out = deformed(g, x, w, offset, mask, strides, padding, dilation, groups, node.get("offset_group", 1))
    return out if bias is None else nn.bias_add(out, bias)
