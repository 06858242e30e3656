"""Nested groups: every group is laid out by itself, inside out, and is then one box of its parent.

An edge that crosses a border passes a port on it: an entry port is an item above the group's first
layer, an exit port one below its last. So boxes of groups can never overlap or hold strangers, however
deep they nest, and nothing recurses.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from relaylab.viz.layout.graph import Bounds, Box, Cluster, GraphLayout, LayoutOptions, Link, Point
from relaylab.viz.layout.level import Level, Placed, Placing
from relaylab.viz.layout.pack import by_calls, components, shelves
from relaylab.viz.layout.ranks import back_edges

ROOT = ""


@dataclass(slots=True)
class _Room:
    """A group at work: its level, which item each child is, and the frame it came to."""

    id: str
    level: Level = field(default_factory=Level)
    item: dict[str, int] = field(default_factory=dict)
    strand: dict[tuple, int] = field(default_factory=dict)
    ports: dict[tuple[str, str, float], int] = field(default_factory=dict)
    placed: Placed | None = None
    frame: Bounds = Bounds(0, 0, 0, 0)
    seeded: bool = False
    children: list[str] = field(default_factory=list)

    def join(self, a: int, b: int, out: float, into: float) -> int:
        """The number of a strand, made once."""
        key = (a, b, out, into)
        if key not in self.strand:
            self.strand[key] = len(self.level.strands)
            self.level.strands.append(key)
        return self.strand[key]

    def port(self, side: str, source: str, out: float, height: float = 0.0) -> int:
        """The entry or exit port that all edges of one source share; an entry is as high as the group's title."""
        key = (side, source, out)
        if key not in self.ports:
            item = self.level.add(f"{self.id}\n{side}\n{source}\n{out:.2f}", 1.0, height)
            self.ports[key] = item
            (self.level.first if side == "in" else self.level.last).add(item)
        return self.ports[key]


@dataclass(frozen=True, slots=True)
class _Course:
    """The way of a link through the groups, in drawing direction (`flip`: against its arrow)."""

    link: Link
    source: str
    target: str
    out: float
    into: float
    up: tuple[str, ...]
    meet: str
    down: tuple[str, ...]
    flip: bool


class Compound:
    """The engine for a graph with nested groups; `run` gives the `Layout`."""

    def __init__(
        self,
        boxes: Sequence[Box],
        frames: Sequence[Cluster],
        links: Sequence[Link],
        options: LayoutOptions,
        seed: dict[str, float],
    ):
        self.boxes = {b.id: b for b in boxes}
        self.frames = {f.id: f for f in frames}
        self.links = [k for k in links if k.source != k.target and not k.loose]
        self.loose = [k for k in links if k.loose]
        self.options, self.seed = options, seed
        self.placing = Placing(options)
        self.rooms = {ROOT: _Room(ROOT), **{f.id: _Room(f.id) for f in frames}}
        self.parent = {**{b.id: b.group for b in boxes}, **{f.id: f.parent for f in frames}}
        for child, parent in self.parent.items():
            self.rooms[parent].children.append(child)
        self.depth = {ROOT: 0}
        self.segments: dict[str, list[tuple[str, int]]] = {}
        self.flipped: set[str] = set()
        self.layout = GraphLayout()

    def run(self) -> GraphLayout:
        """Lay out every group, deepest first, then give everything its absolute place."""
        inside_out = self._inside_out()
        courses = self._courses()
        by_room = self._by_room(courses)
        for group in inside_out:
            self._add_items(group)
            for course in by_room.get(group, ()):
                self._add_segment(group, course)
            if group != ROOT:
                self._finish(group)
        self._finish_root()
        self._spread(inside_out)
        self._stitch(courses)
        return self.layout

    def _inside_out(self) -> list[str]:
        order = [ROOT]
        for group in order:
            for child in self.rooms[group].children:
                if child in self.rooms:
                    self.depth[child] = self.depth[group] + 1
                    order.append(child)
        return order[::-1]

    # -- the way of each link --------------------------------------------------------------------

    def _courses(self) -> list[_Course]:
        """The courses of all links, turned so that no level holds a cycle."""
        courses = [self._course(k, flip=k.back) for k in self.links]
        meets: dict[str, list[int]] = {}
        for index, course in enumerate(courses):
            meets.setdefault(course.meet, []).append(index)
        for indices in meets.values():
            self._turn(courses, indices)
        return courses

    def _turn(self, courses: list[_Course], indices: list[int]) -> None:
        number: dict[str, int] = {}
        ends = [(self._top(courses[i], "source"), self._top(courses[i], "target")) for i in indices]
        pairs = [(number.setdefault(a, len(number)), number.setdefault(b, len(number))) for a, b in ends]
        for back in back_edges(len(number), pairs):
            if pairs[back][0] != pairs[back][1]:
                i = indices[back]
                courses[i] = self._course(courses[i].link, flip=not courses[i].flip)

    @staticmethod
    def _top(course: _Course, end: str) -> str:
        """The child of the meeting group on the way to an end."""
        way = course.up if end == "source" else course.down
        return way[-1] if way else getattr(course, end)

    def _course(self, link: Link, flip: bool) -> _Course:
        source, target, out, into = link.source, link.target, link.out, link.into
        if flip:
            source, target, out, into = target, source, 0.82, 0.82
        ups, downs = self._chain(source), self._chain(target)
        while ups and downs and ups[-1] == downs[-1]:
            ups.pop()
            meet = downs.pop()
        meet = self.parent[ups[-1] if ups else source]
        return _Course(link, source, target, out, into, tuple(ups), meet, tuple(downs), flip)

    def _chain(self, name: str) -> list[str]:
        """The groups around a box, inside out; a group is around itself."""
        chain, at = [], self.parent[name]
        while at:
            chain.append(at)
            at = self.parent[at]
        return chain

    def _by_room(self, courses: list[_Course]) -> dict[str, list[_Course]]:
        table: dict[str, list[_Course]] = {}
        for course in courses:
            for group in (*course.up, course.meet, *course.down):
                table.setdefault(group, []).append(course)
        return table

    # -- one level -------------------------------------------------------------------------------

    def _add_items(self, group: str) -> None:
        room = self.rooms[group]
        for child in room.children:
            shape = self.rooms[child].frame if child in self.rooms else self.boxes[child]
            room.item[child] = room.level.add(child, shape.width, shape.height)
        if self.seed:
            self._seed_room(room)

    def _seed_room(self, room: _Room) -> None:
        """Places of an earlier picture: a group is to stand where what is in it stood, whatever was around it."""
        inner = [self.rooms[child] for child in room.children if child in self.rooms]
        own = {r.id: r.frame.center[0] + r.level.shift for r in inner if r.seeded}
        room.level.seed = ChainMap(own, self.seed) if own else self.seed
        known = [x for child in room.children if (x := room.level.seed.get(child)) is not None]
        room.seeded = bool(known)
        if known and room.id != ROOT:
            room.level.shift = sum(known) / len(known)

    def _add_segment(self, group: str, course: _Course) -> None:
        room = self.rooms[group]
        a, out = self._upper_end(room, course)
        b, into = self._lower_end(room, course)
        if a == b:
            return
        strand = room.join(a, b, out, into)
        self.segments.setdefault(course.link.id, []).append((group, strand))
        if course.link.ordered and group == course.meet and not course.flip:
            room.level.ordered.add(strand)

    def _upper_end(self, room: _Room, course: _Course) -> tuple[int, float]:
        """Where the segment starts in this group: a child, or the entry port above."""
        if room.id in course.down:
            strip = 0.0 if self.options.direction == "LR" else self.frames[room.id].title_height
            return room.port("in", course.source, course.out, strip), 0.0
        inner = course.up[: course.up.index(room.id)] if room.id in course.up else course.up
        return self._child_end(room, inner, course, "out")

    def _lower_end(self, room: _Room, course: _Course) -> tuple[int, float]:
        if room.id in course.up:
            return room.port("out", course.source, course.out), 0.0
        inner = course.down[: course.down.index(room.id)] if room.id in course.down else course.down
        return self._child_end(room, inner, course, "in")

    def _child_end(self, room: _Room, inner: tuple[str, ...], course: _Course, side: str) -> tuple[int, float]:
        """A child of the group and the offset of the port from its centre."""
        if inner:
            port = self.rooms[inner[-1]].ports[(side, course.source, course.out)]
            return room.item[inner[-1]], self._port_offset(inner[-1], port)
        name, share = (course.source, course.out) if side == "out" else (course.target, course.into)
        item = room.item[name]
        return item, (share - 0.5) * room.level.width[item]

    def _port_offset(self, group: str, port: int) -> float:
        room = self.rooms[group]
        assert room.placed is not None
        return room.placed.x[port] - room.frame.center[0]

    def _finish(self, group: str) -> None:
        """Place the level and draw the frame around what is in it."""
        room = self.rooms[group]
        room.placed = self.placing.place(room.level)
        self.layout.crossings += room.placed.crossings
        frame, pad = self.frames[group], self.options.padding
        left, top, right, bottom = _extent(room)
        sideways = self.options.direction == "LR"
        wide, high = (frame.title_height, frame.title_width) if sideways else (frame.title_width, frame.title_height)
        along = 0.0 if sideways else frame.title_height
        top, bottom = (top if room.level.first else top - pad - along, bottom if room.level.last else bottom + pad)
        left, right = left - pad - (wide if sideways else 0.0), right + pad
        spare = 0.0 if sideways else max(0.0, wide + 2 * pad - (right - left))
        bottom = max(bottom, top + high + 2 * pad) if sideways and not room.level.last else bottom
        room.frame = Bounds(left - spare / 2, top, right - left + spare, bottom - top)

    def _finish_root(self) -> None:
        """Lay out the parts of the top level that hang together, each by itself, and pack them on shelves."""
        root = self.rooms[ROOT]
        root.placed, parts, crossings = components(root.level, self.placing)
        self.layout.crossings += crossings
        self.layout.width, self.layout.height = shelves(root.placed, by_calls(parts, self._calls()), self.options)

    def _calls(self) -> Iterator[tuple[int, int]]:
        """The items of the top level that call each other: caller, callee."""
        item = self.rooms[ROOT].item
        for link in self.loose:
            callee, caller = ((self._chain(end) or [end])[-1] for end in (link.source, link.target))
            yield item[caller], item[callee]

    # -- absolute places -------------------------------------------------------------------------

    def _spread(self, inside_out: list[str]) -> None:
        """Walk outside in and give each child its absolute rectangle."""
        self.origin: dict[str, Point] = {ROOT: (0.0, 0.0)}
        seed: dict[str, float] = {}
        self.layout.seed = seed
        for group in reversed(inside_out):
            room = self.rooms[group]
            assert room.placed is not None
            ox, oy = self.origin[group]
            seed.update((name, x + ox) for name, x in room.placed.seed.items())
            for child, item in room.item.items():
                self._set(child, ox + room.placed.x[item], oy + room.placed.y[item])

    def _set(self, child: str, x: float, y: float) -> None:
        if child in self.rooms:
            frame = self.rooms[child].frame
            cx, cy = frame.center
            self.origin[child] = (x - cx, y - cy)
            self.layout.frames[child] = Bounds(x - frame.width / 2, y - frame.height / 2, frame.width, frame.height)
        else:
            box = self.boxes[child]
            self.layout.boxes[child] = Bounds(x - box.width / 2, y - box.height / 2, box.width, box.height)

    def _stitch(self, courses: list[_Course]) -> None:
        for course in courses:
            route = self._route(course)
            if route is None:
                self.layout.stubs.add(course.link.id)
            elif route:
                self.layout.routes[course.link.id] = route[::-1] if course.flip else route

    def _route(self, course: _Course) -> list[Point] | None:
        points: list[Point] = []
        segments = dict(self.segments.get(course.link.id, ()))
        for group in (*course.up, course.meet, *reversed(course.down)):
            if group not in segments:
                continue
            placed = self.rooms[group].placed
            assert placed is not None
            part = placed.routes[segments[group]]
            if part is None:
                return None
            ox, oy = self.origin[group]
            points += [p for x, y in part if (p := (x + ox, y + oy)) != (points[-1] if points else None)]
        return points


def _extent(room: _Room) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of all that is drawn in a room: its items and the bends of its routes."""
    level, placed = room.level, room.placed
    assert placed is not None
    if not placed.x:
        return 0.0, 0.0, 0.0, 0.0
    xs = [(x - w / 2, x + w / 2) for x, w in zip(placed.x, level.width)]
    bends = [x for route in placed.routes if route for x, _ in route]
    left = min(min(a for a, _ in xs), min(bends, default=xs[0][0]))
    right = max(max(b for _, b in xs), max(bends, default=xs[0][1]))
    return left, placed.bands[0][0], right, placed.bands[-1][1]
