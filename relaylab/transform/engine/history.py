"""The history of a pipeline: every stage with its programs and its trail, so that any node can be followed.

`became` follows a node forward (what stands in its place later), `parents` backward (what it was
made from), over any number of stages. Nothing here is guessed: the trails were kept by the
rewriting kernel and the rule engine while the passes ran. A node that a hand-written pass built
without saying from what counts as made from what the node around it was made from.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from relaylab.ir import Expr, GlobalVar, IRModule, Op, children, walk
from relaylab.ir.trail import Step, Trail, kept_trail, recording
from relaylab.transform.engine.info import PassInfo

if TYPE_CHECKING:
    from relaylab.transform.engine.manager import Pass


def nodes_of(mod: IRModule) -> list[Expr]:
    """Every node of a module, once each, sub-expressions first."""
    return list(walk(mod.functions.values()))


def absorb(outer: Trail, inner: Trail) -> None:
    """Continue `outer` with what a nested run recorded."""
    # what a pass ran inside itself is part of what it did
    outer.became.update(inner.became)
    for new, olds in inner.parents.items():
        outer.derive(new, olds)
    outer.steps.extend(inner.steps)


class Tracker:
    """Answers for one stage: which nodes are old and new, and how they correspond."""

    def __init__(self, before: IRModule, after: IRModule, trail: Trail):
        self.before, self.after, self.trail = before, after, trail
        self._origins: dict[Expr, tuple[Expr, ...]] = {}

    @cached_property
    def old(self) -> frozenset[Expr]:
        return frozenset(nodes_of(self.before))

    @cached_property
    def new(self) -> frozenset[Expr]:
        return frozenset(nodes_of(self.after))

    @cached_property
    def parents(self) -> dict[Expr, tuple[Expr, ...]]:
        """What each node was made from: recorded, or inherited from the node that uses it."""
        known = {node: tuple(olds) for node, olds in self.trail.parents.items() if olds}
        for gv, func in self.after.functions.items():
            if func not in known and func not in self.old:
                known[func] = (self.before.functions.get(gv) or next(iter(self.before.functions.values()), func),)
        stack = list(reversed(known))
        while stack:
            node = stack.pop()
            for child in children(node):
                if child not in self.old and child not in known and not _is_name(child):
                    known[child] = known[node]
                    stack.append(child)
        return known

    def forward(self, node: Expr) -> Expr | None:
        """What stands in the place of an old node after the stage; None if nothing does."""
        met: set[Expr] = set()
        at: Expr | None = node
        while at is not None and at not in self.new:
            met.add(at)
            at = self.trail.became.get(at)
            # one rule may undo another: then the trail goes in a circle
            if at in met:
                return None
        return at

    def backward(self, node: Expr) -> tuple[Expr, ...]:
        """The nodes of the program before the stage that a node of the one after it was made from."""
        if node in self.old:
            return (node,)
        if node not in self._origins:
            self._origins[node] = self._search(node)
        return self._origins[node]

    def _search(self, node: Expr) -> tuple[Expr, ...]:
        found: dict[Expr, None] = {}
        met, stack = {node}, [node]
        while stack:
            for parent in self.parents.get(stack.pop(), ()):
                if parent in self.old:
                    found[parent] = None
                elif parent not in met:
                    met.add(parent)
                    stack.append(parent)
        return tuple(found)


@dataclass(eq=False)
class Stage:
    """One pass run: the pass, the module before and after, the trail, the time, and the runs inside it."""

    made: Pass
    before: IRModule
    after: IRModule | None = None
    trail: Trail = field(default_factory=Trail)
    seconds: float = 0.0
    nested: list[Stage] = field(default_factory=list)
    error: BaseException | None = None
    skipped: str = ""

    @property
    def info(self) -> PassInfo:
        return self.made.info

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def changed(self) -> bool:
        """Whether the pass returned another module than it was given."""
        return self.after is not None and self.after is not self.before

    @property
    def result(self) -> IRModule:
        """The module after the pass, or the one before it if the pass raised."""
        return self.after if self.after is not None else self.before

    @property
    def steps(self) -> list[Step]:
        """The rewrites that fired, in order."""
        return self.trail.steps

    @cached_property
    def tracker(self) -> Tracker:
        return Tracker(self.before, self.result, self.trail)

    def became(self, node: Expr) -> Expr | None:
        """What stands in the place of a node of `before`; None if nothing does."""
        return self.tracker.forward(node)

    def parents(self, node: Expr) -> tuple[Expr, ...]:
        """The nodes of `before` that a node of `after` was made from (itself if it was there already)."""
        return self.tracker.backward(node)

    def unaccounted(self) -> list[Expr]:
        """New nodes of which nobody knows where they come from; empty unless a pass hides its work."""
        return [n for n in self.tracker.new if n not in self.tracker.old and not _is_name(n) and not self.parents(n)]

    def __repr__(self) -> str:
        state = self.skipped or ("raised" if self.error else "changed" if self.changed else "unchanged")
        return f"Stage({self.name}, {state}, {self.seconds * 1e3:.1f} ms)"


def _is_name(node: Expr) -> bool:
    return isinstance(node, (Op, GlobalVar))


class History(Sequence[Stage]):
    """The stages of a pipeline run, in order; `error` holds what stopped it, if anything did."""

    def __init__(self, mod: IRModule, stages: Iterable[Stage] = ()):
        self.source = mod
        self.stages: list[Stage] = list(stages)
        self.error: BaseException | None = None

    @property
    def mod(self) -> IRModule:
        """The module after the last stage that did not raise."""
        return self.stages[-1].result if self.stages else self.source

    @property
    def modules(self) -> list[IRModule]:
        """The program before the first stage and after each."""
        return [self.source, *(s.result for s in self.stages)]

    def became(self, node: Expr, start: int = 0, stop: int | None = None) -> Expr | None:
        """What stands before stage `stop` (default: at the end) in the place of a node from before stage `start`."""
        at: Expr | None = node
        for stage in self.stages[start:stop]:
            if at is None or stage.skipped:
                continue
            at = stage.became(at)
        return at

    def parents(self, node: Expr, start: int = 0, stop: int | None = None) -> tuple[Expr, ...]:
        """The nodes before stage `start` that a node from before stage `stop` (default: the end) was made from."""
        at: tuple[Expr, ...] = (node,)
        for stage in reversed(self.stages[start:stop]):
            if not stage.skipped:
                at = tuple(dict.fromkeys(p for n in at for p in stage.parents(n)))
        return at

    origins = parents

    def steps(self) -> list[tuple[Stage, Step]]:
        """Every rewrite that fired, with its stage."""
        return [(stage, step) for stage in self.stages for step in stage.steps]

    def __getitem__(self, index):
        if isinstance(index, str):
            return next(s for s in self.stages if s.name == index)
        return self.stages[index]

    def __len__(self) -> int:
        return len(self.stages)

    def __repr__(self) -> str:
        return "History(\n" + "".join(f"  {s!r}\n" for s in self.stages) + ")"


_collecting: ContextVar[list[Stage] | None] = ContextVar("relaylab_stages", default=None)


def note(stage: Stage) -> Stage:
    """Add a stage to the history that is being collected, if one is."""
    stages = _collecting.get()
    if stages is not None:
        stages.append(stage)
    return stage


@contextmanager
def collecting(history: History) -> Iterator[History]:
    """Every pass that the block runs becomes a stage of `history`; an error is noted there and goes on."""
    token = _collecting.set(history.stages)
    try:
        yield history
    except BaseException as error:
        history.error = error
        raise
    finally:
        _collecting.reset(token)


@contextmanager
def staged(made: Pass, mod: IRModule) -> Iterator[Stage]:
    """Keep the trail, the time and the nested runs of one pass run; the block sets `stage.after`."""
    outer, keep = kept_trail(), _collecting.get() is not None
    stage = Stage(made, mod, trail=Trail(made.info.name, keep or outer is not None))
    note(stage)
    # runs inside belong to this stage; without a history nobody would read them
    token = _collecting.set(stage.nested if keep else None)
    start = time.perf_counter()
    try:
        with recording(stage.trail):
            yield stage
    except BaseException as error:
        stage.error = error
        raise
    finally:
        stage.seconds = time.perf_counter() - start
        _collecting.reset(token)
        if outer is not None:
            absorb(outer, stage.trail)
