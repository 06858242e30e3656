"""A schedule tried on one kernel of a program: its loops step by step, its time beside that of the picked loops."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.interp.agreement import relative_error
from relaylab.loop.schedule import PRIMITIVES, Schedule, table
from relaylab.loop.schedule.schedule import KERNEL
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.profiling import Duration
from relaylab.study.program import Loadable, load
from relaylab.study.running import built, seeded
from relaylab.support.checked import checked

REPEATS = 20


@dataclass(frozen=True)
class Trial:
    """A kernel with the loops that the compiler picked and with those of a schedule, each in the whole program."""

    kernel: str
    schedule: Schedule
    picked: GraphExecutorFactoryModule
    scheduled: GraphExecutorFactoryModule

    @cached_property
    def loops(self) -> str:
        """The loops of the schedule; not those that lay an input out before."""
        return re.split(f"^(?={KERNEL} )", self.scheduled.inspect("loop", self.kernel), flags=re.MULTILINE)[-1]

    @cached_property
    def error(self) -> float:
        """The largest difference of the program's results from those of the picked loops, relative to the largest."""
        pairs = zip(*(_results(lib) for lib in (self.picked, self.scheduled)))
        return max((relative_error(c, a) for a, c in pairs), default=0.0)

    @cached_property
    def microseconds(self) -> tuple[float, float]:
        """The kernel's median time with the picked loops and with the schedule, measured in turn."""
        runs: tuple[list[float], list[float]] = ([], [])
        modules = [seeded(lib) for lib in (self.picked, self.scheduled)]
        for _ in range(REPEATS):
            for module, spent in zip(modules, runs):
                calls = module.profile(repeat=1, roofline=False).calls
                took = [c["Duration (us)"] for c in calls if c["Name"] == self.kernel]
                spent.append(sum(t.microseconds for t in took if isinstance(t, Duration)))
        return statistics.median(runs[0]), statistics.median(runs[1])

    def __str__(self) -> str:
        before, after = self.microseconds
        ratio = f"{before / after:.2f} x as fast as" if after else "beside"
        return "\n".join(
            (
                self.loops,
                f"{after:.1f} us, {ratio} the picked loops ({before:.1f} us)",
                f"the results differ by {self.error:.2g} of the largest",
            )
        )

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
    return Trial(name, steps, picked, built(program, opt_level, {SCHEDULES: {name: steps}}))


def schedule_steps() -> str:
    """The steps that schedules are made of, each as it is written and what it does."""
    return table(PRIMITIVES.values())


def _results(lib: GraphExecutorFactoryModule) -> list[np.ndarray]:
    module = seeded(lib)
    module.run()
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]
