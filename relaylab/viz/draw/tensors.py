"""Tensors as tiny heat maps: cells that each show the largest of a block of elements, so that one odd one is seen.

Choices: docs/choices.md, Pictures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Rect, Scene, Shape, Text
from relaylab.viz.scene.theme import HEAT

MOST = 24
"""Cells across and down."""
CELL, MARGIN, GAP, HEAD = 7.0, 12.0, 18.0, 34.0


def pooled(data: np.ndarray, most: int = MOST) -> np.ndarray:
    """A tensor as a matrix of at most `most` rows and columns: the element of the largest magnitude of each block.

    The axes are split in two where the matrix is most nearly square; one axis is one row. What is not finite stays.
    """
    data = np.asarray(data)
    if not data.size:
        return np.zeros((0, 0))
    sizes = [math.prod(data.shape[:k]) for k in range(data.ndim)] or [1]
    rows = min(sizes, key=lambda n: abs(math.log(n) - math.log(data.size / n)) if data.ndim > 1 else n)
    flat = data.astype("float64") if data.dtype.kind not in "fiu" else data
    return _blocks(_blocks(flat.reshape(rows, -1), most).T, most).T


def _blocks(matrix: np.ndarray, most: int) -> np.ndarray:
    """The rows of a matrix in at most `most` blocks."""
    if len(matrix) <= most:
        return matrix.astype("float64")
    ends = np.linspace(0, len(matrix), most + 1).astype(int)
    blocks = [matrix[start:end] for start, end in zip(ends, ends[1:])]  # a copy as float64 would cost more than these
    high, low = (np.stack([of(b, axis=0) for b in blocks]).astype("float64") for of in (np.max, np.min))
    return np.where(np.abs(low) > np.abs(high), low, high)


def tensor_maps(tensors: Sequence[tuple[str, np.ndarray]], title: str = "", errors: Collection[str] = ()) -> Scene:
    """Tensors beside each other, pale where they are smallest, dark where largest; these are written above each.

    Those whose names are among `errors` are pale at zero, so that an even error is dark everywhere.
    """
    elements: list[Element] = []
    x, top = MARGIN, MARGIN + (20 if title else 0)
    tallest = 0.0
    for index, (name, data) in enumerate(tensors):
        grid = pooled(data)
        made, width = _map(index, name, np.asarray(data), grid, x, top, name in errors)
        elements += made
        x, tallest = x + width + GAP, max(tallest, CELL * len(grid))
    head = (Text(MARGIN, MARGIN + 10, title, 11.0, "bold", styles=("text-title",)),)
    width = max(x - GAP, MARGIN + text_width(title, 11.0, "bold")) + MARGIN
    return Scene(
        width,
        top + HEAD + tallest + MARGIN,
        (*([Element("title", "note", head, title)] if title else ()), *elements),
        title,
    )


def _map(
    index: int, name: str, data: np.ndarray, grid: np.ndarray, x: float, top: float, error: bool
) -> tuple[list[Element], float]:
    finite = grid[np.isfinite(grid)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    odd = ", not all finite" if finite.size < grid.size else ""
    words = [
        f"{name}  {data.dtype}[{'×'.join(map(str, data.shape))}]",
        f"largest {high:.3g}{odd}" if error else f"{low:.3g} to {high:.3g}{odd}",
    ]
    width = max(CELL * grid.shape[1], *(text_width(w, 9.0) for w in words))
    shapes = [
        Text(x, top + 12 + 12 * k, fit(w, width + 1, 9.0), 9.0, styles=("text-plain",)) for k, w in enumerate(words)
    ]
    elements = [Element(f"{index}", "note", tuple(shapes), name, box=(x, top, width, HEAD))]
    for (row, column), value in np.ndenumerate(grid):
        box = (x + CELL * column, top + HEAD + CELL * row, CELL, CELL)
        parts = (_cell(value, 0.0 if error else low, high, box),)
        elements.append(
            Element(f"{index}:{row}:{column}", "node", parts, f"{name} [{row}, {column}]: {value:.4g}", box=box)
        )
    return elements, width


def _cell(value: float, low: float, high: float, box: tuple[float, float, float, float]) -> Shape:
    if value == low and math.isfinite(value):
        return Rect(*box, 0.0, ("family-value", "plate"))
    share = 1.0 if not math.isfinite(value) else (value - low) / ((high - low) or 1.0)
    return Rect(*box, 0.0, (f"heat-{min(len(HEAT) - 1, int(share * len(HEAT)))}", "plate"))
