"""The top level: parts that hang together are laid out each by itself and put on shelves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relaylab.viz.layout.graph import LayoutOptions
from relaylab.viz.layout.level import Level, Placed, Placing

FEW = 4
"""Parts that stand in one row, whatever they call."""


@dataclass(frozen=True, slots=True)
class ConnectedComponent:
    """What hangs together: its items and strands by number, its extent, and the names whose places go with it."""

    items: list[int]
    strands: list[int]
    left: float
    right: float
    top: float
    bottom: float
    names: list[str]


def components(level: Level, placing: Placing) -> tuple[Placed, list[ConnectedComponent], int]:
    """Place every connected part of `level` around its own origin; which items and strands are in each."""
    count = len(level.width)
    whole = Placed([0.0] * count, [0.0] * count, [None] * len(level.strands), [], 0)
    sizes = [_part(level, items, strands, whole, placing) for items, strands in _parts(level)]
    return whole, sizes, whole.crossings


def _parts(level: Level) -> list[tuple[list[int], list[int]]]:
    leader = list(range(len(level.width)))
    for a, b, _, _ in level.strands:
        _merge(leader, a, b)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for item in range(len(leader)):
        parts.setdefault(_find(leader, item), ([], []))[0].append(item)
    for index, strand in enumerate(level.strands):
        parts[_find(leader, strand[0])][1].append(index)
    return list(parts.values())


def _find(leader: list[int], item: int) -> int:
    while leader[item] != item:
        leader[item] = leader[leader[item]]
        item = leader[item]
    return item


def _merge(leader: list[int], a: int, b: int) -> None:
    a, b = _find(leader, a), _find(leader, b)
    leader[max(a, b)] = min(a, b)


def _part(level: Level, items: list[int], strands: list[int], whole: Placed, placing: Placing) -> ConnectedComponent:
    """Place one part; its results go to `whole` under the numbers of the level."""
    number = {item: i for i, item in enumerate(items)}
    part = Level(seed=level.seed, shift=level.shift)
    for i in items:
        part.add(level.names[i], level.width[i], level.height[i])
    part.strands = [(number[a], number[b], out, into) for a, b, out, into in (level.strands[s] for s in strands)]
    part.ordered = {i for i, s in enumerate(strands) if s in level.ordered}
    placed = placing.place(part)
    for item, x, y in zip(items, placed.x, placed.y):
        whole.x[item], whole.y[item] = x, y
    for strand, route in zip(strands, placed.routes):
        whole.routes[strand] = route
    whole.crossings += placed.crossings
    whole.seed.update(placed.seed)
    if len(placed.bands) > len(whole.bands):
        whole.bands = placed.bands
    bends = [x for route in placed.routes if route for x, _ in route]
    left = min([x - w / 2 for x, w in zip(placed.x, part.width)] + bends)
    right = max([x + w / 2 for x, w in zip(placed.x, part.width)] + bends)
    return ConnectedComponent(items, strands, left, right, placed.bands[0][0], placed.bands[-1][1], list(placed.seed))


def by_calls(parts: Sequence[ConnectedComponent], calls: Iterable[tuple[int, int]]) -> list[list[ConnectedComponent]]:
    """The parts in rows, by calls between items (caller, callee): what nobody calls, what that calls, and so on.

    Within a row callees stand in the order of their callers. Parts that call each other in a circle begin with the
    first of them. Few parts are one row in this order.
    """
    home = {item: k for k, part in enumerate(parts) for item in part.items}
    below: list[dict[int, None]] = [{} for _ in parts]
    for caller, callee in calls:
        if home[caller] != home[callee]:
            below[home[caller]][home[callee]] = None
    called = {k for callees in below for k in callees}
    rows: list[list[int]] = []
    met: set[int] = set()
    for start in ([k for k in range(len(parts)) if k not in called], *([k] for k in sorted(called))):
        depth, row = 0, [k for k in start if k not in met]
        while row:
            met.update(row)
            rows += [[]] if depth == len(rows) else []
            rows[depth] += row
            depth, row = depth + 1, list(dict.fromkeys(c for k in row for c in below[k] if c not in met))
    order = rows if len(parts) > FEW else [[k for row in rows for k in row]]
    return [[parts[k] for k in row] for row in order]


def shelves(placed: Placed, rows: list[list[ConnectedComponent]], options: LayoutOptions) -> tuple[float, float]:
    """Move the parts of `placed` so that they stand in rows beside each other; width and height of it all."""
    parts = [part for row in rows for part in row]
    gap = 2 * options.node_gap
    area = sum((p.right - p.left + gap) * (p.bottom - p.top + gap) for p in parts)
    room = max([(area * options.aspect) ** 0.5, *(p.right - p.left for p in parts)], default=0.0)
    x = y = shelf = width = 0.0
    begins = {id(row[0]) for row in rows if row}
    for part in parts:
        wide, high = part.right - part.left, part.bottom - part.top
        if x and (x + wide > room or id(part) in begins):
            x, y, shelf = 0.0, y + shelf + gap, 0.0
        _move(placed, part, x - part.left, y - part.top)
        x, shelf, width = x + wide + gap, max(shelf, high), max(width, x + wide)
    return width, y + shelf


def _move(placed: Placed, part: ConnectedComponent, dx: float, dy: float) -> None:
    for item in part.items:
        placed.x[item] += dx
        placed.y[item] += dy
    for name in part.names:
        placed.seed[name] += dx
    for strand in part.strands:
        route = placed.routes[strand]
        if route:
            placed.routes[strand] = [(x + dx, y + dy) for x, y in route]
