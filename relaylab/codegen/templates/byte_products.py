"""Products of bytes as contractions of words: four unsigned bytes of the input, four signed ones of the weights.

A step of the reduction takes a word of four bytes instead of a number: the input's word is broadcast, a lane of the
weights holds the four of its column, and a lane of the accumulator is an int32 (`dot4` of the loop language).
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.pack import WeightMatrix
from relaylab.codegen.templates.problem import OutputAxis, Problem, Tap
from relaylab.loop.builder import Builder, OutSpec, b
from relaylab.loop.expr import ScalarExpr
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder

WORD = 4
FACTORS = ("uint8", "int8", "int32")  # of input, weights and sums


def in_words(problem: Problem) -> Problem:
    """A contraction of bytes, all steps in bytes, as one of words; any other, or one of uneven words, as it is."""
    steps = [problem.x_start, problem.batch.x, *(axis.x for axis in problem.rows)]
    steps += [tap.x for tap in problem.taps[:-1]]
    inner = problem.taps[-1]
    if problem.dtype != FACTORS[0] or inner.x != 1 or inner.count % WORD or any(step % WORD for step in steps):
        return problem
    shorter = lambda axis: replace(axis, x=axis.x // WORD)
    rows: tuple[OutputAxis, ...] = tuple(map(shorter, problem.rows))
    taps = (*(replace(t, x=t.x // WORD) for t in problem.taps[:-1]), Tap(inner.count // WORD, 1))
    start = problem.x_start // WORD
    return replace(problem, dtype="int32", batch=shorter(problem.batch), rows=rows, taps=taps, x_start=start, word=WORD)


def uneven_words(problem: Problem) -> str:
    """Why bytes were left as they are; empty for anything else."""
    return "bytes that do not lie in words of four" if problem.dtype == FACTORS[0] else ""


def interleaved(matrix: WeightMatrix) -> WeightMatrix:
    """Weights [batch, K, N] of int8 as [batch, K / 4, N] words."""
    batch, depth, columns = matrix.shape

    def words(first: int, last: int) -> np.ndarray:
        fours = matrix.columns(first, last).reshape(batch, depth // WORD, WORD, last - first).swapaxes(2, 3)
        return np.ascontiguousarray(fours.astype("int8")).view("int32")[..., 0]

    return WeightMatrix((batch, depth // WORD, columns), np.dtype("int32"), words)


def words_in_place(weights: MemoryView) -> MemoryView | None:
    """Weights [batch, K, N] of int8 that are an input as words [batch, K / 4, N] where they lie; None if none do."""
    batch, depth, columns = weights.shape
    apart, step, side = weights.strides
    if step != 1 or any(n % WORD for n in (apart, side, weights.offset)):
        return None
    strides = (apart // WORD, 1, side // WORD)
    return MemoryView("int32", (batch, depth // WORD, columns), strides, weights.offset // WORD)


def word_of(fours: Sequence[ScalarExpr]) -> ScalarExpr:
    """Four bytes as a word, the first one lowest."""
    first, *rest = (b.cast(b.cast(byte, "uint8"), "int32") for byte in fours)
    return reduce(b.bor, (b.shl(byte, 8 * k) for k, byte in enumerate(rest, 1)), first)


def words_kernel(weights: MemoryView, words: MemoryView, target: CpuTarget) -> Kernel:
    """What makes such words, "rows0", of weights "in1" whose bytes of a word do not lie side by side."""
    group = ProgramBuilder("words")

    def word(_: Builder, __: OutSpec, i: Sequence[ScalarExpr], w: Callable[..., ScalarExpr]) -> ScalarExpr:
        return word_of([w(i[0], i[1] * WORD + k, i[2]) for k in range(WORD)])

    value = group.compute(OutSpec(words.shape, "int32"), word, [group.read("in1", weights)])
    group.write("rows0", value, BufferLayout.dense(words.shape, "int32"))
    return lower_program(group.program(), target, cost=(0, weights.bytes + words.bytes)).by_content("words")
