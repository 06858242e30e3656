"""Pictures on paper: cut between rows of boxes, strips of a long one side by side, title and legend on each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from relaylab.viz.draw.crossings import PagePlace, crossings
from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text, extent, merged_bands
from relaylab.viz.scene.theme import FAMILIES

MAX_UNITS = 14_400.0
WIDEST = 5_000
"""Millimetres that a page may be told to be wide: a little less than PDF knows."""
PAPERS = {"a4": (595.0, 842.0), "letter": (612.0, 792.0)}
BORDER = 28.0
HEAD = FOOT = 16.0
GUTTER = 14.0
READABLE = 0.66
"""Strips stand beside each other only at this scale or above: the smallest letters are then five points high."""
SMALLEST = 0.5
"""A picture wider than the paper is scaled down this far at most; beyond, it goes over several columns of pages."""
STRIPS = (1, 2, 3, 4)
WIRES = {"callee": "calls", "recursion": "recursion", "order": "evaluated before", "far": "calls"}


@dataclass(frozen=True, slots=True)
class PageWindow:
    """A window (left, top, width, height) onto some shapes, at which scale, and where on the page it begins."""

    shapes: Sequence[Shape]
    window: tuple[float, float, float, float]
    scale: float = 1.0
    offset: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Page:
    """Parts of pictures on one page of paper."""

    parts: Sequence[PageWindow]
    paper: tuple[float, float]
    unit: float = 1.0


def whole(scene: Scene, width: float | None = None) -> Page:
    """A page as large as its picture, or of a width in millimetres."""
    scale = 1.0 if width is None else width * 72 / 25.4 / scene.width
    unit = max(1.0, scale * scene.width / MAX_UNITS, scale * scene.height / MAX_UNITS)
    shapes = [s for f in scene.elements for s in f.shapes]
    return Page(
        [PageWindow(shapes, (0.0, 0.0, scene.width, scene.height), scale / unit)],
        (scale * scene.width / unit, scale * scene.height / unit),
        unit,
    )


@dataclass(frozen=True, slots=True)
class _Format:
    """A way to put a picture on paper: its orientation, the strips beside each other, the scale, the cuts."""

    paper: tuple[float, float]
    strips: int
    scale: float
    rows: list[tuple[float, float]]

    @property
    def room(self) -> tuple[float, float]:
        """Width and height that one strip has on the page."""
        width = self.paper[0] - 2 * BORDER - (self.strips - 1) * GUTTER
        return width / self.strips, self.paper[1] - 2 * BORDER - HEAD - FOOT


def sheets(scene: Scene, width: float, height: float) -> list[Page]:
    """The pages of one picture: in the orientation and strips that need the fewest, in the larger scale."""
    formats = [f for paper in ((width, height), (height, width)) for n in STRIPS if (f := _format(scene, paper, n))]
    best = min(formats, key=lambda f: (-(-_strips(scene, f) // f.strips), -f.scale))
    parts = [
        part for row, held in zip(best.rows, _shared_out(scene, best.rows)) for part in _row(scene, best, row, held)
    ]
    places = [
        PagePlace(x, y, x + w, y + h, k // best.strips + 1, k % best.strips + 1)
        for k, (x, y, w, h) in enumerate(p.window for p in parts)
    ]
    told = crossings(scene, places, best.scale)
    parts = [replace(part, shapes=[*part.shapes, *words]) for part, words in zip(parts, told)]
    pages = [parts[k : k + best.strips] for k in range(0, len(parts), best.strips)]
    return [_page(scene, best, held, k, len(pages)) for k, held in enumerate(pages)]


def _format(scene: Scene, paper: tuple[float, float], strips: int) -> _Format | None:
    """One strip always fits (over several columns of pages if it must); more only if they are readable."""
    room = _Format(paper, strips, 1.0, []).room
    scale = min(1.0, room[0] / scene.width)
    if strips > 1 and scale < READABLE:
        return None
    scale = max(scale, SMALLEST)
    return _Format(paper, strips, scale, cuts(scene.bands, scene.height, room[1] / scale))


def _strips(scene: Scene, form: _Format) -> int:
    return (
        len(form.rows)
        if scene.width * form.scale <= form.room[0] + 0.5
        else sum(len(_columns(scene, form, r)) for r in form.rows)
    )


def cuts(
    bands: Sequence[tuple[float, float]], end: float, most: float, start: float = 0.0
) -> list[tuple[float, float]]:
    """Intervals of at most `most` from `start` to `end`, ending between bands where there is a gap to end in."""
    gaps = [(a[1] + b[0]) / 2 for a, b in zip(bands, bands[1:])] + [end]
    found, top = [], start
    while end - top > most + 0.01:
        last = bisect_right(gaps, top + most) - 1
        bottom = gaps[last] if last >= 0 and gaps[last] > top + most * 0.3 else top + most
        found.append((top, bottom))
        top = bottom
    return [*found, (top, end)]


def _columns(scene: Scene, form: _Format, row: tuple[float, float]) -> list[tuple[float, float]]:
    """The columns into which one row of a picture is cut: no wider than a page, between boxes, without margins."""
    wide = form.room[0] / form.scale
    if scene.width <= wide + 0.5:
        return [(0.0, scene.width)]
    boxes = [
        f.box
        for f in scene.elements
        if f.kind in ("node", "note") and f.box[1] < row[1] and f.box[1] + f.box[3] > row[0]
    ]
    spans = merged_bands((x, x + w) for x, _, w, _ in boxes) or ((0.0, scene.width),)
    left, right = max(0.0, spans[0][0] - GUTTER), min(scene.width, spans[-1][1] + GUTTER)
    return cuts(spans, right, wide, left)


def _shared_out(scene: Scene, rows: Sequence[tuple[float, float]]) -> list[list[tuple[Shape, float, float]]]:
    """For each row the shapes that may touch it, with their left and right ends."""
    tops = [top for top, _ in rows]
    found: list[list[tuple[Shape, float, float]]] = [[] for _ in rows]
    for shape in (s for f in scene.elements for s in f.shapes):
        left, top, right, bottom = extent(shape)
        for r in range(max(0, bisect_right(tops, top) - 1), max(1, bisect_right(tops, bottom))):
            found[r].append((shape, left, right))
    return found


def _row(
    scene: Scene, form: _Format, row: tuple[float, float], held: Sequence[tuple[Shape, float, float]]
) -> Iterable[PageWindow]:
    """The parts of one row of a picture, from left to right."""
    for left, right in _columns(scene, form, row):
        shapes = [shape for shape, a, b in held if a <= right and b >= left]
        yield PageWindow(shapes, (left, row[0], right - left, row[1] - row[0]), form.scale)


def _page(scene: Scene, form: _Format, parts: Sequence[PageWindow], number: int, count: int) -> Page:
    wide = form.room[0]
    placed = []
    for k, part in enumerate(parts):
        x = BORDER + k * (wide + GUTTER) + max(0.0, wide - part.window[2] * part.scale) / 2
        placed.append(PageWindow(part.shapes, part.window, part.scale, (x, BORDER + HEAD)))
    width, height = form.paper
    frame = PageWindow([*_head(scene, width, number, count), *_legend(scene, width, height)], (0.0, 0.0, width, height))
    rules = [
        Path((("M", x, BORDER + HEAD), ("L", x, height - BORDER - FOOT)), ("rule",))
        for x in (BORDER + k * (wide + GUTTER) - GUTTER / 2 for k in range(1, len(parts)))
    ]
    return Page([frame, PageWindow(rules, (0.0, 0.0, width, height)), *placed], form.paper)


def _head(scene: Scene, width: float, number: int, count: int) -> list[Shape]:
    """The title of the picture (its caption says it on the first page) and the page's number if there are several."""
    if count == 1:
        return []
    title = Text(
        BORDER, BORDER + 6, fit(scene.title, width - 2 * BORDER - 90, 9.0, "bold"), 9.0, "bold", styles=("text-title",)
    )
    page = Text(width - BORDER, BORDER + 6, f"page {number + 1} of {count}", 8.0, anchor="end", styles=("text-dim",))
    return [title, page] if number else [page]


def _legend(scene: Scene, width: float, height: float) -> list[Shape]:
    """What the colours and lines of a picture mean, in one line at the foot of the page."""
    styles = {s for f in scene.elements if isinstance(f, Element) for shape in f.shapes for s in shape.styles}
    parts: list[Shape] = []
    x, base = BORDER, height - BORDER + 4
    for name in (n for n in FAMILIES if f"family-{n}" in styles and n not in ("value", "function")):
        parts.append(Rect(x, base - 7, 9, 8, 2, ("box", f"family-{name}")))
        parts.append(Text(x + 12, base, name, 7.5, styles=("text-dim",)))
        x += 12 + text_width(name, 7.5) + 10
    for kind in (k for k in WIRES if f"wire-{k}" in styles and not (k == "far" and "wire-callee" in styles)):
        parts.append(Path((("M", x, base - 3), ("L", x + 18, base - 3)), ("wire", f"wire-{kind}")))
        parts.append(Text(x + 21, base, WIRES[kind], 7.5, styles=("text-dim",)))
        x += 21 + text_width(WIRES[kind], 7.5) + 10
    return parts if x < width else []
