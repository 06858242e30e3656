"""Which passes would change a program now: every pass is tried, in the time that is given."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaylab.ir import IRModule
from relaylab.study.pipeline import operators
from relaylab.support.checked import checked
from relaylab.transform import PASSES, History, Pass, PassContext, run_pipeline

UNASKED = ("AnnotateSpans", "CapturePostDfsIndexInSpans", "InferType", "PrintIR")
"""Passes that nobody would look for among those that change a program: they change types and places, or nothing."""
BUDGET = 5.0


@dataclass(frozen=True)
class Suggestion:
    """A pass that would change a program now, and what it would do to the number of operators."""

    name: str
    summary: str
    delta: dict[str, int]
    seconds: float

    def __str__(self) -> str:
        changes = "  ".join(f"{n:+d} {op}" for op, n in self.delta.items())
        return f"{self.name:<28}{self.seconds * 1e3:9.1f} ms  {changes or 'no operator comes or goes'}"


@dataclass(frozen=True)
class Suggestions(Sequence[Suggestion]):
    """The passes that would change a program, in the order of the table.

    `quiet` ones would not, `untried` had no time left.
    """

    found: tuple[Suggestion, ...]
    quiet: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        head = f"{len(self.found)} of {len(self.found) + len(self.quiet)} passes would change this program now:"
        late = [f"not tried, the time was up: {', '.join(self.untried)}"] if self.untried else []
        return "\n".join([head, *(f"  {s}" for s in self.found), *late])

    __repr__ = __str__


@checked
def suggestions(mod: IRModule, names: Sequence[str | Pass] | None = None, budget: float = BUDGET) -> Suggestions:
    """Which passes would change a program now; tried one by one until `budget` seconds are spent.

    `names` are registered passes or passes of one's own (default: all that are registered).
    A pass that raises is quiet.
    """
    end, before, tried = time.perf_counter() + budget, operators(mod), dict[str, Suggestion | None]()
    wanted = list(_passes(names))
    for name, summary, made in wanted:
        if time.perf_counter() > end:
            break
        begin = time.perf_counter()
        history = run_pipeline(mod, [made], PassContext(opt_level=4))
        changed = history.error is None and history.mod is not mod
        tried[name] = (
            Suggestion(name, summary, _delta(before, history), time.perf_counter() - begin) if changed else None
        )
    found = tuple(s for s in tried.values() if s is not None)
    quiet = tuple(n for n, s in tried.items() if s is None)
    return Suggestions(found, quiet, tuple(n for n, _, _ in wanted if n not in tried))


def _passes(names: Sequence[str | Pass] | None) -> Iterator[tuple[str, str, Pass]]:
    for name in PASSES if names is None else names:
        if isinstance(name, Pass):
            yield name.info.name, "", name
        elif name not in UNASKED:
            entry = PASSES.lookup(name)
            yield name, entry.summary, entry.make()


def _delta(before: dict[str, int], history: History) -> dict[str, int]:
    after = operators(history.mod)
    return {op: after[op] - before[op] for op in sorted({*before, *after}) if after[op] != before[op]}
