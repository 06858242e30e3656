"""Loop programs: their text is stable, and running them gives what the evaluator gives."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.loop import OutSpec, compute
from relaylab.loop.expr import MOST_SIZE, Const, Size
from relaylab.loop.parse import parse
from relaylab.loop.program_builder import ProgramBuilder, BufferLayout
from relaylab.loop.program import For, extent_of, statements
from relaylab.loop.run import run
from relaylab.loop.schedule.tree import loops, unique
from relaylab.loop.show import show
from relaylab.support.errors import RelayError, RelayIndexError, RelayTypeError

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def program_of(out, lower, inputs):
    group = ProgramBuilder("demo")
    readables = [group.read(f"in{k}", BufferLayout.dense(x.shape, x.dtype.name)) for k, x in enumerate(inputs)]
    group.write("out0", group.compute(out, lower, readables), BufferLayout.dense(out.shape, out.dtype))
    return group.program()


def softmax(b, out, i, x):
    top = b.rmax(x.shape[1], lambda k: x(i[0], k))
    return b.exp(x(*i) - top) / b.sum(x.shape[1], lambda k: b.exp(x(i[0], k) - top))


def dense(b, out, i, x, w):
    return b.sum(x.shape[1], lambda k: x(i[0], k) * w(i[1], k))


def matmul(b, out, i, x, w):
    return b.sum(x.shape[1], lambda k: x(i[0], k) * w(k, i[1]))


def bias_relu(b, out, i, x, y):
    return b.max(x(*i) + y(i[2]), 0)


def pad(b, out, i, x):
    return b.guard(b.all_of(*(b.inside(j - 1, n) for j, n in zip(i, x.shape))), lambda: x(i[0] - 1, i[1] - 1), 0.0)


def heads(b, out, i, x):
    return x(i[1] // 16, i[0], i[1] % 16)


def to_channels_last(b, out, i, x):
    return x(i[2], i[0], i[1])


def flatten_then_exp(b, out, i, x):
    return b.exp(x(i[0] // 12, i[0] // 4 % 3, i[0] % 4))


GOLDEN = {
    "softmax": (softmax, (6, 100), [floats(6, 100)], """
kernel demo(in0: in0 float32[600], out0: out0 float32[600]) items=6
  scratch row0: float32[100]
  parallel i0 in 6:
    max0: float32 = -inf
    for k in 100 vectorized x4:
      max0 max= in0[i0 * 100 + k]
    sum1: float32 = 0f
    for k in 100 vectorized x2:
      t2: float32 = exp(in0[i0 * 100 + k] - max0)
      row0[k] = t2
      sum1 += t2
    for i1 in 100 vectorized x4:
      out0[i0 * 100 + i1] = row0[i1] / sum1
"""),
    "dense": (dense, (7, 3), [floats(7, 40), floats(3, 40)], """
kernel demo(in0: in0 float32[280], in1: in1 float32[120], out0: out0 float32[21]) items=7
  parallel i0 in 7:
    for i1 in 3:
      sum0: float32 = 0f
      for k in 40 vectorized x2:
        sum0 += in0[i0 * 40 + k] * in1[i1 * 40 + k]
      out0[i0 * 3 + i1] = sum0
"""),
    "matmul": (matmul, (7, 33), [floats(7, 12), floats(12, 33)], """
kernel demo(in0: in0 float32[84], in1: in1 float32[396], out0: out0 float32[231]) items=7
  parallel i0 in 7:
    for i1 in 33 vectorized x2:
      sum0: float32 = 0f
      for k in 12:
        sum0 += in0[i0 * 12 + k] * in1[k * 33 + i1]
      out0[i0 * 33 + i1] = sum0
"""),
    "bias_relu": (bias_relu, (2, 30, 64), [floats(2, 30, 64), floats(64)], """
kernel demo(in0: in0 float32[3840], in1: in1 float32[64], out0: out0 float32[3840]) items=60
  parallel i0 in 60:
    for i2 in 64 vectorized x4:
      out0[i0 * 64 + i2] = max(in0[i0 * 64 + i2] + in1[i2], 0f)
"""),
    "pad": (pad, (6, 7), [floats(4, 5)], """
kernel demo(in0: in0 float32[20], out0: out0 float32[42]) items=4
  parallel i1 in 7 by 4096 vectorized:
    out0[i1] = 0f
  parallel i0 in 4:
    out0[i0 * 7 + 7] = 0f
  parallel i0 in 4:
    for i1 in 5 vectorized:
      out0[i0 * 7 + i1 + 8] = in0[i0 * 5 + i1]
  parallel i0 in 4:
    out0[i0 * 7 + 13] = 0f
  parallel i1 in 7 by 4096 vectorized:
    out0[i1 + 35] = 0f
"""),
    "heads": (heads, (8, 192), [floats(12, 8, 16)], """
kernel demo(in0: in0 float32[1536], out0: out0 float32[1536]) items=8
  parallel i0 in 8:
    for i1 in 12:
      for i1_ in 16 vectorized:
        out0[i0 * 192 + i1 * 16 + i1_] = in0[i1 * 128 + i0 * 16 + i1_]
"""),
    "to_channels_last": (to_channels_last, (9, 50, 3), [floats(3, 9, 50)], """
kernel demo(in0: in0 float32[1350], out0: out0 float32[1350]) items=1
  parallel i0 in 450 by 1344 vectorized x4:
    for i2 in 3:
      out0[i0 * 3 + i2] = in0[i2 * 450 + i0]
"""),
    "flatten_then_exp": (flatten_then_exp, (24,), [floats(2, 3, 4)], """
kernel demo(in0: in0 float32[24], out0: out0 float32[24]) items=1
  parallel i0 in 24 by 4096 vectorized:
    out0[i0] = exp(in0[i0])
"""),
}  # fmt: skip


@pytest.mark.parametrize("case", GOLDEN)
def test_the_text_of_a_program(case):
    lower, shape, inputs, text = GOLDEN[case]
    assert str(program_of(OutSpec(shape, "float32"), lower, inputs)) == text.strip()


@pytest.mark.parametrize("case", GOLDEN)
@pytest.mark.parametrize("cut", [0.0, 0.4, 1.0])
def test_running_a_program_in_two_shares(case, cut):
    lower, shape, inputs, _ = GOLDEN[case]
    out = OutSpec(shape, "float32")
    program = program_of(out, lower, inputs)
    result = np.zeros(int(np.prod(shape)), "float32")
    buffers = dict(zip((t for _, t in program.buffers), [*(x.ravel() for x in inputs), result]))
    middle = round(program.items * cut)
    run(program, buffers, (0, middle))
    run(program, buffers, (middle, program.items))
    np.testing.assert_allclose(result.reshape(shape), compute(out, lower, inputs), rtol=1e-5, atol=1e-6)


def test_expensive_values_are_not_computed_again():
    def exp_matmul(b, out, i, x, w):
        return b.sum(x.shape[1], lambda k: b.exp(x(i[0], k)) * w(k, i[1]))

    program = program_of(OutSpec((4, 50), "float32"), exp_matmul, [floats(4, 20), floats(20, 50)])
    assert [t.shape for t in program.scratch] == [(20,)]
    exps = [line for line in str(program).splitlines() if "exp(" in line]
    assert len(exps) == 1 and "row0[k]" in exps[0]


def test_every_value_of_a_long_chain_is_inlined():
    group = ProgramBuilder("chain")
    value = group.read("in0", BufferLayout.dense((40,), "float32"))
    for k in range(1500):
        value = group.compute(OutSpec((40,), "float32"), lambda b, o, i, x, k=k: x(*i) + float(k % 3), [value])
    group.write("out0", value, BufferLayout.dense((40,), "float32"))
    program = group.program()
    result, x = np.zeros(40, "float32"), floats(40)
    run(program, dict(zip((t for _, t in program.buffers), (x, result))))
    np.testing.assert_allclose(result, x + 1500, rtol=1e-4)
    assert len(program.nests) == 1 and all(isinstance(s, For) or s for s in statements((program.nests[0].loop,)))


def test_a_diamond_of_shared_values_stays_small():
    group = ProgramBuilder("diamond")
    value = group.read("in0", BufferLayout.dense((8,), "float32"))
    for _ in range(30):
        value = group.compute(
            OutSpec((8,), "float32"), lambda b, o, i, x, y: b.tanh(x(*i) * 0.4 + y(*i) * 0.3), [value, value]
        )
    group.write("out0", value, BufferLayout.dense((8,), "float32"))
    assert len(str(group.program())) < 10_000


def test_mistakes_have_codes():
    x = floats(4)
    program = program_of(OutSpec((6,), "float32"), lambda b, o, i, x: x(i[0]), [x])
    with pytest.raises(RelayIndexError, match="outside its 4 elements"):
        run(program, dict(zip((t for _, t in program.buffers), (x, np.zeros(6, "float32")))))
    with pytest.raises(RelayTypeError, match="operator's type is int32"):
        program_of(OutSpec((4,), "int32"), lambda b, o, i, x: x(*i), [x])
    group = ProgramBuilder("layout")
    value = group.read("in0", BufferLayout.dense((4,), "float32"))
    with pytest.raises(RelayTypeError, match="out0"):
        group.write("out0", value, BufferLayout.dense((5,), "float32"))


def test_loops_in_each_other_are_named_apart():
    """Both sums run over `k`: what is printed says which is meant."""

    def within(b, out, i, x, w):
        inner = lambda k: b.sum(3, lambda j: b.select(b.eq(j, k), x(i[0], j), 0.0))
        return b.sum(3, lambda k: inner(k) * w(k, i[1]))

    x, w = floats(4, 3), floats(3, 40)
    program = program_of(OutSpec((4, 40), "float32"), within, [x, w])
    again = parse(str(program))
    assert str(again) == str(program)
    result = np.zeros(160, "float32")
    run(again, dict(zip((t for _, t in again.buffers), [x.ravel(), w.ravel(), result])))
    np.testing.assert_allclose(result.reshape(4, 40), x @ w, rtol=1e-5, atol=1e-6)
    assert len({loop.axis.name for loop in loops(unique(program))}) == len(loops(program))


def test_a_constant_is_written_as_its_value():
    value = lambda zero: show(Const(zero, "float64"))
    assert value(0) == value(0.0) == "0f64" and value(0.1) == "0.1f64"


READS = """
kernel k(x: in0 float32[4], y: out0 float32[8])
  parallel once in 1:
    for i in 8{lanes}:
      y[i] = {value}
"""


@pytest.mark.parametrize("lanes", ["", " vectorized"])
def test_reads_outside_are_errors_where_their_guard_holds(lanes):
    inside = "guard(i < 4, x[i], 0f)"
    nested = "guard(i < 7, guard(i < 4, x[i] * 2f, 0f), 1f)"
    outside = (
        "guard(i < 5, x[i], 0f)",
        "guard(i >= 5, 0f, x[i] + 1f)",
        "guard(i < 6, guard(i < 5, x[i], 0f), 1f) * 0f",
    )
    for value in (inside, nested, *outside):
        program = parse(READS.format(lanes=lanes, value=value), verify=False)
        memory = {t: np.ones(t.shape[0], "float32") for _, t in program.buffers}
        if value not in outside:
            run(program, memory)
            continue
        with pytest.raises(RelayError, match="`x` is read outside its 4 elements"):
            run(program, memory)


def test_one_lane_stores_where_no_lane_says():
    program = parse(
        READS.format(lanes="", value="x[0]")
        .replace("y[i] =", "for k in 1 vectorized:\n        y[i] =")
        .replace("x[0]", "x[k]")
    )
    memory = {t: np.ones(t.shape[0], "float32") for _, t in program.buffers}
    run(program, memory)
    assert all(values.all() for values in memory.values())


def test_an_axis_is_as_long_as_sizes_make_it():
    """Not only the largest: what a division by three leaves is 1 of 4 * 2^24, and 2 of other numbers."""
    size = Size("n", 0)
    assert extent_of(size * 4 - size * 4 // 3 * 3) >= 2
    assert extent_of(size * 4) == 4 * MOST_SIZE and extent_of(size // 8 + 1) == MOST_SIZE // 8 + 1 and extent_of(7) == 7
