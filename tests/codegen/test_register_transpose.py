"""Copies that transpose: squares in registers, on three instruction sets, with parts of squares at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import TARGETS as KNOWN
from kernel_runner import Runner, aligned, runnable_targets
from native_group import TARGETS, run_native, single

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.loops.lowering import lower_program
from relaylab.loop import OutSpec
from relaylab.loop.parse import parse
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.run import run

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
    ((64, 70), (1, 0), "uint8"),
    ((35, 48), (1, 0), "int16"),
    ((3, 40, 9), (0, 2, 1), "uint8"),
    ((2, 33, 7), (2, 0, 1), "int16"),
    ((33, 17), (1, 0), "float32"),
    ((20, 257), (1, 0), "uint8"),
    ((2, 19, 197), (0, 2, 1), "float32"),
    ((3, 40, 48), (0, 2, 1), "float32"),
    ((2, 3, 5, 80, 7), (0, 1, 3, 4, 2), "uint8"),
    ((2, 3, 40, 11), (0, 2, 3, 1), "float32"),
    ((7, 4, 41), (0, 2, 1), "uint8"),
    ((2, 8, 24), (0, 2, 1), "int64"),
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


@pytest.mark.parametrize("n", [*range(17, 120), 197, 251, 257, 997])
def test_what_no_square_divides_is_cut_into_pieces_that_some_do(n) -> None:
    _, group, _ = transposed((20, n), (1, 0), "float32")
    lines = str(group.program()).splitlines()
    sides = [int(line.rstrip(":").split()[-1]) for line in lines if line.lstrip().startswith("for i0i in")]
    blocks = [int(line.rstrip(":").split()[-1]) for line in lines if "parallel i0o" in line]
    blocks += [1] * (len(sides) - len(blocks))
    assert all(7 <= side <= 16 for side in sides) and len(sides) <= 3
    assert sum(side * many for side, many in zip(sides, blocks)) == n


def test_a_few_images_are_squares_and_interleaved_vectors_too() -> None:
    """Their number and that of their rows are one axis only where neither squares nor lanes are lost by it."""
    _, group, _ = transposed((3, 128, 48), (0, 2, 1), "float32")
    lines = [line.strip() for line in str(group.program()).splitlines()[1:]]
    assert "for i2 in 128 vectorized:" in lines and "for i1i in 16:" in lines
    _, group, _ = transposed((2, 3, 400), (0, 2, 1), "uint8")
    lines = [line.strip() for line in str(group.program()).splitlines()[1:]]
    assert lines[:3] == ["parallel i0i1 in 8:", "for i1i in 100 vectorized x4:", "for i2 in 3:"]


PLACES = {
    "a quotient and a remainder": ("q * 33 + c", "q * 64 + c // 3 * 8 + c % 3"),
    "a remainder": ("q * 33 + c", "q * 64 + c % 7"),
    "where it is stored": ("q * 8 + c % 7", "c * 9 + q"),
}


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("case", PLACES)
def test_two_neighbours_do_not_tell_of_the_next(case: str, isa: str) -> None:
    """Rows of which only the first elements follow each other were read and written as if all did."""
    to, at = PLACES[case]
    program = parse(
        "kernel copy(x: in0 float32[600], y: out0 float32[300])\n  parallel once in 1:\n    for q in 9 vectorized:\n"
        f"      for c in 8:\n        y[{to}] = x[{at}]"
    )
    given = {"in0": aligned(600), "out0": aligned(300)}
    given["in0"][:] = np.arange(600)
    memory = {tensor: given[role].copy() for role, tensor in program.buffers}
    run(program, memory)
    Runner(lower_program(program, KNOWN[isa]), KNOWN[isa]).run(given)
    np.testing.assert_array_equal(given["out0"], memory[program.buffers[1][1]])


def test_an_axis_that_is_one_square_leaves_work_items_to_the_next() -> None:
    """Weights [O, I, 3 x 3] turned to [3 x 3, I, O]: nine taps are a square, and input channels are shared out."""
    _, group, _ = transposed((128, 64, 9), (2, 1, 0), "float32")
    assert group.program().items == 64


GROUPS = [
    ((19, 23, 4), (1, 0, 2), "uint8"),
    ((40, 17, 2), (1, 0, 2), "int8"),
    ((9, 33, 8), (1, 0, 2), "uint8"),
    ((3, 20, 18, 2), (0, 2, 1, 3), "float16"),
    ((17, 20, 4), (1, 0, 2), "bfloat16"),
    ((24, 9, 2), (1, 0, 2), "float32"),
    ((5, 4, 3, 2, 2), (1, 2, 0, 3, 4), "int16"),
    ((6, 7, 4), (1, 0, 2), "bool"),
    ((11, 13, 3), (1, 0, 2), "uint8"),
    ((12, 16, 4), (1, 0, 2), "float64"),
]


def grouped(shape, axes, dtype) -> tuple[OutSpec, ProgramBuilder, np.ndarray]:
    """A group that gives its transposed input."""
    x = np.random.default_rng(5).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    out = OutSpec(tuple(shape[a] for a in axes), dtype)
    return out, single(out, lambda b, out, i, data: data(*(i[axes.index(d)] for d in range(len(axes)))), [x]), x


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize(("shape", "axes", "dtype"), GROUPS)
def test_a_copy_of_small_groups_is_right(shape, axes, dtype, isa) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    out, group, x = grouped(shape, axes, dtype)
    got = run_native(group, [x], out, CpuTarget.parse(TARGETS[isa]))
    np.testing.assert_array_equal(got.astype("float64"), x.transpose(axes).astype("float64"))
    memory = {"in0": x.reshape(-1).copy(), "out0": np.zeros(x.size, x.dtype)}
    program = group.program()
    run(program, {tensor: memory[role] for role, tensor in program.buffers})
    np.testing.assert_array_equal(memory["out0"].reshape(out.shape).astype("float64"), got.astype("float64"))


def test_groups_of_bytes_move_as_one_number() -> None:
    """Pixels of 2 to 8 bytes were copied one at a time: a fifth of the speed of numbers as wide as they are."""
    kinds = {
        shape: [t.dtype for _, t in grouped(shape, axes, kind)[1].program().buffers] for shape, axes, kind in GROUPS
    }
    assert [kinds[shape][0] for shape, _, _ in GROUPS] == [
        "uint32", "uint16", "uint64", "uint32", "uint64", "uint64", "uint64", "uint32", "uint8", "float64"
    ]  # fmt: skip
    assert all(len(set(kind)) == 1 for kind in kinds.values())
    lines = [line.strip() for line in str(grouped((300, 300, 4), (1, 0, 2), "uint8")[1].program()).splitlines()[1:]]
    assert lines[:3] == ["parallel i0o in 20:", "for i1 in 300 vectorized:", "for i0i in 15:"]


def test_groups_may_begin_at_any_byte() -> None:
    x = np.arange(1 + 40 * 30 * 4, dtype="uint8")[1:].reshape(40, 30, 4)
    data = relay.var("x", shape=x.shape, dtype="uint8")
    lib = relay.build(relay.IRModule.from_expr(relay.transpose(data, axes=[1, 0, 2])), target="llvm")
    np.testing.assert_array_equal(lib.run(x=x), x.transpose(1, 0, 2))
