"""One cell of a sweep: what is built and measured, as texts and numbers, so that it can be sent anywhere."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from relaylab.codegen.build import parse_target
from relaylab.codegen.llvm.cache import digest
from relaylab.loop.schedule import Schedule
from relaylab.runtime.threads import checked as checked_threads
from relaylab.study.pipeline import item_of, passes_of
from relaylab.study.program import Loadable, load
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import BindParams, InferType, PassContext
from relaylab.zoo.catalog import NETWORKS

MEASURES = {
    "time": "microseconds of a run: median, and where the median of all runs lies (95 %)",
    "build": "seconds of passes and of compiling",
    "counts": "operator calls, kernels, multiply-adds, bytes moved",
    "memory": "bytes of the arena, of constants, of machine code",
    "error": "the largest difference from the interpreter over the largest result (slow)",
    "passes": "what each pass changed: operators that came and went",
}
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "time": ("time_us", "time_low_us", "time_high_us"),
    "build": ("passes_s", "compile_s"),
    "counts": ("operators", "kernels", "macs", "bytes_moved"),
    "memory": ("arena_bytes", "constant_bytes", "code_bytes"),
    "error": ("error",),
    "passes": (),
}
"""The numbers of each measure."""
DEFAULT_MEASURES = ("time", "build", "counts", "memory")
Option = bool | int | float | str


@dataclass(frozen=True, slots=True)
class SweepCell:
    """A program, how it is compiled, what is measured. Equal cells are equal values.

    `text` is the program as Relay text without the numbers of its constants, or empty for a network of the catalogue:
    what it takes does not depend on them, and a text can be sent to any machine. Workers draw them from a seed.
    """

    program: str
    text: str = ""
    pipeline: str = "default"
    target: str = "llvm"
    opt_level: int = 3
    threads: int = 1
    options: tuple[tuple[str, Option], ...] = ()
    schedules: tuple[tuple[str, str], ...] = ()
    measures: tuple[str, ...] = DEFAULT_MEASURES

    def json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @property
    def key(self) -> str:
        """A digest of all of it."""
        return digest("cell", self.json())

    @staticmethod
    def parse(text: str) -> SweepCell:
        """What `json` gave."""
        found = json.loads(text)
        pairs = {name: tuple(map(tuple, found.pop(name))) for name in ("options", "schedules")}
        return SweepCell(**found | pairs | {"measures": tuple(found["measures"])})

    @property
    def how(self) -> str:
        """What differs from building as usual, in words."""
        parts = [self.pipeline] if self.pipeline != "default" else []
        parts += [self.target] if self.target != "llvm" else []
        parts += [f"-O{self.opt_level}"] if self.opt_level != 3 else []
        parts += [f"{name}={value}" for name, value in self.options]
        parts += [f"{kernel}: {'; '.join(text.splitlines())}" for kernel, text in self.schedules]
        return ", ".join(parts) or "default"


@checked
def cells(
    programs: Iterable[Loadable],
    pipelines: Sequence[str] = ("default",),
    targets: Sequence[str] = ("llvm",),
    schedules: Sequence[Mapping[str, str | Schedule]] = ({},),
    options: Sequence[Mapping[str, Option]] = ({},),
    opt_levels: Sequence[int] = (3,),
    threads: Sequence[int] = (1,),
    measures: Sequence[str] = DEFAULT_MEASURES,
) -> list[SweepCell]:
    """Every combination, programs outermost. What is wrong in one of the lists is said before anything runs."""
    for name in measures:
        if name not in MEASURES:
            help = did_you_mean(name, MEASURES) or f"there are {', '.join(MEASURES)}"
            raise RelayValueError(f"`{name}` is not measured", code="sweep.measure", help=help)
    for level, table in itertools.product(opt_levels, options):
        PassContext(opt_level=level, config=dict(table))
    for pipeline, level in itertools.product(pipelines, opt_levels):
        for made in passes_of(pipeline, level):
            item_of(made)
    for target in targets:
        parse_target(target)
    for count in threads:
        checked_threads(count)
    tables = [tuple(sorted((k, str(Schedule.parse(str(s)))) for k, s in table.items())) for table in schedules]
    settings = [tuple(sorted(table.items())) for table in options]
    every = itertools.product(map(_named, programs), pipelines, targets, opt_levels, threads, settings, tables)
    return [
        SweepCell(name, text, pipeline, target, level, count, chosen, table, tuple(measures))
        for (name, text), pipeline, target, level, count, chosen, table in every
    ]


def _named(what: Loadable) -> tuple[str, str]:
    """A program's name, and its text if it is no network of the catalogue."""
    if isinstance(what, str) and what in NETWORKS:
        return what, ""
    program = load(what)
    mod = InferType()(program.mod)
    if program.params:
        mod = InferType()(BindParams(dict(program.params))(mod))
    return program.name, mod.astext(show_meta_data=False)
