"""Scenes to PDF 1.6, written here: vector shapes, selectable text in the standard fonts, pages, bookmarks.

Source: ISO 32000-1 (PDF 1.7), which contains all that is used. Viewers limit a page to 14,400 units, so a
larger picture is scaled down and `UserUnit` scales it back. Text outside WinAnsi (Windows code page 1252)
is spelled where there is a spelling; what is left is set in the viewer's Chinese font, which has Greek and
Cyrillic letters too (9.7.5.2: STSong-Light and the CMap UniGB-UTF16-H need not be embedded).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby

from relaylab.support.errors import RelayValueError
from relaylab.viz.draw.pages import PAPERS, WIDEST, Page, PageWindow, sheets_of, whole
from relaylab.viz.scene.metrics import text_width
from relaylab.viz.scene.scene import Rect, Scene, Shape, Text, rounded
from relaylab.viz.scene.theme import resolve

_FONTS = {"regular": ("F1", "Helvetica"), "bold": ("F2", "Helvetica-Bold"), "mono": ("F3", "Courier")}
_OTHER = "F4"
_CUT = re.compile(r"(?:to|from) page (\d+)")  # where a line goes on: a link
_SPELLED = str.maketrans(
    {"→": "->", "←": "<-", "⇒": "=>", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "λ": "\\", "∞": "inf", "✓": "v"}
)


def pdf(scenes: Sequence[Scene], *, paper: str = "fit", title: str = "relaylab", width: float | None = None) -> bytes:
    """A document with a bookmark for every scene. `paper`: `fit` (a page as large as its picture, or `width`
    millimetres wide), `a4`, `letter`.

    On real paper a picture is cut between its rows of boxes and goes on beside it or over the next page.
    """
    if paper != "fit" and paper not in PAPERS:
        raise RelayValueError(f"`paper` cannot be {paper!r}; it is one of fit, {', '.join(PAPERS)}", code="viz.option")
    if width is not None and not (paper == "fit" and 1 <= width <= WIDEST):
        raise RelayValueError(
            f"`width` is 1 to {WIDEST} millimetres of a page that fits, not {width} on {paper}", code="viz.option"
        )
    pages: list[Page] = []
    marks: list[tuple[str, int]] = []
    fitted = ([whole(scene, width)] for scene in scenes)
    for scene, own in zip(scenes, fitted if paper == "fit" else sheets_of(scenes, *PAPERS[paper])):
        marks.append((scene.title or title, len(pages)))
        pages += own
    return _document(pages, marks, title)


# -- the content of a page -----------------------------------------------------------------------


def _content(page: Page) -> str:
    return "\n".join(line for part in page.parts for line in _part(part, page.paper[1]))


def _part(part: PageWindow, high: float) -> Iterable[str]:
    """One window of a page, in coordinates of its own."""
    x, y, w, h = part.window
    k, (ox, oy) = part.scale, part.offset
    yield f"q {_n(k)} 0 0 {_n(-k)} {_n(ox - x * k)} {_n(high - oy + y * k)} cm 1 j 1 J"
    yield f"{_n(x)} {_n(y)} {_n(w)} {_n(h)} re W n"
    yield from map(_shape, part.shapes)
    yield "Q"


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
    said = text.text.translate(_SPELLED)
    x = text.x - shift * text_width(said, text.size, text.face)
    runs = " ".join(_run("".join(run), text, known) for known, run in groupby(said, _is_standard))
    return f"{_rgb(color)} rg BT 1 0 0 -1 {_n(x)} {_n(text.y)} Tm {runs} ET"


def _is_standard(letter: str) -> bool:
    try:
        return bool(letter.encode("cp1252"))
    except UnicodeEncodeError:
        return False


def _run(run: str, text: Text, known: bool) -> str:
    """Letters in one font: a standard one, or the viewer's, as wide as they were laid out to be."""
    if known:
        return f"/{_FONTS[text.face][0]} {_n(text.size)} Tf ({escaped(run.encode('cp1252'))}) Tj"
    wide = 100 * text_width(run, text.size, text.face) / (text.size * len(run))
    code = run.encode("utf-16-be", "replace").hex()
    return f"/{_OTHER} {_n(text.size)} Tf {_n(wide)} Tz <{code}> Tj 100 Tz"


def escaped(text: bytes) -> str:
    """`text` as the inside of a PDF string: brackets and backslashes escaped, other bytes in octal."""
    return "".join(map(_byte, text))


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


def _document(pages: list[Page], marks: list[tuple[str, int]], title: str) -> bytes:
    """Objects: 1 catalog, 2 page tree, 3-5 fonts, 6 information, 7 outline, marks, two for each page, another font."""
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
    contents = [_content(page) for page in pages]
    other = first + 2 * len(pages) if any(f"/{_OTHER} " in content for content in contents) else 0
    for number, page, content in zip(kids, pages, contents):
        objects += _page_objects(number, page, content, kids, other)
    return _file([*objects, *(_other_font(other) if other else ())])


def _other_font(number: int) -> list[bytes]:
    """The objects of the font for all letters that the standard ones do not have."""
    name = "STSong-Light"
    box = "/Flags 6/FontBBox[-25 -254 1000 880]/ItalicAngle 0/Ascent 880/Descent -120/CapHeight 880/StemV 93"
    letters = "/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)/Supplement 4>>"
    made = (
        f"<</Type/Font/Subtype/Type0/BaseFont/{name}/Encoding/UniGB-UTF16-H/DescendantFonts[{number + 1} 0 R]>>",
        f"<</Type/Font/Subtype/CIDFontType0/BaseFont/{name}{letters}/FontDescriptor {number + 2} 0 R>>",
        f"<</Type/FontDescriptor/FontName/{name}{box}>>",
    )
    return [text.encode() for text in made]


def _links(page: Page, pages: Sequence[int]) -> str:
    """What says on which page a line goes on leads there; `pages` are the objects of all pages."""
    found = []
    for part in page.parts:
        k, (ox, oy), (x, y, _, _) = part.scale, part.offset, part.window
        for text in (s for s in part.shapes if isinstance(s, Text)):
            said = _CUT.fullmatch(text.text)
            if said and 1 <= int(said[1]) <= len(pages):
                left, low = ox + (text.x - x) * k, page.paper[1] - oy - (text.y - y) * k
                size = text.size * k
                box = (left, low - size * 0.3, left + text_width(text.text, text.size, text.face) * k, low + size)
                rect, goal = " ".join(map(_n, box)), pages[int(said[1]) - 1]
                found.append(f"<</Type/Annot/Subtype/Link/Border[0 0 0]/Rect[{rect}]/Dest[{goal} 0 R/Fit]>>")
    return f"/Annots[{''.join(found)}]" if found else ""


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


def _page_objects(number: int, page: Page, content: str, pages: Sequence[int], other: int) -> list[bytes]:
    data = zlib.compress(content.encode("ascii"), 6)
    fonts = "".join(f"/{short} {3 + i} 0 R" for i, (short, _) in enumerate(_FONTS.values()))
    fonts += f"/{_OTHER} {other} 0 R" if other else ""
    unit = f"/UserUnit {_n(page.unit)}" if page.unit > 1 else ""
    head = (
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {_n(page.paper[0])} {_n(page.paper[1])}]{unit}"
        f"/Resources<</Font<<{fonts}>>>>{_links(page, pages)}/Contents {number + 1} 0 R>>"
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
