"""View to scene: cards for nodes, the layout, then shapes for groups, edges, nodes and the legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz import layout as engine
from relaylab.viz.draw.card import BODY, SMALL, Card, card, shapes, short_type
from relaylab.viz.draw.ports import Ports, share
from relaylab.viz.graph.describe import describe_edge, describe_group, describe_node
from relaylab.viz.graph.view import ROLES, Edge, Group, View
from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Path, Point, Rect, Scene, Shape, Text, arrow, curve, extent, merged_bands
from relaylab.viz.scene.theme import LINE, ROLE_ICONS, TITLE

MARGIN = 16.0
CAPTION = 24.0
ROW = 64.0
TYPE_WIDTH = 120.0
"""The room for a type on an edge."""
CHOOSING = frozenset({"if", "match"})
MANY = 8
"""More calls of other functions than this are drawn faintly: the titles say which they are."""
MAX_DEPTH = 16
"""Groups nested deeper than this are drawn as part of the group around them (their nodes all are)."""

CHOICES = {"direction": ("TB", "LR"), "types": ("nodes", "edges", "both", "none"), "attrs": ("changed", "all", "none")}


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """How to draw: flow direction, where types stand, which attributes show, and the caption.

    `hint` gives what is said of an operator where the pointer rests on a node of it.
    """

    direction: str = "TB"
    types: str = "nodes"
    attrs: str = "changed"
    caption: bool = True
    hint: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise RelayValueError(
                    f"`{name}` cannot be {value!r}; it is one of {', '.join(allowed)}",
                    code="viz.option",
                    help=did_you_mean(str(value), allowed),
                )


@no_collection()
def draw(view: View, options: DrawOptions | None = None, seed: Mapping[str, float] | None = None) -> Scene:
    """The picture of a view. `seed` is the `Scene.seed` of an earlier picture that this one is to resemble."""
    return _Drawing(view, options or DrawOptions(), seed).scene()


class _Drawing:
    """A view being drawn."""

    def __init__(self, view: View, options: DrawOptions, seed: Mapping[str, float] | None):
        self.view, self.options = view, options
        self.sideways = options.direction == "LR"
        self.parent = _shallow_parents(view)
        self.cards = {n.id: card(n, options.types, options.attrs, self._ports(n.id)) for n in view.nodes}
        self.typed = typed_edges(view, options.types)
        self.crowded = sum(e.kind == "callee" and self._roots_differ(e) for e in view.edges) > MANY
        arrangement = engine.LayoutOptions(direction=options.direction, rank_gap=self._rank_gap())
        self.layout = engine.lay_out(self._boxes(), self._links(), self._frames(), arrangement, seed)
        self.dx, self.dy = MARGIN, MARGIN + (CAPTION if self._caption() else 0.0)

    def scene(self) -> Scene:
        """All elements, back to front."""
        elements = [self._group(g) for g in self._outer_first()]
        edges = sorted(self.view.edges, key=lambda e: e.kind != "callee")
        elements += [self._edge(e) for e in edges]
        elements += [self._plate(g) for g in self._drawn_groups() if g.title]
        elements += [self._node(c) for c in self.cards.values()]
        elements += self._notes()
        texts = (extent(s)[2] for f in elements if f.kind == "edge" for s in f.shapes if isinstance(s, Text))
        notes = (_right(f) for f in elements if f.kind == "note")
        width = MARGIN + max(self.layout.width + MARGIN, *texts, *notes, 0.0)
        return Scene(
            round(width, 1),
            round(self.layout.height + self.dy + MARGIN, 1),
            tuple(elements),
            self.view.title,
            self._bands(),
            self.layout.seed,
        )

    def _rank_gap(self) -> float:
        """Room between the ranks: for arrows, and for the types on edges."""
        if not self.typed:
            return 24.0
        widest = max(text_width(short_type(e.type, TYPE_WIDTH), SMALL) for e in self.view.edges if e.id in self.typed)
        return 24.0 + widest if self.sideways else 32.0

    # -- to the layout engine --------------------------------------------------------------------

    def _boxes(self) -> list[engine.Box]:
        return [engine.Box(c.node.id, c.width, c.height, self.parent[c.node.id]) for c in self.cards.values()]

    def _frames(self) -> list[engine.Cluster]:
        return [
            engine.Cluster(g.id, self.parent[g.id], text_width(_group_title(g), BODY, "bold") + 8, BODY * LINE + 2)
            for g in self._drawn_groups()
        ]

    def _drawn_groups(self) -> list[Group]:
        return [g for g in self.view.groups if g.id in self.parent]

    def _links(self) -> list[engine.Link]:
        fan = {n.id: self.view.incoming.get(n.id, []) for n in self.view.nodes}
        into = {e.id: share(i, len(edges)) for edges in fan.values() for i, e in enumerate(edges)}
        return [
            engine.Link(
                e.id,
                e.source,
                e.target,
                into=into.get(e.id, 0.5),
                back=e.kind == "recursion",
                loose=e.kind == "callee" and self._roots_differ(e),
                ordered=e.kind == "data" and self._of_branch(e),
            )
            for e in self.view.edges
            if self._has_place(e)
        ]

    def _ports(self, node: str) -> Ports:
        return Ports.of(self.view.incoming.get(node, ()), self.sideways)

    def _has_place(self, edge: Edge) -> bool:
        return edge.source in self.parent and edge.target in self.parent

    def _of_branch(self, edge: Edge) -> bool:
        """Whether an edge brings what a branch or a clause gives, from its box to the node that chooses."""
        node = self.view.node_by_id.get(edge.target)
        return node is not None and node.kind in CHOOSING and self.parent[edge.source] != self.parent[edge.target]

    def _roots_differ(self, edge: Edge) -> bool:
        return self._root(edge.source) != self._root(edge.target)

    def _root(self, name: str) -> str:
        while self.parent.get(name):
            name = self.parent[name]
        return name

    # -- from the layout engine ------------------------------------------------------------------

    def _shift(self, place: engine.Bounds) -> engine.Bounds:
        return engine.Bounds(place.x + self.dx, place.y + self.dy, place.width, place.height)

    def _bands(self) -> tuple[tuple[float, float], ...]:
        """Rows of boxes from the top: merged intervals that no page cut should pass."""
        return merged_bands((p.y + self.dy, p.bottom + self.dy) for p in self.layout.boxes.values())

    def _outer_first(self) -> list[Group]:
        depth: dict[str, int] = {"": 0}
        for group in self._drawn_groups():
            _depth(group.id, self.parent, depth)
        return sorted(self._drawn_groups(), key=lambda g: depth[g.id])

    def _group(self, group: Group) -> Element:
        place = self._shift(self.layout.frames[group.id])
        role = (f"role-{group.role}",) if group.role else ()
        kind = f"group-{'block' if group.kind == 'repeat' else group.kind}"
        rect = Rect(place.x, place.y, place.width, place.height, 6.0, (kind, *role))
        return Element(group.id, "group", (rect,), describe_group(group), group.text, group.role, box=_box(place))

    def _plate(self, group: Group) -> Element:
        """The title of a group, above the edges that pass beneath it."""
        place = self._shift(self.layout.frames[group.id])
        title = fit(_group_title(group), max(40.0, place.width - 12), BODY, "bold")
        style = f"text-role-{group.role}" if group.role else "text-dim"
        parts = (
            Rect(
                place.x + 4,
                place.y + 2,
                text_width(title, BODY, "bold") + 6,
                BODY * LINE + 2,
                2,
                (f"group-{group.kind}", "plate"),
            ),
            Text(place.x + 7, place.y + BODY + 3, title, BODY, "bold", styles=(style,)),
        )
        return Element(f"{group.id} title", "heading", parts, box=_box(place))

    def _edge(self, edge: Edge) -> Element:
        route = self.layout.routes.get(edge.id)
        label = describe_edge(edge, self.view)
        if not route or len(route) < 2:
            return Element(edge.id, "edge", self._stub(edge), label, "", edge.role, (edge.source, edge.target))
        points = _distinct([(x + self.dx, y + self.dy) for x, y in route])
        return Element(edge.id, "edge", self._line(edge, points), label, "", edge.role, (edge.source, edge.target))

    def _line(self, edge: Edge, points: list[Point]) -> tuple[Shape, ...]:
        role = (f"role-{edge.role}",) if edge.role else ()
        loose = edge.kind == "callee" and self._roots_differ(edge)
        direction = _direction(points, self.sideways or loose)
        tip = points[-1]
        points[-1] = (tip[0] - direction[0] * 5, tip[1] - direction[1] * 5)
        kind = "far" if loose and self.crowded else edge.kind
        line = Path(curve(points, self.sideways or loose), ("wire", f"wire-{kind}", *role))
        head = Path(arrow(tip, direction), ("tip", *((f"tip-{edge.role}",) if edge.role else ())))
        return (line, head, *self._edge_texts(edge, points[0]))

    def _edge_texts(self, edge: Edge, start: Point) -> list[Shape]:
        """The type that an edge carries, where it leaves its source."""
        if edge.id not in self.typed:
            return []
        x, y = start[0] + 4, start[1] + SMALL + 1
        text = short_type(edge.type, self._room(x, start[1], y))
        return [Text(x, y, text, SMALL, styles=("text-type",))] if len(text) > 1 else []  # no room but for "…"

    def _room(self, x: float, top: float, bottom: float) -> float:
        """How far a text may go to the right before it meets a box."""
        near = (b for row in range(int(top // ROW), int(bottom // ROW) + 1) for b in self.rows.get(row, ()))
        beside = [b.x for b in near if b.right > x and b.y < bottom + 2 and b.bottom > top + 1]
        return max(0.0, min((left - x - 2 for left in beside), default=TYPE_WIDTH))

    @cached_property
    def rows(self) -> dict[int, list[engine.Bounds]]:
        """The boxes by the horizontal strips that they are in."""
        rows: dict[int, list[engine.Bounds]] = {}
        for place in map(self._shift, self.layout.boxes.values() if self.typed else ()):
            for row in range(int(place.y // ROW), int(place.bottom // ROW) + 1):
                rows.setdefault(row, []).append(place)
        return rows

    def _stub(self, edge: Edge) -> tuple[Shape, ...]:
        """Both ends of an edge that is too long to draw: an arrow from a name, and a tail."""
        if not self._has_place(edge):
            return ()
        place = self._shift(self.layout.boxes.get(edge.target) or self.layout.frames[edge.target])
        x, y = (place.x, place.center[1]) if self.sideways else (place.center[0], place.y)
        dx, dy = (1.0, 0.0) if self.sideways else (0.0, 1.0)
        line = Path((("M", x - dx * 13, y - dy * 13), ("L", x - dx * 5, y - dy * 5)), ("wire",))
        name = self.view.node_by_id[edge.source].title if edge.source in self.view.node_by_id else edge.source
        return (
            line,
            Path(arrow((x, y), (dx, dy)), ("tip",)),
            Text(x + 4, y - 6, fit(f"from {name}", 90, SMALL), SMALL, styles=("text-dim",)),
        )

    def _node(self, card: Card) -> Element:
        place = self._shift(self.layout.boxes[card.node.id])
        node = card.node
        hint = self.options.hint(node.operator) if self.options.hint is not None else ""
        label = f"{node.title}\n{hint}" if hint else node.title
        return Element(node.id, "node", shapes(card, place), label, describe_node(node), node.role, box=_box(place))

    # -- caption and legend ----------------------------------------------------------------------

    def _caption(self) -> bool:
        return self.options.caption and bool(self.view.title or self.view.notes or self._counts())

    def _counts(self) -> Counter[str]:
        return Counter(part.role for part in (*self.view.nodes, *self.view.groups) if part.role)

    def _notes(self) -> list[Element]:
        if not self._caption():
            return []
        x, base = MARGIN, MARGIN + TITLE
        parts: list[Shape] = []
        if self.view.title:
            parts.append(Text(x, base, self.view.title, TITLE + 1, "bold", styles=("text-title",)))
            x += text_width(self.view.title, TITLE + 1, "bold") + 14
        counts = self._counts()
        for role in (r for r in ROLES if counts[r]):
            text = f"{ROLE_ICONS[role]} {counts[role]} {role}"
            wide = text_width(text, BODY, "bold") + 10
            parts.append(Rect(x, base - BODY - 2, wide, BODY + 6, 3, ("box", f"role-{role}")))
            parts.append(Text(x + 5, base, text, BODY, "bold", styles=(f"text-role-{role}",)))
            x += wide + 8
        for note in self.view.notes:
            parts.append(Text(x, base, note, BODY, styles=("text-dim",)))
            x += text_width(note, BODY) + 10
        return [Element("caption", "note", tuple(parts), self.view.title, box=(MARGIN, MARGIN, x - MARGIN, CAPTION))]


def typed_edges(view: View, types: str) -> set[str]:
    """The edges that say their type: where types stand on edges, the first one from each source."""
    if types not in ("edges", "both"):
        return set()
    return {e.id for e in {e.source: e for e in reversed(view.edges) if e.type}.values()}


def _right(element: Element) -> float:
    return element.box[0] + element.box[2]


def _box(place: engine.Bounds) -> tuple[float, float, float, float]:
    return round(place.x, 1), round(place.y, 1), round(place.width, 1), round(place.height, 1)


def _group_title(group: Group) -> str:
    icon = f"{ROLE_ICONS[group.role]} " if group.role else ""
    return icon + fit(group.title, 300.0, BODY, "bold")


def _distinct(points: list[Point]) -> list[Point]:
    """A route without steps that are too small to have a direction."""
    kept = points[:1]
    for x, y in points[1:]:
        if abs(x - kept[-1][0]) > 0.05 or abs(y - kept[-1][1]) > 0.05:
            kept.append((x, y))
    return kept if len(kept) > 1 else points


def _direction(points: list[Point], sideways: bool) -> Point:
    """The axis along which a route arrives at its end."""
    (x0, y0), (x1, y1) = points[-2], points[-1]
    if sideways or (abs(y1 - y0) < 0.05 and abs(x1 - x0) > 0.05):
        return (1.0, 0.0) if x1 >= x0 else (-1.0, 0.0)
    return (0.0, 1.0) if y1 >= y0 else (0.0, -1.0)


def _depth(name: str, parent: Mapping[str, str], depth: dict[str, int]) -> int:
    chain = []
    while name not in depth:
        chain.append(name)
        name = parent[name]
    for inner in reversed(chain):
        depth[inner] = depth[parent[inner]] + 1
    return depth[chain[0]] if chain else depth[name]


def _shallow_parents(view: View) -> dict[str, str]:
    """The drawn group around each node and each drawn group: those nested too deep stand for none."""
    parent = {g.id: g.parent for g in view.groups}
    depth: dict[str, int] = {"": 0}
    nearest = {"": ""}
    for name in parent:
        _depth(name, parent, depth)
    for name in sorted(parent, key=lambda g: depth[g]):
        nearest[name] = name if depth[name] <= MAX_DEPTH else nearest[parent[name]]
    drawn = {g: nearest[parent[g]] for g in parent if nearest[g] == g}
    return drawn | {n.id: nearest[n.group] for n in view.nodes}
