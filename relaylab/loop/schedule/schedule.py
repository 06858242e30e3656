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
    """Steps in their order, after the text of loops if some stand in place of a kernel's. Equal schedules are equal
    values; the text says all of one."""

    steps: tuple[ScheduleStep, ...] = ()
    loops: str = ""

    @staticmethod
    def parse(text: str) -> Schedule:
        """The schedule of a text, one step a line; `#` begins a remark. `kernel` begins loops, and steps may follow
        that stand no further in than it.

        Raises RelayValueError `schedule-step.unknown` and `schedule.arguments` with the line.
        """
        lines, steps, end = text.split("\n"), list[ScheduleStep](), 0
        said = [
            (k, len(line) - len(line.lstrip()), w) for k, line in enumerate(lines) if (w := line.split("#")[0].split())
        ]
        if said and said[0][2][0] == KERNEL:
            end = next((k for k, indent, _ in said[1:] if indent <= said[0][1]), len(lines))
        for k, _, words in said:
            if k >= end:
                with placed(f"line {k + 1}: {lines[k].strip()}"):
                    steps.append(step(words[0], *words[1:]))
        return Schedule(tuple(steps), "\n".join(lines[:end]))

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
        if other.loops and (self.steps or self.loops):
            raise RelayValueError("loops that are written out stand first", code="schedule.arguments")
        return Schedule((*self.steps, *other.steps), self.loops or other.loops)

    def trail(self, program: LoopProgram) -> Iterator[tuple[ScheduleStep, LoopProgram]]:
        """Every step with the program after it. What refuses a step is raised with its place."""
        if len(self.steps) > MOST_STEPS:
            raise RelayValueError(
                f"a schedule has at most {MOST_STEPS} steps, not {len(self.steps)}", code="schedule.arguments"
            )
        for number, one in enumerate(self.steps, 1):
            with placed(f"step {number}: {one}"):
                if one.name == FROM and (number > 1 or self.loops):
                    raise RelayValueError(f"`{one}` stands first or not at all", code="schedule.illegal")
                program = one.apply(program)
            yield one, program

    def apply(self, program: LoopProgram) -> LoopProgram:
        """The program after all steps."""
        if self.loops:
            program = loops_in_place(program, self.loops)
        return [program, *(after for _, after in self.trail(program))][-1]
