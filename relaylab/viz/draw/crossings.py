"""Where lines go on that are cut at the border of a page: "to page 3" at the cut, "from page 1" where they come in."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relaylab.viz.scene.metrics import text_width
from relaylab.viz.scene.scene import Path, Point, Scene, Text

SIZE = 6.0
"""Points of these words on paper."""
APART = 3.0


@dataclass(frozen=True, slots=True)
class PagePlace:
    """A window (left, top, right, bottom) onto a picture, and on which page and in which column of it that is."""

    left: float
    top: float
    right: float
    bottom: float
    page: int
    column: int

    def holds(self, point: Point) -> bool:
        """Whether a point of the picture is seen in the window."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom

    def named(self, word: str, seen: PagePlace) -> str:
        """The place in words, where another one is seen; empty for the same."""
        if self.page != seen.page:
            return f"{word} page {self.page}"
        return f"{word} column {self.column}" if self.column != seen.column else ""


def crossings(scene: Scene, places: Sequence[PagePlace], scale: float) -> list[list[Text]]:
    """For each window the words at its upper and lower border; windows are in the order of their tops."""
    tops, size = [p.top for p in places], SIZE / scale
    below: list[dict[str, set[float]]] = [{} for _ in places]
    above: list[dict[str, set[float]]] = [{} for _ in places]
    for points in _lines(scene):
        first, last = (_place(places, tops, end) for end in (points[0], points[-1]))
        if first is None or last is None or first is last:
            continue
        low, high = min(y for _, y in points), max(y for _, y in points)
        for k in range(max(0, bisect_right(tops, low) - 1), bisect_left(tops, high)):
            seen = places[k]
            for border, word, goes, found in ((seen.bottom, "to", last, below[k]), (seen.top, "from", first, above[k])):
                words = goes.named(word, seen)
                for x in _cut(points, border) if words else ():
                    if seen.left <= x <= seen.right:
                        found.setdefault(words, set()).add(x)
    return [
        [*_texts(under, seen.bottom - size * 0.5, size, seen), *_texts(over, seen.top + size * 1.1, size, seen)]
        for seen, under, over in zip(places, below, above)
    ]


def _lines(scene: Scene) -> Iterator[list[Point]]:
    """The corners of every line that has any."""
    for element in scene.elements:
        if element.kind == "edge" and element.shapes and isinstance(line := element.shapes[0], Path):
            points = [(c[-2], c[-1]) for c in line.commands if len(c) > 2]
            if len(points) > 1:
                yield points


def _place(places: Sequence[PagePlace], tops: Sequence[float], point: Point) -> PagePlace | None:
    """The window that a point is seen in."""
    last = bisect_right(tops, point[1])
    first = bisect_left(tops, tops[last - 1]) if last else 0
    return next((p for p in places[first:last] if p.holds(point)), None)


def _cut(points: Sequence[Point], border: float) -> Iterator[float]:
    """Where a line goes down through a height."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if y0 < border <= y1:
            yield x0 + (x1 - x0) * (border - y0) / (y1 - y0)


def _texts(found: dict[str, set[float]], y: float, size: float, seen: PagePlace) -> Iterable[Text]:
    """The words beside their lines (before a line at the right border); the same words once where lines are near each
    other, others below each other.
    """
    taken: list[tuple[float, float, int, str]] = []
    for x, words in sorted((x, words) for words, places in found.items() for x in places):
        wide = text_width(words, size)
        x = x if x + APART + wide <= seen.right else max(seen.left, x - 2 * APART - wide)
        end = x + APART + wide
        near = [t for t in taken if t[0] - APART < end and x < t[1]]
        if any(t[3] == words for t in near):
            continue
        row = next(k for k in range(len(near) + 1) if all(t[2] != k for t in near))
        taken.append((x, end, row, words))
        if row < 2:  # more have no room between two rows of boxes
            yield Text(x + APART, y - row * size * 1.1, words, size, styles=("text-dim",))
