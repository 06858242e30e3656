"""A pipeline run with every step kept: what each pass did in numbers, in pictures, in one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from relaylab import relay, viz
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.study.checking import Check, check
from relaylab.study.crash import Crash, crash_of
from relaylab.study.pipeline import Pipeline, operators, passes_of
from relaylab.study.program import Loadable, Program, load
from relaylab.support.checked import checked
from relaylab.transform import BindParams, History, InferType, PassContext, Stage


@dataclass(frozen=True)
class Row:
    """What one pass did, in numbers: the time it took and the operators that came and went."""

    name: str
    changed: bool
    seconds: float
    delta: dict[str, int]
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"{self.name:<28}{self.seconds * 1e3:9.1f} ms  stopped here: {self.error}"
        changes = "  ".join(f"{n:+d} {name}" for name, n in self.delta.items())
        return f"{self.name:<28}{self.seconds * 1e3:9.1f} ms  {changes or ('changed' if self.changed else '·')}"


class Exploration:
    """A program, its pipeline and the history of it as it was at first; the pipeline may be edited later."""

    def __init__(self, program: Program, pipeline: Pipeline):
        self.program, self.pipeline, self.history = program, pipeline, pipeline.history

    def __str__(self) -> str:
        return "\n".join(map(str, self.rows)) or "no pass"

    __repr__ = __str__

    @property
    def opt_level(self) -> int:
        """The optimization level of the pipeline."""
        return self.pipeline.opt_level

    @cached_property
    def rows(self) -> list[Row]:
        """One row per pass run; type inference only where it found something."""
        return [
            self._row(stage)
            for stage in self.history
            if not stage.skipped and (stage.changed or stage.name != "InferType")
        ]

    @cached_property
    def crash(self) -> Crash | None:
        """The pass that stopped the pipeline; None if every pass came to its end."""
        return crash_of(self.history)

    def _row(self, stage: Stage) -> Row:
        delta: dict[str, int] = {}
        if stage.changed:
            before, after = operators(stage.before), operators(stage.result)
            delta = {name: after[name] - before[name] for name in sorted(before | after) if after[name] != before[name]}
        error = self.crash.message.split("\n")[0] if self.crash is not None and stage is self.crash.stage else ""
        return Row(stage.name, stage.changed, stage.seconds, delta, error)

    @property
    def changes(self) -> list[Stage]:
        """The stages that changed the program (not only its types)."""
        return [stage for stage in self.history if stage.changed and stage.name != "InferType"]

    @cached_property
    def views(self) -> list[viz.View]:
        """The program at the start and after each pass that changed it; what stands for a node keeps its id."""
        identities = viz.Identities()
        views = [viz.view(self.history.source, identities=identities, title=f"{self.program.name}: as built")]
        for stage in self.changes:
            identities.follow(stage)
            views.append(viz.view(stage.result, identities=identities, title=stage.name))
        return views

    @cached_property
    def differences(self) -> list[viz.Difference]:
        """What each pass that changed the program did to it."""
        pairs = zip(self.changes, self.views, self.views[1:])
        return [
            viz.Difference(before, after, "compared by provenance", (str(s.before), str(s.result)))
            for s, before, after in pairs
        ]

    @cached_property
    def pictures(self) -> list[viz.Picture]:
        """The program at the start, the difference that each pass made, and the program at the end."""
        start = viz.Picture(self.views[0])
        end = (
            viz.show(replace(self.views[-1], title="after all passes"), seed=start.scene.seed)
            if self.differences
            else None
        )
        return [start, *(d.picture for d in self.differences), *([end] if end is not None else [])]

    def save(self, path: str | Path, paper: str = "fit") -> Path:
        """Write every stage as the pages of one PDF or one self-contained HTML page (by the suffix).

        `paper` (fit, a4, letter) is that of a PDF.
        """
        return viz.save(self.pictures, path, doc_title=self.program.name, paper=paper)

    def build(self, **options: Any) -> GraphExecutorFactoryModule:
        """Compile the program as it was before the pipeline, at the same level."""
        with PassContext(opt_level=self.opt_level):
            return relay.build(
                self.program.mod, target=options.pop("target", "llvm"), params=dict(self.program.params), **options
            )

    def check(self, seed: int = 0) -> Check:
        """Compare compiled code with the interpreter on seeded input, on the program's small form if it has one."""
        mod, params = (
            self.program.small() if self.program.small is not None else (self.program.mod, self.program.params)
        )
        return check(mod, params, self.opt_level, seed)

    def to_dict(self) -> dict[str, Any]:
        """The rows as plain data, for `--json`."""
        rows = [
            {"pass": r.name, "changed": r.changed, "ms": r.seconds * 1e3, "delta": r.delta, "error": r.error}
            for r in self.rows
        ]
        return {"program": self.program.name, "opt_level": self.opt_level, "passes": rows}


def explore(
    what: Loadable, opt_level: int = 3, passes: str | Iterable[Any] | None = None, verify: bool = True
) -> Exploration:
    """Run the default pipeline (or `passes`, also as text: `A,B(x=1)`, `default-A`) over a program with its parameters
    bound, keeping every step.

    With `verify` the run ends at a pass that leaves a program whose scopes, free variables or types are wrong.
    """
    program = load(what)
    if program.mod["main"].inferred is None:
        program = replace(program, mod=InferType()(program.mod))
    mod = BindParams(program.params)(program.mod) if program.params else program.mod
    return Exploration(program, Pipeline(InferType()(mod), passes_of(passes, opt_level), opt_level, verify))


@checked
def rule_hits(history: History) -> dict[str, int]:
    """How often each rewrite rule fired, with the line of its source, most often first."""
    return dict(Counter(f"{step.rule}  {step.location}" for _, step in history.steps()).most_common())


@checked
def stage_diff(history: History) -> viz.Difference:
    """What the pipeline changed from its first program to its last, as a picture."""
    return viz.diff(history.source, history.mod, history)
