"""Object detection: non-maximum suppression, pooling of regions."""

from __future__ import annotations

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
    """Rows of (batch, class, box); how many there are depends on the data."""
    boxes = _corners(g, boxes) if node.get("center_point_box", 0) else _ordered(g, boxes)
    most = same(g, op.reshape(most, ()), "int64") if most is not None else const(0, "int64")
    overlap = _above(g, overlap)
    least = op.reshape(least, ()) if least is not None else const(np.float32(-np.inf))
    rows, count = vision.all_class_non_max_suppression(boxes, scores, most, overlap, least)
    first = Constant(np.zeros(1, "int64"))
    return same(g, op.strided_slice(rows, first, same(g, count, "int64"), Constant(np.ones(1, "int64"))), "int64")


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
    """Relay's operator makes regions at least one pixel large, as ONNX does without half pixels."""
    usual = "half_pixel" if node.version >= 16 else "output_half_pixel"
    if node.get("coordinate_transformation_mode", usual) != "output_half_pixel":
        raise node.error(
            "regions shifted by half a pixel are not imported",
            code="import.attribute",
            help='coordinate_transformation_mode="output_half_pixel" is',
        )
    mode = node.choice("mode", "avg", ("avg",))  # ONNX takes the largest product with a weight, Relay the largest sum
    size = node.get("output_height", 1), node.get("output_width", 1)
    regions = op.concatenate([op.expand_dims(same(g, batch, g.dtype(rois)), 1), rois], 1)
    ratio = node.get("sampling_ratio", 0) or -1
    return vision.roi_align(x, regions, size, node.get("spatial_scale", 1.0), ratio, mode=mode)


@converts("DeformConv", since=19)
def deform_conv(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, offset: Expr, bias: Expr | None = None, mask: Expr | None = None
) -> Expr:
    if mask is not None:
        raise node.error("deformable convolution with a mask is not imported", code="import.input")
    shape = g.shape(w)
    pads = node.ints("pads") or [0, 0, 0, 0]
    node.get("kernel_shape")
    out = nn.deformable_conv2d(
        x,
        offset,
        w,
        strides=node.ints("strides") or [1, 1],
        padding=pads,
        dilation=node.ints("dilations") or [1, 1],
        deformable_groups=node.get("offset_group", 1),
        groups=node.get("group", 1),
        channels=shape[0],
        kernel_size=shape[2:],
    )
    return out if bias is None else nn.bias_add(out, bias)
