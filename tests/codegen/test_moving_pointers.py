"""Pointers that move with loops: compiled code gives what the loops say, at every place and in every turn."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.kernel_runner import TARGETS, Runner, aligned, runnable_targets

from relaylab.codegen.loops.lowering import lower_program
from relaylab.loop.parse import parse
from relaylab.loop.run import run

HEAD = """kernel rows(x: x float32[512], y: y float32[512], out0: out0 float32[512]) items=2
  scratch sum: float32[64]
  registers acc: float32[16]
  parallel item in 2:
"""
ADDED = """        for c in 16 vectorized:
          acc[c] = 0f
        for k in 4:
          for c2 in 16 vectorized:
            acc[c2] = acc[c2] + {read}
        for c3 in 16 vectorized:
          sum[c3] = sum[c3] + acc[c3]
"""
CLEAR = """    for z in 16 vectorized:
      sum[z] = 0f
"""
GIVE = """    for o in 16 vectorized:
      out0[item * 16 + o] = sum[o]
"""
PROGRAMS = {
    "a register of the loop in an address": """    for r in 8:
      at: int64 = (item * 8 + r) // 3
      for c in 16 vectorized x2:
        out0[item * 128 + r * 16 + c] = x[at * 16 + c] + y[item * 128 + r * 16 + c]
""",
    "a register of the loop beside registers": """    for r in 8:
      at: int64 = (item * 8 + r) // 3
      for c in 16 vectorized:
        acc[c] = x[at * 16 + c] + y[item * 128 + r * 16 + c]
      for c2 in 16 vectorized:
        out0[item * 128 + r * 16 + c2] = acc[c2]
""",
    "one place in two loops": """    for r in 4:
      for c in 8 vectorized:
        out0[item * 64 + r * 16 + c] = x[item * 16 + 3] + y[c]
    for r2 in 4:
      for c2 in 8 vectorized:
        out0[item * 64 + r2 * 16 + c2 + 8] = x[item * 16 + 3] * 2f
""",
    "one lane": """    for r in 4:
      for c in 1 vectorized:
        out0[item * 64 + r * 16 + 5] = x[item * 16 + r * 2]
""",
    "lanes apart": """    for r in 4:
      for c in 8 vectorized:
        out0[item * 128 + r * 16 + c * 2] = x[item * 64 + r * 8 + c]
""",
    "rows that a turn has": """    for t in 3:
      for r in 6 to 6 - t * 2:
        for c in 8 vectorized:
          out0[item * 144 + t * 48 + r * 8 + c] = x[t * 48 + r * 8 + c] + y[c]
""",
    "parts side by side": CLEAR
    + "    for part in 3:\n"
    + ADDED.format(read="x[item * 192 + part * 64 + k * 16 + c2]")
    + GIVE,
    "parts apart": CLEAR + "    for part in 3:\n" + ADDED.format(read="x[item * 16 + part * 80 + k * 16 + c2]") + GIVE,
    "parts that share all": CLEAR + "    for part in 3:\n" + ADDED.format(read="x[item * 64 + k * 16 + c2]") + GIVE,
    "taps around parts": CLEAR
    + "    for tap in 3:\n      for part in 2:\n"
    + ADDED.format(read="x[item * 8 + tap * 32 + part * 64 + k * 16 + c2]").replace("        ", "          ")
    + GIVE,
    "the same beginning inside and in a branch": CLEAR
    + """    for part in 3:
      for k in 4:
        for c2 in 16 vectorized x4:
          sum[c2] = sum[c2] + x[item * 192 + part * 64 + k * 16 + c2]
      if part < 2:
        for k2 in 4:
          for c3 in 16 vectorized x4:
            sum[c3] = sum[c3] + x[item * 192 + part * 64 + k2 * 16 + c3] * 3f
"""
    + GIVE,
}


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_loops_give_what_they_say(name: str, target: str) -> None:
    program = parse(HEAD + PROGRAMS[name])
    rng = np.random.default_rng(3)
    given = {role: rng.integers(-9, 9, t.shape).astype("float32") for role, t in program.buffers}
    wanted = {t: given[role].copy() for role, t in program.buffers}
    run(program, wanted)
    operands = {role: aligned(t.shape[0]) for role, t in program.buffers}
    for role, buffer in operands.items():
        buffer[:] = given[role]
    Runner(lower_program(program, TARGETS[target], True), TARGETS[target]).run(operands, splits=2)
    for role, tensor in program.buffers:
        np.testing.assert_array_equal(operands[role], wanted[tensor])
    assert np.any(operands["out0"] != given["out0"])


def test_an_address_is_computed_before_the_loops_that_it_moves_with() -> None:
    text = lower_program(parse(HEAD + PROGRAMS["parts side by side"]), TARGETS["avx2"], True).text
    inner = text.rsplit("fadd", 1)[0].split("phi ptr")[1:]
    assert len(inner) >= 2, "the loop of parts carries the pointer that the loop inside moves"
    assert "mul" not in text.split("phi ptr", 1)[1].split("icmp")[0]
