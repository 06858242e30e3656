"""The whole pipeline in one picture: which pass changed how much of which function, and how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from relaylab.explorer.frames import Frames
from relaylab.study.exploration import Exploration, explore
from relaylab.study.pipeline import Pipeline
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.figures.heatmap import Cell, Column, heatmap
from relaylab.viz.graph.view import Node, View
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write.formats import save_scene
from relaylab.viz.write.html import bundle

TIME = "time, ms"
BY = ("function", "operator")


@dataclass(frozen=True)
class Heat:
    """How many nodes each pass changed, by role. `counts`: by (row, frame after the pass); `by` says what rows are."""

    title: str
    passes: list[tuple[str, float, bool]]
    counts: Mapping[tuple[str, int], Counter[str]]
    by: str = "function"

    @cached_property
    def rows(self) -> list[str]:
        """The functions (or operators) that any pass changed, those with the most changes first."""
        total: Counter[str] = Counter()
        for (row, _), found in self.counts.items():
            total[row] += sum(found.values())
        return [row for row, _ in total.most_common()]

    @cached_property
    def scene(self) -> Scene:
        """The picture; the id of a cell is `frame:row`."""
        columns = [Column(str(k), f"{k} {name}", not changed) for k, (name, _, changed) in enumerate(self.passes, 1)]
        cells = {(row, str(k)): self._cell(row, k, found) for (row, k), found in self.counts.items()}
        for k, (name, spent, _) in enumerate(self.passes, 1):
            text = f"{spent:.1f}" if spent < 9.95 else f"{spent:.0f}"
            cells[TIME, str(k)] = Cell(spent, text if spent >= 0.05 else "", f"{k} {name}: {spent:.2f} ms")
        return heatmap(columns, [*self.rows, TIME], cells, f"{self.title}: nodes that each pass changed")

    def _cell(self, row: str, frame: int, found: Counter[str]) -> Cell:
        name, spent, _ = self.passes[frame - 1]
        words = ", ".join(f"{n} {role}" for role, n in found.items())
        return Cell(sum(found.values()), str(sum(found.values())), f"{frame} {name}, {row}: {words}; {spent:.2f} ms")

    def save(self, path: str | Path, paper: str = "fit") -> Path:
        """Write the picture in the format of the suffix, or the table as .txt."""
        return save_scene(self.scene, path, self.title, str(self), paper)

    def __str__(self) -> str:
        wide = max((len(r) for r in (*self.rows, "pass")), default=4)
        loud = [k for k, (_, _, changed) in enumerate(self.passes, 1) if changed]
        lines = [f"{'':>{wide}}  " + "".join(f"{k:>6}" for k in loud)]
        for row in self.rows:
            lines.append(
                f"{row:>{wide}}  "
                + "".join(f"{sum(self.counts.get((row, k), Counter()).values()) or '·':>6}" for k in loud)
            )
        lines.append(f"{'ms':>{wide}}  " + "".join(f"{self.passes[k - 1][1]:>6.1f}" for k in loud))
        return "\n".join([*lines, *(f"{k:>{wide}}  {self.passes[k - 1][0]}" for k in loud)])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, str(self))


def heat(what: Any, opt_level: int = 3, by: str = "function") -> Heat:
    """How much each pass changed of each function; `what` is an exploration, a pipeline, or a program to explore.

    With `by="operator"` rows are kinds of operators instead of functions. Nodes count once a pass: those that
    were added, removed, changed, moved, or merged (see the diff of two stages).
    """
    pipeline = (
        what
        if isinstance(what, Pipeline)
        else (what if isinstance(what, Exploration) else explore(what, opt_level)).pipeline
    )
    title = (
        what.program.name
        if isinstance(what, Exploration)
        else str(what)
        if isinstance(what, (str, Path))
        else "pipeline"
    )
    return heat_of(Frames(pipeline, title), by)


def heat_of(frames: Frames, by: str = "function") -> Heat:
    """The heat of frames that are there already."""
    if by not in BY:
        raise RelayValueError(f"rows are functions or operators, not `{by}`", code="heat.by", help=did_you_mean(by, BY))
    counts: dict[tuple[str, int], Counter[str]] = {}
    for frame in frames.changing():
        for node, view, role in _touched(frames, frame):
            row = _function(view, node) if by == "function" else node.operator or node.kind
            counts.setdefault((row, frame), Counter())[role] += 1
    made = zip(frames.pipeline.items, frames.pipeline.segments)
    return Heat(frames.title, [(i.name, s.seconds * 1e3, s.changed) for i, s in made], counts, by)


def _touched(frames: Frames, frame: int) -> Iterator[tuple[Node, View, str]]:
    """The nodes that a pass changed, each with its view and its role; what came into a kernel is merged."""
    before, after = frames.roles(frame)
    old, new = frames.views[frame - 1], frames.views[frame]
    for node in after.values():
        if node.role or (_fused(new, node) and node.id in before and not _fused(old, before[node.id])):
            yield node, new, node.role or "merged"
    yield from ((node, old, node.role) for node in before.values() if node.role == "removed")


def _fused(view: View, node: Node) -> bool:
    home = view.group_by_id.get(node.group)
    return home is not None and home.kind == "primitive"


def _function(view: View, node: Node) -> str:
    """The name of the global function that a node is in."""
    *_, outermost = (None, *view.around(node.group))
    return outermost.title if outermost is not None else "outside"
