"""Schedules: every step keeps what a program computes or says why it may not be taken; text and value are one."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_cases import KERNELS, check_random, plain

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.loops.lowering import lower_program
from relaylab.loop import OutSpec
from relaylab.loop.parse import parse
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.run import run
from relaylab.loop.schedule import PRIMITIVES, Schedule
from relaylab.loop.verify import unproven
from relaylab.support.errors import RelayError

TILED = """
split i0 6 as io ii
split i1 16 as jo ji
reorder jo io ii ji
fission ji ii            # the sums of a tile are a buffer now
reorder k ii ji
pack in1 jo k ji as panel
vectorize ji ji_init ji_out ji_pack
unroll ii ii_init ii_out
registers sum0
parallel jo
"""
TILED_TEXT = """
kernel matmul(in0: in0 float32[48], in1: in1 float32[128] known, in2: in2 float32[32], out0: out0 float32[384]) items=2
  scratch panel: float32[64]
  registers sum0: float32[96]
  parallel jo in 2:
    for k_pack in 4:
      for ji_pack in 16 vectorized:
        panel[k_pack * 16 + ji_pack] = in1[k_pack * 32 + jo * 16 + ji_pack]
    for io in 2:
      for ii_init in 6 unrolled:
        for ji_init in 16 vectorized:
          sum0[ii_init * 16 + ji_init] = 0f
      for k in 4:
        for ii in 6 unrolled:
          for ji in 16 vectorized:
            sum0[ii * 16 + ji] = sum0[ii * 16 + ji] + in0[io * 24 + ii * 4 + k] * panel[k * 16 + ji]
      for ii_out in 6 unrolled:
        for ji_out in 16 vectorized:
          out0[io * 192 + ii_out * 32 + jo * 16 + ji_out] = max(sum0[ii_out * 16 + ji_out] + in2[jo * 16 + ji_out], 0f)
"""


def results(program, arrays, want):
    """What a program gives in the evaluator of loop programs, done in two shares."""
    out = np.zeros(want.size, want.dtype)
    buffers = dict(zip((t for _, t in program.buffers), (*(x.ravel() for x in arrays), out)))
    middle = program.items // 2
    run(program, buffers, (0, middle))
    run(program, buffers, (middle, program.items))
    return out.reshape(want.shape)


def test_a_product_in_tiles_of_registers():
    program, arrays, want = plain("matmul")
    tiled = Schedule.parse(TILED).apply(program)
    assert str(tiled) == TILED_TEXT.strip()
    np.testing.assert_allclose(results(tiled, arrays, want), want, rtol=1e-5, atol=1e-5)
    assert unproven(tiled) is None


@pytest.mark.parametrize("name", KERNELS)
def test_plain_loops_compute_the_kernel(name):
    program, arrays, want = plain(name)
    np.testing.assert_allclose(results(program, arrays, want), want, rtol=1e-5, atol=1e-5)


def checked(name, seeds):
    program, arrays, want = plain(name)

    def check(after, words):
        np.testing.assert_allclose(results(after, arrays, want), want, rtol=1e-4, atol=1e-5, err_msg=words)
        assert any(t.dtype == "bool" for t in after.private) or unproven(after) is None, words

    check_random(program, seeds, check)


FAMILIES = [name for name in KERNELS if name != "matmul"]  # which is "small" with more turns


@pytest.mark.parametrize("name", FAMILIES)
def test_random_steps_keep_the_numbers(name):
    checked(name, range(20))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("part", range(8))
def test_thousands_of_random_schedules_keep_the_numbers(name, part):
    checked(name, range(1000 + 50 * part, 1050 + 50 * part))


def test_schedules_are_values():
    one = Schedule.parse("split i0 4\n# a remark\n\n vectorize i1")
    assert one == Schedule().then("split", "i0", 4) + Schedule().then("vectorize", "i1")
    assert len({one, Schedule.parse(str(one))}) == 1


REFUSED = {
    "split(i0, 4)": ("schedule.arguments", "it is written `split LOOP FACTOR"),
    "vectorize (i0": ("schedule.arguments", "steps are words, not calls: `vectorize (i0`"),
    "splt i0 4": ("schedule-step.unknown", "did you mean `split`"),
    "split i0": ("schedule.arguments", "split LOOP FACTOR"),
    "split i0 four": ("schedule.arguments", "not `four`"),
    "split i0 0": ("schedule.arguments", "from 1 on"),
    "split i0 5": ("schedule.illegal", "peel i0 10"),
    f"split i0 {'9' * 5000}": ("schedule.arguments", "from 1 on"),  # more digits than Python reads
    "split i0 4 as i1 ii": ("schedule.illegal", "there is a `i1` already"),
    "split i0 4 as io sum0": ("schedule.illegal", "there is a `sum0` already"),
    "fuse i0 i1 as once": ("schedule.illegal", "there is a `once` already"),
    "peel i0 4 as i0": ("schedule.illegal", "there is a `i0` already"),
    "pack in1 i0 k i1 as in1": ("schedule.illegal", "there is a `in1` already"),
    "split i9 4": ("schedule.unknown-loop", "the loops are once, i0, i1, k"),
    "split i0 4 as a": ("schedule.arguments", "[as OUTER INNER]"),
    "fuse i0 k": ("schedule.illegal", "not all that `i0` contains"),
    "peel i0 12": ("schedule.illegal", "only 12 turns"),
    "reorder k i1": ("schedule.illegal", "fission i1"),
    "reorder i0 i0": ("schedule.illegal", "named twice"),
    "fission k": ("schedule.illegal", "only one statement"),
    "join i0 i1": ("schedule.illegal", "does not follow"),
    "vectorize i0\nvectorize i1": ("schedule.illegal", "cannot both be lanes"),
    "vectorize i1\nsplit i1 4": ("schedule.illegal", "vectorized already"),
    "parallel i1": ("schedule.illegal", "not an outermost loop"),
    "parallel i0\nparallel i0": ("schedule.illegal", "not an outermost loop"),
    "fission i1\nreorder k i1\nvectorize k": ("schedule.illegal", "several turns of `k` write `sum0[i1]`"),
    "pack in7 i0 i1": ("schedule.unknown-buffer", "did you mean `in2`"),
    "pack in0 i0 i0": ("schedule.illegal", "does not stand once in `i0`"),
    "pack in1 i0 i1": ("schedule.illegal", "changes with `k`"),
    "pack in0 i1 i1 k": ("schedule.illegal", "does not stand once"),
    "pack in0 i0 i1 k": ("schedule.illegal", "does not change with `i1`"),
    "registers out0": ("schedule.illegal", "no private buffer"),
    "fission i1\nregisters sum0": ("schedule.illegal", "changes with `i1_init`, which is serial"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_step_that_may_not_be_taken_says_why(text):
    code, words = REFUSED[text]
    with pytest.raises(RelayError) as error:
        Schedule.parse(text).apply(plain("matmul")[0])
    assert error.value.code == code and words in str(error.value)
    assert text.splitlines()[-1] in error.value.place


def test_a_sum_that_runs_over_its_own_result_keeps_its_order():
    """A prefix sum in place may not be turned around, nor shared out, nor be lanes."""
    from relaylab.loop.expr import Axis, Load, Tensor
    from relaylab.loop.program import For, LoopNest, LoopProgram, Store

    x, i, once = Tensor("x", (9,), "float32"), Axis("i", 8), Axis("once", 1)
    body = Store(x, i + 1, Load(x, (i + 1,)) + Load(x, (i + 0,)))
    program = LoopProgram("prefix", (("x", x),), (), (LoopNest(For(once, "serial", (For(i, "serial", (body,)),))),))
    for step in ("vectorize i", "parallel i", "split i 4 as a b\nreorder b a"):
        with pytest.raises(RelayError, match="in different turns of"):
            Schedule.parse(step).apply(program)


def test_a_running_sum_keeps_its_order():
    from relaylab.loop.expr import Axis, Const, Load, Local, Tensor
    from relaylab.loop.program import Accumulate, Define, For, LoopNest, LoopProgram, Store

    x, y = Tensor("x", (8,), "float32"), Tensor("y", (8,), "float32")
    i, once, total = Axis("i", 8), Axis("once", 1), Local("total", "float32")
    turn = (Accumulate(total, "sum", Load(x, (i,))), Store(y, i, total))
    body = (Define(total, Const(0.0, "float32")), For(i, "serial", turn))
    program = LoopProgram("running", (("x", x), ("y", y)), (), (LoopNest(For(once, "serial", body)),))
    for step in ("vectorize i", "split i 4 as a b\nreorder b a"):
        with pytest.raises(RelayError, match="reads what the turns before it added to `total`"):
            Schedule.parse(step).apply(program)


TYPED = {
    "fused and split turns": ("transpose", "reorder i1 i0\nfuse i1 i0\nsplit i1i0 8\nparallel i1i0o"),
    "turns of two parts": ("matmul", "reorder i1 i0\nsplit i1 2\nreorder i1i i1o\npeel i1o 3\nparallel i1i"),
    "padded rows": ("integers", "fission i1\npad sum0 2 6\nparallel i0\nsplit i1_out 2\nsplit i1_init 6"),
    "a guarded read": ("conv", "fuse i1 i2\nfuse i0 i1i2\nsplit i0i1i2 6\nparallel i0i1i2o"),
    "stored conditions, twice": ("conv", "fission k1\npeel i2 3"),
}


@pytest.mark.parametrize("name", TYPED)
def test_what_steps_gave_is_taken_when_it_is_typed(name):
    kernel, steps = TYPED[name]
    program, arrays, want = plain(kernel)
    after = Schedule.parse(steps).apply(program)
    typed = Schedule.parse(str(after)).apply(program)
    assert str(typed) == str(after)
    np.testing.assert_allclose(results(typed, arrays, want), want, rtol=1e-5, atol=1e-5)


def test_a_picked_loop_around_lanes_is_unrolled_as_any_other():
    """It said that it was several vectors side by side, which no text may say of it."""
    group = ProgramBuilder("rows")
    x, y = (group.read(f"in{k}", BufferLayout.dense(shape, "float32")) for k, shape in enumerate([(155, 5), (5,)]))
    out = OutSpec((155, 5), "float32")
    group.write(
        "out0",
        group.compute(out, lambda b, out, i, x, y: x(*i) + y(i[1]), [x, y]),
        BufferLayout.dense(out.shape, out.dtype),
    )
    unrolled = str(Schedule.parse("unroll i0").apply(group.program()))
    assert "parallel i0 in 155 unrolled:" in unrolled and str(parse(unrolled)) == unrolled


def test_a_new_loop_may_have_the_name_of_the_one_that_it_comes_from():
    text = str(Schedule.parse("split i0 4 as i0 ii\nfuse i0 ii as i0").apply(plain("matmul")[0]))
    assert "for i0 in 12:" in text and "ii" not in text


def test_loops_that_stand_too_deep_are_refused():
    """They were as many turns of Python's own stack, where they are evaluated and where they are compiled."""
    program, arrays, want = plain("small")
    deep = Schedule.parse("\n".join(f"split i0 1 as i0 a{k}" for k in range(300))).apply(program)
    for use in (lambda: results(deep, arrays, want), lambda: lower_program(deep, CpuTarget.host())):
        with pytest.raises(RelayError, match="more than 128 deep") as told:
            use()
        assert told.value.code == "loop.depth"


def test_every_primitive_says_what_it_is():
    for rule in PRIMITIVES.values():
        assert rule.usage.split()[0] == rule.name and rule.says.endswith(".")


def test_fission_moves_prefetches_with_the_buffer():
    program = parse("""
        kernel k(x: in0 float32[64], y: out0 float32[64])
          scratch s: float32[8]
          parallel q in 1:
            for i in 8:
              for a in 8:
                s[a] = x[i * 8 + a]
              for c in 8:
                prefetch s[c]
                y[i * 8 + c] = s[c] * 2f
    """)
    assert "prefetch s[i_out * 8 + c]" in str(Schedule.parse("fission i").apply(program))
