"""The roofline of a program (Williams, Waterman, Patterson, 2009): what each kernel reaches, under what it could."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.viz.figures.overlay import PREFIX
from relaylab.viz.scene.metrics import fit
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 430.0, 250.0, 56.0, 40.0, 34.0
ROW, NAMED, LABEL = 15.0, 8, 190.0
LEAST, ALIKE, MOST = 3.0, 4.5, 9.0  # radii of dots: the area is the share of the time, if there is one


@dataclass(frozen=True, slots=True)
class Dot:
    """One kernel: its name, FLOP for each byte of its operands, FLOP/s reached, the seconds of all its calls, and the
    least that these could take under the roof.

    Dots that have no seconds are of no program: they are drawn alike.
    """

    name: str
    intensity: float
    speed: float
    seconds: float = 0.0
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis: values from `low` to `high` between two places of the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def decades(self) -> list[float]:
        return [10.0**k for k in range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)]


def roofline(dots: Sequence[Dot], flops: float, memory: float, title: str) -> Scene:
    """The picture: both axes logarithmic, the roof from `flops` (FLOP/s) and `memory` (bytes/s), a dot a kernel.

    Dots are numbered by their share of the time; the list beside them names the first ones. Kernels without
    arithmetic, or without a measurable time, have no place on it.
    """
    placed = sorted((d for d in dots if d.intensity > 0 and d.speed > 0), key=lambda d: -d.seconds)
    ridge = flops / memory
    x = _axis([d.intensity for d in placed] + [ridge / 10, ridge * 10], LEFT, LEFT + WIDTH)
    y = _axis([d.speed for d in placed] + [flops * 1.5, memory * ridge / 30], TOP + HEIGHT, TOP)
    total = sum(d.seconds for d in dots)
    shares = [d.seconds / total if total else None for d in placed]
    elements = [_grid(x, y, title), _roof(x, y, flops, memory)]
    elements += [_dot(k, placed[k - 1], shares[k - 1], x, y, flops, memory) for k in range(len(placed), 0, -1)]
    elements += [_name(k, d, share) for k, (d, share) in enumerate(zip(placed[:NAMED], shares), 1)]
    height = max(TOP + HEIGHT + BOTTOM, TOP + ROW * (min(len(placed), NAMED) + 1))
    return Scene(LEFT + WIDTH + 24 + LABEL, height, tuple(elements), title)


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    return _Axis(10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))), start, end)


def _line(*points: tuple[float, float], styles: tuple[str, ...]) -> Path:
    return Path(tuple(("M" if k == 0 else "L", *p) for k, p in enumerate(points)), styles)


def _grid(x: _Axis, y: _Axis, title: str) -> Element:
    dim = ("text-dim",)
    parts: list[Shape] = [Text(LEFT, TOP - 22, title, 11.0, "bold", styles=("text-title",))]
    parts += [_line((x.at(v), TOP), (x.at(v), TOP + HEIGHT), styles=("rule",)) for v in x.decades()]
    parts += [_line((LEFT, y.at(v)), (LEFT + WIDTH, y.at(v)), styles=("rule",)) for v in y.decades()]
    parts += [Text(x.at(v), TOP + HEIGHT + 12, f"{v:g}", 8.0, anchor="middle", styles=dim) for v in x.decades()]
    parts += [Text(LEFT - 5, y.at(v) + 3, f"{v / 1e9:g}", 8.0, anchor="end", styles=dim) for v in y.decades()]
    parts.append(Text(LEFT + WIDTH / 2, TOP + HEIGHT + 26, "FLOP per byte", 9.0, anchor="middle", styles=dim))
    parts.append(Text(LEFT, TOP - 8, "GFLOP/s", 9.0, anchor="end", styles=dim))
    return Element("grid", "note", tuple(parts), title)


def _roof(x: _Axis, y: _Axis, flops: float, memory: float) -> Element:
    ridge, start = flops / memory, max(x.low, y.low / memory)
    points = (x.at(start), y.at(start * memory)), (x.at(ridge), y.at(flops)), (x.at(x.high), y.at(flops))
    words = f"{flops / 1e9:.0f} GFLOP/s", f"{memory / 1e9:.1f} GB/s"
    parts: tuple[Shape, ...] = (
        _line(*points, styles=("role-moved", "fill:none")),
        Text(LEFT + WIDTH, y.at(flops) - 5, words[0], 8.0, anchor="end", styles=("text-plain",)),
        Text(x.at(start) + 28, y.at(start * memory) - 5, words[1], 8.0, styles=("text-plain",)),
    )
    return Element("roof", "note", parts, f"the roof: {words[0]}, {words[1]} from memory")


def _dot(k: int, dot: Dot, share: float | None, x: _Axis, y: _Axis, flops: float, memory: float) -> Element:
    radius = ALIKE if share is None else max(LEAST, MOST * math.sqrt(share))
    left, top = x.at(dot.intensity) - radius, y.at(dot.speed) - radius
    box = (left, top, 2 * radius, 2 * radius)
    reached = dot.speed / min(flops, dot.intensity * memory)
    words = f"{dot.name}: {dot.speed / 1e9:.3g} GFLOP/s, {reached:.0%} of the roof"
    words += "" if share is None else f", {share:.0%} of the time"
    parts: list[Shape] = [Rect(*box, radius, ("box", "family-fusable"))]
    if radius > LEAST + 1:
        parts.append(Text(left + radius, top + radius + 2.5, str(k), 7.5, anchor="middle", styles=("text-plain",)))
    elif k <= NAMED:
        parts.append(Text(left + 2 * radius + 1, top, str(k), 7.0, styles=("text-dim",)))
    return Element(f"{k}:{dot.name}", "node", tuple(parts), words, words, box=box)


def _name(k: int, dot: Dot, share: float | None) -> Element:
    name = PREFIX.sub("", dot.name)
    text = fit(f"{k}  {name}" if share is None else f"{k}  {share:.0%}  {name}", LABEL - 10, 8.0)
    top = TOP + ROW * k
    shape = Text(LEFT + WIDTH + 16, top, text, 8.0, styles=("text-plain",))
    return Element(f"name:{k}", "note", (shape,), text, box=(LEFT + WIDTH + 16, top - 10, LABEL - 10, ROW))
