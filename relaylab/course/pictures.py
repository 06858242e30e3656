"""Pictures of the lessons that show no graph: tables of numbers, the darker the larger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from relaylab.viz.scene.metrics import text_width
from relaylab.viz.scene.scene import Element, Rect, Scene, Shape, Text
from relaylab.viz.scene.theme import HEAT
from relaylab.viz.write.formats import save_scene
from relaylab.viz.write.html import bundle

MARGIN, CELL, ROW, HEAD, GAP = 12.0, 26.0, 20.0, 24.0, 22.0


@dataclass(frozen=True)
class Grids:
    """Tables of whole numbers side by side, each with its name; cells are coloured from the least to the largest."""

    tables: Mapping[str, np.ndarray]

    @cached_property
    def scene(self) -> Scene:
        """The picture."""
        elements: list[Element] = []
        left = MARGIN
        for name, table in self.tables.items():
            elements.append(_table(name, np.atleast_2d(table), left))
            left += max(CELL * np.atleast_2d(table).shape[1], text_width(name, 11.0, "bold")) + GAP
        rows = max(np.atleast_2d(t).shape[0] for t in self.tables.values())
        return Scene(left - GAP + MARGIN, MARGIN + HEAD + ROW * rows + MARGIN, tuple(elements), str(self))

    def save(self, path: str | Path) -> Path:
        """Write the picture: .svg .pdf .html .png, or the numbers as .txt."""
        return save_scene(self.scene, path, "tables", "\n".join(str(t) for t in self.tables.values()))

    def __str__(self) -> str:
        return f"<tables: {', '.join(self.tables)}>"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, str(self))


def grids(**tables: object) -> Grids:
    """Two-dimensional tables of numbers as a picture; `_` in a name is a space."""
    return Grids({name.replace("_", " "): np.asarray(table) for name, table in tables.items()})


def visits(rows: int, columns: int, order: Iterable[tuple[int, int]]) -> np.ndarray:
    """The turn in which each element of a matrix is visited; `order` gives pairs (row, column)."""
    turn = np.zeros((rows, columns), int)
    for k, (row, column) in enumerate(order):
        turn[row, column] = k
    return turn


def _table(name: str, table: np.ndarray, left: float) -> Element:
    low, high = (float(table.min()), float(table.max())) if table.size else (0.0, 0.0)
    shapes: list[Shape] = [Text(left, MARGIN + 12, name, 11.0, "bold", styles=("text-plain",))]
    for (row, column), value in np.ndenumerate(table):
        x, y = left + CELL * column, MARGIN + HEAD + ROW * row
        share = (float(value) - low) / (high - low) if high > low else 0.0
        step = min(len(HEAT) - 1, int(share * len(HEAT)))
        shapes.append(Rect(x + 1, y + 1, CELL - 2, ROW - 2, 2.0, (f"heat-{step}", "plate")))
        shapes.append(Text(x + CELL / 2, y + 14, str(value), 9.0, anchor="middle"))
    height, width = HEAD + ROW * table.shape[0], CELL * table.shape[1]
    return Element(name, "note", tuple(shapes), name, box=(left, MARGIN, width, height))
