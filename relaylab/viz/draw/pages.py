"""Pictures on paper: cut between rows of boxes, strips of a long one side by side, title and legend on each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
SCALES = (1.0, 0.93, 0.86, 0.79, 0.72, 0.66)
"""At which strips stand beside each other; at the last the smallest letters are five points high."""
RIM = 20.0
"""Points of the picture that a strip shows beside its boxes and lines."""
SMALLEST = 0.5
"""A picture wider than the paper is scaled down this far at most; beyond, it goes over several columns of pages."""
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


Window = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Format:
    """A way to put a picture on paper: its orientation, the scale, the windows onto the picture that each page has."""

    paper: tuple[float, float]
    scale: float
    pages: list[list[Window]]


def _room(paper: tuple[float, float]) -> tuple[float, float]:
    """Width and height that a page has for pictures."""
    return paper[0] - 2 * BORDER, paper[1] - 2 * BORDER - HEAD - FOOT


def sheets(scene: Scene, width: float, height: float) -> list[Page]:
    """The pages of one picture: in the orientation and scale that need the fewest, in the larger scale."""
    return sheets_of([scene], width, height)[0]


def sheets_of(scenes: Sequence[Scene], width: float, height: float) -> list[list[Page]]:
    """The pages of each picture of a document, whose numbers go through all of it."""
    formats = [_best(scene, width, height) for scene in scenes]
    count, before, found = sum(len(form.pages) for form in formats), 0, list[list[Page]]()
    for scene, form in zip(scenes, formats):
        found.append(_sheets(scene, form, before, count))
        before += len(form.pages)
    return found


def _best(scene: Scene, width: float, height: float) -> _Format:
    reach = _reach(scene)
    papers = ((width, height), (height, width))
    formats = [f for paper in papers for scale in SCALES if (f := _beside(scene, paper, scale, reach))]
    return min([*formats, *(_columned(scene, paper) for paper in papers)], key=lambda f: (len(f.pages), -f.scale))


def _sheets(scene: Scene, best: _Format, before: int, count: int) -> list[Page]:
    """The pages of a picture that follows so many others of `count`."""
    windows = [(k, n, w) for k, page in enumerate(best.pages, before + 1) for n, w in enumerate(page, 1)]
    places = [PagePlace(x, y, x + w, y + h, page, column) for page, column, (x, y, w, h) in windows]
    told = iter(crossings(scene, places, best.scale))
    held = iter(_shared_out(scene, [w for _, _, w in windows]))
    pages = [[PageWindow([*next(held), *next(told)], w, best.scale) for w in page] for page in best.pages]
    heads = [_head(scene, best.paper[0], k, before, count) for k in range(len(pages))]
    return [_page(scene, best, parts, head) for parts, head in zip(pages, heads)]


def _beside(scene: Scene, paper: tuple[float, float], scale: float, reach: Sequence[Reach]) -> _Format | None:
    """Strips as wide as what is in them, as many on a page as have room; None if one is wider than the page."""
    wide, high = _room(paper)
    pages: list[list[Window]] = []
    free = 0.0
    rows = cuts(scene.bands, scene.height, high / scale)
    for (top, bottom), (left, right) in zip(rows, _sides(scene, rows, reach)):
        needs = (right - left) * scale
        if needs > wide + 0.5:
            return None
        if free < needs:
            pages.append([])
            free = wide
        pages[-1].append((left, top, right - left, bottom - top))
        free -= needs + GUTTER
    return _Format(paper, scale, pages)


def _columned(scene: Scene, paper: tuple[float, float]) -> _Format:
    """A strip a page, scaled down to fit, or over several columns of pages if that is too small."""
    wide, high = _room(paper)
    scale = max(min(1.0, wide / scene.width), SMALLEST)
    rows = cuts(scene.bands, scene.height, high / scale)
    windows = [(x, row[0], end - x, row[1] - row[0]) for row in rows for x, end in _columns(scene, wide / scale, row)]
    return _Format(paper, scale, [[w] for w in windows])


Reach = tuple[float, float, float, float]
"""From where to where a part of a picture goes: top, bottom, left, right."""


def _sides(scene: Scene, rows: Sequence[tuple[float, float]], reach: Sequence[Reach]) -> Iterable[tuple[float, float]]:
    """From where to where each row of a picture has something to show."""
    tops = [top for top, _ in rows]
    sides = [(scene.width, 0.0)] * len(rows)
    for top, bottom, left, right in reach:
        for k in range(max(0, bisect_right(tops, top) - 1), max(1, bisect_left(tops, bottom))):
            sides[k] = min(sides[k][0], left), max(sides[k][1], right)
    for left, right in sides:
        yield (max(0.0, left - RIM), min(scene.width, right + RIM)) if left < right else (0.0, scene.width)


def _reach(scene: Scene) -> list[Reach]:
    """The places of all parts but the boxes of groups, which get the width of what is in them; lines in pieces."""
    found: list[Reach] = []
    for shape in (s for f in scene.elements if f.kind != "group" for s in f.shapes):
        if not isinstance(shape, Path):
            left, top, right, bottom = extent(shape)
            found.append((top, bottom, left, right))
            continue
        points = [c[k : k + 2] for c in shape.commands for k in range(1, len(c), 2)]
        for (x, y), (u, v) in zip(points, points[1:]):
            found.append((min(y, v), max(y, v), min(x, u), max(x, u)))
    return found


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


def _columns(scene: Scene, wide: float, row: tuple[float, float]) -> list[tuple[float, float]]:
    """The columns into which one row of a picture is cut: no wider than a page, between boxes, without margins."""
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


def _shared_out(scene: Scene, windows: Sequence[Window]) -> list[list[Shape]]:
    """For each window the shapes that may be seen in it; windows are in the order of their tops."""
    tops = [top for _, top, _, _ in windows]
    found: list[list[Shape]] = [[] for _ in windows]
    for group, shape in ((f.kind == "group", s) for f in scene.elements for s in f.shapes):
        left, top, right, bottom = extent(shape)
        first = bisect_left(tops, tops[max(0, bisect_right(tops, top) - 1)])
        for k in range(first, max(1, bisect_right(tops, bottom))):
            x, _, w, _ = windows[k]
            if left <= x + w and right >= x:
                found[k].append(_drawn_in(shape, x, w) if group and isinstance(shape, Rect) else shape)
    return found


def _drawn_in(rect: Rect, x: float, width: float) -> Rect:
    """The box of a group that is wider than a strip, with its sides in the strip."""
    left, right = max(rect.x, x + 1), min(rect.x + rect.width, x + width - 1)
    return replace(rect, x=left, width=max(0.0, right - left))


def _page(scene: Scene, form: _Format, parts: Sequence[PageWindow], head: Sequence[Shape]) -> Page:
    width, height = form.paper
    spare = (_room(form.paper)[0] - sum(p.window[2] * p.scale for p in parts)) / len(parts)
    placed, x = list[PageWindow](), BORDER
    for part in parts:
        placed.append(replace(part, offset=(x + spare / 2, BORDER + HEAD)))
        x += part.window[2] * part.scale + spare
    frame = PageWindow([*head, *_legend(scene, width, height)], (0.0, 0.0, width, height))
    rules = [
        Path((("M", x, BORDER + HEAD), ("L", x, height - BORDER - FOOT)), ("rule",))
        for x in (part.offset[0] - spare / 2 for part in placed[1:])
    ]
    return Page([frame, PageWindow(rules, (0.0, 0.0, width, height)), *placed], form.paper)


def _head(scene: Scene, width: float, number: int, before: int, count: int) -> list[Shape]:
    """The title of the picture (its caption says it on the first page) and the page's number if there are several."""
    if count == 1:
        return []
    title = Text(
        BORDER, BORDER + 6, fit(scene.title, width - 2 * BORDER - 90, 9.0, "bold"), 9.0, "bold", styles=("text-title",)
    )
    page = Text(
        width - BORDER, BORDER + 6, f"page {before + number + 1} of {count}", 8.0, anchor="end", styles=("text-dim",)
    )
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
