"""Kernels in their plain loops, and random schedules of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relaylab.loop import OutSpec, compute
from relaylab.loop.program import Define, LoopProgram, statements
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.schedule import PRIMITIVES, Schedule
from relaylab.loop.schedule.written import loops_in_place
from relaylab.loop.schedule.tree import loops
from relaylab.support.errors import RelayError

TRIES = 4  # with other words, before another kind of step is drawn
RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def matmul_relu(b, out, i, x, w, y):
    return b.max(b.sum(x.shape[1], lambda k: x(i[0], k) * w(k, i[1])) + y(i[1]), 0)


def conv(b, out, i, x, w):
    inside = lambda r, s: b.all_of(b.inside(i[1] + r - 1, x.shape[1]), b.inside(i[2] + s - 1, x.shape[2]))
    return b.sum(
        (x.shape[0], 3, 3),
        lambda c, r, s: b.guard(inside(r, s), lambda: x(c, i[1] + r - 1, i[2] + s - 1), 0.0) * w(i[0], c, r, s),
    )


def softmax(b, out, i, x):
    top = b.rmax(x.shape[1], lambda k: x(i[0], k))
    return b.exp(x(*i) - top) / b.sum(x.shape[1], lambda k: b.exp(x(i[0], k) - top))


def whole_dot(b, out, i, x, w):
    return b.sum(x.shape[1], lambda k: b.cast(x(i[0], k), "int32") * b.cast(w(i[1], k), "int32"))


def transpose(b, out, i, x):
    return x(i[1], i[0]) + 1.0


KERNELS = {
    "matmul": (matmul_relu, OutSpec((12, 32), "float32"), lambda: [floats(12, 4), floats(4, 32), floats(32)]),
    "conv": (conv, OutSpec((2, 3, 4), "float32"), lambda: [floats(1, 3, 4), floats(2, 1, 3, 3)]),
    "softmax": (softmax, OutSpec((6, 8), "float32"), lambda: [floats(6, 8)]),
    "integers": (
        whole_dot,
        OutSpec((4, 6), "int32"),
        lambda: [RNG.integers(-9, 9, s).astype("int8") for s in ((4, 8), (6, 8))],
    ),
    "transpose": (transpose, OutSpec((6, 8), "float32"), lambda: [floats(8, 6)]),
}


KERNELS["small"] = (matmul_relu, OutSpec((6, 8), "float32"), lambda: [floats(6, 3), floats(3, 8), floats(8)])


def plain(name: str) -> tuple[LoopProgram, list[np.ndarray], np.ndarray]:
    """The plain loops of a kernel, its inputs the second a constant, and what they give evaluated."""
    lower, out, make = KERNELS[name]
    arrays = make()
    group = ProgramBuilder(name)
    reads = [group.read(f"in{k}", BufferLayout.dense(x.shape, x.dtype.name)) for k, x in enumerate(arrays)]
    group.write("out0", group.compute(out, lower, reads), BufferLayout.dense(out.shape, out.dtype))
    program = group.plain()
    known = frozenset(t for role, t in program.buffers if role == "in1")
    return replace(program, known=known), arrays, compute(out, lower, arrays)


def random_step(program: LoopProgram, draw: random.Random, kind: str) -> list[str | int]:
    """A step with words drawn from the names that a program has, as its usage wants them."""
    rule = PRIMITIVES[kind]
    kinds = rule.words + rule.words[-1:] * (draw.choice((0, 0, 1, 2)) if rule.repeats else 0)
    names = [loop.axis.name for loop in loops(program)]
    there = {
        "BUFFER": [t.name for _, t in program.buffers] + [t.name for t in program.private],
        "VALUE": [s.local.name for n in program.nests for s in statements((n.loop,)) if isinstance(s, Define)],
        "LOOP": names,
    }
    few = draw.sample(names, len(names))
    found: list[str | int] = []
    for kind in kinds:
        if kind in ("LOOP", "AXIS", "OUTER", "INNER", "FIRST", "SECOND"):
            found.append(few.pop() if few else names[0])
        elif kind in there:
            found.append(draw.choice(there[kind] or names))
        else:
            found.append(draw.choice((1, 2, 3, 4, 5, 6, 8)))
    return [rule.name, *found]


def random_schedule(program: LoopProgram, seed: int, steps: int = 9) -> tuple[Schedule, LoopProgram, list[str]]:
    """Steps drawn at random that were taken, the program after them, and the codes of those that were refused."""
    draw, taken, refused = random.Random(seed), Schedule(), []
    for kind in draw.choices(sorted(PRIMITIVES), k=steps):
        for _ in range(TRIES):
            try:
                longer = taken.then(*random_step(program, draw, kind))
                program = Schedule(longer.steps[-1:]).apply(program)
            except RelayError as error:
                assert error.code.startswith("schedule."), error
                refused.append(error.code)
                continue
            taken = longer
            break
    return taken, program, refused


def check_random(program: LoopProgram, seeds: range, check: Callable[[LoopProgram, str], None]) -> None:
    """Random schedules of a program, each as text and back, and `check`ed with words for a failure."""
    kinds, refusals = set(), set()
    for seed in seeds:
        schedule, after, refused = random_schedule(program, seed)
        kinds |= {s.name for s in schedule.steps}
        refusals |= set(refused)
        check(after, f"seed {seed}\n{schedule}\n{after}")
        assert Schedule.parse(str(schedule)) == schedule and str(schedule.apply(program)) == str(after)
        if not after.prepared and not any(
            t.dtype == "bool" for t in after.private
        ):  # stored conditions: not all proven
            assert str(loops_in_place(program, str(after))) == str(after)
    assert len(kinds) >= 5 and "schedule.illegal" in refusals
