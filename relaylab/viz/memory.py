"""The memory plan as a picture: steps to the right, bytes of the arena upward, one bar for each value that is held."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from relaylab.viz.figures import PREFIX, figure
from relaylab.viz.metrics import fit, text_width
from relaylab.viz.scene import Figure, Path, Rect, Scene, Shape, Text

MARGIN, CAPTION, AXIS = 16.0, 30.0, 46.0
WIDTH, HEIGHT = 860.0, 360.0
FAMILIES = ("fusable", "elementwise", "broadcast", "reduce", "opaque", "call")
_BYTES = {"bool": 1, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Bar:
    """Bytes `[offset, offset + size)` of the arena, held from step `first` to step `last` by the value of a step."""

    offset: int
    size: int
    first: int
    last: int
    label: str = ""


def bars(plan: Any) -> tuple[Bar, ...]:
    """The values of an `Executable.plan` that lie in the arena, with the steps from the first to the last that uses them.

    What a step keeps for itself (scratch, intermediate layouts) is not a value of the graph and has no bar.
    """
    held = sorted((v for _, _, v in plan.values if v.place[0] == 0), key=lambda v: v.ready)
    uses: dict[Any, list[int]] = {}
    for k, step in enumerate(plan.steps):
        for place in set(step.operands):
            uses.setdefault(place, []).append(k)
    made = []
    for k, value in enumerate(held):
        end = next((v.ready - 1 for v in held[k + 1 :] if _overlap(v, value) and v.ready > value.ready), len(plan.steps))
        first = max(0, value.ready - 1)
        last = max((s for s in uses.get(value.place, ()) if first <= s < end), default=first)
        label = PREFIX.sub("", plan.steps[first].label) if plan.steps else ""
        made.append(Bar(value.place[1], _size(value), first, last, label))
    return tuple(made)


def _overlap(a: Any, b: Any) -> bool:
    """Whether two values share bytes of the arena."""
    return a.place[1] < b.place[1] + _size(b) and b.place[1] < a.place[1] + _size(a)


def _size(value: Any) -> int:
    digits = "".join(filter(str.isdigit, value.dtype))
    return math.prod(value.shape) * (_BYTES.get(value.dtype) or int(digits) // 8)


def peak(held: tuple[Bar, ...]) -> tuple[int, int]:
    """The step at which the most bytes are held, and how many those are."""
    change: dict[int, int] = {}
    for bar in held:
        change[bar.first] = change.get(bar.first, 0) + bar.size
        change[bar.last + 1] = change.get(bar.last + 1, 0) - bar.size
    best, total, at = 0, 0, 0
    for step in sorted(change):
        total += change[step]
        best, at = max((best, at), (total, step), key=lambda p: p[0])
    return at, best


def timeline(plan: Any, title: str = "memory plan") -> Scene:
    """The picture of an `Executable.plan`: bars of the arena over the steps, with the peak marked; all writers take it."""
    held = bars(plan)
    steps, arena = max(1, len(plan.steps)), max(1, plan.arena_bytes, *(b.offset + b.size for b in held))
    x0, y0 = MARGIN + AXIS, MARGIN + CAPTION
    across, up = WIDTH / steps, HEIGHT / arena
    figures = [_frame(title, plan, held, x0, y0)]
    for k, bar in enumerate(sorted(held, key=lambda b: (b.first, b.offset))):
        x, wide = x0 + bar.first * across, (bar.last - bar.first + 1) * across
        high = bar.size * up
        box = (round(x, 1), round(y0 + HEIGHT - bar.offset * up - high, 1), round(wide, 1), round(high, 1))
        figures.append(_bar(k, bar, box))
    if held:
        figures.append(_peak(held, x0, y0, across))
    return Scene(x0 + WIDTH + MARGIN, y0 + HEIGHT + CAPTION, tuple(figures), title)


def _frame(title: str, plan: Any, held: tuple[Bar, ...], x0: float, y0: float) -> Figure:
    total = sum(b.size for b in held)
    words = f"{len(held)} values of {figure(total)}B in an arena of {figure(plan.arena_bytes)}B"
    parts: list[Shape] = [
        Text(MARGIN, MARGIN + 11, title, 12.0, "bold", styles=("text-title",)),
        Text(MARGIN + text_width(title, 12.0, "bold") + 14, MARGIN + 11, words, 9.0, styles=("text-dim",)),
        Rect(x0, y0, WIDTH, HEIGHT, 0.0, ("group-block",)),
        Text(x0, y0 + HEIGHT + 14, "step 0", 8.0, styles=("text-dim",)),
        Text(x0 + WIDTH, y0 + HEIGHT + 14, f"step {max(0, len(plan.steps) - 1)}", 8.0, anchor="end", styles=("text-dim",)),
    ]
    for k in range(5):
        y = y0 + HEIGHT * (1 - k / 4)
        parts.append(Path((("M", x0 - 4, y), ("L", x0 + WIDTH, y)), ("rule",)))
        label = f"{figure(plan.arena_bytes * k / 4)}B"
        parts.append(Text(x0 - 6, y + 3, label, 8.0, anchor="end", styles=("text-dim",)))
    return Figure("memory", "note", tuple(parts), title, words, box=(MARGIN, MARGIN, WIDTH, CAPTION))


def _bar(k: int, bar: Bar, box: tuple[float, float, float, float]) -> Figure:
    x, y, wide, high = box
    parts: list[Shape] = [Rect(x, y, wide, max(0.8, high), 1.5, ("box", f"family-{FAMILIES[k % len(FAMILIES)]}"))]
    label = f"{bar.label} {figure(bar.size)}B"
    if high >= 10 and wide >= 40:
        parts.append(Text(x + 4, y + high / 2 + 3, fit(label, wide - 8, 8.0), 8.0))
    words = f"{bar.size} bytes at {bar.offset}, steps {bar.first} to {bar.last}"
    return Figure(f"value.{k}", "node", tuple(parts), label, words, box=box)


def _peak(held: tuple[Bar, ...], x0: float, y0: float, across: float) -> Figure:
    step, size = peak(held)
    x = x0 + (step + 0.5) * across
    right = x > x0 + WIDTH / 2
    text = f"peak {figure(size)}B at step {step}"
    label = Text(x + (-5 if right else 5), y0 + 10, text, 9.0, "bold", "end" if right else "start", ("text-role-removed",))
    line = Path((("M", x, y0), ("L", x, y0 + HEIGHT)), ("wire", "role-removed"))
    return Figure("peak", "note", (line, label), text, box=(x - 5, y0, 10, HEIGHT))
