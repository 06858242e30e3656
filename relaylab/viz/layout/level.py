"""One flat layered drawing: the items of one group, each a box or a border port.

Ranks, dummies for long edges (shared by all edges of one source, so that a value used far away is one
trunk), order, places, and the bands of free space in which the curves turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from relaylab.viz.layout.graph import LayoutOptions, Point
from relaylab.viz.layout.keep import make_room
from relaylab.viz.layout.order import Sorter
from relaylab.viz.layout.place import Placer
from relaylab.viz.layout.ranks import assign_ranks, longest, neighbours
from relaylab.viz.layout.sides import lanes, trunk

DUMMY_WIDTH = 6.0
SPAN_BUDGET = 12_000  # ranks that all edges of a level may pass in sum, besides eight for each item
SEEDED_SWEEPS, SEEDED_ROUNDS = 4, 6  # enough where an earlier picture gives most of the places
DRIFT = 1.5  # times as wide as its layers have to be: wider pictures are tried with branches on both sides
LOOSE = 1.2  # times as wide as the widest layer has to be: it is tried how it would be without an earlier picture
STRAIGHTER = 0.6  # of the width times the bends: what makes the places of an earlier picture not worth keeping
ASLANT = 2.5  # times as wide as the widest layer has to be: paths that go down aslant are tried so too
OUTSIDE = 1e7  # points from one lane to the next: beside everything that has a place

Strand = tuple[int, int, float, float]  # item above, item below, where it leaves and enters off the centres
Arranged = tuple[
    list[list[int]], list[float], int
]  # the items of each layer in order, the place of each item, the crossings


@dataclass(slots=True)
class Level:
    """The items by number: their sizes, the strands between them, border ports above and below."""

    width: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    strands: list[Strand] = field(default_factory=list)
    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    ordered: set[int] = field(default_factory=set)
    """Strands, by number, that come from left to right in the order in which they enter the item below."""
    seed: Mapping[str, float] = field(default_factory=dict)
    """Places of named items (and of the bends of their lines) in an earlier picture, from its left border."""
    shift: float = 0.0
    """How far from the left border of that picture this level's origin is."""

    @property
    def shape(self) -> Hashable:
        """What says where everything goes if nothing has a place yet."""
        sizes = tuple(self.width), tuple(self.height), tuple(self.strands)
        return *sizes, frozenset(self.first), frozenset(self.last), frozenset(self.ordered)

    def add(self, name: str, width: float, height: float) -> int:
        """Add an item; its number."""
        self.names.append(name)
        self.width.append(width)
        self.height.append(height)
        return len(self.width) - 1


@dataclass(slots=True)
class Placed:
    """The result of a level: centres of its items, the route of each strand (None: a stub), its bands.

    `seed` has the place of everything by name, for the next picture.
    """

    x: list[float]
    y: list[float]
    routes: list[list[Point] | None]
    bands: list[tuple[float, float]]
    crossings: int
    seed: dict[str, float] = field(default_factory=dict)


class Placing:
    """Lays out levels of one picture, each of several equal ones (kernels, most of all) once."""

    def __init__(self, options: LayoutOptions):
        self.options = options
        self._known: dict[Hashable, tuple[Placed, _Work]] = {}

    def place(self, level: Level) -> Placed:
        """Lay out one level; its strands must form no cycle."""
        if not level.seed.keys().isdisjoint(level.names):
            return _Work(level, self.options).run()
        key = level.shape
        if key not in self._known:
            work = _Work(level, self.options)
            self._known[key] = work.run(), work
        placed, work = self._known[key]
        return replace(placed, seed=work.named(level.names))


class _Work:
    """The intermediate state of one level: items and dummies share one numbering, dummies last."""

    def __init__(self, level: Level, options: LayoutOptions):
        self.level, self.options = level, options
        self.count = len(level.width)
        pairs = [(a, b) for a, b, _, _ in level.strands]
        self.rank = assign_ranks(self.count, pairs, level.first, level.last)
        self.width, self.names = list(level.width), list(level.names)
        self.stubs = self._too_long()
        self.chains: list[list[int]] = []
        self.tails: list[tuple[int, str]] = []
        self.x: list[float] = []
        self.up: list[list[tuple[int, float]]] = [[] for _ in range(self.count)]
        self.down: list[list[tuple[int, float]]] = [[] for _ in range(self.count)]
        self._add_dummies()
        self.known: dict[int, float] = {}
        self.anchor = {v: level.seed[name] - level.shift for v, name in enumerate(self.names) if name in level.seed}

    def run(self) -> Placed:
        """All the steps in order."""
        found = self._arrange(self._first_order({}), {})
        packed = [self._packed(layer) for layer in found[0]]
        if self._area(found) > DRIFT * sum(packed) or _span(found[1]) > ASLANT * max(packed, default=0.0):
            found = min(found, self._side_by_side(), key=lambda f: self._area(f) * _span(f[1]))
        layers, x, crossings = self._straightened(found)
        bands = self._bands(layers, x)
        y = [sum(bands[self.rank[v]]) / 2 for v in range(self.count)]
        routes = [self._route(i, x, y, bands) for i in range(len(self.chains))]
        self.x = x
        return Placed(x[: self.count], y, routes, bands, crossings, self.named(self.level.names))

    def named(self, names: Sequence[str]) -> dict[str, float]:
        """The places of everything if the items have these names: bends of lines are called after where they begin."""
        return dict(zip([*names, *(names[source] + tail for source, tail in self.tails)], self.x))

    def _arrange(self, layers: list[list[int]], lane: Mapping[int, int]) -> Arranged:
        """Order and place, beginning with `layers`; what has a lane keeps it."""
        gap = self.options.node_gap
        sorter = Sorter(layers, self.up, self.down, self.width, gap)
        sorter.fixed = lane or self.anchor
        sorter.rows = self._rows()
        known = 2 * sum(v < self.count for v in self.anchor) > self.count
        sweeps = 0 if lane and self.anchor else SEEDED_SWEEPS if known else self.options.sweeps
        crossings = sorter.run(sweeps, keep=0.6 if self.anchor else 1.0)
        if self.anchor:
            crossings = self._make_room(sorter)
        placer = Placer(layers, self.up, self.down, self.width, gap)
        placer.real, placer.given, placer.anchor, placer.spine = self.count, self.anchor, self.anchor, self._spine()
        placer.x[:] = [self.anchor.get(v, x) for v, x in enumerate(placer.x)]
        rounds = SEEDED_ROUNDS if known else self._rounds()
        placer.run(rounds)
        return layers, placer.straighten(rounds), crossings

    def _rows(self) -> list[list[int]]:
        """What stands from left to right: the last items on the way of ordered strands into one item."""
        into: dict[int, list[tuple[float, int]]] = {}
        for index in sorted(self.level.ordered - self.stubs):
            a, b, _, enters = self.level.strands[index]
            into.setdefault(b, []).append((enters, (self.chains[index] or [a])[-1]))
        rows = [[*dict.fromkeys(item for _, item in sorted(ends))] for ends in into.values()]
        return [row for row in rows if any(item not in self.anchor for item in row)]

    def _straightened(self, found: Arranged) -> Arranged:
        """The same order without the places of the last picture, where these keep room for what has gone."""
        span = _span(found[1])
        if not self.anchor or span <= LOOSE * max(map(self._packed, found[0]), default=0.0):
            return found
        placer = Placer(found[0], self.up, self.down, self.width, self.options.node_gap)
        placer.real, placer.spine = self.count, self._spine()
        placer.run(self._rounds())
        x = placer.straighten(self._rounds())
        better = _span(x) * self._bent(x) < STRAIGHTER * span * self._bent(found[1])
        return (found[0], x, found[2]) if better else found

    def _bent(self, x: Sequence[float]) -> float:
        """How far lines go sideways in all."""
        return sum(abs(x[u] + shift - x[v]) for v, ends in enumerate(self.up) for u, shift in ends)

    def _rounds(self) -> int:
        """How long to settle: of tens of thousands of items nobody sees the last points."""
        size, settle = len(self.width), self.options.settle
        return settle if size < 5000 else max(4, settle // 2 * 10_000 // max(10_000, size))

    def _area(self, found: Arranged) -> float:
        """How wide all layers are together, from the first item to the last of each."""
        return sum(found[1][layer[-1]] - found[1][layer[0]] for layer in found[0] if layer)

    def _packed(self, layer: list[int]) -> float:
        return sum(self.width[v] + self.options.node_gap for v in layer)

    def _side_by_side(self) -> Arranged:
        """Branches left and right of the longest path, and of what has its place, in turn."""
        middle = {*trunk(self.rank, self.up, self.count), *self.anchor}
        lane = lanes(self.rank, self.up, self.down, middle)
        return self._arrange(self._first_order(lane), lane)

    def _too_long(self) -> set[int]:
        """The longest strands, as many as are beyond the budget."""
        spans = [self.rank[b] - self.rank[a] for a, b, _, _ in self.level.strands]
        excess = sum(spans) - SPAN_BUDGET - 8 * self.count
        stubs: set[int] = set()
        for index in sorted(range(len(spans)), key=lambda i: -spans[i]) if excess > 0 else ():
            if excess <= 0:
                break
            stubs.add(index)
            excess -= spans[index]
        return stubs

    def _add_dummies(self) -> None:
        trunks: dict[tuple[int, float], list[int]] = {}
        joined: set[Strand] = set()
        for index, (a, b, out, into) in enumerate(self.level.strands):
            if index in self.stubs:
                self.chains.append([])
                continue
            trunk = trunks.setdefault((a, out), [])
            while len(trunk) < self.rank[b] - self.rank[a] - 1:
                self._extend(trunk, a, out)
            chain = trunk[: self.rank[b] - self.rank[a] - 1]
            self.chains.append(chain)
            above, leave = (chain[-1], 0.0) if chain else (a, out)
            if (above, b, leave, into) not in joined:
                joined.add((above, b, leave, into))
                self._join(above, b, leave, into)

    def _extend(self, trunk: list[int], source: int, out: float) -> None:
        dummy = len(self.rank)
        above, leave = (trunk[-1], 0.0) if trunk else (source, out)
        self.tails.append((source, f"\n{out:.0f}\n{len(trunk)}"))
        self.names.append(self.names[source] + self.tails[-1][1])
        self.rank.append(self.rank[above] + 1)
        self.width.append(DUMMY_WIDTH)
        self.up.append([])
        self.down.append([])
        self._join(above, dummy, leave, 0.0)
        trunk.append(dummy)

    def _join(self, above: int, below: int, out: float, into: float) -> None:
        self.down[above].append((below, into - out))
        self.up[below].append((above, out - into))

    def _first_order(self, lane: Mapping[int, int]) -> list[list[int]]:
        """Depth-first from the lowest items, operands left to right; by the seed and the lanes where there are any."""
        layers: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        seen = bytearray(len(self.rank))
        for start in sorted(range(len(self.rank)), key=lambda v: -self.rank[v]):
            stack = [start]
            while stack:
                v = stack.pop()
                if not seen[v]:
                    seen[v] = 1
                    layers[self.rank[v]].append(v)
                    stack.extend(u for u, _ in reversed(self.up[v]))
        if self.anchor:
            self._seeded(layers, lane)
        elif lane:
            for layer in layers:
                layer.sort(key=lambda v: lane.get(v, 0))
        return layers

    def _seeded(self, layers: list[list[int]], lane: Mapping[int, int]) -> None:
        """Sort each layer by the places of the last picture; what is new goes beside its neighbours, or to its lane."""
        known = self.known = dict(self.anchor)
        for layer in layers:
            for v in layer:
                if v not in known and v not in lane:
                    known[v] = self._beside(v, known)
        known.update((v, lane[v] * OUTSIDE) for v in lane)
        for layer in layers:
            layer.sort(key=known.__getitem__)

    def _make_room(self, sorter: Sorter) -> int:
        """Move what is new aside where it would push known items apart; the crossings then."""
        for layer in sorter.layers:
            make_room(layer, self.anchor, self.known, self.width, self.options.node_gap)
        sorter.pack()
        return sorter.crossings()

    def _beside(self, v: int, known: Mapping[int, float]) -> float:
        near = [known[u] + d for u, d in self.up[v] + self.down[v] if u in known]
        return sum(near) / len(near) if near else 0.0

    def _spine(self) -> dict[int, int]:
        """The longest paths: items below which (values of the result) and above which (keys) they go straight on."""
        pairs = [(a, b) for a, b, _, _ in self.level.strands]
        order = sorted(range(self.count), key=self.rank.__getitem__)
        above, below = neighbours(self.count, pairs)
        depth, height = longest(order, above), longest(order[::-1], below)
        down = {v: w for v in order if (w := _single_best(below[v], height)) is not None}
        up = {w: v for w in order if (v := _single_best(above[w], depth)) is not None}
        return {w: v for w, v in up.items() if down.get(v) == w and self.rank[w] == self.rank[v] + 1}

    def _bands(self, layers: list[list[int]], x: list[float]) -> list[tuple[float, float]]:
        """Top and bottom of every layer; steep curves get more room to turn."""
        bands: list[tuple[float, float]] = []
        top = 0.0
        for layer in layers:
            height = max((self.level.height[v] for v in layer if v < self.count), default=0.0)
            bands.append((top, top + height))
            reach = max((abs(x[w] + d - x[v]) for v in layer for w, d in self.down[v]), default=0.0)
            top += height + self.options.rank_gap + min(36.0, max(0.0, reach - 60.0) * 0.08)
        return bands

    def _route(self, index: int, x: list[float], y: list[float], bands: list) -> list[Point] | None:
        if index in self.stubs:
            return None
        a, b, out, into = self.level.strands[index]
        points = [(x[a] + out, y[a] + self.level.height[a] / 2), (x[a] + out, bands[self.rank[a]][1])]
        for dummy in self.chains[index]:
            top, bottom = bands[self.rank[dummy]]
            points += [(x[dummy], top), (x[dummy], bottom)]
        points += [(x[b] + into, bands[self.rank[b]][0]), (x[b] + into, y[b] - self.level.height[b] / 2)]
        return [p for i, p in enumerate(points) if i == 0 or p != points[i - 1]]


def _span(x: Sequence[float]) -> float:
    """From the first to the last place."""
    return max(x, default=0.0) - min(x, default=0.0)


def _single_best(items: list[int], length: list[int]) -> int | None:
    """The item with the greatest length; None if two are as great."""
    best = max((length[v] for v in items), default=0)
    found = {v for v in items if length[v] == best}
    return found.pop() if len(found) == 1 else None
