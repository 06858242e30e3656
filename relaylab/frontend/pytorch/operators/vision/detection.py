"""Object detection: the operators of torchvision."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.detection import deformed
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr, const
from relaylab.op import nn, vision


@converts("torchvision.nms.default")
def nms(g: TorchGraph, node: AtenNode, boxes: Expr, scores: Expr, iou_threshold: float) -> Expr:
    """The boxes that stay, best first; Relay's operator removes what overlaps as much, torch's what overlaps more."""
    limit = np.float32(iou_threshold)
    above = limit if limit > iou_threshold else np.nextafter(limit, np.float32(np.inf))
    every, lowest = const(0, "int64"), const(np.float32(-np.inf))
    given = op.expand_dims(boxes, 0), op.reshape(scores, (1, 1, -1))
    rows, count = vision.all_class_non_max_suppression(*given, every, const(above), lowest)
    first, one = (Constant(np.array([k], "int64")) for k in (0, 1))
    found = op.strided_slice(g.to(rows, "int64"), first, g.to(count, "int64"), one)
    return op.take(found, const(2, "int64"), axis=1)


@converts("torchvision.roi_align.default")
def roi_align(
    g: TorchGraph, node: AtenNode, x: Expr, rois: Expr, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, aligned: bool,
) -> Expr:  # fmt: skip
    size = pooled_height, pooled_width
    return vision.roi_align(x, rois, size, spatial_scale, max(sampling_ratio, 0) or -1, aligned=aligned)


@converts("torchvision.roi_pool.default")
def roi_pool(
    g: TorchGraph, node: AtenNode, x: Expr, rois: Expr, spatial_scale: float, pooled_height: int, pooled_width: int
) -> list[Expr | None]:
    """Where the largest elements are, only gradients ask."""
    if node.uses(1):
        raise node.error("the places of the largest elements are not imported")
    return [vision.roi_pool(x, rois, (pooled_height, pooled_width), spatial_scale), None]


@converts("torchvision.deform_conv2d.default")
def deform_conv2d(
    g: TorchGraph, node: AtenNode, x: Expr, weight: Expr, offset: Expr, mask: Expr, bias: Expr, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int,
    use_mask: bool,
) -> Expr:  # fmt: skip
    strides, padding, dilation = (stride_h, stride_w), (pad_h, pad_w) * 2, (dilation_h, dilation_w)
    used = mask if use_mask else None
    return nn.bias_add(deformed(g, x, weight, offset, used, strides, padding, dilation, groups, offset_groups), bias)
