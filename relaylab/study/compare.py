"""Two pipelines over one program, compared: in figures, and any stage of one with any stage of the other.

A node of one branch is followed back to the last program that both branches have in common, and from there
to what became of it in the other.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaylab import viz
from relaylab.analysis.cost import costs
from relaylab.interp import Interpreter, random_inputs
from relaylab.interp.agreement import relative_error
from relaylab.ir import Expr, IRModule
from relaylab.ir.types import is_dynamic
from relaylab.study.checking import comparable
from relaylab.study.exploration import explore
from relaylab.study.measure import RUNS, Interval, figure, interval, library, predicted, race
from relaylab.study.pipeline import DEFAULT, Pipeline, operators, passes_of
from relaylab.study.program import Loadable, Program, load
from relaylab.study.stage_text import Constants, printed
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import BindParams, History, InferType, Pass, Stage
from relaylab.transform.engine.history import nodes_of

FIGURES = (("IR text", "chars"), ("operator calls", ""), ("MACs", ""), ("bytes moved", "B"))
UNITS = {"time of the passes": "ms", **dict(FIGURES)}
WIDE = 17
Passes = Pipeline | str | Iterable[Pass | str] | None


@dataclass(frozen=True)
class Quantity:
    """One figure of both pipelines; None where it cannot be had. Measured ones have the interval of each median."""

    name: str
    unit: str
    a: float | None
    b: float | None
    spread: tuple[Interval | None, Interval | None] = (None, None)

    @property
    def change(self) -> float | None:
        """By which share of A's figure B's is larger; None where that is no number."""
        share = (self.b - self.a) / self.a if self.a and self.b is not None else math.inf
        return share if math.isfinite(share) else None

    def __str__(self) -> str:
        change = f"{self.change:+.1%}" if self.change else ""
        within = " and ".join(f"{figure(i.low)} to {figure(i.high)}" for i in self.spread if i)
        a, b = (f"{_number(x):>{WIDE + 1}}" for x in (self.a, self.b))
        return f"{self.name:<22}{a}{b}  {self.unit:<5} {change:<9}{within}".rstrip()


def headed(a: str, b: str) -> str:
    """The line above quantities: what stands in the two columns."""
    return f"{'':<22}{a:>{WIDE + 1}}{b:>{WIDE + 1}}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.4g}"


class Crossing:
    """How nodes of one branch correspond to those of another; `parents` and `became` as a `Stage` has them."""

    def __init__(self, a: Pipeline, b: Pipeline, at_a: int, at_b: int):
        mods, others = a.modules[: at_a + 1], b.modules[: at_b + 1]
        base = next((m for m in reversed(mods) if any(m is o for o in others)), a.source)
        self.up = History(base, _stages(a, base, at_a))
        self.down = History(base, _stages(b, base, at_b))
        self.end = mods[at_a]

    @cached_property
    def _made(self) -> dict[Expr, list[Expr]]:
        """The nodes of A that were made from each common node."""
        made: dict[Expr, list[Expr]] = {}
        for node in nodes_of(self.end):
            for maker in self.up.parents(node):
                made.setdefault(maker, []).append(node)
        return made

    def parents(self, node: Expr) -> tuple[Expr, ...]:
        """The nodes of A that a node of B has its origins in common with, those that stand in their place first."""
        makers = self.down.parents(node)
        found = [*map(self.up.became, makers), *(n for m in makers for n in self._made.get(m, ()))]
        return tuple(dict.fromkeys(n for n in found if n is not None))

    def became(self, node: Expr) -> Expr | None:
        """What stands in B where a node stands in A."""
        same = next((m for m in self.up.parents(node) if self.up.became(m) is node), None)
        return self.down.became(same) if same is not None else None


def _stages(pipeline: Pipeline, base: IRModule, frame: int) -> list[Stage]:
    start = (
        max(k for k, m in enumerate(pipeline.modules[: frame + 1]) if m is base) if base is not pipeline.source else 0
    )
    return [s for segment in pipeline.segments[start:frame] for s in segment.stages if s.changed]


class Comparison:
    """Pipeline A against pipeline B. `small` is what is interpreted to measure errors (default: the program itself)."""

    def __init__(self, a: Pipeline, b: Pipeline, names: tuple[str, str] = ("A", "B"), small: IRModule | None = None):
        if a.source is not b.source:
            raise RelayValueError("the two pipelines run over different programs", code="compare.programs")
        self.a, self.b, self.names = a, b, names
        self.small = a.source if small is None else small

    def difference(self, at_a: int | None = None, at_b: int | None = None, **options: Any) -> viz.Difference:
        """What differs between a stage of A and a stage of B (default: their ends); options as for `viz.diff`."""
        at_a, at_b = _frame(self.a, at_a), _frame(self.b, at_b)
        crossing = Crossing(self.a, self.b, at_a, at_b)
        return viz.diff(self.a.modules[at_a], self.b.modules[at_b], crossing, **options)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The figures of both ends: passes, their time, text, operators, kernels, work, traffic, numeric error."""
        a = self._figures(self.a)
        b = a if self.b is self.a else self._figures(self.b)
        return [Quantity(name, UNITS.get(name, ""), a[name], b[name]) for name in a]

    def _figures(self, pipeline: Pipeline) -> dict[str, float | None]:
        return {
            "passes": float(sum(i.enabled for i in pipeline.items)),
            "time of the passes": sum(s.seconds for s in pipeline.segments) * 1e3,
            **_known_figures(pipeline.modules[-1]),
            "numeric error": self._error(pipeline),
        }

    def times(self, runs: int = RUNS) -> Quantity:
        """The measured time of a run of both ends (median, 95 % interval); None for one that does not compile."""
        return self.measured(runs)[1]

    def measured(self, runs: int = RUNS) -> list[Quantity]:
        """What the roofline predicts and what is measured at both ends; how much longer B runs than A in one turn."""
        ends = [library(p.modules[-1]) for p in (self.a, self.b)]
        taken = iter(race([lib for lib in ends if lib is not None], runs))
        samples = [next(taken) if lib is not None else None for lib in ends]
        least = [predicted(lib) if lib is not None else None for lib in ends]
        found = [interval(s) if s else None for s in samples]
        middle = [i.median if i else None for i in found]
        rows = [
            Quantity("roofline predicts", "µs", least[0], least[1]),
            Quantity("measured time", "µs", middle[0], middle[1], (found[0], found[1])),
        ]
        if samples[0] and samples[1]:
            apart = interval([b - a for a, b in zip(*samples)])
            rows.append(Quantity("B longer than A by", "µs", None, apart.median, (None, apart)))
        return rows

    @cached_property
    def operators(self) -> list[Quantity]:
        """How often each operator is called at both ends, where that differs."""
        a, b = (operators(p.modules[-1]) for p in (self.a, self.b))
        return [Quantity(n, "", float(a[n]), float(b[n])) for n in sorted(a | b) if a[n] != b[n]]

    def _error(self, pipeline: Pipeline) -> float | None:
        if self.small is not pipeline.source:
            copy = Pipeline(self.small, (), pipeline.opt_level)
            copy.items = list(pipeline.items)
            pipeline = copy
        try:
            pairs = zip(_outputs(pipeline.modules[-1]), self._wanted, strict=True)
            return max((relative_error(got, wanted) for got, wanted in pairs), default=0.0)
        except (RelayError, ValueError):
            return None

    @cached_property
    def _wanted(self) -> list[Any]:
        """What the program gives before all passes."""
        return _outputs(self.small)

    def __str__(self) -> str:
        operators = ["", *map(str, self.operators)] if self.operators else []
        return "\n".join([headed(*self.names), *map(str, self.quantities), *operators])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {**self.difference()._repr_mimebundle_(), "text/plain": str(self)}


def _frame(pipeline: Pipeline, frame: int | None) -> int:
    last = len(pipeline.items)
    at = last if frame is None else frame + last + 1 if frame < 0 else frame
    if not 0 <= at <= last:
        raise RelayValueError(f"there is no stage {frame}; there are 0 to {last}", code="compare.stage")
    return at


def end_figures(mod: IRModule) -> dict[str, float]:
    """The figures of a program, by the names of `FIGURES`."""
    macs, moved = _cost(mod)
    calls = float(sum(operators(mod).values()))
    return {
        "IR text": float(len(printed(mod, Constants()).text)),
        "operator calls": calls,
        "MACs": macs,
        "bytes moved": moved,
    }


def _known_figures(mod: IRModule) -> dict[str, float | None]:
    """These, without the work and the traffic of a program that leaves sizes open: nobody knows them."""
    declared = [p.inferred or p.type_annotation for f in mod.functions.values() for p in f.params]
    known = not any(t is not None and is_dynamic(t) for t in declared)
    hidden = () if known else ("MACs", "bytes moved")
    return {name: None if name in hidden else value for name, value in end_figures(mod).items()}


def end_quantities(a: IRModule, b: IRModule) -> list[Quantity]:
    """The figures of two programs beside each other."""
    first, second, units = _known_figures(a), _known_figures(b), dict(FIGURES)
    return [Quantity(name, units[name], value, second[name]) for name, value in first.items()]


def _cost(mod: IRModule) -> tuple[float, float]:
    if any(f.inferred is None for f in mod.functions.values()):
        mod = InferType()(mod)
    found = [c for f in mod.functions.values() for c in costs(f).values()]
    return float(sum(c.macs for c in found)), float(sum(c.bytes_read + c.bytes_written for c in found))


def _outputs(mod: IRModule) -> list[Any]:
    typed = InferType()(mod)
    return comparable(Interpreter(typed).evaluate()(*random_inputs(typed["main"], 0)))


def small_form(program: Program, otherwise: IRModule) -> IRModule:
    """What is interpreted in place of a program: the small form of a network of the zoo, or the program itself."""
    if program.small is None:
        return otherwise
    mod, params = program.small()
    return InferType()(BindParams(params)(InferType()(mod)))


@checked
def compare(what: Loadable, a: Passes = None, b: Passes = None, opt_level: int = 3) -> Comparison:
    """Run two pipelines over one program and compare them; each as passes, text `A,B(x=1)`, or None: the default one.

    The text `default-FuseOps-FastMath` is the default pipeline without these passes. Errors of a pass are raised.
    """
    program = load(what)
    first = a if isinstance(a, Pipeline) else explore(program, opt_level, passes_of(a, opt_level)).pipeline
    second = b if isinstance(b, Pipeline) else first.branch(passes_of(b, opt_level))
    for pipeline in (first, second):
        if pipeline.history.error is not None:
            raise pipeline.history.error
    return Comparison(first, second, (_label(a, "A"), _label(b, "B")), small_form(program, first.source))


def _label(what: Passes, otherwise: str) -> str:
    return what if isinstance(what, str) and len(what) <= WIDE else DEFAULT if what is None else otherwise
