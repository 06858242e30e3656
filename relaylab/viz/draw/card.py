"""A node as a card: which lines it shows, how large it is, and its shapes once its place is known."""

from __future__ import annotations

import re
from dataclasses import dataclass

from relaylab.viz.draw.ports import Ports
from relaylab.viz.graph.view import Attr, Node, Operand
from relaylab.viz.layout import Bounds as Place
from relaylab.viz.scene.metrics import fit, text_width, wrap
from relaylab.viz.scene.scene import Path, Rect, Shape, Text
from relaylab.viz.scene.theme import BODY, LINE, ROLE_ICONS, SMALL, TITLE

MAX_WIDTH = 260.0
MIN_WIDTH = 26.0
PAD_X, PAD_Y = 8.0, 4.0
NAME_GAP = 6.0

PILLS = frozenset({"var", "constant", "tuple", "projection", "pattern", "global", "operator", "constructor"})
CUT = frozenset({"if", "match"})
DOUBLE = frozenset({"function", "folded"})
RING = 2.5
"""The distance between the two lines around a double box."""

_TENSOR = re.compile(r"Tensor\[\(([^()]*)\), (\w+)\]")


def short_type(text: str, width: float = MAX_WIDTH) -> str:
    """A type as pictures show it: `Tensor[(1, 64), float32]` is `1×64 float32`; cut where it is too wide."""
    short = _TENSOR.sub(lambda m: f"{m[1].rstrip(',').replace(', ', '×') or '()'} {m[2]}", text)
    return fit(short, width, BODY)


@dataclass(frozen=True, slots=True)
class CardLine:
    """A line of a card's body: an optional name on the left, a text, and how it is set."""

    text: str
    name: str = ""
    style: str = "text-plain"
    size: float = BODY

    @property
    def width(self) -> float:
        """What the line needs."""
        name = text_width(self.name, self.size) + NAME_GAP if self.name else 0.0
        return name + text_width(self.text, self.size)


@dataclass(frozen=True, slots=True)
class Card:
    """A node ready to be placed."""

    node: Node
    title: str
    lines: tuple[CardLine, ...]
    width: float
    head: float
    height: float
    ports: Ports = Ports()


def card(node: Node, types: str = "nodes", attrs: str = "changed", ports: Ports = Ports()) -> Card:
    """The card of a node. `types`: nodes, edges, both, none; `attrs`: changed, all, none."""
    icon = f"{ROLE_ICONS[node.role]} " if node.role else ""
    names = "".join(f"{name} = " for name in node.names)
    title = fit(icon + names + node.title, MAX_WIDTH, TITLE, "bold")
    lines = tuple(_lines(node, types, attrs))
    text = max([text_width(title, TITLE, "bold"), *(line.width for line in lines)])
    side = 14.0 if node.kind in PILLS | CUT else PAD_X
    front, back = ports.depth
    head = TITLE * LINE + 2 * PAD_Y + (RING if node.kind in DOUBLE else 0.0)
    body = sum(line.size * LINE for line in lines) + (PAD_Y * 1.5 if lines else 0.0)
    body += RING if node.kind in DOUBLE and not lines else 0.0
    if ports.sideways:
        width, height = text + 2 * side + front + back, max(head + body, ports.along)
    else:
        width, height, head = max(text + 2 * side, ports.along), head + body + front + back, head + front
    return Card(node, title, lines, round(max(width, MIN_WIDTH), 1), head, round(height, 1), ports)


def _lines(node: Node, types: str, attrs: str) -> list[CardLine]:
    lines = [CardLine(text, style="text-dim") for text in _clip(node.rows)]
    lines += [_operand_line(o) for o in node.operands if o.text]
    lines += [CardLine(text, style="text-dim", size=SMALL) for text in _attr_lines(node.attrs, attrs)]
    if node.note:
        lines += [
            CardLine(t, style=f"text-role-{node.role}" if node.role else "text-dim", size=SMALL)
            for t in wrap(node.note, MAX_WIDTH, SMALL)[:4]
        ]
    if node.type and types in ("nodes", "both"):
        lines.append(CardLine(short_type(node.type), style="text-type"))
    return lines


def _clip(rows: tuple[str, ...], most: int = 8) -> list[str]:
    shown = [fit(row, MAX_WIDTH, BODY) for row in rows[:most]]
    return [*shown, f"… {len(rows) - most} more"] if len(rows) > most else shown


def _operand_line(operand: Operand) -> CardLine:
    name = operand.name or str(operand.position)
    tail = f"  {short_type(operand.type)}" if operand.type and operand.kind != "scalar" else ""
    room = MAX_WIDTH - text_width(name, BODY) - NAME_GAP
    return CardLine(fit(operand.text + tail, room, BODY), name=name)


def _attr_lines(attrs: tuple[Attr, ...], which: str, most: int = 4) -> list[str]:
    """`name=value` pairs flowed into lines, at most `most`."""
    if which == "none":
        return []
    # None leaves it to the operator
    told = [a for a in attrs if which == "all" or not (a.default or a.value == "None")]
    pairs = [fit(f"{a.name}={a.value}", MAX_WIDTH * 0.75, SMALL) for a in told]
    lines: list[str] = []
    for pair in pairs:
        joined = f"{lines[-1]}  {pair}" if lines else pair
        if lines and text_width(joined, SMALL) <= MAX_WIDTH * 0.75:
            lines[-1] = joined
        else:
            lines.append(pair)
    return lines if which == "all" or len(lines) <= most else [*lines[:most], "…"]


def shapes(card: Card, place: Place) -> tuple[Shape, ...]:
    """The card drawn at its place."""
    return (*_body(card, place), *card.ports.texts(place), *_texts(card, card.ports.inner(place)))


def _body(card: Card, place: Place) -> list[Shape]:
    node, (x, y, w, h) = card.node, (place.x, place.y, place.width, place.height)
    role = (*((f"role-{node.role}",) if node.role else ()), *node.paint)
    family = f"family-{node.family or 'value'}"
    if node.kind == "stack":
        behind = [Rect(x + d, y + d, w, h, 4.0, ("box", family, *role)) for d in (6.0, 3.0)]
        return [*behind, Rect(x, y, w, h, 4.0, ("box", family, *role))]
    if node.kind == "stretch":
        return [Rect(x, y, w, h, 4.0, ("box", "stretch", family, *role))]
    if node.kind in CUT:
        return [Path(_cut_corners(x, y, w, h), ("box", family, *role))]
    if node.kind in DOUBLE:
        inner = Rect(x + RING, y + RING, w - 2 * RING, h - 2 * RING, 3.0, ("box", "ring"))
        return [Rect(x, y, w, h, 4.0, ("box", family, *role)), inner]
    if node.kind in PILLS or not card.lines:
        radius = min(h / 2, 12.0) if node.kind in PILLS else 4.0
        return [Rect(x, y, w, h, radius, ("box", family, *role))]
    return [
        Rect(x, y, w, h, 4.0, ("box",)),
        Rect(
            x,
            y,
            w,
            card.head - 1,
            4.0,
            (family, "plate", *(p for p in node.paint if p.startswith(("fill:", "heat-")))),
            top_only=True,
        ),
        Rect(x, y, w, h, 4.0, ("box", *role, "ring")),
    ]


def _cut_corners(x: float, y: float, w: float, h: float) -> tuple[tuple, ...]:
    c = 8.0
    points = [
        (x + c, y),
        (x + w - c, y),
        (x + w, y + c),
        (x + w, y + h - c),
        (x + w - c, y + h),
        (x + c, y + h),
        (x, y + h - c),
        (x, y + c),
    ]
    return ("M", *points[0]), *(("L", *p) for p in points[1:]), ("Z",)


def _texts(card: Card, place: Place) -> list[Shape]:
    middle = place.x + place.width / 2
    left = place.x + (place.width - max([line.width for line in card.lines], default=0.0)) / 2
    left = min(left, place.x + (14.0 if card.node.kind in PILLS | CUT else PAD_X))
    at = place.y + PAD_Y + TITLE + (RING if card.node.kind in DOUBLE else 0.0)
    style = f"text-role-{card.node.role}" if card.node.role else "text-title"
    texts: list[Shape] = [Text(middle, at - 1.0, card.title, TITLE, "bold", "middle", (style,))]
    at = place.y + card.head - (0.0 if card.ports.sideways else card.ports.depth[0]) - PAD_Y * 0.2
    for line in card.lines:
        at += line.size * LINE
        texts += _line(line, left, middle, at, centered=not _named(card))
    return texts


def _named(card: Card) -> bool:
    return any(line.name for line in card.lines)


def _line(line: CardLine, left: float, middle: float, at: float, centered: bool) -> list[Shape]:
    base = at - line.size * 0.15
    if centered:
        return [Text(middle, base, line.text, line.size, anchor="middle", styles=(line.style,))]
    if not line.name:
        return [Text(left, base, line.text, line.size, styles=(line.style,))]
    start = left + text_width(line.name, line.size) + NAME_GAP
    return [
        Text(left, base, line.name, line.size, styles=("text-dim",)),
        Text(start, base, line.text, line.size, styles=(line.style,)),
    ]
