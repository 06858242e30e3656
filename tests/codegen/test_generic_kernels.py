"""Compiled groups against the evaluator: a table of kinds of operators, dtypes and views, on three instruction sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernel_runner import framed
from native_group import TARGETS, aligned, execute, run_native, single

from relaylab.codegen.operations.generic import lower_group
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.isa.target import CpuTarget
from relaylab.loop import OutSpec, compute
from relaylab.loop.expr import apply
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.scalar import DTYPES, SCALAR_OPS

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def values(dtype, shape):
    """Values of a dtype with its extremes among them."""
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if "float" in dtype:
        x = (RNG.standard_normal(shape) * 3).astype(dtype)
        x.ravel()[:5] = [np.nan, np.inf, -np.inf, 0, -2.5][: x.size]
        return x
    info = np.iinfo(dtype)
    x = RNG.integers(max(info.min, -20), 20, shape).astype(dtype)
    x.ravel()[:4] = [info.min, info.max, 0, 1][: x.size]
    return x


def agree(out, lower, inputs, isa, rtol=1e-5, atol=1e-6):
    expected = compute(out, lower, inputs)
    got = run_native(single(out, lower, inputs), inputs, out, CpuTarget.parse(TARGETS[isa]))
    if out.dtype == "bfloat16":
        rtol, got, expected = 1.6e-2, got.astype("float32"), expected.astype("float32")
    if out.dtype == "float16":
        rtol = 2e-3
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def softmax(axis):
    def lower(b, out, i, x):
        at = lambda k: (*i[:axis], k, *i[axis + 1 :])
        top = b.rmax(x.shape[axis], lambda k: x(*at(k)))
        return b.exp(x(*i) - top) / b.sum(x.shape[axis], lambda k: b.exp(x(*at(k)) - top))

    return lower


def layer_norm(b, out, i, x, scale, shift):
    n = x.shape[-1]
    mean = b.sum(n, lambda k: x(*i[:-1], k)) / n
    variance = b.sum(n, lambda k: (x(*i[:-1], k) - mean) * (x(*i[:-1], k) - mean)) / n
    return (x(*i) - mean) * b.rsqrt(variance + 1e-5) * scale(i[-1]) + shift(i[-1])


def pool(kind, size, stride, pad):
    def lower(b, out, i, x):
        def tap(dy, dz):
            r, s = i[1] * stride + dy - pad, i[2] * stride + dz - pad
            inside = b.all_of(b.inside(r, x.shape[1]), b.inside(s, x.shape[2]))
            return b.guard(inside, lambda: x(i[0], r, s, i[3]), b.lowest("float32") if kind == "rmax" else 0.0)

        return getattr(b, kind)((size, size), tap)

    return lower


def conv(b, out, i, x, w):
    def tap(c, dy, dz):
        r, s = i[2] + dy - 1, i[3] + dz - 1
        inside = b.all_of(b.inside(r, x.shape[2]), b.inside(s, x.shape[3]))
        return b.guard(inside, lambda: x(i[0], c, r, s), b.const(0, x.dtype)) * w(i[1], c, dy, dz)

    return b.sum(w.shape[1:], tap)


def concatenate(b, out, i, *parts):
    value, start = b.const(0.0, "float32"), sum(p.shape[1] for p in parts)
    for p in reversed(parts):
        start -= p.shape[1]
        last = value
        inside = b.all_of(i[1] >= start, i[1] < start + p.shape[1])
        value = b.guard(inside, lambda p=p, s=start: p(i[0], i[1] - s, i[2]), last)
    return value


def pad(b, out, i, x):
    shifted = [j - 2 for j in i]
    inside = b.all_of(*(b.inside(j, n) for j, n in zip(shifted, x.shape)))
    return b.guard(inside, lambda: x(*shifted), 1.5)


def bilinear(b, out, i, x):
    n = x.shape[1]
    y = (b.cast(i[1], "float32") + 0.5) * (n / out.shape[1]) - 0.5
    low = b.cast(b.floor(y), "int64")
    part = y - b.floor(y)
    at = lambda k: x(i[0], b.clamp_index(k, n), i[2])
    return at(low) * (1.0 - part) + at(low + 1) * part


def reshape(b, out, i, x):
    flat = 0
    for j, n in zip(i, out.shape):
        flat = j + flat * n
    indices = []
    for n in reversed(x.shape):
        indices.append(flat % n)
        flat = flat // n
    return x(*reversed(indices))


CASES = {
    "bias_relu": (lambda b, o, i, x, y: b.max(x(*i) + y(i[-1]), 0), (2, 5, 37), [floats(2, 5, 37), floats(37)]),
    "channel_affine": (lambda b, o, i, x, s: x(*i) * s(i[1], 0, 0), (2, 3, 7, 9),
                       [floats(2, 3, 7, 9), floats(3, 1, 1)]),
    "long_flat": (lambda b, o, i, x: b.exp(x(*i)) * 0.5, (3, 5000), [floats(3, 5000)]),
    "unit_axes": (lambda b, o, i, x: -x(*i), (1, 1, 1), [floats(1, 1, 1)]),
    "scalar": (lambda b, o, i, x: x() + 1, (), [floats()]),
    "empty": (lambda b, o, i, x: x(*i) + 1, (0, 4), [floats(0, 4)]),
    "transpose": (lambda b, o, i, x: x(i[2], i[0], i[1]), (5, 6, 19), [floats(19, 5, 6)]),
    "interleave_3": (lambda b, o, i, x: x(i[2], i[0], i[1]), (5, 37, 3), [floats(3, 5, 37)]),
    "interleave_8": (lambda b, o, i, x: x(i[2], i[0], i[1]) + 1, (3, 20, 8), [floats(8, 3, 20)]),
    "reverse": (lambda b, o, i, x: x(i[0], 32 - i[1]), (3, 33), [floats(3, 33)]),
    "strided": (lambda b, o, i, x: x(i[0] * 2, i[1] * 3 + 1), (4, 21), [floats(8, 64)]),
    "reshape": (reshape, (8, 3, 5), [floats(4, 6, 5)]),
    "odd_reshape": (reshape, (3, 35), [floats(7, 15)]),
    "concatenate": (concatenate, (2, 9, 5), [floats(2, 3, 5), floats(2, 2, 5), floats(2, 4, 5)]),
    "pad": (pad, (8, 9, 10), [floats(4, 5, 6)]),
    "softmax_last": (softmax(1), (7, 101), [floats(7, 101)]),
    "softmax_middle": (softmax(1), (2, 10, 3, 7), [floats(2, 10, 3, 7)]),
    "softmax_first": (softmax(0), (9, 20), [floats(9, 20)]),
    "layer_norm": (layer_norm, (3, 4, 50), [floats(3, 4, 50), floats(50), floats(50)]),
    "max_pool": (pool("rmax", 3, 2, 1), (1, 5, 4, 17), [floats(1, 9, 8, 17)]),
    "sum_pool": (pool("sum", 2, 2, 0), (2, 4, 4, 3), [floats(2, 8, 8, 3)]),
    "convolution": (conv, (1, 4, 6, 7), [floats(1, 3, 6, 7), floats(4, 3, 3, 3)]),
    "bilinear": (bilinear, (2, 11, 5), [floats(2, 6, 5)]),
    "nearest": (lambda b, o, i, x: x(i[0] // 2, i[1] // 3), (8, 21), [floats(4, 7)]),
    "matmul": (lambda b, o, i, x, w: b.sum(x.shape[1], lambda k: x(i[0], k) * w(k, i[1])), (5, 21),
               [floats(5, 8), floats(8, 21)]),
    "dense": (lambda b, o, i, x, w: b.sum(x.shape[1], lambda k: x(i[0], k) * w(i[1], k)), (5, 6),
              [floats(5, 70), floats(6, 70)]),
    "mean_all": (lambda b, o, i, x: b.sum(x.shape, lambda *k: x(*k)) / 210.0, (), [floats(2, 3, 35)]),
    "normalise_all": (lambda b, o, i, x: x(*i) - b.rmax(x.shape, lambda *k: x(*k)), (6, 35), [floats(6, 35)]),
    "column_sum": (lambda b, o, i, x: b.sum(x.shape[0], lambda k: x(k, i[0])), (35,), [floats(40, 35)]),
    "inner_axes": (lambda b, o, i, x: b.rmin((3, 5), lambda j, k: x(i[0], j, i[1], k)), (4, 6), [floats(4, 3, 6, 5)]),
    "nested": (lambda b, o, i, x: b.sum(x.shape[0], lambda k: b.rmax(x.shape[2], lambda j: x(k, i[0], j))), (5,),
               [floats(3, 5, 40)]),
}  # fmt: skip


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_compiled_agrees_with_the_evaluator(case, isa):
    lower, shape, inputs = CASES[case]
    agree(OutSpec(shape, "float32"), lower, inputs, isa)


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_gather_and_one_hot(index_dtype, isa):
    x, indices = floats(6, 19), np.array([5, -3, 0, 99, 2], index_dtype)
    rows = lambda b, o, i, x, k: x(b.clamp_index(k(i[0]), 6), i[1])
    agree(OutSpec((5, 19), "float32"), rows, [x, indices], isa)
    columns = np.array([18, 0, 7] * 7, index_dtype)
    agree(OutSpec((6, 21), "float32"), lambda b, o, i, x, k: x(i[0], b.clamp_index(k(i[1]), 19)), [x, columns], isa)
    hot = lambda b, o, i, k: b.select(b.eq(b.cast(k(i[0]), "int64"), i[1]), b.const(1.0, "float32"), 0.0)
    agree(OutSpec((5, 7), "float32"), hot, [indices], isa)


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint16", "int64", "float16"])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_arg_reductions_find_the_first(kind, dtype, isa):
    x = values(dtype, (4, 33)) if dtype != "float16" else floats(4, 33).astype(dtype)
    x[1, 20], x[2, 5] = x[1, 7], x[2, 30]
    agree(OutSpec((4,), "int64"), lambda b, o, i, x: getattr(b, kind)(33, lambda k: x(i[0], k)), [x], isa)
    agree(
        OutSpec((33,), "int32"), lambda b, o, i, x: b.cast(getattr(b, kind)(4, lambda k: x(k, i[0])), "int32"), [x], isa
    )


def defined(op, dtype):
    """Whether a scalar function takes a dtype."""
    rule = SCALAR_OPS[op]
    if (
        op in ("shl", "shr", "bnot", "neg", "sub", "floordiv", "floormod", "truncdiv", "truncmod", "pow", "div")
        and dtype == "bool"
    ):
        return False
    is_float = "float" in dtype
    return {
        "float": is_float, "int": not is_float, "logic": dtype == "bool", "select": False, "bytes": dtype == "int32",
        "ordinal": is_float, "word": dtype in ("uint32", "uint64"),
        "same": dtype != "bool" or op in ("add", "mul", "max", "min", "abs"),
    }.get(rule.kind, True)  # fmt: skip


@pytest.mark.parametrize("isa", ["avx512", "generic"])
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_scalar_function_for_every_dtype(dtype, isa):
    x, y = values(dtype, (45,)), np.roll(values(dtype, (45,)), 3)
    for op in SCALAR_OPS:
        if not defined(op, dtype):
            continue
        rule = SCALAR_OPS[op]
        out = OutSpec((45,), rule.result(dtype))
        lower = lambda b, o, i, *ins, op=op: apply(op, *(x(*i) for x in ins))
        inputs = [x, y, y[::-1]][: rule.arity]
        if op == "pow" and dtype != "bool":
            inputs = [x, (np.abs(y.astype("float64")) % 5).astype(dtype) if "float" in dtype else y]
        try:
            agree(out, lower, inputs, isa, rtol=3e-6 if dtype != "float64" else 1e-12, atol=1e-7)
        except AssertionError as error:
            raise AssertionError(f"{op} of {dtype}") from error


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("source", sorted(DTYPES))
def test_casts(source, isa):
    x = values(source, (37,))
    for target in sorted(DTYPES):
        agree(OutSpec((37,), target), lambda b, o, i, x, t=target: b.cast(x(*i), t), [x], isa)


@pytest.mark.parametrize("dtype", sorted(DTYPES - {"bool"}))
@pytest.mark.parametrize("kind", ["sum", "rmax", "rmin", "prod"])
def test_reductions_of_every_dtype(kind, dtype):
    x = (RNG.integers(1, 4, (5, 67))).astype(dtype)
    for shape, lower in [
        ((5,), lambda b, o, i, x: getattr(b, kind)(20, lambda k: x(i[0], k))),
        ((67,), lambda b, o, i, x: getattr(b, kind)(5, lambda k: x(k, i[0]))),
    ]:
        agree(OutSpec(shape, dtype), lower, [x], "avx512", rtol=1e-5)


@pytest.mark.parametrize("isa", TARGETS)
def test_logic_and_reductions_of_bool(isa):
    x = values("bool", (6, 41))
    agree(OutSpec((6,), "bool"), lambda b, o, i, x: b.any(41, lambda k: x(i[0], k)), [x], isa)
    agree(OutSpec((41,), "bool"), lambda b, o, i, x: b.all(6, lambda k: x(k, i[0])), [x], isa)
    agree(OutSpec((6, 41), "float32"), lambda b, o, i, x: b.select(~x(*i), b.const(2.0, "float32"), -1.0), [x], isa)


@pytest.mark.parametrize("isa", TARGETS)
def test_extremes_propagate_nan(isa):
    x = floats(5, 70)
    x[1, 3] = x[3, 69] = np.nan
    for kind in ("rmax", "rmin"):
        agree(
            OutSpec((5,), "float32"), lambda b, o, i, x, kind=kind: getattr(b, kind)(70, lambda k: x(i[0], k)), [x], isa
        )
        agree(
            OutSpec((70,), "float32"), lambda b, o, i, x, kind=kind: getattr(b, kind)(5, lambda k: x(k, i[0])), [x], isa
        )
    agree(OutSpec((5, 70), "float32"), lambda b, o, i, x: b.max(x(*i), 0.0), [x], isa)
    agree(OutSpec((5, 70), "float32"), lambda b, o, i, x: b.min(x(*i), x(i[0], 69 - i[1])), [x], isa)


@pytest.mark.parametrize("isa", TARGETS)
def test_views_with_halo_and_strides(isa):
    inner, outer = (framed((4, 5, 19), ((1, 1), (2, 1), (0, 0))), framed((5, 4, 19), ((0, 0), (1, 2), (0, 0))))
    group = ProgramBuilder("test")
    x = group.read("in0", inner)
    out = OutSpec((5, 4, 19), "float32")
    value = group.compute(out, lambda b, o, i, x: x(i[1], i[0], i[2]) * 2, [x])
    group.write("out0", value, outer)
    source, result = aligned(6 * 8 * 19, "float32"), aligned(5 * 7 * 19, "float32")
    data = floats(4, 5, 19)
    source.reshape(6, 8, 19)[1:5, 2:7] = data
    result[:] = 7
    execute(
        lower_group(group, CpuTarget.parse(TARGETS[isa])), CpuTarget.parse(TARGETS[isa]), [source, result], (0, 0.5, 1)
    )
    image = result.reshape(5, 7, 19)
    np.testing.assert_array_equal(image[:, 1:5], data.transpose(1, 0, 2) * 2)
    image[:, 1:5] = 7
    assert (image == 7).all(), "the halo was written"


@pytest.mark.parametrize("isa", TARGETS)
def test_two_outputs_in_one_kernel(isa):
    group, x = ProgramBuilder("test"), floats(6, 33)
    tensor = group.read("in0", MemoryView.dense(x.shape))
    double = group.compute(OutSpec(x.shape, "float32"), lambda b, o, i, x: x(*i) * 2, [tensor])
    total = group.compute(OutSpec((6,), "float32"), lambda b, o, i, x: b.sum(33, lambda k: x(i[0], k)), [double])
    relu = group.compute(OutSpec(x.shape, "float32"), lambda b, o, i, x: b.max(x(*i), 0), [double])
    for role, value in zip(("out0", "out1", "out2"), (double, total, relu)):
        group.write(role, value, MemoryView.dense(value.shape))
    target = CpuTarget.parse(TARGETS[isa])
    arrays = [aligned(n, "float32") for n in (198, 198, 6, 198)]
    arrays[0][:] = x.ravel()
    execute(lower_group(group, target), target, arrays, (0, 0.4, 1))
    np.testing.assert_allclose(arrays[1].reshape(6, 33), x * 2)
    np.testing.assert_allclose(arrays[2], (x * 2).sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(arrays[3].reshape(6, 33), np.maximum(x * 2, 0))


def test_instructions_know_the_member_of_the_group_that_they_come_from():
    group = ProgramBuilder("test")
    x = group.read("in0", MemoryView.dense((4, 64)))
    out = OutSpec((4, 64), "float32")
    total = group.compute(out, lambda b, o, i, x: b.sqrt(x(*i)), [x])
    value = group.compute(out, lambda b, o, i, x: b.floor(x(*i)), [total])
    group.write("out0", value, MemoryView.dense((4, 64)))
    text = lower_group(group, CpuTarget.parse(TARGETS["avx2"])).text
    part, found = 0, {}
    for line in text.splitlines():
        part = int(line[5:]) if line.startswith("  ; @") else part
        for name in ("sqrt", "floor"):
            if f"@llvm.{name}" in line:
                found.setdefault(name, set()).add(part)
    assert found == {"sqrt": {1}, "floor": {2}}


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
def test_what_is_read_backwards_is_turned_around_in_registers(dtype, isa):
    for n in (1, 7, 33, 129):
        out, x = OutSpec((3, n), dtype), values(dtype, (3, n))
        group = single(out, lambda b, out, i, x: x(i[0], n - 1 - i[1]), [x])  # noqa: B023
        got = run_native(group, [x], out, CpuTarget.parse(TARGETS[isa]))
        np.testing.assert_array_equal(got, x[:, ::-1])
        assert "gather" not in lower_group(group, CpuTarget.parse(TARGETS[isa])).text


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool", "float16"])
@pytest.mark.parametrize("step", [2, 3, 5, 8])
def test_every_nth_element_is_taken_out_of_n_vectors(dtype, isa, step):
    for n, first in ((1, 0), (7, 1), (33, 0), (128, 1)):
        out, x = OutSpec((3, n), dtype), values(dtype, (3, step * n - step + 1 + first))
        group = single(out, lambda b, out, i, x: x(i[0], i[1] * step + first), [x])  # noqa: B023
        got = run_native(group, [x], out, CpuTarget.parse(TARGETS[isa]))
        np.testing.assert_array_equal(got, x[:, first::step])
        wide = isa == "avx512" or step == 2  # vectors have `step` lanes, or more
        assert n < 128 or not wide or "gather" not in lower_group(group, CpuTarget.parse(TARGETS[isa])).text


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("step, before", [(2, 1), (3, 2), (4, 9), (5, 0)])
def test_of_every_nth_element_only_those_inside_are_read(isa, step, before):
    x = values("float32", (4, 61))
    count = (61 + before) // step + 2  # the last ones lie behind the row, the first ones before it

    def lower(b, out, i, x):
        at = i[1] * step - before
        return b.guard(b.inside(at, 61), lambda: x(i[0], at), b.const(-1, "float32"))

    out = OutSpec((4, count), "float32")
    got = run_native(single(out, lower, [x]), [x], out, CpuTarget.parse(TARGETS[isa]))
    at = np.arange(count) * step - before
    np.testing.assert_array_equal(got, np.where((at >= 0) & (at < 61), x[:, at.clip(0, 60)], -1))


def masked(shape: tuple[int, ...], axes: tuple[int, ...]):
    """A tensor times the exponential of another one along some axes, whose others are 1."""
    lower = lambda b, out, i, x, m: x(*i) * b.exp(m(*(i[a] if a in axes else 0 for a in range(len(shape)))))
    inputs = [floats(*shape), floats(*(n if a in axes else 1 for a, n in enumerate(shape)))]
    return OutSpec(shape, "float32"), lower, inputs


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("shape", [(2, 6, 9, 16), (1, 64, 56, 56), (3, 5, 37), (4, 7, 1031), (300, 3), (2, 3, 2, 2048)])
def test_what_some_axes_share_is_right(shape, isa):
    rank = len(shape)
    for axes in (tuple(a for a in range(rank) if bits >> a & 1) for bits in range(2**rank)):
        out, lower, inputs = masked(shape, axes)
        got = run_native(single(out, lower, inputs), inputs, out, CpuTarget.parse(TARGETS[isa]))
        np.testing.assert_allclose(got, inputs[0] * np.exp(inputs[1]), rtol=2e-6)


@pytest.mark.parametrize(
    ("shape", "axes"), [((1, 64, 56, 56), (2, 3)), ((8, 3, 32, 32), (0, 2, 3)), ((40, 1024), (1,))]
)
def test_what_channels_share_is_computed_once(shape, axes):
    out, lower, inputs = masked(shape, axes)
    program = single(out, lower, inputs).program()
    (loop,) = [nest.loop for nest in program.nests]
    known = inputs[1].size // math.prod(a.shape[0] for a in program.scratch)  # rows that are computed, one an item
    assert program.items % known == 0 and program.items >= 4
    text = str(program)
    row, channels = text.index("= exp("), text.index("for ", text.index("= exp("))
    assert row < channels and "exp(" not in text[channels:], loop


def test_values_over_the_same_axes_are_kept_by_one_loop():
    inputs = [floats(16, 512), floats(512)]
    lower = lambda b, out, i, x, m: b.max(x(*i) * b.exp(m(i[1])), b.tanh(m(i[1])))
    program = single(OutSpec((16, 512), "float32"), lower, inputs).program()
    lines = [line.strip() for line in str(program).splitlines()]
    stores = [k for k, line in enumerate(lines) if line.startswith("row")]
    assert len(stores) == 2 and stores[1] == stores[0] + 1


@pytest.mark.parametrize("isa", TARGETS)
def test_windows_lie_side_by_side_in_lanes_and_guards_at_the_ends_alone(isa):
    out, x = OutSpec((3, 200), "float32"), floats(3, 400)

    def window(b, out, i, x):
        at = lambda k: i[1] * 2 + k - 1
        return b.rmax(4, lambda k: b.guard(b.inside(at(k), 400), lambda: x(i[0], at(k)), -9.0))

    agree(out, window, [x], isa)
    text = str(single(out, window, [x]).program())
    assert text.count("guard(") == 2 and "in 198 vectorized" in text
