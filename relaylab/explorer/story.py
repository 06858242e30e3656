"""The life of a node: what each pass did to it, what stands for it in other frames, the kernel that it ended up in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypedDict

from relaylab import viz
from relaylab.explorer.frames import Frames
from relaylab.ir import Call, Expr, Function
from relaylab.study.pipeline import Segment

Chapter = TypedDict("Chapter", {"frame": int, "pass": str, "what": str, "ids": list[str]})
"""What one pass did to a node; of frame 0 what the program was built with."""
MOST = 6
"""Ids and titles that are listed."""


def became(segment: Segment, node: Expr | None) -> Expr | None:
    """What stands in the place of a node after a pass; None if nothing does."""
    for stage in segment.stages:
        node = stage.became(node) if stage.changed and node is not None else node
    return node


def makers(segment: Segment, nodes: Iterable[Expr]) -> tuple[Expr, ...]:
    """What nodes after a pass were made from."""
    at = tuple(nodes)
    for stage in reversed(segment.stages):
        at = tuple(dict.fromkeys(p for n in at for p in stage.parents(n))) if stage.changed else at
    return at


class Story:
    """The lives of the nodes of some frames."""

    def __init__(self, frames: Frames):
        self.frames = frames
        self._kernels: dict[int, dict[str, str]] = {}

    def of(self, frame: int, name: str) -> list[Chapter]:
        """What happened to a node: an entry for each pass that touched it, before and after `frame`."""
        start = self.frames.nodes[frame].get(name)
        if start is None:
            return []
        return [*reversed(list(self._backward(frame, start, name))), *self._forward(frame, start)]

    def counterparts(self, frame: int, name: str, other: int) -> list[str]:
        """What stands for a node, or what it was made from, in another frame."""
        start = self.frames.nodes[frame].get(name)
        at: tuple[Expr, ...] = (start,) if start is not None else ()
        for k in range(frame + 1, other + 1):
            at = tuple(dict.fromkeys(n for n in (self._after(k, n) for n in at) if n is not None))
        for k in range(frame, other, -1):
            at = tuple(dict.fromkeys((*self._itself(k, at), *makers(self.frames.pipeline.segments[k - 1], at))))
        return list(dict.fromkeys(self._names(other, at)))

    def fused(self, frame: int, name: str) -> Function | None:
        """The fused function of the last frame that a node ended up in."""
        at: Expr | None = self.frames.nodes[frame].get(name)
        for k in range(frame + 1, len(self.frames)):
            at = self._after(k, at) if at is not None else None
        if isinstance(at, Call) and isinstance(at.op, Function) and at.op.is_primitive:
            return at.op  # a kernel of one operator stands in its place
        view, last = self.frames.views[-1], frame == len(self.frames) - 1
        found = self.frames.ids[-1].get(at, name if last else "") if at is not None else name
        home = view.node_by_id[found].group if found in view.node_by_id else found
        kernel = view.kernel_around(home)
        expr = self.frames.nodes[-1].get(kernel.id) if kernel is not None else None
        return expr if isinstance(expr, Function) else None

    # -- from frame to frame --------------------------------------------------------------------------

    def _after(self, frame: int, node: Expr) -> Expr | None:
        """What a node of the frame before is in a frame: what has its id there, or else stands in its place."""
        same = self.frames.nodes[frame].get(self.frames.ids[frame - 1].get(node, ""))
        return became(self.frames.pipeline.segments[frame - 1], node) if same is None else same

    def _itself(self, frame: int, nodes: Iterable[Expr]) -> tuple[Expr, ...]:
        """What nodes of a frame were in the frame before, if they have been there, by their ids."""
        known = self.frames.nodes[frame - 1]
        return tuple(known[name] for name in self._names(frame, nodes) if name in known)

    # -- chapters -------------------------------------------------------------------------------------

    def _backward(self, frame: int, start: Expr, name: str) -> Iterator[Chapter]:
        at: tuple[Expr, ...] = (start,)
        for k in range(frame, 0, -1):
            segment = self.frames.pipeline.segments[k - 1]
            if not segment.changed:
                continue
            now, at = at, self._itself(k, at) or makers(segment, at)  # what was merged into it has a life of its own
            if not at or (self._added(k, now) and not self._names(k - 1, at)):
                yield self._chapter(k, "made here", self._names(k, now))
                return
            yield from self._change(k, self._names(k - 1, at), self._names(k, now))
        yield self._chapter(0, "in the program as it was built", self._names(0, at) or [name])

    def _added(self, frame: int, nodes: Iterable[Expr]) -> bool:
        drawn = self.frames.roles(frame)[1]
        return any(name in drawn and drawn[name].role == "added" for name in self._names(frame, nodes))

    def _forward(self, frame: int, start: Expr) -> Iterator[Chapter]:
        at = start
        for k in range(frame + 1, len(self.frames)):
            segment = self.frames.pipeline.segments[k - 1]
            if not segment.changed:
                continue
            was, now = at, self._after(k, at)
            if now is None:
                yield self._chapter(k, "gone: nothing stands in its place", [])
                return
            at = now
            yield from self._change(k, self._names(k - 1, (was,)), self._names(k, (at,)))

    def _names(self, frame: int, nodes: Iterable[Expr]) -> list[str]:
        ids = self.frames.ids[frame]
        return [ids[n] for n in nodes if n in ids]

    def _change(self, frame: int, before: list[str], after: list[str]) -> Iterator[Chapter]:
        """What a pass did to a node, in the words of the diff; nothing if it only passed by."""
        roles = self.frames.roles(frame)
        words: list[str] = []
        for name in after:
            node = roles[1].get(name)
            if node and node.role:
                words.append(f"{node.role}{': ' + node.note if node.note else ''}")
            kernel = self._kernel(frame, node.group) if node else ""
            if kernel and not self._kernel(frame - 1, self._group(frame - 1, name)):
                words.append(f"fused into {kernel}")
        if not words and before and before != after:
            words.append(f"now {', '.join(after)}" if after else "folded into what is around it")
        if words:
            yield self._chapter(frame, "; ".join(words), after or before)

    def _group(self, frame: int, name: str) -> str:
        node = self.frames.views[frame].node_by_id.get(name)
        return node.group if node else ""

    def _kernel(self, frame: int, group: str) -> str:
        """The fused kernel around a group, in words; empty if it is in none."""
        if frame not in self._kernels:
            self._kernels[frame] = kernel_words(self.frames.views[frame])
        return self._kernels[frame].get(group, "")

    def _chapter(self, frame: int, what: str, ids: list[str]) -> Chapter:
        name = self.frames.pipeline.items[frame - 1].name if frame else "source"
        return {"frame": frame, "pass": name, "what": what, "ids": ids[:MOST]}


def kernel_words(view: viz.View) -> dict[str, str]:
    """For every group the fused kernel around it, in words."""
    members: dict[str, list[str]] = {}
    for node in view.nodes:
        if node.operator:
            members.setdefault(node.group, []).append(node.title)
    words: dict[str, str] = {}
    for group in view.groups:
        found = view.kernel_around(group.id)
        if found is not None and (titles := members.get(found.id)):
            words[group.id] = f"one kernel: {', '.join(titles[:MOST])}{' …' if len(titles) > MOST else ''}"
    return words
