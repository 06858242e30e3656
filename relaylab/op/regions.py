"""Regions of interest of feature maps: roi_pool, roi_align, proposal, yolo_reorg."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Floats, Injective, Ints, Opaque, OutElementwiseFusable, Sample, op, sample
from relaylab.op.boxes import SELECTING, suppress
from relaylab.op.indexing import ravel, unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.window import each


class Roi(OutElementwiseFusable):
    """A pool of regions: rois are (R, 5) rows (batch, x1, y1, x2, y2); the result is (R, C, height, width) in the
    layout.
    """

    pooled_size: ClassVar[Any]
    layout: ClassVar[Any]
    inputs = ("data", "rois")

    def relation(self, s: Any, data: Type, rois: Type) -> Type | None:
        x, r = rules.tensor(s, data), rules.tensor(s, rois, "rois")
        if x is None or r is None:
            return None
        layout = rules.layout(s, self.layout, "NCHW", x)
        rules.equal_dims(s, rules.rank(s, r, 2, "rois").shape[1], IntImm(5), f"the rows of {type_text(r)} and 5")
        height, width = each(s, self.pooled_size, 2, "pooled_size")
        channels = layout.whole(x.shape)["C"]
        return TensorType(
            rules.laid_out(s, layout, {"N": r.shape[0], "C": channels, "H": IntImm(height), "W": IntImm(width)}),
            x.dtype,
        )


@op("vision.roi_pool", level=5, attrs_key="ROIPool", meta_attrs=True)
class roi_pool(Roi):
    """The maximum over each cell of a grid of `pooled_size` laid over each region. Girshick, 2015."""

    pooled_size: Ints
    spatial_scale: float
    layout: str = "NCHW"

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data, layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size), data.dtype)
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            y1, y2 = self._bounds(float(rois[n, 2]), float(rois[n, 4]), row, 0, x.shape[2])
            x1, x2 = self._bounds(float(rois[n, 1]), float(rois[n, 3]), column, 1, x.shape[3])
            cell = x[int(rois[n, 0]), :, y1:y2, x1:x2]
            if cell.size:
                out[n, :, row, column] = cell.max(axis=(1, 2))
        return transform(out, plain, layout)

    def _bounds(self, first: float, last: float, k: int, axis: int, extent: int) -> tuple[int, int]:
        """Begin and end of cell `k` along an axis."""
        begin, end = (math.floor(v * self.spatial_scale + 0.5) for v in (first, last))
        size = max(end - begin + 1, 1) / self.pooled_size[axis]
        low, high = math.floor(k * size) + begin, math.ceil((k + 1) * size) + begin
        return min(max(low, 0), extent), min(max(high, 0), extent)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, rois: Any) -> Any:
        layout = parse_layout(self.layout)
        at, whole = layout.at(i), layout.whole(data.shape)
        bounds = []
        for axis, letter in enumerate("HW"):
            first, last = (b.cast(rois(at["N"], c), "float64") for c in (2 - axis, 4 - axis))
            begin, end = (b.floor(v * self.spatial_scale + 0.5) for v in (first, last))
            size = b.max(end - begin + 1.0, 1.0) / float(self.pooled_size[axis])
            k = b.cast(at[letter], "float64")
            bounds.append((b.floor(k * size) + begin, b.ceil((k + 1.0) * size) + begin))

        def inside(*cell: Any) -> Any:
            places = [b.cast(c, "float64") for c in cell]
            return b.all_of(*(t for p, (low, high) in zip(places, bounds) for t in (p >= low, p < high)))

        image, extents = b.cast(rois(at["N"], 0), "int64"), [int(whole[a]) for a in "HW"]  # type: ignore[arg-type]
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
    """The mean (or maximum) of bilinear samples in each cell of a grid over each region. He et al., 2017."""

    pooled_size: Ints
    spatial_scale: float
    sample_ratio: int = -1
    layout: str = "NCHW"
    mode: str = "avg"
    waivers = {"lower": "how many samples a cell has depends on the size of its region"}

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data.astype("float64"), layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size))
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            ys = self._samples(float(rois[n, 2]), float(rois[n, 4]), row, 0)
            xs = self._samples(float(rois[n, 1]), float(rois[n, 3]), column, 1)
            seen = np.array([_bilinear(x[int(rois[n, 0])], y, z) for y in ys for z in xs])
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


@op("vision.yolo_reorg", inputs=("data",), level=5, attrs_key="YoloReorg")
class yolo_reorg(Injective):
    """Darknet's reorganisation of (N, C, H, W) to (N, C stride^2, H / stride, W / stride)."""

    stride: int = 1

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        n, c, h, w = rules.rank(s, found, 4).shape
        k = rules.positive(s, self.stride, "stride")
        for extent, by in ((c, k * k), (h, k), (w, k)):
            if not isinstance(extent, int) or extent % by:
                s.fail(f"{type_text(found)} cannot be reorganised with a stride of {k}")
        return TensorType((n, int(c) * k * k, int(h) // k, int(w) // k), found.dtype)

    def _source(self, c: Any, y: Any, x: Any, shape: tuple[int, int, int]) -> tuple[list[Any], list[int]]:
        """Where the element (c, y, x) of the input's own shape comes from, and the shape that this index is in."""
        channels, height, width, k = *shape, self.stride
        kept = channels // (k * k)
        block = c // kept
        return [c % kept, y * k + block // k, x * k + block % k], [kept, height * k, width * k]

    def reference(self, data: np.ndarray) -> np.ndarray:
        n, c, h, w = data.shape
        out = np.zeros((n, c * h * w), data.dtype)
        flat = data.reshape(n, c * h * w)
        for at in np.ndindex(c, h, w):
            source, shape = self._source(*at, (c, h, w))
            out[:, np.ravel_multi_index(at, (c, h, w))] = flat[:, np.ravel_multi_index(source, shape)]
        return out.reshape(n, c * self.stride**2, h // self.stride, w // self.stride)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        shape = [int(n) for n in data.shape[1:]]
        at = unravel(b, b.index(ravel(i[1:], out.shape[1:])), shape)
        source, inner = self._source(*at, tuple(shape))  # type: ignore[arg-type]
        return data(i[0], *unravel(b, b.index(ravel(source, inner)), shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 4, 4, 6), stride=2), sample((1, 3, 2, 2), stride=1)]


@op("vision.proposal", inputs=("cls_prob", "bbox_pred", "im_info"), level=5, attrs_key="Proposal", meta_attrs=True)
class proposal(Opaque):
    """Region proposals (B * rpn_post_nms_top_n, 5) of a region proposal network: rows (batch, x1, y1, x2, y2).
    Ren et al., 2015. `im_info` rows are (height, width, scale).
    """

    scales: Floats = (4.0, 8.0, 16.0, 32.0)
    ratios: Floats = (0.5, 1.0, 2.0)
    feature_stride: int = 16
    threshold: float = 0.7
    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    rpn_min_size: int = 16
    iou_loss: bool = False
    waivers = SELECTING
    parameters = (
        "cls_prob bbox_pred im_info scales ratios feature_stride threshold "
        "rpn_pre_nms_top_n rpn_post_nms_top_n rpn_min_size iou_loss"
    )

    def relation(self, s: Any, cls_prob: Type, bbox_pred: Type, im_info: Type) -> Type | None:
        p, d, info = (rules.tensor(s, t, n) for t, n in zip((cls_prob, bbox_pred, im_info), self.inputs))
        if p is None or d is None or info is None:
            return None
        rules.rank(s, rules.floats(s, p, "cls_prob"), 4, "cls_prob"), rules.rank(s, d, 4, "bbox_pred"), rules.rank(s, info, 2, "im_info")
        count = len(self.scales) * len(self.ratios)
        if isinstance(p.shape[1], int) and p.shape[1] != 2 * count:
            s.fail(f"{type_text(p)} must have {2 * count} channels, two per anchor")
        if not isinstance(p.shape[0], int):
            s.fail("the batch of vision.proposal must be known")
        return TensorType((int(p.shape[0]) * self.rpn_post_nms_top_n, 5), p.dtype)  # type: ignore[arg-type]

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
        """All boxes of one image, clipped to it, and their scores; those that are too small score -1."""
        sizes, (rows, columns) = self.anchors(), prob.shape[1:]
        boxes, scores = [], []
        for y, x, k in np.ndindex(rows, columns, len(sizes)):
            box = self._box(sizes[k], y, x, delta[4 * k : 4 * k + 4, y, x])
            box = np.clip(box, 0, np.array([info[1], info[0]] * 2) - 1.0)
            least = self.rpn_min_size * info[2]
            small = box[2] - box[0] + 1 < least or box[3] - box[1] + 1 < least
            boxes.append(box)
            scores.append(-1.0 if small else prob[len(sizes) + k, y, x])
        return np.array(boxes), np.array(scores)

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
