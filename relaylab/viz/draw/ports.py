"""The names of a node's operands, inside its box where their edges arrive: no line or other box can cover them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.viz.graph.view import Edge
from relaylab.viz.layout import Bounds
from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Text
from relaylab.viz.scene.theme import LINE, SMALL

SPREAD = 0.86
"""The middle part of a box's side where edges arrive."""
LONGEST = 80.0
BETWEEN = 7.0
"""The least distance between two names."""
STRIP = SMALL * LINE


def share(index: int, count: int) -> float:
    """Where along the side an operand arrives: spread over the middle of it."""
    return 0.5 if count < 2 else (1 - SPREAD) / 2 + SPREAD * (index + 0.5) / count


@dataclass(frozen=True, slots=True)
class Ports:
    """The names on the side where edges arrive (`front`) and on the other side, where recursion comes back (`back`)."""

    front: tuple[tuple[float, str], ...] = ()
    back: tuple[tuple[float, str], ...] = ()
    count: int = 0
    sideways: bool = False

    @staticmethod
    def of(edges: Sequence[Edge], sideways: bool) -> Ports:
        """The ports of a node into which these edges go."""
        named = [(share(k, len(edges)), fit(e.label, LONGEST, SMALL), e.kind) for k, e in enumerate(edges) if e.label]
        front = tuple((at, name) for at, name, kind in named if kind != "recursion")
        back = tuple((at, name) for at, name, kind in named if kind == "recursion")
        return Ports(front, back, len(edges), sideways)

    @property
    def along(self) -> float:
        """How long the side must be for the names to stand beside each other."""
        widest = max((text_width(name, SMALL) + BETWEEN for _, name in self.front), default=0.0)
        each = STRIP if self.sideways and widest else widest
        return each * self.count / (SPREAD if self.count > 1 else 1.0)

    @property
    def depth(self) -> tuple[float, float]:
        """What the names take at the side of arrival and at the other one."""
        return self._depth(self.front), self._depth(self.back)

    def _depth(self, names: tuple[tuple[float, str], ...]) -> float:
        if not names:
            return 0.0
        return max(text_width(name, SMALL) for _, name in names) + 5.0 if self.sideways else STRIP

    def inner(self, place: Bounds) -> Bounds:
        """The part of a box that is left for its own text."""
        front, back = self.depth
        if self.sideways:
            return Bounds(place.x + front, place.y, place.width - front - back, place.height)
        return Bounds(place.x, place.y + front, place.width, place.height - front - back)

    def texts(self, place: Bounds) -> list[Text]:
        """The names at their places in the box; those of the other side in its corner, near where lines come back."""
        texts = [self._text(place, at, name) for at, name in self.front]
        if self.back:
            names = fit(", ".join(dict.fromkeys(name for _, name in self.back)), place.width - 8, SMALL)
            texts.append(Text(place.right - 4, place.bottom - 3, names, SMALL, anchor="end", styles=("text-dim",)))
        return texts

    def _text(self, place: Bounds, at: float, name: str) -> Text:
        if self.sideways:
            return Text(place.x + 4, place.y + at * place.height + SMALL * 0.35, name, SMALL, styles=("text-dim",))
        x, y = place.x + at * place.width, place.y + SMALL + 1.5
        return Text(x, y, name, SMALL, anchor="middle", styles=("text-dim",))
