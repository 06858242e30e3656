"""What a pass costs and what it brings: times with intervals, of runs that take turns.

Of n runs the median is told, and the interval between two of them in which the median of all runs lies with probability
95 % (order statistics; Conover, Practical Nonparametric Statistics, 3.2). Programs that are compared take turns, so a
machine that is slow for a while is slow for all of them, and what is held against zero are differences of one turn.

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from relaylab.ir import IRModule
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.peaks import machine_peaks
from relaylab.runtime.roofline import threads_of
from relaylab.study.exploration import Exploration, explore
from relaylab.study.kernels import Kernels
from relaylab.study.pipeline import Pipeline
from relaylab.study.program import Loadable
from relaylab.study.running import seeded
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import Pass, PassContext, run_pipeline

RUNS = 15


@dataclass(frozen=True)
class Interval:
    """The median of some samples, and where the median of all lies with a probability of 95 %."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{figure(self.median)} [{figure(self.low)}, {figure(self.high)}]"


def figure(value: float) -> str:
    """A measured number as people read it: three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def interval(samples: Sequence[float]) -> Interval:
    """The interval of the median of some samples; of fewer than six the smallest and the largest.

    Raises RelayValueError `measure.runs` for no sample.
    """
    if not samples:
        raise RelayValueError("at least one run is measured, not 0", code="measure.runs")
    ordered, half = sorted(samples), 1.96 * math.sqrt(len(samples)) / 2
    low = max(0, math.floor(len(ordered) / 2 - half) - 1)
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + half))
    return Interval(statistics.median(ordered), ordered[low], ordered[high])


def library(mod: IRModule) -> GraphExecutorFactoryModule | None:
    """The compiled form of a fused program; None for one that is not compiled as it is."""
    try:
        return Kernels(mod).library
    except RelayError:
        return None


@checked
def race(libraries: Sequence[GraphExecutorFactoryModule], runs: int = RUNS) -> list[list[float]]:
    """Measured microseconds of whole runs on seeded inputs, one list for each library; the libraries run in turn.

    Raises RelayValueError `measure.runs` for no run.
    """
    if runs < 1:
        raise RelayValueError(f"at least one run is measured, not {runs}", code="measure.runs")
    modules = [seeded(lib) for lib in libraries]
    times: list[list[float]] = [[] for _ in modules]
    for turn in range(runs + 1):
        for module, spent in zip(modules, times):
            start = time.perf_counter_ns()
            module.run()
            if turn:  # the first run fills caches
                spent.append((time.perf_counter_ns() - start) / 1e3)
    return times


@checked
def predicted(lib: GraphExecutorFactoryModule) -> float:
    """The microseconds of the steps of a library by the roofline of this machine, which is measured at first use.

    The roof is that of memory: a small program whose tensors stay in caches can be faster.
    """
    plan, threads = lib.executable.plan, machine_peaks().threads
    return sum(machine_peaks(threads_of(s, threads)).seconds(s.flops, s.bytes) for s in plan.steps) * 1e6


# ---- every pass of a pipeline


@dataclass(frozen=True)
class Worth:
    """A pass: the milliseconds that it takes, and the microseconds by which a run is longer without it.

    `saves` is None where the program does not compile without the pass, or compiles to the same kernels.
    """

    name: str
    takes: Interval
    saves: Interval | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """What the interval says: "faster" or "slower" with the pass, or nothing that is certain."""
        if self.saves is None:
            return self.note
        return "faster" if self.saves.low > 0 else "slower" if self.saves.high < 0 else "no certain difference"

    def __str__(self) -> str:
        saves = "" if self.saves is None else str(self.saves)
        return f"{self.name:<28}{self.takes!s:<26}{saves:<32}{self.verdict}".rstrip()


@dataclass(frozen=True)
class Worths:
    """What each pass that changes the program is worth; `whole`: the microseconds of a run with all of them."""

    whole: Interval
    rows: tuple[Worth, ...]
    runs: int

    def __str__(self) -> str:
        head = f"{'pass':<28}{'takes, ms':<26}{'a run without it is longer, µs':<32}"
        return "\n".join(
            [
                head.rstrip(),
                *map(str, self.rows),
                f"a run with all passes: {self.whole} µs (medians of {self.runs} runs, 95 % intervals)",
            ]
        )

    __repr__ = __str__


def worth(
    what: Loadable | Exploration, opt_level: int = 3, passes: str | Iterable[Any] | None = None, runs: int = RUNS
) -> Worths:
    """What each pass of a pipeline costs and brings: its own time, and how much slower the program is without it.

    The program is compiled once with all passes and once without each pass that changes it; all of them run in turn.
    Raises `RelayError` if the whole pipeline gives nothing that compiles.
    """
    pipeline = (what if isinstance(what, Exploration) else explore(what, opt_level, passes)).pipeline
    end = Kernels(pipeline.modules[-1]).library
    changing = [
        k
        for k, (item, s) in enumerate(zip(pipeline.items, pipeline.segments))
        if s.changed and item.name != "InferType"
    ]
    others = {k: _without(pipeline, k, end) for k in changing}
    runners = {k: lib for k, lib in others.items() if not isinstance(lib, str)}
    whole, *rest = race([end, *runners.values()], runs)
    longer = {k: interval([b - a for a, b in zip(whole, spent)]) for k, spent in zip(runners, rest)}
    rows = [
        Worth(
            pipeline.items[k].name, _takes(pipeline, k, runs), longer.get(k), str(others[k]) if k not in longer else ""
        )
        for k in changing
    ]
    return Worths(interval(whole), tuple(rows), runs)


def _without(pipeline: Pipeline, index: int, end: GraphExecutorFactoryModule) -> GraphExecutorFactoryModule | str:
    """The program compiled without a pass, or in words why there is no such program."""
    other = pipeline.branch()
    other.toggle(index)
    if other.history.error is not None:
        return "the others need it"
    made = library(other.modules[-1])
    if made is None:
        return "nothing compiles without it"
    return (
        made
        if made.kernels() != end.kernels() or other.modules[-1] is not pipeline.modules[-1]
        else "the same without it"
    )


def _takes(pipeline: Pipeline, index: int, runs: int) -> Interval:
    segment, made = pipeline.segments[index], pipeline.items[index].made
    return interval([_once(segment.before, made, pipeline.opt_level) for _ in range(min(runs, 7))])


def _once(mod: IRModule, made: Pass, opt_level: int) -> float:
    start = time.perf_counter()
    run_pipeline(mod, [made], PassContext(opt_level=opt_level))
    return (time.perf_counter() - start) * 1e3
