"""Measured numbers as pictures: bars with intervals, points of two measures, a grid of shares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relaylab.viz.graph.figure import abbreviated
from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text
from relaylab.viz.scene.theme import HEAT

MARGIN, TITLE, LINE, WIDTH, LONGEST = 16.0, 24.0, 16.0, 420.0, 260.0
CELL, SIDE = 64.0, 320.0


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar of a group: its length, and the interval in which the true one lies."""

    group: str
    name: str
    value: float
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A point of two measures, of which less is better."""

    x: float
    y: float
    name: str


def bars(given: Sequence[ChartBar], title: str) -> Scene:
    """Bars under the names of their groups; intervals are lines at their ends."""
    most = _most(b.span[1] if b.span else b.value for b in given)
    left = MARGIN + min(LONGEST, max((text_width(b.name, 9.0) for b in given), default=0.0)) + 12
    across = lambda value: left + WIDTH * _part(value, most)
    elements, y, group = [_title(title)], MARGIN + TITLE, ""
    for bar in given:
        if bar.group != group:
            group, y = bar.group, y + 4
            elements.append(_text(f"group:{group}", MARGIN, y + 11, group, "bold"))
            y += LINE
        end = across(bar.value)
        shapes: list[Shape] = [
            Text(left - 6, y + 11, fit(bar.name, LONGEST, 9.0), 9.0, anchor="end"),
            Rect(left, y + 3, max(end - left, 0.5), LINE - 6, 1.0, ("box", "family-fusable")),
            Text((across(bar.span[1]) if bar.span else end) + 6, y + 11, abbreviated(bar.value), 8.0),
        ]
        if bar.span:
            shapes.append(Path((("M", across(bar.span[0]), y + 8), ("L", across(bar.span[1]), y + 8)), ("wire",)))
        words = f"{group}, {bar.name}: {abbreviated(bar.value)}"
        elements.append(Element(f"bar:{group}:{bar.name}", "node", tuple(shapes), words, words))
        y += LINE
    return Scene(left + WIDTH + 80, y + MARGIN, tuple(elements), title)


def grid(shares: Mapping[tuple[str, str], float], title: str) -> Scene:
    """Rows × columns of shares from 1 (best) on; the darker the worse."""
    rows, columns = (list(dict.fromkeys(k[side] for k in shares)) for side in (0, 1))
    left = MARGIN + min(LONGEST, max((text_width(r, 9.0) for r in rows), default=0.0)) + 10
    top = MARGIN + TITLE + LINE * (len(columns) + 1)
    most = max(_most(shares.values()), 1.0 + 1e-9)
    elements = [_title(title)]
    for k, column in enumerate(columns):
        x, y = left + (k + 0.5) * CELL, top - LINE * (len(columns) - k)
        rule = Path((("M", x, y + 2), ("L", x, top - 2)), ("rule",))
        label = Text(x + 4, y + 2, column, 9.0, "bold")
        elements.append(Element(f"column:{column}", "note", (rule, label), column))
    for k, row in enumerate(rows):
        y = top + k * (LINE + 6)
        elements.append(_text(f"row:{row}", left - 8, y + 14, fit(row, LONGEST, 9.0), anchor="end"))
        for j, column in enumerate(columns):
            if (share := shares.get((row, column))) is not None:
                elements.append(_share(f"{column}:{row}", share, most, left + j * CELL, y))
    width = left + CELL * len(columns) + max((text_width(c, 9.0, "bold") for c in columns[-1:]), default=0.0) + MARGIN
    width = max(width, MARGIN * 2 + text_width(title, 12.0, "bold"))
    return Scene(width, top + (LINE + 6) * len(rows) + MARGIN, tuple(elements), title)


def points(given: Sequence[ChartPoint], across: str, up: str) -> Scene:
    """Points by two measures from 0 on; those that no other one beats in both are filled and named."""
    left, top = MARGIN + 20, MARGIN + TITLE + 14
    most = [_most(getattr(p, a) for p in given) for a in ("x", "y")]
    place = lambda p: (left + SIDE * 1.4 * _part(p.x, most[0]), top + SIDE * (1 - _part(p.y, most[1])))
    axes = Path((("M", left, top), ("L", left, top + SIDE), ("L", left + SIDE * 1.4, top + SIDE)), ("wire",))
    marks = (
        axes,
        Text(left + SIDE * 1.4, top + SIDE + 14, f"{across} (to {abbreviated(most[0])})", 9.0, anchor="end"),
        Text(MARGIN, top - 6, f"{up} (to {abbreviated(most[1])})", 9.0),
    )
    elements = [_title(f"{up} and {across}"), Element("axes", "note", marks, f"{up} over {across}")]
    for k, point in enumerate(given):
        best = not any(q.x <= point.x and q.y <= point.y and (q.x, q.y) != (point.x, point.y) for q in given)
        x, y = place(point)
        looks = ("box", "heat-4" if best else "family-value")
        shapes: list[Shape] = [Rect(x - 4, y - 4, 8, 8, 4.0, looks)]
        if best:
            shapes.append(Text(x + 7, y + 3, fit(point.name, LONGEST, 8.0), 8.0))
        words = f"{point.name}: {across} {abbreviated(point.x)}, {up} {abbreviated(point.y)}"
        elements.append(Element(f"point:{k}", "node", tuple(shapes), words, words))
    return Scene(left + SIDE * 1.4 + LONGEST, top + SIDE + 24 + MARGIN, tuple(elements), f"{up} over {across}")


def _most(values: Iterable[float]) -> float:
    """The largest number of a scale."""
    return max((v for v in values if math.isfinite(v) and v > 0), default=1.0)


def _part(value: float, most: float) -> float:
    """How far along a scale a value lies; what is beyond it lies at its end, what is no number at its beginning."""
    return min(max(0.0, value / most), 1.0)


def _share(id: str, share: float, most: float, x: float, y: float) -> Element:
    last = len(HEAT) - 1
    level = last if share >= most else math.floor(len(HEAT) * math.log(share) / math.log(most)) if share > 1 else 0
    words = f"{id}: {share:.2f} times the best"
    text = Text(x + CELL / 2, y + 14, f"{share:.2f}", 9.0, anchor="middle")
    plate = Rect(x + 1, y + 1, CELL - 2, LINE + 3, 2.0, (f"heat-{level}", "plate"))
    return Element(id, "node", (plate, text), words, words)


def _title(title: str) -> Element:
    return _text("title", MARGIN, MARGIN + 10, title, "bold", 12.0)


def _text(
    id: str, x: float, y: float, text: str, face: str = "regular", size: float = 9.0, anchor: str = "start"
) -> Element:
    return Element(id, "note", (Text(x, y, text, size, face, anchor),), text)
