"""What the layout engine takes and gives: boxes with sizes in, places and routes out.

The engine works in its own axes: ranks go down (`y`), order goes right (`x`). Drawing from left to
right swaps both on the way in and on the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A node to place: its size and the group it is in (empty: none)."""

    id: str
    width: float
    height: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A group to place around its members; the title needs a strip of `title_width` × `title_height`."""

    id: str
    parent: str = ""
    title_width: float = 0.0
    title_height: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """An edge to route. `out` and `into` say where it leaves and enters, as fractions 0..1 of the side.

    A `back` link runs against the flow (a recursive call); a `loose` one takes no part in the layout
    and is drawn as one curve beneath everything (a call to a global function). Of `ordered` links into one
    box the sources stand in the order in which they enter (branches).
    """

    id: str
    source: str
    target: str
    out: float = 0.5
    into: float = 0.5
    back: bool = False
    loose: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """Distances in points, the direction (`TB` or `LR`), and how much effort to spend."""

    direction: str = "TB"
    node_gap: float = 18.0
    rank_gap: float = 26.0
    padding: float = 12.0
    sweeps: int = 16
    settle: int = 24
    aspect: float = 1.6


@dataclass(frozen=True, slots=True)
class Bounds:
    """A placed box: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right border."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The bottom border."""
        return self.y + self.height

    @property
    def center(self) -> Point:
        """The middle."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(slots=True)
class GraphLayout:
    """The result: a rectangle for each box and frame, a route for each link.

    Consecutive points of a route that share a coordinate are joined by a line, others by an S-curve.
    A link in `stubs` has no route: it was too long to be worth one and is drawn as two labelled ends.
    `seed` fed to the next layout keeps what is common where it was.
    """

    boxes: dict[str, Bounds] = field(default_factory=dict)
    frames: dict[str, Bounds] = field(default_factory=dict)
    routes: dict[str, list[Point]] = field(default_factory=dict)
    stubs: set[str] = field(default_factory=set)
    bands: list[tuple[float, float]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    crossings: int = 0
    seed: Mapping[str, float] = field(default_factory=dict)
