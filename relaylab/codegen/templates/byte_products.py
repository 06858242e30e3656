"""Sums of products of bytes, exact on every machine: four unsigned bytes of the input, four signed ones of the weights.

A step of the reduction takes a word of four bytes instead of a number: the input's word is broadcast, a lane of the
weights holds the four of its column, and a lane of the accumulator is an int32. With AVX-512 VNNI or AVX-VNNI one
instruction (`vpdpbusd`, which does not saturate) does all four products. Others widen to 16 bits and use `pmaddwd`,
whose pairs of products cannot overflow either; `pmaddubsw` would saturate.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.text import IRFunction, Value, element, lanes, vector
from relaylab.codegen.templates.problem import OutputAxis, Problem, Tap

WORD = 4
FACTORS = ("uint8", "int8", "int32")  # of input, weights and sums


def in_words(problem: Problem) -> Problem | None:
    """A contraction of bytes, all steps in bytes, as one of words; None where words do not lie evenly."""
    steps = [problem.x_start, problem.batch.x, *(axis.x for axis in problem.rows)]
    steps += [tap.x for tap in problem.taps[:-1]]
    inner = problem.taps[-1]
    if inner.x != 1 or inner.count % WORD or any(step % WORD for step in steps):
        return None
    shorter = lambda axis: replace(axis, x=axis.x // WORD)
    rows: tuple[OutputAxis, ...] = tuple(map(shorter, problem.rows))
    taps = (*(Tap(t.count, t.x // WORD) for t in problem.taps[:-1]), Tap(inner.count // WORD, 1))
    start = problem.x_start // WORD
    return replace(problem, dtype="int32", batch=shorter(problem.batch), rows=rows, taps=taps, x_start=start, word=WORD)


def interleaved(matrix: np.ndarray) -> np.ndarray:
    """Weights [batch, K, N] of int8 as [batch, K / 4, N] words."""
    batch, depth, columns = matrix.shape
    words = np.ascontiguousarray(matrix.reshape(batch, depth // WORD, WORD, columns).swapaxes(2, 3).astype("int8"))
    return words.view("int32")[..., 0]


@dataclass(frozen=True, slots=True)
class ByteArithmetic:
    """How words are multiplied: by `vpdpbusd` if `whole`, else as two halves of 16-bit numbers."""

    whole: bool

    @staticmethod
    def on(target: CpuTarget) -> ByteArithmetic:
        """The form for a target."""
        return ByteArithmetic(target.multiplies_bytes)

    def weights(self, f: IRFunction, x: Value) -> tuple[Value, ...]:
        """A vector of words of signed bytes, as `add` wants them."""
        if self.whole:
            return (x,)
        pairs = f.cast("bitcast", x, _halves(x))
        return f.binary("ashr", f.binary("shl", pairs, 8), 8), f.binary("ashr", pairs, 8)

    def row(self, f: IRFunction, x: Value) -> tuple[Value, ...]:
        """A broadcast word of unsigned bytes, as `add` wants it."""
        if self.whole:
            return (x,)
        pairs = f.cast("bitcast", x, _halves(x))
        return f.binary("and", pairs, 0xFF), f.binary("lshr", pairs, 8)

    def add(self, f: IRFunction, row: Sequence[Value], weights: Sequence[Value], total: Value) -> Value:
        """`total` and the four products of each lane."""
        if self.whole:
            bits = lanes(total.type) * 32
            return f.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total.type, total, row[0], weights[0])
        for x, w in zip(row, weights):
            total = f.binary("add", total, _pair_products(f, x, w))
        return total


def _halves(x: Value) -> str:
    return vector("i16", 2 * lanes(x.type))


def _pair_products(f: IRFunction, a: Value, c: Value) -> Value:
    """The sums of neighbouring products of 16-bit numbers, as int32: LLVM makes one `pmaddwd` of it."""
    count = lanes(a.type)
    wide = vector("i32", count)
    products = f.binary("mul", f.cast("sext", a, wide), f.cast("sext", c, wide))
    even, odd = (f.shuffle(products, products, list(range(k, count, 2))) for k in (0, 1))
    assert element(even.type) == "i32"
    return f.binary("add", even, odd)
