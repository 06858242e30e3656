"""How wide text is: the advance widths of Helvetica and Courier, in thousandths of the font size.

The figures are Adobe's published metrics of the fourteen standard fonts of PDF, characters 32 to 126;
the fonts of the SVG's fallback list (Arial, Liberation Sans) have the same widths.
"""

from __future__ import annotations

from functools import lru_cache

# fmt: off
_REGULAR = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)
_BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
    975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
    333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
    611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
)
# fmt: on
_OTHER = 600  # characters outside the table: the width of a digit and a little
_WIDE = 1000  # East Asian characters and pictographs
_TABLES = {"regular": _REGULAR, "bold": _BOLD}
FACES = ("regular", "bold", "mono")


_UNPRINTABLE = dict.fromkeys(range(32), " ") | dict.fromkeys(
    (*range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF),
    "\ufffd",
)


def plain(text: str) -> str:
    """`text` as one line that every writer and terminal can hold: control characters, marks of direction and lone
    surrogates replaced."""
    return text if text.isprintable() else text.translate(_UNPRINTABLE)


@lru_cache(maxsize=16384)
def text_width(text: str, size: float, face: str = "regular") -> float:
    """The width of one line of `text` in points at font size `size`; `face` is one of `FACES`."""
    if face == "mono":
        return sum(1.2 if ord(c) >= 0x2E80 else 0.6 for c in text) * size
    table = _TABLES[face]
    return sum(_advance(ord(c), table) for c in text) * size / 1000


def _advance(code: int, table: tuple[int, ...]) -> int:
    if 32 <= code < 127:
        return table[code - 32]
    return _WIDE if code >= 0x2E80 else _OTHER


def fit(text: str, width: float, size: float, face: str = "regular") -> str:
    """`text`, or as much of it as fits into `width` with an ellipsis at the end."""
    if text_width(text, size, face) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle] + "…", size, face) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


def wrap(text: str, width: float, size: float, face: str = "regular") -> list[str]:
    """`text` in lines no wider than `width`, broken at spaces where that is possible."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size, face) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [fit(part, width, size, face) for part in (*lines, line)]
