"""A table of counts as a picture: columns with names above them, rows, cells the darker the more there is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text
from relaylab.viz.scene.theme import HEAT

MARGIN, CELL, ROW, LEVEL = 16.0, 26.0, 20.0, 13.0
LONGEST = 190.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its value for the colour, the text in it, what it says in words."""

    value: float
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `name` is written above it unless it is `quiet`."""

    id: str
    name: str
    quiet: bool = False


def heatmap(
    columns: Sequence[Column], rows: Sequence[str], cells: Mapping[tuple[str, str], Cell], title: str = ""
) -> Scene:
    """The picture of a table; `cells` are by (row, id of the column), and their elements have the id `column:row`.

    Colours of a row are relative to the largest value of all rows but the last, those of the last row to its own.
    """
    left = MARGIN + max((min(LONGEST, text_width(r, 9.0)) for r in rows), default=0.0) + 10
    named = [k for k, c in enumerate(columns) if not c.quiet]
    top = MARGIN + (22 if title else 0) + LEVEL * (len(named) + 1)
    places = {c.id: left + k * CELL for k, c in enumerate(columns)}
    elements = [_head(columns, named, left, top, title)]
    for k, row in enumerate(rows):
        y = top + k * ROW + (6 if k == len(rows) - 1 else 0)
        elements.append(_name(row, left, y))
        peers = rows[-1:] if k == len(rows) - 1 else rows[:-1]
        most = max((c.value for (r, _), c in cells.items() if r in peers), default=0.0)
        elements += [_cell(row, c.id, cells.get((row, c.id)), most, places[c.id], y) for c in columns]
    ends = [places[columns[k].id] + CELL / 2 + text_width(columns[k].name, 9.0, "bold") + 8 for k in named]
    width = max([left + CELL * len(columns), MARGIN + text_width(title, 12.0, "bold"), *ends]) + MARGIN
    return Scene(width, top + ROW * len(rows) + 6 + MARGIN, tuple(elements), title)


def _head(columns: Sequence[Column], named: Sequence[int], left: float, top: float, title: str) -> Element:
    """The names of the columns, one a level: later names start below earlier ones: no line crosses a name."""
    parts: list[Shape] = [Text(MARGIN, MARGIN + 10, title, 12.0, "bold", styles=("text-title",))] if title else []
    for level, k in enumerate(named):
        x, y = left + (k + 0.5) * CELL, top - LEVEL * (len(named) - level)
        parts.append(Path((("M", x, y - 2), ("L", x, top - 2)), ("rule",)))
        parts.append(Text(x + 4, y + 3, columns[k].name, 9.0, "bold", styles=("text-plain",)))
    return Element(
        "columns", "note", tuple(parts), title or "columns", box=(MARGIN, MARGIN, CELL * len(columns), top - MARGIN)
    )


def _name(row: str, left: float, y: float) -> Element:
    text = Text(left - 8, y + 13, fit(row, LONGEST, 9.0), 9.0, anchor="end", styles=("text-plain",))
    return Element(f"row:{row}", "note", (text,), row, box=(MARGIN, y, left - MARGIN, ROW))


def _cell(row: str, column: str, cell: Cell | None, most: float, x: float, y: float) -> Element:
    box = (x + 1, y + 1, CELL - 2, ROW - 2)
    if cell is None or not cell.value:
        words = cell.words if cell else "nothing"
        return Element(f"{column}:{row}", "node", (Rect(*box, 2.0, ("family-value", "plate")),), words, words, box=box)
    share = math.log1p(cell.value) / math.log1p(most)
    step = min(len(HEAT) - 1, int(share * len(HEAT)))
    parts = (
        Rect(*box, 2.0, (f"heat-{step}", "plate")),
        Text(x + CELL / 2, y + 13, fit(cell.text, CELL - 3, 8.0), 8.0, anchor="middle"),
    )
    return Element(f"{column}:{row}", "node", parts, cell.words, cell.words, box=box)
