"""What a saved page stores once: ids, boxes, facts, lines of text; and pictures as numbers of those.

Places are whole tenths of a point. A wire is its corners: the page draws the curve and the arrow head that
`viz.scene` would draw, and a wire that is not of that form is stored as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relaylab.viz.scene.scene import Element, Path, Point, Scene, curve
from relaylab.viz.write.html import ElementData, element_data, shape_data

PULLED = 5.0
"""How far before its tip the line of an arrow ends, in points; see `viz.draw`."""
DIRECTIONS = ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0))


class ValuePool:
    """Values by number, each stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._known: dict[str, int] = {}

    def put(self, value: Any) -> int:
        """The number of a value (plain data)."""
        key = value if isinstance(value, str) else repr(value)
        found = self._known.setdefault(key, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Pictures:
    """Scenes made small: boxes are `id, card, x, y`, wires `[source, target, look, label, corners …]`."""

    def __init__(self, ids: ValuePool):
        self.ids, self.cards, self.looks, self.labels = ids, ValuePool(), ValuePool(), ValuePool()

    def put(self, scene: Scene) -> dict[str, Any]:
        """A scene as plain data; what it shares with other scenes is in the pools."""
        boxes: list[int] = []
        wires: list[list[int]] = []
        other: list[ElementData] = []
        for element in scene.elements:
            if element.kind != "edge":
                boxes += self._box(element)
            elif wire := self._wire(element):
                wires.append(wire)
            else:
                other.append(element_data(element))
        return {
            "title": scene.title,
            "size": [scene.width, scene.height],
            "boxes": boxes,
            "wires": wires,
            "other": other,
        }

    def _box(self, element: Element) -> list[int]:
        x, y, width, height = (round(v * 10) for v in element.box)
        shapes = [shape_data(s, -x / 10, -y / 10) for s in element.shapes]
        return [self.ids.put(element.id), self.cards.put([element.kind, element.label, width, height, shapes]), x, y]

    def _wire(self, element: Element) -> list[int]:
        """The numbers of an edge; none for one that is no curve with a head."""
        match element.shapes:
            case (Path() as line, Path() as head):
                corners = [c[-2:] for c in line.commands]
                sideways = any(c[0] == "C" and c[1] != p[-2] for p, c in zip(line.commands, line.commands[1:]))
                way = _way(corners[-1], head.commands[0][1:])
                if way is None or curve(corners, sideways) != line.commands:
                    return []
            case _:
                return []
        look = self.looks.put([" ".join(line.styles), " ".join(head.styles), way, sideways, element.role])
        ends = [self.ids.put(name) for name in element.ends]
        key = self.labels.put(
            [element.label, element.id.rsplit(":", 2)[-2], element.id.rsplit(":", 1)[-1].split("!")[0]]
        )
        return [*ends, look, key, *_steps(corners)]


def _way(end: Point, tip: Point) -> int | None:
    """The number of the direction in which a line goes on to its tip."""
    for number, (dx, dy) in enumerate(DIRECTIONS):
        if abs(end[0] + dx * PULLED - tip[0]) + abs(end[1] + dy * PULLED - tip[1]) < 0.01:
            return number
    return None


def _steps(corners: Iterable[Point]) -> Iterable[int]:
    """The first corner, then how far it is from each to the next, in tenths."""
    x = y = 0
    for corner in corners:
        nx, ny = (round(v * 10) for v in corner)
        yield from (nx - x, ny - y)
        x, y = nx, ny
