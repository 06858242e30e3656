"""The frames of a pipeline: the program before the first pass and after each, with ids that follow nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from relaylab import viz
from relaylab.ir import Expr, IRModule
from relaylab.tour.facts import Previews
from relaylab.tour.pipeline import Pipeline
from relaylab.tour.printed import Constants, Printed, printed
from relaylab.viz.roles import Roles


class Names(viz.Identities):
    """Identities that also remember which program node each id of the last picture stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[Hashable, str] = {}

    def name(self, keys: Mapping[Hashable, str]) -> dict[Hashable, str]:
        self.given = super().name(keys)
        return self.given


class Frames:
    """Views, texts and nodes of all frames; frame 0 is the source, frame k the program after item k - 1."""

    def __init__(self, pipeline: Pipeline, title: str):
        self.pipeline, self.title = pipeline, title
        self.modules: list[IRModule] = pipeline.modules
        self._identities = Names()
        self._views: list[viz.View] = []
        self._ids: list[dict[Expr, str]] = []
        self._nodes: list[dict[str, Expr]] = []
        self._texts: dict[int, Printed] = {}
        self._kernels: dict[int, dict[str, str]] = {}
        self._constants = Constants()
        self.previews: Previews = {}

    def __len__(self) -> int:
        return len(self.modules)

    def _reach(self, frame: int) -> None:
        """Draft the frames up to one; ids follow nodes, so each needs those before it."""
        for k in range(len(self._views), frame + 1):
            segment = self.pipeline.segments[k - 1] if k else None
            if segment is not None and not segment.changed:
                made = self._views[-1], self._ids[-1], self._nodes[-1]
            else:
                for stage in segment.stages if segment else ():
                    self._identities.follow(stage)
                title = f"{k} {self.pipeline.items[k - 1].name}" if k else self.title
                view = viz.view(self.modules[k], identities=self._identities, title=title)
                ids = expressions(self._identities.given)
                made = view, ids, {name: expr for expr, name in ids.items()}
            for table, value in zip((self._views, self._ids, self._nodes), made):
                table.append(value)

    @property
    def views(self) -> Sequence[viz.View]:
        """The views, one a frame, drafted when they are first asked for; the same object where nothing changed."""
        return _Drafted(self, self._views)

    @property
    def ids(self) -> Sequence[dict[Expr, str]]:
        """The id of each program node that has a box, one table a frame."""
        return _Drafted(self, self._ids)

    @property
    def nodes(self) -> Sequence[dict[str, Expr]]:
        """The program node behind each id, one table a frame."""
        return _Drafted(self, self._nodes)

    def printed(self, frame: int) -> Printed:
        """A frame as text."""
        key = next(k for k in range(frame + 1) if self.modules[k] is self.modules[frame])
        if key not in self._texts:
            self._texts[key] = printed(self.modules[key], self._constants)
        return self._texts[key]

    def changing(self) -> list[int]:
        """The frames that differ from the one before."""
        return [k for k in range(1, len(self)) if self.modules[k] is not self.modules[k - 1]]

    # -- the life of a node ---------------------------------------------------------------------------

    def story(self, frame: int, name: str) -> list[dict]:
        """What happened to a node: an entry for each pass that touched it, before and after `frame`."""
        start = self.nodes[frame].get(name)
        if start is None:
            return []
        return [*reversed(list(self._backward(frame, start, name))), *self._forward(frame, start)]

    def _backward(self, frame: int, start: Expr, name: str) -> Iterable[dict]:
        at: tuple[Expr, ...] = (start,)
        for k in range(frame, 0, -1):
            segment = self.pipeline.segments[k - 1]
            if not segment.changed:
                continue
            now = at
            for stage in reversed(segment.stages):
                at = tuple(dict.fromkeys(p for n in at for p in (stage.parents(n) if stage.changed else (n,))))
            if not at:
                yield self._entry(k, "made here", self._names(k, now))
                return
            entry = self._change(k, self._names(k - 1, at), self._names(k, now))
            if entry:
                yield entry
        yield self._entry(0, "in the program as it was built", self._names(0, at) or [name])

    def _forward(self, frame: int, start: Expr) -> Iterable[dict]:
        at: Expr | None = start
        for k in range(frame + 1, len(self)):
            segment = self.pipeline.segments[k - 1]
            if not segment.changed:
                continue
            was = at
            for stage in segment.stages:
                at = stage.became(at) if stage.changed and at is not None else at
            if at is None:
                yield self._entry(k, "gone: nothing stands in its place", [])
                return
            entry = self._change(k, self._names(k - 1, (was,)), self._names(k, (at,)))  # type: ignore[arg-type]
            if entry:
                yield entry

    def _names(self, frame: int, nodes: Iterable[Expr]) -> list[str]:
        return [self.ids[frame][n] for n in nodes if n in self.ids[frame]]

    def _change(self, frame: int, before: list[str], after: list[str]) -> dict | None:
        """What a pass did to a node, in the words of the diff; None if it only passed by."""
        roles = self.roles(frame)
        words = []
        for name in after:
            node = roles[1].get(name)
            if node and node.role:
                words.append(f"{node.role}{': ' + node.note if node.note else ''}")
            if node and (kernel := self._kernel(frame, node.group)) and not self._kernel(frame - 1, self._group(frame - 1, name)):
                words.append(f"fused into {kernel}")
        if not words and before and before != after:
            words.append(f"now {', '.join(after)}" if after else "folded into what is around it")
        return self._entry(frame, "; ".join(words), after or before) if words else None

    def _group(self, frame: int, name: str) -> str:
        node = self.views[frame].node_by_id.get(name)
        return node.group if node else ""

    def _kernel(self, frame: int, group: str) -> str:
        """The fused kernel around a group, in words; empty if it is in none."""
        if frame not in self._kernels:
            self._kernels[frame] = kernel_words(self.views[frame])
        return self._kernels[frame].get(group, "")

    def _entry(self, frame: int, what: str, ids: list[str]) -> dict:
        name = self.pipeline.items[frame - 1].name if frame else "source"
        return {"frame": frame, "pass": name, "what": what, "ids": ids[:6]}

    def roles(self, frame: int) -> tuple[Mapping[str, viz.Node], Mapping[str, viz.Node]]:
        """The nodes before and after a pass, with their roles, by id."""
        known = self.__dict__.setdefault("_roles", {})
        if frame not in known:
            before, after = Roles(self.views[frame - 1], self.views[frame]).sides()
            known[frame] = before.node_by_id, after.node_by_id
        return known[frame]


class _Drafted(Sequence):
    """One table of all frames; looking at a frame drafts what is not there yet."""

    def __init__(self, frames: Frames, table: list):
        self._frames, self._table = frames, table

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, frame):  # type: ignore[no-untyped-def]
        if isinstance(frame, slice):
            return [self[k] for k in range(*frame.indices(len(self)))]
        at = frame + len(self) if frame < 0 else frame
        if not 0 <= at < len(self):
            raise IndexError(frame)
        if at >= len(self._table):
            self._frames._reach(at)
        return self._table[at]


def kernel_words(view: viz.View) -> dict[str, str]:
    """For every group the fused kernel around it, in words."""
    members: dict[str, list[str]] = {}
    for node in view.nodes:
        if node.operator:
            members.setdefault(node.group, []).append(node.title)
    words = {}
    for group in view.groups:
        found: viz.Group | None = group
        while found is not None and found.kind != "primitive":
            found = view.group_by_id.get(found.parent)
        if found is not None and (titles := members.get(found.id)):
            words[group.id] = f"one kernel: {', '.join(titles[:6])}{' …' if len(titles) > 6 else ''}"
    return words


def expressions(given: Mapping[Hashable, str]) -> dict[Expr, str]:
    """The program nodes among the keys of a picture; of parts of a node (`(node, slot)`) the node, if it has no box itself."""
    found = {key: name for key, name in given.items() if isinstance(key, Expr)}
    for key, name in given.items():
        while isinstance(key, tuple):
            key = key[0] if isinstance(key[0], (Expr, tuple)) else key[1]
        if isinstance(key, Expr):
            found.setdefault(key, name)
    return found
