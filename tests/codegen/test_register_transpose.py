"""Copies that transpose: squares in registers, on three instruction sets, with parts of squares at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from native_group import TARGETS, run_native, single

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.loops.lowering import lower_program
from relaylab.loop import OutSpec
from relaylab.loop.program_builder import ProgramBuilder

CASES = [
    ((128, 48), (1, 0), "float32"),
    ((33, 35), (1, 0), "float64"),
    ((17, 21), (1, 0), "int32"),
    ((40, 9, 16), (2, 1, 0), "int64"),
    ((3, 49, 21), (0, 2, 1), "float32"),
    ((24, 20, 9), (2, 1, 0), "float32"),
    ((2, 14, 14, 32), (0, 3, 1, 2), "float32"),
    ((20, 28), (1, 0), "float16"),
    ((24, 32), (1, 0), "int8"),
    ((11, 13), (1, 0), "float32"),
]


def transposed(shape, axes, dtype) -> tuple[OutSpec, ProgramBuilder, np.ndarray]:
    """A group that gives one more than its transposed input."""
    x = (np.random.default_rng(3).normal(size=shape) * 10).astype(dtype)
    out = OutSpec(tuple(shape[a] for a in axes), dtype)

    def lower(b, out, i, data):
        return data(*(i[axes.index(d)] for d in range(len(axes)))) + 1

    return out, single(out, lower, [x]), x


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize(("shape", "axes", "dtype"), CASES)
def test_a_transposing_copy_is_right(shape, axes, dtype, isa) -> None:
    out, group, x = transposed(shape, axes, dtype)
    got = run_native(group, [x], out, CpuTarget.parse(TARGETS[isa]))
    np.testing.assert_array_equal(got, x.transpose(axes) + np.ones((), dtype))


def test_neighbours_lie_inside_the_vectors() -> None:
    _, group, _ = transposed((128, 48), (1, 0), "float32")
    lines = [line.strip() for line in str(group.program()).splitlines()[1:]]
    assert lines[:3] == ["parallel i0o in 3:", "for i1 in 128 vectorized:", "for i0i in 16:"]


def test_squares_are_transposed_in_registers() -> None:
    _, group, _ = transposed((128, 48), (1, 0), "float32")
    text = lower_program(group.program(), CpuTarget.parse("llvm -mcpu=x86-64-v4")).text
    assert "gather" not in text and text.count("shufflevector") > 32


def test_an_axis_that_is_one_square_leaves_work_items_to_the_next() -> None:
    """Weights [O, I, 3 x 3] turned to [3 x 3, I, O]: nine taps are a square, and input channels are shared out."""
    _, group, _ = transposed((128, 64, 9), (2, 1, 0), "float32")
    assert group.program().items == 64
