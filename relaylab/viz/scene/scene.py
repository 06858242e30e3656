"""A drawn picture: rectangles, paths and lines of text with absolute places, the input of all writers.

Coordinates are points, y grows downward. Shapes name styles of `theme`; a `Element` is what belongs to one
node, edge or group and carries its id, so that writers can make it selectable and accessible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from relaylab.viz.scene.metrics import text_width

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle with rounded corners; `top_only` rounds just the upper two."""

    x: float
    y: float
    width: float
    height: float
    radius: float = 0.0
    styles: tuple[str, ...] = ()
    top_only: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A path: commands ("M", x, y), ("L", x, y), ("C", x1, y1, x2, y2, x, y) and ("Z",)."""

    commands: tuple[tuple, ...]
    styles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `y` is the baseline, `anchor` one of start, middle, end, `face` one of `metrics.FACES`."""

    x: float
    y: float
    text: str
    size: float
    face: str = "regular"
    anchor: str = "start"
    styles: tuple[str, ...] = ("text-plain",)


Shape = Rect | Path | Text


@dataclass(frozen=True, slots=True)
class Element:
    """The shapes of one thing. `kind` is node, edge, group or note; `label` says in words what it is."""

    id: str
    kind: str
    shapes: tuple[Shape, ...]
    label: str = ""
    detail: str = ""
    role: str = ""
    ends: tuple[str, str] = ("", "")
    box: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole picture. `bands` are the rows of boxes (top, bottom): a page may be cut between them."""

    width: float
    height: float
    elements: tuple[Element, ...]
    title: str = ""
    bands: tuple[tuple[float, float], ...] = ()
    seed: Mapping[str, float] = field(default_factory=dict)


def extent(shape: Shape) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a shape (of a path: of its control points)."""
    if isinstance(shape, Rect):
        return shape.x, shape.y, shape.x + shape.width, shape.y + shape.height
    if isinstance(shape, Text):
        wide = text_width(shape.text, shape.size, shape.face)
        left = shape.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[shape.anchor] * wide
        return left, shape.y - shape.size, left + wide, shape.y + shape.size * 0.3
    xs = [v for c in shape.commands for v in c[1::2]]
    ys = [v for c in shape.commands for v in c[2::2]]
    return min(xs), min(ys), max(xs), max(ys)


def rounded(rect: Rect) -> tuple[tuple, ...]:
    """A rectangle as path commands."""
    x, y, w, h = rect.x, rect.y, rect.width, rect.height
    r = min(rect.radius, w / 2, h / 2)
    if r <= 0:
        return ("M", x, y), ("L", x + w, y), ("L", x + w, y + h), ("L", x, y + h), ("Z",)
    k, low = r * 0.4477, 0.0 if rect.top_only else r
    kl = low * 0.4477
    corners = [
        ("M", x + r, y),
        ("L", x + w - r, y),
        ("C", x + w - k, y, x + w, y + k, x + w, y + r),
        ("L", x + w, y + h - low),
        ("C", x + w, y + h - kl, x + w - kl, y + h, x + w - low, y + h),
        ("L", x + low, y + h),
        ("C", x + kl, y + h, x, y + h - kl, x, y + h - low),
        ("L", x, y + r),
        ("C", x, y + k, x + k, y, x + r, y),
        ("Z",),
    ]
    return tuple(c for c in corners if low or c[0] != "C" or c[-1] < y + h)


def curve(points: Iterable[Point], sideways: bool) -> tuple[tuple, ...]:
    """A route as path commands: lines along the axes, S-curves that leave and arrive along the flow."""
    route = list(points)
    commands: list[tuple] = [("M", *route[0])]
    for (x0, y0), (x1, y1) in zip(route, route[1:]):
        if abs(x0 - x1) < 0.05 or abs(y0 - y1) < 0.05:
            commands.append(("L", x1, y1))
        elif sideways:
            middle = (x0 + x1) / 2
            commands.append(("C", middle, y0, middle, y1, x1, y1))
        else:
            middle = (y0 + y1) / 2
            commands.append(("C", x0, middle, x1, middle, x1, y1))
    return tuple(commands)


def arrow(tip: Point, direction: Point, size: float = 6.0) -> tuple[tuple, ...]:
    """A filled arrow head that ends at `tip` and points along `direction` (a unit vector)."""
    (x, y), (dx, dy) = tip, direction
    bx, by, half = x - dx * size, y - dy * size, size * 0.45
    return ("M", x, y), ("L", bx - dy * half, by + dx * half), ("L", bx + dy * half, by - dx * half), ("Z",)


def moved(shape: Shape, dx: float) -> Shape:
    """The shape `dx` further to the right."""
    if isinstance(shape, Path):
        return replace(shape, commands=tuple(_moved_command(c, dx) for c in shape.commands))
    return replace(shape, x=shape.x + dx)


def _moved_command(command: tuple, dx: float) -> tuple:
    return (command[0], *(v + dx if i % 2 == 0 else v for i, v in enumerate(command[1:])))


def beside(left: Scene, right: Scene) -> Scene:
    """Two pictures in one, the ids of the right one marked by a prime; pages may be cut where neither has a box."""
    dx = left.width
    elements = tuple(
        replace(
            f,
            id=f"{f.id}'",
            shapes=tuple(moved(s, dx) for s in f.shapes),
            ends=(f"{f.ends[0]}'", f"{f.ends[1]}'") if f.ends[0] else f.ends,
            box=(f.box[0] + dx, *f.box[1:]),
        )
        for f in right.elements
    )
    return Scene(
        left.width + right.width,
        max(left.height, right.height),
        (*left.elements, *elements),
        f"{left.title} | {right.title}",
        merged_bands((*left.bands, *right.bands)),
        left.seed,
    )


def merged_bands(spans: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Intervals joined where they overlap, in order."""
    out: list[tuple[float, float]] = []
    for top, bottom in sorted(spans):
        if out and top <= out[-1][1]:
            out[-1] = (out[-1][0], max(bottom, out[-1][1]))
        else:
            out.append((top, bottom))
    return tuple(out)
