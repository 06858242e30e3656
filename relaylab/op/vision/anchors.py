"""Anchor boxes: multibox_prior, multibox_transform_loc."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from relaylab.ir.expr import Call, TupleWrapper
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.loop.expr import Local, ScalarExpr, Tensor
from relaylab.op import rules
from relaylab.op.base import Floats, Input, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.shapes import derive, product

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


@op("vision.multibox_prior", level=5, attrs_key="MultiBoxPrior")
class multibox_prior(Opaque):
    """Anchor boxes (1, H * W * boxes, 4) for a feature map (N, C, H, W): for each cell one per size, and one per
    further ratio with the first size. Corners are fractions of the image.
    """

    data: Input = arg("the feature map, of which only the extents count", "(N, C, H, W)", "floats")
    sizes: Floats = attr((1.0,), "heights of the boxes, as fractions of the image")
    ratios: Floats = attr((1.0,), "widths over heights; the first one goes with the sizes and is taken for 1")
    steps: Floats = attr((-1.0, -1.0), "distance of cells down and across, as fractions; not above 0: 1 / H and 1 / W")
    offsets: Floats = attr((0.5, 0.5), "where in its cell a box has its middle, down and across, in steps")
    clip: bool = attr(False, "whether corners are limited to 0 .. 1")
    yields = "(1, H * W * (sizes + ratios - 1), 4), of the dtype of data: x1, y1, x2, y2"
    source = "Liu et al., SSD: Single shot multibox detector, 2016"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.rank(s, rules.floats(s, data), 4)
        if 0 in data.shape[2:]:
            s.fail(f"{self.op_name} has no cells to lay boxes on in {type_text(data)}")
        if not self.sizes or not self.ratios:
            s.fail(f"{self.op_name} needs a size and a ratio")
        if min(self.ratios) <= 0 or len(self.steps) != 2 or len(self.offsets) != 2:
            s.fail(f"{self.op_name} needs ratios above 0, two steps and two offsets")
        count = len(self.sizes) + len(self.ratios) - 1
        return TensorType((1, derive(lambda h, w: h * w * count, *data.shape[2:]), 4), data.dtype)

    def halves(self, height: int, width: int) -> list[tuple[float, float]]:
        """(half width, half height) of each box of a cell."""
        squares = [(size * height / width / 2, size / 2) for size in self.sizes]
        root = [math.sqrt(r) for r in self.ratios[1:]]
        return squares + [(self.sizes[0] * height / width * r / 2, self.sizes[0] / r / 2) for r in root]

    def _steps(self, height: int, width: int) -> tuple[float, float]:
        down, right = (st if st > 0 else 1.0 / n for st, n in zip(self.steps, (height, width)))
        return down, right

    def reference(self, data: np.ndarray) -> np.ndarray:
        height, width = data.shape[2:]
        step_y, step_x = self._steps(height, width)
        out = []
        for y, x in np.ndindex(height, width):
            cy, cx = (y + self.offsets[0]) * step_y, (x + self.offsets[1]) * step_x
            out += [(cx - w, cy - h, cx + w, cy + h) for w, h in self.halves(height, width)]
        boxes = np.array(out)[None]
        return (np.clip(boxes, 0.0, 1.0) if self.clip else boxes).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        height, width = data.shape[2:]
        known = [cast(int, b.number(n, "float64")) if isinstance(n, ScalarExpr) else n for n in (height, width)]
        halves = self.halves(*known)
        cell, kind = i[1] // len(halves), i[1] % len(halves)
        steps = self._steps(*known)
        centers = [
            (b.cast(k, "float64") + o) * st for k, o, st in zip((cell // width, cell % width), self.offsets, steps)
        ]
        w, h = (b.number(x, "float64") for x in halves[-1])
        for k in reversed(range(len(halves) - 1)):
            w, h = (b.select(b.eq(kind, k), b.number(v, "float64"), old) for v, old in zip(halves[k], (w, h)))
        horizontal = b.eq(i[2] % 2, 0)
        center, half = b.select(horizontal, centers[1], centers[0]), b.select(horizontal, w, h)
        value = center + half * b.select(i[2] < 2, b.const(-1.0, "float64"), b.const(1.0, "float64"))
        return b.cast(b.min(b.max(value, 0.0), 1.0) if self.clip else value, out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        many = {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0, 0.5)}
        return [
            sample((1, 3, 2, 3)),
            sample((1, 3, 3, 2), clip=True, **many),
            sample((1, 1, 2, 2), steps=(0.4, 0.3), offsets=(0.1, 0.2)),
        ]


@op("vision.multibox_transform_loc", level=5, attrs_key="MultiBoxTransformLoc")
class multibox_transform_loc(Opaque):
    """Boxes from class probabilities (B, classes, A), offsets (B, 4 A) and anchors (1, A, 4): a tuple of (B, A, 6) rows
    (class, score, corners), valid ones first and the rest -1, and the count of valid ones.
    """

    cls_prob: Input = arg("the probability of each class; class 0 is the background", "(B, classes, A)", "floats")
    loc_pred: Input = arg("how each anchor is moved and scaled: x, y, width, height", "(B, 4 A)")
    anchor: Input = arg("the anchors' corners x1, y1, x2, y2", "(1, A, 4)")
    clip: bool = attr(True, "whether corners are limited to 0 .. 1")
    threshold: float = attr(0.01, "the least probability of a valid box")
    variances: Floats = attr((0.1, 0.1, 0.2, 0.2), "factors of the four numbers of `loc_pred`")
    yields = (
        "a tuple: (B, A, 6) rows of the dtype of cls_prob, each class, score, x1, y1, x2, y2, or -1; "
        "(B,) of int32, how many are valid"
    )
    source = "Liu et al., SSD: Single shot multibox detector, 2016"
    defaults = {"threshold": 0.01}

    def result_type(self, s: TypeSolver, p: TensorType, offsets: TensorType, a: TensorType) -> Type | None:
        batch, _, count = rules.rank(s, rules.floats(s, p, "cls_prob"), 3, "cls_prob").shape
        rules.shaped(s, a, (1, count, 4), "anchor")
        if len(self.variances) != 4:
            s.fail(f"`variances` of {self.op_name} must be 4 numbers, not {self.variances}")
        rules.shaped(s, offsets, (batch, product((a.shape[1], 4))), "loc_pred")
        return TupleType([TensorType((p.shape[0], a.shape[1], 6), p.dtype), TensorType((p.shape[0],), "int32")])

    def reference(self, cls_prob: np.ndarray, loc_pred: np.ndarray, anchor: np.ndarray) -> tuple[np.ndarray, ...]:
        batch, _, count = cls_prob.shape
        out = np.full((batch, count, 6), -1.0)
        valid = np.zeros(batch, "int32")
        for n, k in np.ndindex(batch, count):
            scores = cls_prob[n, 1:, k]
            best = int(scores.argmax()) if len(scores) else -1
            if best >= 0 and scores[best] >= self.threshold:
                corners = self._box(anchor[0, k].astype("float64"), loc_pred[n, 4 * k : 4 * k + 4])
                out[n, valid[n]] = (best, scores[best], *corners)
                valid[n] += 1
        return out.astype(cls_prob.dtype), valid

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        rows, valid, cls_prob, loc_pred, anchor = tensors
        b, (batch, classes, _) = p.b, cls_prob.shape
        p.each(rows, lambda *i: b.const(-1, rows.dtype))
        with p.parallel(batch) as n:
            found = p.let(0)
            for some in p.sides(b.index(classes) > 1):
                if some:
                    self._rows(p, rows, (n, found), cls_prob, loc_pred, anchor)
            p.store(valid, n, b.cast(found, "int32"))

    def _rows(self, p: Procedure, rows: Tensor, to: tuple[Element, Local], cls_prob: Tensor, *boxes: Tensor) -> None:
        """The rows of an example: an anchor's class, score and corners where the score is high enough."""
        b, (n, found), (_, classes, count) = p.b, to, cls_prob.shape
        with p.loop(count) as k:
            best, kind = p.let(cls_prob(n, 1, k)), p.let(0)
            with p.loop(classes - 1) as c:
                p.add(kind, b.select(cls_prob(n, c + 1, k) > best, c - kind, b.index(0)))
                p.add(best, cls_prob(n, c + 1, k), "max")
            with p.when(best >= self.threshold):
                for column, x in enumerate((kind, best, *self._corners(p, n, k, *boxes))):
                    p.store(rows, (n, found, column), b.cast(x, rows.dtype))
                p.add(found, 1)

    def _corners(self, p: Procedure, n: Element, k: Element, loc_pred: Tensor, anchor: Tensor) -> list[Element]:
        """The corners of an anchor moved and scaled by its offsets, in float64."""
        b = p.b
        corners = [b.cast(anchor(0, k, e), "float64") for e in range(4)]
        moved = [b.cast(loc_pred(n, 4 * k + e), "float64") * v for e, v in enumerate(self.variances)]
        sizes = [corners[d + 2] - corners[d] for d in range(2)]
        centers = [(corners[d + 2] + corners[d]) / 2.0 + moved[d] * sizes[d] for d in range(2)]
        halves = [sizes[d] * b.exp(moved[d + 2]) / 2.0 for d in range(2)]
        box = [c - h for c, h in zip(centers, halves)] + [c + h for c, h in zip(centers, halves)]
        return [p.let(b.min(b.max(x, 0.0), 1.0) if self.clip else x) for x in box]

    def _box(self, anchor: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """The corners of an anchor moved and scaled by an offset."""
        size, center = anchor[2:] - anchor[:2], (anchor[2:] + anchor[:2]) / 2
        center = center + offset[:2] * np.array(self.variances[:2]) * size
        half = size * np.exp(offset[2:] * np.array(self.variances[2:])) / 2
        box = np.concatenate([center - half, center + half])
        return np.clip(box, 0.0, 1.0) if self.clip else box

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), (2, 16), (1, 4, 4), low=0.0, high=1.0, threshold=0.6)]
