"""A schedule tried on one kernel of a program: its loops step by step, its time beside that of the picked loops."""

from __future__ import annotations

import ctypes
import difflib
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, module_text
from relaylab.codegen.llvm.jit import compile_objects
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.codegen.vm_parts import CompiledParts
from relaylab.interp.agreement import relative_error
from relaylab.loop.parse import parse
from relaylab.loop.program import For, LoopProgram, Statement, inside, sizes_in
from relaylab.loop.run import prepare, run
from relaylab.loop.schedule import FROM, PRIMITIVES, Schedule, table
from relaylab.loop.schedule.schedule import KERNEL
from relaylab.runtime.memory import aligned, aligned_copy
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.native import linker
from relaylab.runtime.peaks import machine_peaks
from relaylab.runtime.profiling import Duration
from relaylab.runtime.threads import num_threads
from relaylab.study.program import Loadable, load
from relaylab.study.running import Compiled, built, calls_of, looked_at, plain_name, run_library
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError

REPEATS = 20
MOST_TURNS = 1 << 17  # of loops that the evaluator does one after another: some seconds
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
Build = Callable[[Schedule], Compiled]


@dataclass(frozen=True)
class ScheduleMoment:
    """A kernel after one step of a schedule: its loops, what the step changed in them, microseconds, how far the
    program's results are from those with the picked loops; or `why` loops that are half done cannot be built."""

    step: str
    loops: str = ""
    changes: str = ""
    microseconds: float = 0.0
    error: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Trial:
    """A kernel with the loops that the compiler picked and with those of a schedule, each in the whole program, which
    `build` makes with any schedule of the kernel, and which runs on `inputs`; those that are not given are drawn."""

    kernel: str
    schedule: Schedule
    picked: Compiled
    scheduled: Compiled
    build: Build
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def loops(self) -> str:
        """The loops of the schedule; not those that lay an input out before."""
        return self._loops(self._looked)

    @cached_property
    def _looked(self) -> GraphExecutorFactoryModule | CompiledParts:
        return looked_at(self.scheduled)

    @cached_property
    def before(self) -> str:
        """The loops that the steps begin with: the plain ones, or what `from` says."""
        plain = self.build(Schedule(tuple(s for s in self.schedule.steps[:1] if s.name == FROM)))
        return self._loops(looked_at(plain))

    def _loops(self, module: GraphExecutorFactoryModule | CompiledParts) -> str:
        return re.split(f"^(?={KERNEL} )", module.inspect("loop", self.kernel), flags=re.MULTILINE)[-1]

    @property
    def changes(self) -> str:
        """The loops before and after, as a difference."""
        return _difference(self.before, self.loops)

    @property
    def llvm(self) -> str:
        """The LLVM IR of the loops."""
        return self._looked.inspect("llvm", self.kernel)

    @property
    def assembly(self) -> str:
        """The machine code of the loops."""
        return self._looked.inspect("asm", self.kernel)

    @cached_property
    def evaluated(self) -> float | None:
        """How far the machine code of the loops is from the loop evaluator on numbers from a seed, relative to the
        largest result; None where the loops have too many turns to be evaluated, or sizes that a run says."""
        program, kernel = parse(self.loops, verify=False), self._looked.linked(self.kernel)[-1].kernel
        if not isinstance(kernel.scratch, int) or sizes_in(program.nests, program.scratch):
            return None
        return None if turns_of(program) > MOST_TURNS else _apart(program, kernel)

    @cached_property
    def error(self) -> float:
        """The largest difference of the program's results from those of the picked loops, relative to the largest."""
        return _error(self.picked, self.scheduled, self.inputs)

    @cached_property
    def microseconds(self) -> tuple[float, float]:
        """The kernel's median time with the picked loops and with the schedule, measured in turn."""
        picked, own = _in_turn(self.kernel, [self.picked, self.scheduled], self.inputs)
        return picked, own

    @cached_property
    def timeline(self) -> list[ScheduleMoment]:
        """The kernel after each step, the loops that they begin with first; all measured in turn."""
        steps, given = self.schedule.steps, self.schedule.loops
        first = 1 if steps and steps[0].name == FROM else 0
        made: list[tuple[str, Compiled | RelayError]] = []
        for k in range(first, len(steps) + 1):
            name = str(steps[k - 1]) if k else "the loops as given" if given else "the plain loops"
            try:
                made.append((name, self.build(Schedule(steps[:k], given))))
            except RelayError as error:
                made.append((name, error))
        compiled = [lib for _, lib in made if not isinstance(lib, RelayError)]
        times = iter(_in_turn(self.kernel, compiled, self.inputs))
        found, before = list[ScheduleMoment](), ""
        for name, lib in made:
            if isinstance(lib, RelayError):
                found.append(ScheduleMoment(name, why=str(lib)))
                continue
            loops, apart = self._loops(looked_at(lib)), _error(self.picked, lib, self.inputs)
            found.append(ScheduleMoment(name, loops, _difference(before or loops, loops), next(times), apart))
            before = loops
        return found

    @property
    def history(self) -> str:
        """The timeline as a table."""
        rows = [f"{'us':>10}  {'error':>8}  step"]
        for m in self.timeline:
            numbers = f"{'':>10}  {'':>8}" if m.why else f"{m.microseconds:>10.1f}  {m.error:>8.1g}"
            rows.append(f"{numbers}  {m.step}" + (f"  ({m.why.splitlines()[0]})" if m.why else ""))
        return "\n".join(rows)

    def bisect(self, tolerance: float = 1e-4) -> ScheduleMoment | None:
        """The first step after which the results are others than with the picked loops; None if there is none. Steps
        of this package are proven to keep them: this is for one's own, and for loops that were written out."""
        return next((m for m in self.timeline if not m.why and not m.error <= tolerance), None)

    @property
    def share(self) -> float:
        """The least time for the kernel's operations and bytes at the peaks of this machine, over the measured one."""
        looked, name, peaks = self._looked, self.kernel, machine_peaks(num_threads())
        home, name = (looked, name) if isinstance(looked, GraphExecutorFactoryModule) else looked.home(name)
        own = [s for s in home.executable.plan.steps if s.label == name]
        measured = max(self.microseconds[1] / 1e6, 1e-15)
        return peaks.roof(sum(s.flops for s in own), sum(s.bytes for s in own), measured)[1] / measured

    @property
    def measures(self) -> str:
        """In words: the time, the share of the roofline, whether the numbers are right."""
        before, after = self.microseconds
        ratio = f"{before / after:.2f} x as fast as" if after else "beside"
        own = self.evaluated
        refused = "nothing for the loop evaluator: too many turns, or sizes that a run says"
        beside = refused if own is None else f"by {own:.2g} from the loop evaluator's"
        return "\n".join(
            (
                f"{after:.1f} us, {ratio} the picked loops ({before:.1f} us), {self.share:.0%} of the roofline",
                f"the results differ by {self.error:.2g} of the largest, {beside}",
            )
        )

    @property
    def listing(self) -> str:
        """All of it: loops before and after as a difference, LLVM IR, assembly, and the measures."""
        return "\n".join(("--- loops", self.changes, "--- llvm", self.llvm, "--- asm", self.assembly, self.measures))

    def __str__(self) -> str:
        return f"{self.loops}\n{self.measures}"

    __repr__ = __str__


@checked
def schedule(what: Loadable, kernel: str, text: str | Schedule = "", opt_level: int = 3) -> Trial:
    """Build a program with a schedule for one kernel, beside the program as it is picked.

    `kernel` is a name of `lib.kernels()` or a part of one; `text` are steps, or the kernel's loops written out (they
    begin with `kernel`). Raises RelayValueError for names that no kernel has and for
    steps that may not be taken.
    """
    program = load(what)
    picked = built(program, opt_level)
    name = picked.kernel_called(kernel)
    steps = Schedule.parse(text) if isinstance(text, str) else text
    build: Build = lambda s: built(program, opt_level, {SCHEDULES: {name: s}})
    return Trial(name, steps, picked, build(steps), build)


def schedule_steps() -> str:
    """The steps that schedules are made of, each as it is written and what it does."""
    return table(PRIMITIVES.values())


def _results(lib: Compiled, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    found = run_library(lib, inputs)
    return found if isinstance(found, list) else [found]


def _error(picked: Compiled, other: Compiled, inputs: Mapping[str, Any]) -> float:
    """How far the results of a program are from those with the picked loops."""
    return max((relative_error(c, a) for a, c in zip(_results(picked, inputs), _results(other, inputs))), default=0.0)


def _in_turn(kernel: str, libs: Sequence[Compiled], inputs: Mapping[str, Any]) -> list[float]:
    """The median time of a kernel in each program, measured in turn."""
    runs, plain = [(calls_of(lib, inputs), list[float]()) for lib in libs], plain_name(kernel)
    for turn in range(REPEATS):
        for calls, spent in runs if turn % 2 else runs[::-1]:  # which is first may decide
            took = [c["Duration (us)"] for c in calls() if plain_name(str(c["Name"])) == plain]
            spent.append(sum(t.microseconds for t in took if isinstance(t, Duration)))
    return [statistics.median(spent) for _, spent in runs]


def _difference(before: str, after: str) -> str:
    """Two texts of loops as a difference, or the one that they are."""
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), n=1000, lineterm="")
    return "\n".join(list(lines)[3:]) or after


def turns_of(program: LoopProgram) -> int:
    """How often the evaluator does a statement in a run; the lanes of a vectorized loop are done together."""
    total, stack = 0, list[tuple[Statement, int]]((nest.loop, 1) for nest in program.nests)
    while stack:
        statement, times = stack.pop()
        total += times
        turns = statement.axis.extent if isinstance(statement, For) and statement.kind != "vectorized" else 1
        stack += [(s, times * turns) for s in inside(statement)]
    return total


def _apart(program: LoopProgram, kernel: Kernel) -> float:
    """How far the machine code of a kernel is from what its loops give evaluated, on numbers from a seed."""
    rng, target = np.random.default_rng(0), CpuTarget.host()
    memory = {t: _numbers(t.shape, t.dtype, rng, role) for role, t in program.buffers}
    given = {role: aligned_copy(memory[t], memory[t].dtype) for role, t in program.buffers}
    for part in program.prepared:
        values = prepare(part, memory)
        given[part.role] = aligned_copy(values, values.dtype)
    run(program, memory)
    text = module_text([kernel], attributes=target.attributes)
    library = linker().link(tuple(compile_objects([text], target, 1)), {kernel.name})
    assert isinstance(kernel.scratch, int)
    held = {"scratch": aligned(max(1, kernel.scratch)), **given}
    bases = (ctypes.c_void_p * len(kernel.operands))(*(held[role].ctypes.data for role in kernel.operands))
    FUNCTION(library[kernel.name])(bases, 0, kernel.items, 0)
    return max((relative_error(given[role], memory[t]) for role, t in program.buffers), default=0.0)


def _numbers(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, role: str) -> np.ndarray:
    """What an operand holds before a run: small numbers, which are places in others too."""
    if role.startswith("out"):
        return np.zeros(shape, dtype)
    return rng.uniform(-1, 1, shape).astype(dtype) if "float" in dtype else rng.integers(0, 2, shape).astype(dtype)
