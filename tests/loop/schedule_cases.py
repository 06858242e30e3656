"""Kernels in their plain loops, and random schedules of them."""

from __future__ import annotations

import random

import numpy as np

from relaylab.loop import OutSpec, compute
from relaylab.loop.program import Define, LoopProgram, statements
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.schedule import PRIMITIVES, Schedule
from relaylab.loop.schedule.tree import loops
from relaylab.support.errors import RelayError

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
    "conv": (conv, OutSpec((4, 4, 6), "float32"), lambda: [floats(2, 4, 6), floats(4, 2, 3, 3)]),
    "softmax": (softmax, OutSpec((6, 20), "float32"), lambda: [floats(6, 20)]),
    "integers": (
        whole_dot,
        OutSpec((6, 10), "int32"),
        lambda: [RNG.integers(-9, 9, s).astype("int8") for s in ((6, 24), (10, 24))],
    ),
    "transpose": (transpose, OutSpec((12, 18), "float32"), lambda: [floats(18, 12)]),
}


def plain(name: str) -> tuple[LoopProgram, list[np.ndarray], np.ndarray]:
    """The plain loops of a kernel, its inputs, and what it gives by the evaluator of expressions."""
    lower, out, make = KERNELS[name]
    arrays = make()
    group = ProgramBuilder(name)
    reads = [group.read(f"in{k}", BufferLayout.dense(x.shape, x.dtype.name)) for k, x in enumerate(arrays)]
    group.write("out0", group.compute(out, lower, reads), BufferLayout.dense(out.shape, out.dtype))
    return group.plain(), arrays, compute(out, lower, arrays)


def random_step(program: LoopProgram, draw: random.Random) -> list[str | int]:
    """A step with words drawn from the names that a program has."""
    names = [loop.axis.name for loop in loops(program)]
    buffers = [t.name for _, t in program.buffers] + [t.name for t in program.private]
    kind, few = draw.choice(sorted(PRIMITIVES)), draw.sample(names, min(len(names), draw.choice((2, 3))))
    numbers = {"split": (1, 2, 3, 4, 6, 8), "peel": (1, 3, 5)}
    if kind in numbers:
        return [kind, few[0], draw.choice(numbers[kind])]
    if kind in ("fuse", "join"):
        return [kind, few[0], few[-1]]
    if kind in ("pack", "registers"):
        return [kind, draw.choice(buffers), *(few if kind == "pack" else ())]
    if kind == "inline":
        kept = [s.local.name for nest in program.nests for s in statements((nest.loop,)) if isinstance(s, Define)]
        return [kind, draw.choice(kept or names)]
    return [kind, *(few if kind == "reorder" else few[:1])]


def random_schedule(program: LoopProgram, seed: int, steps: int = 9) -> tuple[Schedule, LoopProgram, list[str]]:
    """Steps drawn at random that were taken, the program after them, and the codes of those that were refused."""
    draw, taken, refused = random.Random(seed), Schedule(), []
    for _ in range(steps):
        try:
            longer = taken.then(*random_step(program, draw))
            program = Schedule(longer.steps[-1:]).apply(program)
        except RelayError as error:
            assert error.code.startswith("schedule."), error
            refused.append(error.code)
            continue
        taken = longer
    return taken, program, refused
