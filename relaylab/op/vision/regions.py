"""Regions of interest of feature maps: roi_pool, roi_align, proposal, yolo_reorg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import (
    Floats,
    Injective,
    Input,
    Ints,
    Opaque,
    OutElementwiseFusable,
    Sample,
    arg,
    attr,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.image.crop import precision
from relaylab.op.indexing import ravel, unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.shapes import derive, extent, product
from relaylab.op.vision.suppression import suppress
from relaylab.op.window import each


class Roi(OutElementwiseFusable):
    """A pool of regions: rois are (R, 5) rows (batch, x1, y1, x2, y2); the result is (R, C, height, width) in the
    layout.
    """

    data: Input = arg("the feature maps, laid out as `layout`", "(N, C, H, W)")
    rois: Input = arg(
        "the regions: image (limited to those there are), x1, y1, x2, y2, in pixels before `spatial_scale`", "(R, 5)"
    )
    pooled_size: Ints = attr(doc="the height and width of the grid that is laid over each region")
    spatial_scale: float = attr(doc="what the corners of regions are multiplied with")
    layout: str = attr("NCHW", "the axes of data and result")
    yields = "(R, C, *pooled_size) laid out as `layout`, of the dtype of data"

    def result_type(self, s: TypeSolver, data: TensorType, rois: TensorType) -> Type | None:
        layout = rules.layout(s, self.layout, "NCHW", data)
        rules.shaped(s, rois, (None, 5), "rois")
        if 0 in data.shape:
            s.fail(f"{self.op_name} has nothing to read in {type_text(data)}", help="give an image with elements")
        height, width = each(s, self.pooled_size, 2, "pooled_size")
        channels = layout.whole(data.shape)["C"]
        return TensorType(
            rules.laid_out(s, layout, {"N": rois.shape[0], "C": channels, "H": IntImm(height), "W": IntImm(width)}),
            data.dtype,
        )

    @staticmethod
    def _image(given: float, count: int) -> int:
        """The index of the image that a region lies in."""
        return min(max(int(given), 0), count - 1)


@op("vision.roi_pool", level=5, attrs_key="ROIPool", meta_attrs=True)
class roi_pool(Roi):
    """The maximum over each cell of a grid of `pooled_size` laid over each region."""

    source = "Girshick, Fast R-CNN, 2015; ONNX MaxRoiPool"

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data, layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size), data.dtype)
        ys, xs = (self._bounds(rois.astype(precision(rois.dtype.name)), axis, x.shape[2 + axis]) for axis in range(2))
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            (y1, y2), (x1, x2) = ys[n, row], xs[n, column]
            cell = x[self._image(rois[n, 0], len(x)), :, y1:y2, x1:x2]
            if cell.size:
                out[n, :, row, column] = cell.max(axis=(1, 2))
        return transform(out, plain, layout)

    def _bounds(self, rois: np.ndarray, axis: int, extent: int) -> np.ndarray:
        """Begin and end of each cell of each region along an axis: (R, cells, 2)."""
        scaled = rois[:, [2 - axis, 4 - axis]] * self.spatial_scale
        begin, end = np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5)).T[..., None]
        size, k = np.maximum(end - begin + 1, 1) / self.pooled_size[axis], np.arange(self.pooled_size[axis])
        bounds = np.stack([np.floor(k.astype(size.dtype) * size), np.ceil((k + 1).astype(size.dtype) * size)], -1)
        return np.clip(bounds + begin[..., None], 0, extent).astype("int64")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, rois: Readable) -> Element:
        layout, exactness = parse_layout(self.layout), precision(rois.dtype)
        at, whole = layout.at(i), layout.extents(data.shape)
        bounds = []
        for axis, letter in enumerate("HW"):
            corners = [b.cast(rois(at["N"], c), exactness) for c in (2 - axis, 4 - axis)]
            begin, end = (b.round(v * self.spatial_scale) for v in corners)
            size = b.max(end - begin + 1.0, 1.0) / float(self.pooled_size[axis])
            k = b.cast(at[letter], exactness)
            bounds.append((b.floor(k * size) + begin, b.ceil((k + 1.0) * size) + begin))

        def inside(*cell: Element) -> Element:
            places = [b.cast(c, exactness) for c in cell]
            return b.all_of(*(t for p, (low, high) in zip(places, bounds) for t in (p >= low, p < high)))

        image = b.clamp_index(b.cast(rois(at["N"], 0), "int64"), whole["N"])
        extents = [whole[a] for a in "HW"]
        read = lambda y, x: data(*layout.index({"N": image, "C": at["C"], "H": y, "W": x}))
        best = b.rmax(extents, lambda y, x: b.guard(inside(y, x), lambda: read(y, x), b.lowest(out.dtype)))
        return b.select(b.any(extents, inside), best, b.const(0, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        rois = np.array([[0, 1, 1, 6, 5], [1, 0, 0, 12, 9], [0, 3, 2, 3, 2]], "float32")
        return [
            sample((2, 3, 8, 9), rois, pooled_size=(2, 3), spatial_scale=1.0),
            sample((2, 4, 5, 2), rois, pooled_size=(2, 2), spatial_scale=0.5, layout="NHWC"),
        ]


@op("vision.roi_align", level=5, attrs_key="ROIAlign", meta_attrs=True)
class roi_align(Roi):
    """The mean (or maximum) of bilinear samples in each cell of a grid over each region."""

    sample_ratio: int = attr(
        -1, "samples per cell along each axis; below 1: as many as the cell has pixels, rounded up"
    )
    layout: str = "NCHW"
    mode: str = attr("avg", "avg or max")
    source = "He et al., Mask R-CNN, 2017; ONNX RoiAlign"
    waivers = {"lower": "how many samples a cell has depends on the size of its region"}

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data.astype("float64"), layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size))
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            ys = self._samples(float(rois[n, 2]), float(rois[n, 4]), row, 0)
            xs = self._samples(float(rois[n, 1]), float(rois[n, 3]), column, 1)
            image = x[self._image(rois[n, 0], len(x))]
            seen = np.array([_bilinear(image, y, z) for y in ys for z in xs])
            out[n, :, row, column] = seen.mean(axis=0) if self.mode == "avg" else seen.max(axis=0)
        return transform(out, plain, layout).astype(data.dtype)

    def _samples(self, first: float, last: float, k: int, axis: int) -> list[float]:
        """The sample positions of cell `k` along an axis."""
        begin, size = first * self.spatial_scale, max((last - first) * self.spatial_scale, 1.0)
        cell = size / self.pooled_size[axis]
        count = self.sample_ratio if self.sample_ratio > 0 else math.ceil(cell)
        return [begin + k * cell + (j + 0.5) * cell / count for j in range(count)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rois = np.array([[0, 1.3, 1.1, 6.2, 5], [1, 0, 0, 12, 9]], "float32")
        return [
            sample((2, 3, 8, 9), rois, pooled_size=(2, 3), spatial_scale=1.0),
            sample(
                (2, 4, 5, 2), rois, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=2, layout="NHWC", mode="max"
            ),
        ]


def _bilinear(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The channels of (C, H, W) at a place; 0 more than one pixel outside."""
    height, width = image.shape[1:]
    if y < -1 or x < -1 or y > height or x > width:
        return np.zeros(len(image))
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    rows = image[:, top] * (1 - (y - top)) + image[:, bottom] * (y - top)
    return rows[:, left] * (1 - (x - left)) + rows[:, right] * (x - left)


@op("vision.yolo_reorg", level=5, attrs_key="YoloReorg", required="stride")
class yolo_reorg(Injective):
    """Darknet's reorganisation of (N, C, H, W) to (N, C stride^2, H / stride, W / stride)."""

    data: Input = arg("the feature maps", "(N, C, H, W)")
    stride: int = attr(1, "by how much height and width shrink")
    yields = "(N, C * stride^2, H / stride, W / stride), of the dtype of data"
    source = "Redmon and Farhadi, YOLO9000: better, faster, stronger, 2017"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        batch, c, h, w = rules.rank(s, data, 4).shape
        k = rules.positive(s, self.stride, "stride")
        if any(isinstance(n, int) and n % by for n, by in ((c, k * k), (h, k), (w, k))):
            s.fail(f"{type_text(data)} cannot be reorganised with a stride of {k}")
        return TensorType((batch, product((c, k * k)), *(derive(lambda n: n // k, d) for d in (h, w))), data.dtype)

    def _source(self, at: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], list[int]]:
        """Where the element `at` (c, y, x) of the input's own shape comes from, and the shape that this index is in."""
        (c, y, x), (channels, height, width), k = at, shape, self.stride
        kept = channels // (k * k)
        block = c // kept
        return [c % kept, y * k + block // k, x * k + block % k], [kept, height * k, width * k]

    def reference(self, data: np.ndarray) -> np.ndarray:
        n, c, h, w = data.shape
        out = np.zeros((n, c * h * w), data.dtype)
        flat = data.reshape(n, c * h * w)
        for at in np.ndindex(c, h, w):
            source, shape = self._source(at, (c, h, w))
            out[:, np.ravel_multi_index(at, (c, h, w))] = flat[:, np.ravel_multi_index(source, shape)]
        return out.reshape(n, c * self.stride**2, h // self.stride, w // self.stride)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        shape = [int(n) for n in data.shape[1:]]
        at = unravel(b, b.index(ravel(i[1:], out.shape[1:])), shape)
        source, inner = self._source(at, shape)
        return data(i[0], *unravel(b, b.index(ravel(source, inner)), shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 4, 4, 6), stride=2), sample((1, 3, 2, 2), stride=1)]


@op("vision.proposal", level=5, attrs_key="Proposal", meta_attrs=True)
class proposal(Opaque):
    """Region proposals of a region proposal network: the best of its boxes that do not overlap a better one."""

    cls_prob: Input = arg(
        "scores of A anchors per cell: A of the background, then A of objects", "(B, 2 A, H, W)", "floats"
    )
    bbox_pred: Input = arg("how each anchor is moved and scaled: x, y, width, height", "(B, 4 A, H, W)")
    im_info: Input = arg(
        "height and width of each image, beyond which cells score -1, and the scale of `rpn_min_size`", "(B, 3)"
    )
    scales: Floats = attr((4.0, 8.0, 16.0, 32.0), "sizes of the anchors, in multiples of `feature_stride`")
    ratios: Floats = attr((0.5, 1.0, 2.0), "heights of the anchors over their widths; A is scales times ratios")
    feature_stride: int = attr(16, "the distance of two cells in pixels of the image")
    threshold: float = attr(0.7, "the intersection over union from which on a box removes another")
    rpn_pre_nms_top_n: int = attr(6000, "how many of the best boxes are looked at")
    rpn_post_nms_top_n: int = attr(300, "how many boxes each image gets; if too few stay they are repeated")
    rpn_min_size: int = attr(
        16, "the height and width below which a box scores -1 and grows by half of it on every side"
    )
    iou_loss: bool = attr(False, "whether `bbox_pred` moves the corners of anchors, unscaled")
    yields = "(B * rpn_post_nms_top_n, 5), of the dtype of cls_prob: batch, x1, y1, x2, y2"
    source = "Ren et al., Faster R-CNN: towards real-time object detection with region proposal networks, 2015"
    waivers = {"lower": "which boxes are kept depends on the boxes kept before"}
    parameters = (
        "cls_prob bbox_pred im_info scales ratios feature_stride threshold "
        "rpn_pre_nms_top_n rpn_post_nms_top_n rpn_min_size iou_loss"
    )
    required = "iou_loss"

    def result_type(self, s: TypeSolver, p: TensorType, d: TensorType, info: TensorType) -> Type | None:
        rules.rank(s, rules.floats(s, p, "cls_prob"), 4, "cls_prob")
        batch, _, *cells = p.shape
        if not isinstance(batch, int):
            s.fail("the batch of vision.proposal must be known")
        count = len(self.scales) * len(self.ratios)
        rules.shaped(s, p, (None, 2 * count, None, None), "cls_prob")
        rules.shaped(s, d, (batch, 4 * count, *cells), "bbox_pred"), rules.shaped(s, info, (batch, 3), "im_info")
        return TensorType((extent(batch) * self.rpn_post_nms_top_n, 5), p.dtype)

    def anchors(self) -> list[tuple[float, float]]:
        """(width, height) of each anchor: ratios first, then scales."""
        base = float(self.feature_stride)
        out = []
        for ratio in self.ratios:
            width = math.floor(math.sqrt(math.floor(base * base / ratio)) + 0.5)
            height = math.floor(width * ratio + 0.5)
            out += [(width * scale, height * scale) for scale in self.scales]
        return out

    def reference(self, cls_prob: np.ndarray, bbox_pred: np.ndarray, im_info: np.ndarray) -> np.ndarray:
        out = np.zeros((len(cls_prob) * self.rpn_post_nms_top_n, 5), cls_prob.dtype)
        for n in range(len(cls_prob)):
            boxes, scores = self._boxes(cls_prob[n], bbox_pred[n].astype("float64"), im_info[n])
            order = np.argsort(-scores, kind="stable")[: self.rpn_pre_nms_top_n]
            grown = boxes[order] + np.array([0, 0, 1, 1])
            kept = suppress(grown, self.threshold, self.rpn_post_nms_top_n)
            rows = out[n * self.rpn_post_nms_top_n :][: self.rpn_post_nms_top_n]
            rows[:, 0] = n
            if kept:
                rows[:, 1:] = boxes[order][np.resize(kept, len(rows))]
        return out

    def _boxes(self, prob: np.ndarray, delta: np.ndarray, info: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All boxes of one image, clipped to it, and their scores. Those of cells beyond the image score -1, and so do
        those that are too small; these also grow by half the least size on every side.
        """
        sizes, (rows, columns) = self.anchors(), prob.shape[1:]
        least, (below, right) = self.rpn_min_size * info[2], (int(n / self.feature_stride) for n in info[:2])
        boxes, scores = [], []
        for y, x, k in np.ndindex(rows, columns, len(sizes)):
            box = self._box(sizes[k], y, x, delta[4 * k : 4 * k + 4, y, x])
            box = np.clip(box, 0, np.array([info[1], info[0]] * 2) - 1.0)
            small = box[2] - box[0] + 1 < least or box[3] - box[1] + 1 < least
            boxes.append(box + np.array([-1, -1, 1, 1]) * (least / 2) if small else box)
            scores.append(-1.0 if small or y >= below or x >= right else prob[len(sizes) + k, y, x])
        return np.array(boxes).reshape(-1, 4), np.array(scores)

    def _box(self, size: tuple[float, float], y: int, x: int, delta: np.ndarray) -> np.ndarray:
        """The corners of an anchor at a cell, moved by the network."""
        middle = 0.5 * (self.feature_stride - 1)
        center = np.array([x, y]) * self.feature_stride + middle
        extent = np.array(size)
        if self.iou_loss:
            corners = np.concatenate([center - 0.5 * (extent - 1), center + 0.5 * (extent - 1)])
            return corners + delta
        center, extent = center + delta[:2] * extent, np.exp(delta[2:]) * extent
        return np.concatenate([center - 0.5 * (extent - 1), center + 0.5 * (extent - 1)])

    @classmethod
    def samples(cls) -> list[Sample]:
        few = {"scales": (2.0, 4.0), "ratios": (0.5, 1.0), "rpn_post_nms_top_n": 5, "rpn_min_size": 4}
        info = np.array([[64, 80, 1.0]], "float32")
        return [sample((1, 8, 3, 4), (1, 16, 3, 4), info, low=-0.2, high=0.9, **few)]
