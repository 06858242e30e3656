"""Schedules: lists of steps that rewrite a loop program, as values with a text.

schedule = Schedule.parse('''
    split i0 6 as io ii
    reorder io k ii
    vectorize i1
''')
program = schedule.apply(program)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relaylab.loop.program import LoopProgram
from relaylab.loop.schedule.step import FROM, PRIMITIVES, ScheduleStep, placed, step
from relaylab.loop.schedule.written import loops_in_place
from relaylab.support.errors import RelayValueError

MOST_STEPS = 1000
KERNEL = "kernel"  # begins loops
PACKED = ": weight0 "


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in their order, or the text of loops in place of a kernel's. Equal schedules are equal values; the text
    says all of one."""

    steps: tuple[ScheduleStep, ...] = ()
    loops: str = ""

    @staticmethod
    def parse(text: str) -> Schedule:
        """The schedule of a text, one step a line; `#` begins a remark. A text that begins with `kernel` is loops.

        Raises RelayValueError `schedule-step.unknown` and `schedule.arguments` with the line.
        """
        if text.split(None, 1)[:1] == [KERNEL]:
            return Schedule(loops=text)
        steps: list[ScheduleStep] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#")[0].split()
            if words:
                with placed(f"line {number}: {line.strip()}"):
                    steps.append(step(words[0], *words[1:]))
        return Schedule(tuple(steps))

    def __str__(self) -> str:
        return "\n".join((*([self.loops] if self.loops else ()), *map(str, self.steps)))

    @property
    def begins(self) -> tuple[str, ...]:
        """The words of `from`: which loops the steps begin with, and what is chosen of them."""
        if PACKED in self.loops.partition("\n")[0]:  # the operand of picked loops
            return ("picked",)
        return self.steps[0].words if self.steps and self.steps[0].name == FROM else ("plain",)

    @property
    def picked(self) -> bool:
        """Whether the steps begin with the loops that the compiler picks."""
        return self.begins[0] == "picked"

    @property
    def ours(self) -> bool:
        """Whether all its primitives are those of this package, so that its text says what it does."""
        return all(PRIMITIVES[s.name].rewrite.__module__.startswith("relaylab.") for s in self.steps)

    @property
    def kept(self) -> bool:
        """Whether the text of a kernel is all that there is to keep of it: `constant` makes more."""
        return self.ours and "prepared " not in self.loops and all(s.name != "constant" for s in self.steps)

    def then(self, name: str, *words: str | int) -> Schedule:
        """This schedule with one step more: `s.then("split", "i0", 6)`."""
        return self + Schedule((step(name, *words),))

    def __add__(self, other: Schedule) -> Schedule:
        return Schedule((*self.steps, *other.steps), self.loops)

    def trail(self, program: LoopProgram) -> Iterator[tuple[ScheduleStep, LoopProgram]]:
        """Every step with the program after it. What refuses a step is raised with its place."""
        if len(self.steps) > MOST_STEPS:
            raise RelayValueError(
                f"a schedule has at most {MOST_STEPS} steps, not {len(self.steps)}", code="schedule.arguments"
            )
        for number, one in enumerate(self.steps, 1):
            with placed(f"step {number}: {one}"):
                if number > 1 and one.name == FROM:
                    raise RelayValueError(f"`{one}` stands first or not at all", code="schedule.illegal")
                program = one.apply(program)
            yield one, program

    def apply(self, program: LoopProgram) -> LoopProgram:
        """The program after all steps."""
        if self.loops:
            program = loops_in_place(program, self.loops)
        return [program, *(after for _, after in self.trail(program))][-1]
