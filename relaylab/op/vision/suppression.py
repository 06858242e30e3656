"""Suppressing boxes that overlap a better one: in numpy, and as a part of procedures.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from relaylab.loop.builder import most
from relaylab.loop.expr import Local, Tensor
from relaylab.loop.scalar import compute_dtype
from relaylab.op.helpers import Element
from relaylab.op.ordering import SelectedRow, SortedRow

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

LANES = 16  # boxes that are compared with a candidate side by side
FIRST = 256  # boxes that are put in order at first if at most half as many may stay
MANY = 4  # from how many times as many boxes on


def number(scalar: Tensor) -> Element:
    """The one element of a tensor."""
    return scalar(*(0 for _ in scalar.shape))


def suppress(boxes: np.ndarray, threshold: float, most: int, same: np.ndarray | None = None) -> list[int]:
    """The boxes, best first, that stay when each removes later ones overlapping it by `threshold` or more: by their
    intersection over union, all being (x1, y1, x2, y2) with corners in any order.

    `same[i, j]` says whether box i may remove box j (None: always); `most` < 0 keeps any number.
    """
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:4]).T, np.maximum(boxes[:, :2], boxes[:, 2:4]).T
    rest = np.stack([*low, *high, (high[0] - low[0]) * (high[1] - low[1])])
    numbers, kept, at = np.arange(len(boxes)), list[int](), 0
    while at < len(numbers) and not 0 <= most <= len(kept):
        kept.append(int(numbers[at]))
        x1, y1, x2, y2, area = rest[:, at]
        at += 1
        if threshold <= 0:
            continue
        left, top, right, bottom, areas = rest[:, at:]
        width = np.maximum(np.minimum(x2, right) - np.maximum(x1, left), 0)
        inter = width * np.maximum(np.minimum(y2, bottom) - np.maximum(y1, top), 0)
        union = area + areas - inter
        stays = ~(np.divide(inter, union, out=np.zeros_like(inter), where=union > 0) >= threshold)
        if same is not None:
            stays |= ~same[kept[-1], numbers[at:]]
        if not stays.all():  # what is removed is not looked at again
            rest, numbers, at = rest[:, at:][:, stays], numbers[at:][stays], 0
    return kept


class KeptBoxes:
    """The boxes that stay, in the private memory of a parallel loop: `add` is asked for one after another, best first.

    A candidate is compared with those kept before it, `LANES` at a time until one suppresses it: O(n k).
    """

    def __init__(self, p: Procedure, room: int, dtype: str, threshold: Element, classes: bool = False):
        self.p, self.blocks = p, most((room + (LANES - 1)) // LANES, 1)
        self.dtype = compute_dtype(dtype)
        self.threshold = p.let(p.b.cast(threshold, self.dtype))
        self.edges = [p.scratch(self.blocks * LANES, self.dtype) for _ in range(4)]
        self.areas = p.scratch(self.blocks * LANES, self.dtype)
        self.classes = p.scratch(self.blocks * LANES, self.dtype) if classes else None
        self.count = p.let(0)

    def clear(self) -> None:
        """Begin anew."""
        self.count = self.p.let(0)

    @contextmanager
    def add(self, corners: Sequence[Element], kind: Element | None = None) -> Iterator[Local]:
        """What is done with the candidate, as number `count` of those kept, if it stays."""
        p, b = self.p, self.p.b
        x1, y1, x2, y2 = (p.let(b.cast(c, self.dtype)) for c in corners)
        box = [p.let(f(u, v)) for f in (b.min, b.max) for u, v in ((x1, x2), (y1, y2))]
        area = p.let((box[2] - box[0]) * (box[3] - box[1]))
        kind = None if kind is None else p.let(b.cast(kind, self.dtype))
        gone = p.let(b.const(False, "bool"))
        blocks = b.select(self.threshold > 0, b.shr(self.count + (LANES - 1), 4), b.index(0))
        with p.loop(self.blocks, stop=blocks) as block, p.when(b.lnot(gone)):
            with p.loop(LANES, kind="vectorized") as lane:
                p.add(gone, self._suppresses(block * LANES + lane, box, area, kind), "any")
        with p.when(b.lnot(gone)):
            for memory, value in zip(self.edges, box):
                p.store(memory, self.count, value)
            p.store(self.areas, self.count, area)
            if self.classes is not None and kind is not None:
                p.store(self.classes, self.count, kind)
            yield self.count
            p.add(self.count, 1)

    def _suppresses(self, at: Element, box: Sequence[Element], area: Element, kind: Element | None) -> Element:
        """Whether a kept box suppresses a candidate."""
        b = self.p.b
        low_x, low_y, high_x, high_y = (edge(at) for edge in self.edges)
        width = b.max(b.min(high_x, box[2]) - b.max(low_x, box[0]), 0.0)
        height = b.max(b.min(high_y, box[3]) - b.max(low_y, box[1]), 0.0)
        inter = width * height
        union = self.areas(at) + area - inter
        hit = b.all_of(at < self.count, union > 0.0, inter / union >= self.threshold)
        return hit if kind is None or self.classes is None else b.land(hit, b.eq(self.classes(at), kind))


class ChosenBoxes:
    """The boxes of a class that stay, best first, of (B, N, 4) boxes by (B, C, N) scores, in a parallel loop.

    Where few are wanted of many, the best `FIRST` are selected, and all are sorted only if these do not give enough.
    """

    def __init__(self, p: Procedure, boxes: Tensor, scores: Tensor, most: Tensor, iou: Tensor, score: Tensor):
        b, count = p.b, scores.shape[2]
        self.p, self.boxes, self.scores = p, boxes, scores
        self.row, self.kept = SortedRow(p, count, scores.dtype), KeptBoxes(p, count, boxes.dtype, number(iou))
        self.least, limit = p.let(b.cast(number(score), scores.dtype)), p.let(b.load_index(number(most)))
        self.limit = p.let(b.select(limit > 0, limit, b.index(count)))
        may_be_many = isinstance(count, Element) or count >= MANY * FIRST
        self.first = SelectedRow(p, count, FIRST, scores.dtype) if may_be_many else None

    @contextmanager
    def of_class(self, n: Element, c: Element) -> Iterator[tuple[Local, Local]]:
        """What is done with each box that stays, of an image and a class: its number, and how many stayed before it."""
        p, b, kept, count = self.p, self.p.b, self.kept, self.scores.shape[2]
        read = lambda k: self.scores(n, c, k)
        found, ordered = p.let(0), p.let(0)
        with p.loop(count, kind="vectorized") as k:
            p.add(found, b.cast(b.cast(read(k) > self.least, "int32"), found.dtype))
        if self.first is not None:
            with p.when(b.land(self.limit * 2 <= FIRST, found > MANY * FIRST)):
                self._begin(self.first, read)
                p.set(ordered, b.index(FIRST))
        kept.clear()
        with p.loop(count, stop=found) as place, p.when(kept.count < self.limit):
            with p.when(b.eq(place, ordered)):
                self._sort(read)
                p.set(ordered, found)
            k = p.let(self.row.number(place))
            with kept.add([self.boxes(n, k, e) for e in range(4)]) as before:
                yield k, before

    def _begin(self, first: SelectedRow, read: Callable[[Element], Element]) -> None:
        """Order the best `FIRST`: what does not exceed the least score stands behind all."""
        p, b = self.p, self.p.b
        last = b.const(float("-inf"), self.scores.dtype)
        first.select(lambda k: b.select(read(k) > self.least, read(k), last))
        with p.loop(FIRST, kind="vectorized") as place:
            p.store(self.row.numbers, place, b.cast(first.row.numbers(place), self.row.numbers.dtype))

    def _sort(self, read: Callable[[Element], Element]) -> None:
        """Order all that exceed the least score."""
        p, found = self.p, self.p.let(0)
        with p.loop(self.scores.shape[2]) as k:
            x = p.let(read(k))
            with p.when(x > self.least):
                self.row.put(found, -x, k)
                p.add(found, 1)
        self.row.sort(found)
