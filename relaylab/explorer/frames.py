"""The frames of a pipeline: the program before the first pass and after each, with ids that follow nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar, overload

from relaylab import viz
from relaylab.analysis.cost import costs
from relaylab.explorer.facts import Previews
from relaylab.ir import Expr, IRModule
from relaylab.study.pipeline import Pipeline, operators
from relaylab.study.rewriting.rewrites import Rewrite, of_segment
from relaylab.study.stage_text import Constants, PrintedStage, parameter_names, printed
from relaylab.viz.diffs.roles import Roles
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.graph.annotate import texts

T = TypeVar("T")


class NodeIdentities(viz.Identities):
    """Identities that also remember which program node each id of the last picture stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[Hashable, str] = {}

    def name(self, keys: Mapping[Hashable, str]) -> dict[Hashable, str]:
        self.given = super().name(keys)
        return self.given


class Frames:
    """Views, texts and nodes of all frames; frame 0 is the source, frame k the program after item k - 1."""

    def __init__(self, pipeline: Pipeline, title: str, unbound: IRModule | None = None):
        """`unbound` is the program before its parameters became constants: it knows their names."""
        self.pipeline, self.title = pipeline, title
        self.modules: list[IRModule] = pipeline.modules
        self._identities = NodeIdentities()
        self._views: list[viz.View] = []
        self._ids: list[dict[Expr, str]] = []
        self._nodes: list[dict[str, Expr]] = []
        self._texts: dict[int, PrintedStage] = {}
        self._known_figures: dict[IRModule, tuple[Counter[str], dict[str, float]]] = {}
        self.constants = Constants(parameter_names(unbound, pipeline.source) if unbound else None)
        self._sides: dict[int, tuple[viz.View, viz.View]] = {}
        self._rewrites: dict[int, list[Rewrite]] = {}
        self.previews: Previews = {}

    def __len__(self) -> int:
        return len(self.modules)

    def _reach(self, frame: int) -> None:
        """Make the views up to one; ids follow nodes, so each needs those before it."""
        for k in range(len(self._views), frame + 1):
            segment = self.pipeline.segments[k - 1] if k else None
            if segment is not None and not segment.changed:
                view, ids, nodes = self._views[-1], self._ids[-1], self._nodes[-1]
            else:
                for stage in segment.stages if segment else ():
                    if stage.changed:
                        self._identities.follow(stage)
                title = f"{k} {self.pipeline.items[k - 1].name}" if k else self.title
                options = ViewOptions(texts=texts(self.modules[k], self.constants.name))
                view = viz.view(self.modules[k], options, self._identities, title)
                ids = expressions(self._identities.given)
                nodes = {name: expr for expr, name in ids.items()}
            self._views.append(view)
            self._ids.append(ids)
            self._nodes.append(nodes)

    @property
    def views(self) -> Sequence[viz.View]:
        """The views, one a frame, made when they are first asked for; the same object where nothing changed."""
        return _Made(self, self._views)

    @property
    def ids(self) -> Sequence[dict[Expr, str]]:
        """The id of each program node that has a box, one table a frame."""
        return _Made(self, self._ids)

    @property
    def nodes(self) -> Sequence[dict[str, Expr]]:
        """The program node behind each id, one table a frame."""
        return _Made(self, self._nodes)

    def printed(self, frame: int) -> PrintedStage:
        """A frame as text."""
        key = next(k for k in range(frame + 1) if self.modules[k] is self.modules[frame])
        if key not in self._texts:
            self._texts[key] = printed(self.modules[key], self.constants)
        return self._texts[key]

    def operators(self, frame: int) -> Counter[str]:
        """How often each operator is called in a frame, and how many kernels there are."""
        return self._figures(self.modules[frame])[0]

    def totals(self, frame: int) -> dict[str, float]:
        """The work (`macs`) and the traffic (`bytes`) of a frame; what is not typed counts nothing."""
        return self._figures(self.modules[frame])[1]

    def _figures(self, mod: IRModule) -> tuple[Counter[str], dict[str, float]]:
        if mod not in self._known_figures:
            found = [c for f in mod.functions.values() if f.inferred is not None for c in costs(f).values()]
            work, traffic = sum(c.macs for c in found), sum(c.bytes_read + c.bytes_written for c in found)
            self._known_figures[mod] = operators(mod), {"macs": float(work), "bytes": float(traffic)}
        return self._known_figures[mod]

    def changing(self) -> list[int]:
        """The frames that differ from the one before."""
        return [k for k in range(1, len(self)) if self.modules[k] is not self.modules[k - 1]]

    def roles(self, frame: int) -> tuple[Mapping[str, viz.Node], Mapping[str, viz.Node]]:
        """The nodes before and after a pass, with their roles, by id."""
        before, after = self.sides(frame)
        return before.node_by_id, after.node_by_id

    def sides(self, frame: int) -> tuple[viz.View, viz.View]:
        """The views before and after a pass, with roles."""
        if frame not in self._sides:
            self._sides[frame] = Roles(self.views[frame - 1], self.views[frame]).sides()
        return self._sides[frame]

    def rewrites(self, index: int) -> list[Rewrite]:
        """The single rewrites of a pass; without rules what it touched."""
        if index not in self._rewrites:
            segment = self.pipeline.segments[index]
            has_rules = segment.main is None or segment.main.steps or not segment.changed
            self._rewrites[index] = of_segment(segment, None if has_rules else self.sides(index + 1), self.constants)
        return self._rewrites[index]


class _Made(Sequence[T]):
    """One table of all frames; looking at a frame makes what is not there yet."""

    def __init__(self, frames: Frames, table: list[T]):
        self._frames, self._table = frames, table

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, frame: int) -> T: ...
    @overload
    def __getitem__(self, frame: slice) -> Sequence[T]: ...
    def __getitem__(self, frame: int | slice) -> T | Sequence[T]:
        if isinstance(frame, slice):
            return [self[k] for k in range(*frame.indices(len(self)))]
        at = frame + len(self) if frame < 0 else frame
        if not 0 <= at < len(self):
            raise IndexError(frame)
        if at >= len(self._table):
            self._frames._reach(at)
        return self._table[at]


def expressions(given: Mapping[Hashable, str]) -> dict[Expr, str]:
    """The program nodes among the keys of a picture; of parts of a node (`(node, slot)`) the node if it has no box."""
    found = {key: name for key, name in given.items() if isinstance(key, Expr)}
    for key, name in given.items():
        while isinstance(key, tuple):
            key = key[0] if isinstance(key[0], (Expr, tuple)) else key[1]
        if isinstance(key, Expr):
            found.setdefault(key, name)
    return found
