"""The memory plan as a picture: steps to the right, bytes of the arena upward, one bar for all that is held."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from relaylab.runtime.executable import ExecutionPlan
from relaylab.support.checked import checked
from relaylab.support.words import counted
from relaylab.viz.figures.overlay import PREFIX, kernel_boxes
from relaylab.viz.graph.figure import abbreviated
from relaylab.viz.graph.view import View
from relaylab.viz.scene.metrics import fit, text_width
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text, extent, merged_bands

MARGIN, CAPTION, AXIS = 16.0, 30.0, 46.0
WIDTH, HEIGHT = 860.0, 360.0
KINDS = ("tensor", "workspace")
FAMILIES = ("fusable", "elementwise", "broadcast", "reduce", "opaque", "call")


@dataclass(frozen=True, slots=True)
class Bar:
    """Bytes `[offset, offset + size)` of the arena, held from step `first` to `last`; `label` is who fills them first.

    `kind` is tensor, padded (with zeros around it that must stay zero, so that its bytes are kept all the time) or
    workspace (what the kernels of one operation keep between them). `home` is the id of the kernel in the view that the
    plan is shown with.
    """

    offset: int
    size: int
    first: int
    last: int
    label: str = ""
    kind: str = "tensor"
    home: str = ""


def bars(plan: ExecutionPlan, view: View | None = None) -> tuple[Bar, ...]:
    """All that an `Executable.plan` keeps in the arena, from the first step to the last that needs it."""
    homes = kernel_boxes(view, [step.label for step in plan.steps]) if view is not None else [""] * len(plan.steps)
    labels = [PREFIX.sub("", step.label) for step in plan.steps]
    return tuple(Bar(h.offset, h.nbytes, h.first, h.last, labels[h.first], h.kind, homes[h.first]) for h in plan.held)


def held_bytes(view: View, plan: ExecutionPlan) -> dict[str, float]:
    """The most bytes that the arena holds while each kernel of a fused view runs: values for `overlay`."""
    found: dict[str, float] = {}
    for home, total in zip(
        kernel_boxes(view, [step.label for step in plan.steps]), _totals(bars(plan), len(plan.steps))
    ):
        if home:
            found[home] = max(found.get(home, 0.0), float(total))
    return found


def kept(held: tuple[Bar, ...]) -> tuple[tuple[int, int], ...]:
    """The ranges of bytes (start, end) that are kept for padded tensors through all steps."""
    return tuple(
        (int(a), int(b)) for a, b in merged_bands((b.offset, b.offset + b.size) for b in held if b.kind == "padded")
    )


def _totals(held: tuple[Bar, ...], steps: int) -> list[int]:
    """The bytes of the arena that no other value may use, at each step."""
    change = [0] * (steps + 1)
    for bar in held:
        if bar.kind != "padded":
            change[bar.first] += bar.size
            change[bar.last + 1] -= bar.size
    return list(accumulate(change[:-1], initial=sum(b - a for a, b in kept(held))))[1:]


def peak(held: tuple[Bar, ...]) -> tuple[int, int]:
    """The step at which the most bytes are held or kept, and how many those are."""
    totals = _totals(held, max((b.last for b in held), default=0) + 1)
    best = max(totals)
    return totals.index(best), best


@checked
def timeline(plan: ExecutionPlan, title: str = "memory plan", view: View | None = None) -> Scene:
    """The picture of an `Executable.plan`: bars of the arena over the steps, with the peak marked; all writers take it.

    With the `view` of the fused program the bars name the kernels that fill them by their ids.
    """
    held = bars(plan, view)
    steps, arena = max(1, len(plan.steps)), max(1, plan.arena_bytes)
    x0, y0 = MARGIN + AXIS, MARGIN + CAPTION
    across, up = WIDTH / steps, HEIGHT / arena
    elements = [_frame(title, plan, held, x0, y0)]
    elements += [_kept(k, low, high, x0, y0 + HEIGHT, up) for k, (low, high) in enumerate(kept(held))]
    for k, bar in enumerate(held):
        x, wide = x0 + bar.first * across, (bar.last - bar.first + 1) * across
        high = bar.size * up
        box = (round(x, 1), round(y0 + HEIGHT - bar.offset * up - high, 1), round(wide, 1), round(high, 1))
        elements.append(_bar(k, bar, box))
    if held:
        elements.append(_peak(held, x0, y0, across))
    return Scene(max(x0 + WIDTH, _end(elements[0])) + MARGIN, y0 + HEIGHT + CAPTION, tuple(elements), title)


def _end(frame: Element) -> float:
    return max(extent(shape)[2] for shape in frame.shapes)


def _frame(title: str, plan: ExecutionPlan, held: tuple[Bar, ...], x0: float, y0: float) -> Element:
    words = _words(plan, held)
    at = MARGIN + text_width(title, 12.0, "bold") + 14
    parts: list[Shape] = [
        Text(MARGIN, MARGIN + 11, title, 12.0, "bold", styles=("text-title",)),
        Text(at, MARGIN + 11, words, 9.0, styles=("text-dim",)),
        Rect(x0, y0, WIDTH, HEIGHT, 0.0, ("group-block",)),
    ]
    for k in range(5):
        y = y0 + HEIGHT * (1 - k / 4)
        parts.append(Path((("M", x0 - 4, y), ("L", x0 + WIDTH, y)), ("rule",)))
        label = f"{abbreviated(plan.arena_bytes * k / 4)}B"
        parts.append(Text(x0 - 6, y + 3, label, 8.0, anchor="end", styles=("text-dim",)))
    count = len(plan.steps)
    for step in range(0, count, max(1, -(-count // 10))):
        x = x0 + (step + 0.5) * WIDTH / count
        name = f"step {step}" if step == 0 else str(step)
        parts.append(Text(x, y0 + HEIGHT + 12, name, 8.0, anchor="middle", styles=("text-dim",)))
    return Element("memory", "note", tuple(parts), title, words, box=(MARGIN, MARGIN, WIDTH, CAPTION))


def _words(plan: ExecutionPlan, held: tuple[Bar, ...]) -> str:
    """The caption: how much of what."""
    kinds = {kind: [b.size for b in held if (b.kind == "workspace") == (kind == "workspace")] for kind in KINDS}
    parts = [f"{counted(len(sizes), kind)} of {abbreviated(sum(sizes))}B" for kind, sizes in kinds.items() if sizes]
    parts = [f"{' and '.join(parts) or 'nothing'} in an arena of {abbreviated(plan.arena_bytes)}B"]
    if plan.scratch_bytes:
        parts.append(f"beside it {abbreviated(plan.scratch_bytes)}B of scratch for each thread")
    parts += ["dashed: workspaces"] if kinds["workspace"] else []
    parts += ["striped rows: kept for tensors with zeros around them"] if kept(held) else []
    return "; ".join(parts)


def _kept(k: int, low: int, high: int, x: float, bottom: float, up: float) -> Element:
    """Bytes that padded tensors keep, as a band over all steps."""
    box = (round(x, 1), round(bottom - high * up, 1), WIDTH, round((high - low) * up, 1))
    words = f"{high - low} bytes at {low}, kept for tensors with zeros around them"
    stripes = [Path((("M", x, y), ("L", x + WIDTH, y)), ("rule",)) for y in _every(box[1], box[1] + box[3], 4.0)]
    return Element(
        f"kept.{k}", "node", (Rect(*box, 0.0, ("group-primitive", "plate")), *stripes), words, words, box=box
    )


def _every(start: float, end: float, distance: float) -> list[float]:
    return [start + distance * (k + 0.5) for k in range(int((end - start) / distance))]


def _bar(k: int, bar: Bar, box: tuple[float, float, float, float]) -> Element:
    x, y, wide, high = box
    look = ("family-value", "dash:3 2") if bar.kind == "workspace" else (f"family-{FAMILIES[k % len(FAMILIES)]}",)
    parts: list[Shape] = [Rect(x, y, wide, max(0.8, high), 1.5, ("box", *look))]
    label = f"{bar.label} {abbreviated(bar.size)}B"
    if high >= 10 and wide >= 40:
        parts.append(Text(x + 4, y + high / 2 + 3, fit(label, wide - 8, 8.0), 8.0))
    until = f"steps {bar.first} to {bar.last}" if bar.last > bar.first else f"step {bar.first}"
    words = f"{bar.kind}: {bar.size} bytes at {bar.offset}, {until}" + (f", {bar.home}" if bar.home else "")
    return Element(f"{bar.kind}.{k}", "node", tuple(parts), label, words, box=box)


def _peak(held: tuple[Bar, ...], x0: float, y0: float, across: float) -> Element:
    step, size = peak(held)
    x = x0 + (step + 0.5) * across
    right = x > x0 + WIDTH / 2
    text = f"peak {abbreviated(size)}B at step {step}"
    label = Text(
        x + (2 if right else -2), y0 - 4, text, 9.0, "bold", "end" if right else "start", ("text-role-removed",)
    )
    line = Path((("M", x, y0), ("L", x, y0 + HEIGHT)), ("wire", "role-removed"))
    return Element("peak", "note", (line, label), text, box=(x - 5, y0, 10, HEIGHT))
