"""Scenes to PDF 1.6, written here: vector shapes, selectable text in the standard fonts, pages, bookmarks.

Source: ISO 32000-1 (PDF 1.7), which contains all that is used. Viewers limit a page to 14,400 units, so a
larger picture is scaled down and `UserUnit` scales it back. Text outside WinAnsi (Windows code page 1252)
is spelled where there is a spelling and shown as "?" otherwise: the standard fonts have no other letters.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.support.errors import RelayValueError
from relaylab.viz.metrics import text_width
from relaylab.viz.scene import Rect, Scene, Shape, Text, extent, rounded
from relaylab.viz.theme import resolve

MAX_UNITS = 14_400.0
PAPERS = {"a4": (595.0, 842.0), "letter": (612.0, 792.0)}
BORDER = 28.0
SMALLEST = 0.42
"""A picture wider than the paper is scaled down this far at most; beyond, it goes over several columns of pages."""

_FONTS = {"regular": ("F1", "Helvetica"), "bold": ("F2", "Helvetica-Bold"), "mono": ("F3", "Courier")}
_SPELLED = {"→": "->", "←": "<-", "⇒": "=>", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "λ": "\\", "∞": "inf", "✓": "v"}


@dataclass(frozen=True, slots=True)
class _Page:
    """A window onto a scene: the shapes in it, what part it is, at which scale, on which paper."""

    shapes: Sequence[Shape]
    window: tuple[float, float, float, float]
    scale: float
    paper: tuple[float, float]
    offset: tuple[float, float] = (0.0, 0.0)
    unit: float = 1.0


def pdf(scenes: Sequence[Scene], *, paper: str = "fit", title: str = "relaylab") -> bytes:
    """A document with a bookmark for every scene. `paper`: `fit` (a page as large as its picture), `a4`, `letter`.

    On real paper a picture is cut between its rows of boxes and goes on over the next page.
    """
    if paper != "fit" and paper not in PAPERS:
        raise RelayValueError(f"`paper` cannot be {paper!r}; it is one of fit, {', '.join(PAPERS)}", code="viz.option")
    pages: list[_Page] = []
    marks: list[tuple[str, int]] = []
    for scene in scenes:
        marks.append((scene.title or title, len(pages)))
        pages += [_whole(scene)] if paper == "fit" else _tiles(scene, *PAPERS[paper])
    return _document(pages, marks, title)


def _whole(scene: Scene) -> _Page:
    unit = max(1.0, scene.width / MAX_UNITS, scene.height / MAX_UNITS)
    size = (scene.width / unit, scene.height / unit)
    shapes = [s for f in scene.figures for s in f.shapes]
    return _Page(shapes, (0.0, 0.0, scene.width, scene.height), 1 / unit, size, unit=unit)


def _tiles(scene: Scene, width: float, height: float) -> list[_Page]:
    """The pages of one scene on paper, column by column."""
    if scene.width > scene.height * 1.2:
        width, height = height, width
    room = (width - 2 * BORDER, height - 2 * BORDER)
    scale = min(1.0, max(SMALLEST, room[0] / scene.width))
    wide = room[0] / scale
    columns = max(1, -int(-scene.width // wide))
    rows = _cuts(scene, room[1] / scale)
    share = _shared_out(scene, columns, wide, rows)
    return [
        _Page(
            share.get((c, r), []),
            (c * wide, top, min(wide, scene.width - c * wide), bottom - top),
            scale,
            (width, height),
            (_centre(room[0], min(wide, scene.width - c * wide) * scale), BORDER),
        )
        for c in range(columns)
        for r, (top, bottom) in enumerate(rows)
    ]


def _shared_out(
    scene: Scene, columns: int, wide: float, rows: list[tuple[float, float]]
) -> dict[tuple[int, int], list[Shape]]:
    """For every page (column, row) the shapes that may touch it."""
    tops = [top for top, _ in rows]
    pages: dict[tuple[int, int], list[Shape]] = {}
    for shape in (s for f in scene.figures for s in f.shapes):
        left, top, right, bottom = extent(shape)
        for c in range(max(0, int(left // wide)), min(columns - 1, int(right // wide)) + 1):
            for r in range(max(0, bisect_right(tops, top) - 1), max(1, bisect_right(tops, bottom))):
                pages.setdefault((c, r), []).append(shape)
    return pages


def _centre(room: float, used: float) -> float:
    return BORDER + max(0.0, room - used) / 2


def _cuts(scene: Scene, most: float) -> list[tuple[float, float]]:
    """Intervals of at most `most`, ending between bands where there is a gap to end in."""
    ends = [(a[1] + b[0]) / 2 for a, b in zip(scene.bands, scene.bands[1:])] + [scene.height]
    cuts, top = [], 0.0
    while scene.height - top > most:
        last = bisect_right(ends, top + most) - 1
        bottom = ends[last] if last >= 0 and ends[last] > top + most * 0.3 else top + most
        cuts.append((top, bottom))
        top = bottom
    return [*cuts, (top, scene.height)]


# -- the content of a page -----------------------------------------------------------------------


def _content(page: _Page) -> str:
    x, y, w, h = page.window
    k, (ox, oy), high = page.scale, page.offset, page.paper[1]
    out = [
        f"{_n(k)} 0 0 {_n(-k)} {_n(ox - x * k)} {_n(high - oy + y * k)} cm 1 j 1 J",
        f"{_n(x)} {_n(y)} {_n(w)} {_n(h)} re W n",
    ]
    out += [_shape(s) for s in page.shapes]
    return "\n".join(out)


def _shape(shape: Shape) -> str:
    paint = resolve(shape.styles)
    if isinstance(shape, Text):
        return _text(shape, paint.fill or "#000000")
    fill, stroke = paint.fill not in (None, "none"), paint.stroke not in (None, "none") and bool(paint.width)
    if not (fill or stroke):
        return ""
    parts = [f"{_rgb(paint.fill)} rg"] if fill else []
    if stroke:
        parts.append(f"{_rgb(paint.stroke)} RG {_n(paint.width or 1.0)} w [{paint.dash or ''}] 0 d")
    commands = rounded(shape) if isinstance(shape, Rect) else shape.commands
    parts.append(_path(commands))
    parts.append("B" if fill and stroke else "f" if fill else "S")
    return " ".join(parts)


def _path(commands: tuple[tuple, ...]) -> str:
    names = {"M": "m", "L": "l", "C": "c", "Z": "h"}
    return " ".join(" ".join([*(_n(v) for v in c[1:]), names[c[0]]]) for c in commands)


def _text(text: Text, color: str) -> str:
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor]
    x = text.x - shift * text_width(text.text, text.size, text.face)
    font = _FONTS[text.face][0]
    return (
        f"{_rgb(color)} rg BT /{font} {_n(text.size)} Tf 1 0 0 -1 {_n(x)} {_n(text.y)} Tm ({escape(text.text)}) Tj ET"
    )


def escape(text: str) -> str:
    """`text` as the inside of a PDF string in WinAnsi: brackets and backslashes escaped, other bytes in octal."""
    spelled = "".join(_SPELLED.get(c, c) for c in text)
    raw = spelled.encode("cp1252", "replace")
    return "".join(_byte(b) for b in raw)


def _byte(value: int) -> str:
    if value in b"()\\":
        return "\\" + chr(value)
    return chr(value) if 32 <= value < 127 else f"\\{value:03o}"


def _rgb(color: str | None) -> str:
    value = (color or "#000000").lstrip("#")
    return " ".join(_n(int(value[i : i + 2], 16) / 255) for i in (0, 2, 4))


def _n(value: float) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


# -- the file ------------------------------------------------------------------------------------


def _document(pages: list[_Page], marks: list[tuple[str, int]], title: str) -> bytes:
    """Objects: 1 catalog, 2 page tree, 3-5 fonts, 6 information, 7 outline, marks, then two for each page."""
    first = 8 + len(marks)
    kids = [first + 2 * i for i in range(len(pages))]
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/Outlines 7 0 R/PageMode/UseOutlines>>"
        if len(pages) > 1
        else b"<</Type/Catalog/Pages 2 0 R/Outlines 7 0 R>>",
        f"<</Type/Pages/Kids[{' '.join(f'{k} 0 R' for k in kids)}]/Count {len(kids)}>>".encode(),
    ]
    objects += [
        f"<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>".encode() for _, name in _FONTS.values()
    ]
    objects.append(b"<</Title " + _unicode(title) + b"/Producer(relaylab)>>")
    objects += _outline(marks, kids)
    for number, page in zip(kids, pages):
        objects += _page_objects(number, page)
    return _file(objects)


def _outline(marks: list[tuple[str, int]], kids: list[int]) -> list[bytes]:
    last = 7 + len(marks)
    objects = [
        f"<</Type/Outlines/First 8 0 R/Last {last} 0 R/Count {len(marks)}>>".encode()
        if marks
        else b"<</Type/Outlines/Count 0>>"
    ]
    for i, (name, page) in enumerate(marks):
        near = (f"/Prev {7 + i} 0 R" if i else "") + (f"/Next {9 + i} 0 R" if i + 1 < len(marks) else "")
        objects.append(b"<</Title " + _unicode(name) + f"/Parent 7 0 R{near}/Dest[{kids[page]} 0 R/Fit]>>".encode())
    return objects


def _page_objects(number: int, page: _Page) -> list[bytes]:
    data = zlib.compress(_content(page).encode("ascii"), 6)
    fonts = "".join(f"/{short} {3 + i} 0 R" for i, (short, _) in enumerate(_FONTS.values()))
    unit = f"/UserUnit {_n(page.unit)}" if page.unit > 1 else ""
    head = (
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {_n(page.paper[0])} {_n(page.paper[1])}]{unit}"
        f"/Resources<</Font<<{fonts}>>>>/Contents {number + 1} 0 R>>"
    )
    return [head.encode(), b"<</Length %d/Filter/FlateDecode>>stream\n" % len(data) + data + b"\nendstream"]


def _unicode(text: str) -> bytes:
    raw = text.encode("utf-16-be", "replace")
    return b"<FEFF" + raw.hex().upper().encode() + b">"


def _file(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.6\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)
