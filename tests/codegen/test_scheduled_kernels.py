"""Scheduled loop programs as machine code: random schedules give the numbers of the loop evaluator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, runnable_targets

from relaylab.codegen.loops.lowering import lower_program
from relaylab.loop.schedule import Schedule

sys.path.append(str(Path(__file__).resolve().parents[1] / "loop"))
from schedule_cases import KERNELS, plain, random_schedule  # noqa: E402


def native(program, arrays, want, target, splits=1):
    """What the machine code of a program gives."""
    buffers = {}
    for (role, _), x in zip(program.buffers, (*arrays, np.zeros_like(want))):
        buffers[role] = aligned(max(x.size, 1), x.dtype)
        buffers[role][: x.size] = x.ravel()
    Runner(lower_program(program, target), target).run(buffers, splits)
    return buffers["out0"][: want.size].reshape(want.shape)


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name, isa):
    program, arrays, want = plain(name)
    for seed in range(100, 112):
        schedule, after, _ = random_schedule(program, seed)
        got = native(after, arrays, want, TARGETS[isa], splits=1 + seed % 3)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}\n{schedule}\n{after}")


TILES = """
split i0 {rows} as io ii
split i1 {columns} as jo ji
reorder jo io ii ji
fission ji ii
reorder k ii ji
pack in1 jo k ji
vectorize ji ji_init ji_out ji_pack
unroll ii ii_init ii_out
registers sum0
parallel jo
"""


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("rows, columns", [(6, 16), (4, 8), (12, 4), (1, 32), (3, 32)])
def test_tiles_of_registers(rows, columns, isa):
    """Whole vectors, parts of one, several side by side."""
    program, arrays, want = plain("matmul")
    tiled = Schedule.parse(TILES.format(rows=rows, columns=columns)).apply(program)
    got = native(tiled, arrays, want, TARGETS[isa], splits=2)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_sums_in_registers_are_carried_by_the_loop():
    """The reduction's loop holds the sums as values, not as loads and stores."""
    program, _, _ = plain("matmul")
    tiled = Schedule.parse(TILES.format(rows=4, columns=16)).apply(program)
    text = lower_program(tiled, TARGETS["avx512"]).text
    assert text.count("phi <16 x float>") == 4 and "alloca" not in text
