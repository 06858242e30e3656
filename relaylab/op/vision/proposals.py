"""Regions that a region proposal network proposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.builder import least
from relaylab.loop.expr import Tensor
from relaylab.op import rules
from relaylab.op.base import Floats, Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.ordering import SortedRow
from relaylab.op.shapes import product
from relaylab.op.vision.suppression import KeptBoxes, suppress

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


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
    rpn_pre_nms_top_n: int = attr(6000, "how many of the best boxes are looked at; below 1: all")
    rpn_post_nms_top_n: int = attr(300, "how many boxes each image gets; if too few stay they are repeated")
    rpn_min_size: int = attr(
        16, "the height and width below which a box scores -1 and grows by half of it on every side"
    )
    iou_loss: bool = attr(False, "whether `bbox_pred` moves the corners of anchors, unscaled")
    yields = "(B * rpn_post_nms_top_n, 5), of the dtype of cls_prob: batch, x1, y1, x2, y2"
    source = "Ren et al., Faster R-CNN: towards real-time object detection with region proposal networks, 2015"
    parameters = (
        "cls_prob bbox_pred im_info scales ratios feature_stride threshold "
        "rpn_pre_nms_top_n rpn_post_nms_top_n rpn_min_size iou_loss"
    )
    required = "iou_loss"

    def result_type(self, s: TypeSolver, p: TensorType, d: TensorType, info: TensorType) -> Type | None:
        rules.rank(s, rules.floats(s, p, "cls_prob"), 4, "cls_prob")
        batch, _, *cells = p.shape
        count = len(self.scales) * len(self.ratios)
        rules.positive(s, self.feature_stride, "feature_stride")
        if min(self.ratios, default=1) <= 0 or self.rpn_post_nms_top_n < 0:
            s.fail(f"{self.op_name} needs ratios above 0, and a number of boxes from 0 on")
        rules.shaped(s, p, (None, 2 * count, None, None), "cls_prob")
        rules.shaped(s, d, (batch, 4 * count, *cells), "bbox_pred"), rules.shaped(s, info, (batch, 3), "im_info")
        return TensorType((product((batch, self.rpn_post_nms_top_n)), 5), p.dtype)

    def looked_at(self, count: int) -> int:
        """How many of so many boxes are looked at."""
        return least(self.rpn_pre_nms_top_n, count) if self.rpn_pre_nms_top_n > 0 else count

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
            order = np.argsort(-scores, kind="stable")[: self.looked_at(len(scores))]
            grown = boxes[order] + np.array([0, 0, 1, 1])
            kept = suppress(grown, self.threshold, self.rpn_post_nms_top_n)
            rows = out[n * self.rpn_post_nms_top_n :][: self.rpn_post_nms_top_n]
            rows[:, 0] = n
            if kept:
                rows[:, 1:] = boxes[order][np.resize(kept, len(rows))]
        return out

    def procedure(self, p: Procedure, out: Tensor, cls_prob: Tensor, bbox_pred: Tensor, im_info: Tensor) -> None:
        """Per image: all boxes, by falling scores; from the best on, what overlaps none kept before stays."""
        b, most, (batch, _, height, width) = p.b, self.rpn_post_nms_top_n, cls_prob.shape
        sizes = self.anchors()
        count = height * width * len(sizes)
        p.each(out, lambda i, c: b.cast(b.select(b.eq(c, 0), i // max(most, 1), b.index(0)), out.dtype))
        with p.parallel(batch) as n:
            corners = [p.scratch(count, "float64") for _ in range(4)]
            row = SortedRow(p, count, "float64")
            kept = KeptBoxes(p, least(most, count), "float64", b.const(self.threshold, "float64"))
            chosen = p.scratch(most, "int64")
            spans = [p.scratch(len(sizes), "float64") for _ in range(2)]
            for k, size in enumerate(sizes):
                for memory, extent_ in zip(spans, size):
                    p.store(memory, k, float(extent_))
            with p.loops((height, width, len(sizes))) as (y, x, k):
                at = p.let((y * width + x) * len(sizes) + k)
                box, score = self._scored(p, n, y, x, k, [memory(k) for memory in spans], cls_prob, bbox_pred, im_info)
                for memory, value in zip(corners, box):
                    p.store(memory, at, value)
                row.put(at, -score, at)
            row.sort(count)
            with p.loop(self.looked_at(count)) as k, p.when(kept.count < most):
                at = p.let(row.number(k))
                grown = [memory(at) + float(d > 1) for d, memory in enumerate(corners)]
                with kept.add(grown) as place:
                    p.store(chosen, place, at)
            with p.loop(most) as k, p.when(kept.count > 0):
                at = p.let(chosen(k % kept.count))
                for c, memory in enumerate(corners):
                    p.store(out, (n * most + k, c + 1), b.cast(memory(at), out.dtype))

    def _scored(
        self,
        p: Procedure,
        n: Element,
        y: Element,
        x: Element,
        k: Element,
        size: Sequence[Element],
        cls_prob: Tensor,
        bbox_pred: Tensor,
        im_info: Tensor,
    ) -> tuple[list[Element], Element]:
        """The corners of one box and its score, in float64."""
        b, info = p.b, [im_info(n, c) for c in range(3)]
        delta = [p.let(b.cast(bbox_pred(n, 4 * k + d, y, x), "float64")) for d in range(4)]
        middle = 0.5 * (self.feature_stride - 1)
        center = [b.cast(v, "float64") * float(self.feature_stride) + middle for v in (x, y)]
        if not self.iou_loss:
            center = [c + d * e for c, d, e in zip(center, delta, size)]
            size = [p.let(b.exp(d) * e) for d, e in zip(delta[2:], size)]
        half = [0.5 * (e - 1.0) for e in size]
        box = [c - h for c, h in zip(center, half)] + [c + h for c, h in zip(center, half)]
        if self.iou_loss:
            box = [v + d for v, d in zip(box, delta)]
        most = [b.cast(info[1 - d % 2] - 1.0, "float64") for d in range(4)]
        box = [p.let(b.min(b.max(v, 0.0), e)) for v, e in zip(box, most)]
        least = p.let(b.cast(info[2] * float(self.rpn_min_size), "float64"))
        small = p.let(b.lor(box[2] - box[0] + 1.0 < least, box[3] - box[1] + 1.0 < least))
        below, right = (b.cast(v / float(self.feature_stride), "int64") for v in info[:2])
        score = b.cast(cls_prob(n, cls_prob.shape[1] // 2 + k, y, x), "float64")
        outside = b.lor(small, b.lor(y >= below, x >= right))
        grow = b.select(small, least / 2.0, 0.0)
        return [v - grow for v in box[:2]] + [v + grow for v in box[2:]], b.select(outside, -1.0, score)

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
