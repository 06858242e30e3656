"""float16 and bfloat16 on every instruction set: conversions to the bit, products summed in float32, rounded once."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.build import BASELINE
from relaylab.ir import post_order, structural_equal
from relaylab.runtime import array, cpu, graph_executor, load_module
from relaylab.support.errors import RelayError

TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", BASELINE)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""By how much, relatively, a number may be rounded."""
BITS = tuple(UNIT)
RANDOM = np.random.default_rng(3)


def run(body: relay.Expr, target: str, **inputs: np.ndarray) -> np.ndarray:
    params = relay.analysis.free_vars(body)
    lib = relay.build(relay.IRModule.from_expr(relay.Function(params, body)), target)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(**inputs)
    return module.get_output(0).numpy()


def variable(name: str, x: np.ndarray) -> relay.Var:
    return relay.var(name, shape=x.shape, dtype=x.dtype.name)


def halfway(short: str, dtype: str) -> np.ndarray:
    """Every number of 16 bits, those between neighbours, those just beside them, and some at random."""
    every = np.arange(1 << 16, dtype="uint16").view(short)
    wide = every.astype("float64")
    finite = np.sort(wide[np.isfinite(wide)])
    middle = (finite[1:] + finite[:-1]) / 2
    beside = [np.nextafter(middle.astype(dtype), np.array(end, dtype)) for end in (-np.inf, np.inf)]
    ends = [65519.99, 65520.0, -65520.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**-25, 2.0**-26]
    ends += [3.39e38, 3.4e38, 1e-40, -1e-45]
    some = RANDOM.standard_normal(1000) * 10.0 ** RANDOM.integers(-9, 6, 1000)
    return np.concatenate([x.astype(dtype) for x in (every, middle, *beside, np.array(ends), some)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("short", BITS)
def test_conversions_round_as_numpy_does(target: str, dtype: str, short: str) -> None:
    x = halfway(short, dtype)
    found = run(relay.cast(variable("x", x), short), target, x=x)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(short)
    same_bits(found, want)
    back = run(relay.cast(variable("x", want), dtype), target, x=want)
    np.testing.assert_array_equal(back, want.astype(dtype))


def same_bits(found: np.ndarray, want: np.ndarray) -> None:
    """Equal to the bit; NaN with either sign."""
    assert found.dtype == want.dtype
    nan = np.isnan(want.astype("float64"))
    np.testing.assert_array_equal(np.isnan(found.astype("float64")), nan)
    np.testing.assert_array_equal(*(v.view("uint16")[~nan] for v in (found, want)))


def test_bfloat16_is_rounded_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    for x in (halfway("bfloat16", "float32"), halfway("bfloat16", "float64"), RANDOM.integers(-(2**62), 2**62, 999)):
        mod = relay.IRModule.from_expr(relay.cast(variable("x", x), "bfloat16"))
        want = torch.from_numpy(x).to(torch.bfloat16).view(torch.int16).numpy().view("bfloat16")
        for executor in ("debug", "graph"):
            same_bits(relay.create_executor(executor, mod).evaluate()(x).numpy(), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("short", BITS)
def test_integers_round_before_they_are_used(target: str, short: str) -> None:
    x = np.array([257, 259, 2049, 2051, -4097, 65519, 70000, 7, 0, 1 << 24], "int32")
    found = run(relay.cast(relay.cast(variable("x", x), short), "float32"), target, x=x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype(short).astype("float32"))


def conv(x: relay.Expr, w: relay.Expr, **attrs: object) -> relay.Expr:
    return relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), **attrs)


PRODUCTS = {
    "dense": ((5, 200), (37, 200), lambda x, w: relay.nn.dense(x, w, units=37)),
    "batch_matmul": ((2, 5, 70), (2, 9, 70), lambda x, w: relay.nn.batch_matmul(x, w, transpose_b=True)),
    "conv2d": ((1, 20, 9, 7), (18, 20, 3, 3), lambda x, w: conv(x, w, channels=18)),
    "depthwise": ((1, 20, 9, 7), (20, 1, 3, 3), lambda x, w: conv(x, w, channels=20, groups=20)),
    "transpose": (
        (1, 6, 5, 4),
        (6, 7, 3, 3),
        lambda x, w: relay.nn.conv2d_transpose(
            x, w, channels=7, kernel_size=(3, 3), strides=(2, 2), kernel_layout="IOHW"
        ),
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("short", BITS)
def test_products_are_rounded_once(name: str, target: str, constant: bool, short: str) -> None:
    """Within the float32 sum's error and half a unit of 16 bits of torch's product in float64."""
    torch = pytest.importorskip("torch")
    shape, weight_shape, make = PRODUCTS[name]
    x, w = (RANDOM.standard_normal(s).astype(short) for s in (shape, weight_shape))
    weight = relay.const(w) if constant else variable("w", w)
    found = run(make(variable("x", x), weight), target, **({"x": x} if constant else {"x": x, "w": w}))
    a, b = (torch.from_numpy(v.astype("float64")) for v in (x, w))
    f = torch.nn.functional
    want = {
        "dense": lambda: a @ b.T,
        "batch_matmul": lambda: a @ b.transpose(1, 2),
        "conv2d": lambda: f.conv2d(a, b, padding=1),
        "depthwise": lambda: f.conv2d(a, b, padding=1, groups=20),
        "transpose": lambda: f.conv_transpose2d(a, b, stride=2),
    }[name]()
    assert found.dtype == short
    sums = 1e-5 * np.abs(want.numpy()).max()  # minimal filtering is relative to the largest
    np.testing.assert_allclose(found.astype("float64"), want.numpy(), rtol=UNIT[short] * 1.01, atol=sums)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("short", BITS)
def test_a_layer_of_16_bits_is_one_kernel(target: str, short: str) -> None:
    """Bias, activation and residual sum read 16 bits in the kernel of the product, and NaN passes."""
    x, w, bias, rest = (RANDOM.standard_normal(s).astype(short) for s in ((3, 20), (35, 20), (35,), (3, 35)))
    x[1, 4], rest[2, 1] = np.nan, np.inf
    dense = relay.nn.bias_add(relay.nn.dense(variable("x", x), relay.const(w), units=35), relay.const(bias), axis=-1)
    body = relay.nn.relu(dense) + variable("r", rest)
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    names = relay.build(mod, target).kernels()
    assert sum("dense" in n for n in names) == 1 and len(names) == 2, names  # the product, and x in float32
    rounded = (x.astype("float64") @ w.T.astype("float64")).astype(short)
    want = (np.maximum((rounded + bias).astype(short), 0) + rest).astype("float32")
    bar = 6 * UNIT[short]
    np.testing.assert_allclose(run(body, target, x=x, r=rest).astype("float32"), want, rtol=bar, atol=bar)


@pytest.mark.parametrize(("target", "expected"), [("llvm -mcpu=x86-64-v3", True), (BASELINE, False)])
def test_conversions_are_instructions_where_there_are_some(target: str, expected: bool) -> None:
    x = relay.var("x", shape=(64, 64), dtype="float16")
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), target)
    text = lib.inspect("asm")
    assert bool(re.search(r"vcvtph2ps\s+\S+,\s+%ymm", text)) is expected
    assert bool(re.search(r"vcvtps2ph\s+\S+,\s+%ymm", text)) is expected
    assert "extendhfsf" not in text and "truncsfhf" not in text


def test_bfloat16_is_stored_and_read_back(tmp_path: Path) -> None:
    """Text, parameters and the compiled file give back the bits; the array is one of ml_dtypes."""
    x, w = (RANDOM.standard_normal(s).astype("bfloat16") for s in ((2, 6), (3, 6)))
    body = relay.nn.softmax(relay.nn.dense(variable("x", x), relay.const(w)))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(body))
    again = relay.parse(mod.astext())
    assert structural_equal(again, mod) and again.astext() == mod.astext()
    stored = relay.load_param_dict(bytes(relay.save_param_dict({"w": w})))["w"]
    same_bits(stored.numpy(), w)
    lib = relay.build(mod, "llvm")
    lib.export_library(tmp_path / "net.tar")
    loaded = graph_executor.GraphModule(load_module(tmp_path / "net.tar")["default"](cpu(0)))
    loaded.run(x=x)
    found = loaded.get_output(0)
    assert found.dtype == "bfloat16" and isinstance(found.numpy()[0, 0], ml_dtypes.bfloat16)
    same_bits(found.numpy(), run(body, "llvm", x=x))


def test_bfloat16_in_mixed_precision_and_folding() -> None:
    x, w = variable("x", np.zeros((2, 8), "float32")), RANDOM.standard_normal((5, 8)).astype("float32")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(w)))))
    mixed = relay.transform.ToMixedPrecision("bfloat16")(relay.transform.InferType()(mod))
    mixed = relay.transform.InferType()(relay.transform.FoldConstant()(mixed))
    assert str(mixed["main"].ret_type) == "Tensor[(2, 5), bfloat16]"
    (weight,) = [n for n in post_order(mixed["main"]) if isinstance(n, relay.Constant)]
    same_bits(weight.data.numpy(), w.astype("bfloat16"))


def test_what_bfloat16_cannot_do_is_said() -> None:
    with pytest.raises(RelayError, match="does not share bfloat16") as found:
        array(np.ones(3, "bfloat16")).to_dlpack()
    assert found.value.code == "runtime.dlpack"
    drawn = relay.random.uniform(relay.random.threefry_key(1), (3,), "bfloat16")[1]
    with pytest.raises(RelayError, match="makes float16, float32"):
        relay.transform.InferType()(relay.IRModule.from_expr(drawn))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bits_are_read_as_floats_of_16_bits_and_back(dtype):
    bits = np.arange(1 << 16, dtype="uint16")
    bits = bits[~np.isnan(bits.view(np.dtype(dtype)).astype("float32"))]
    word, number = relay.var("x", shape=bits.shape, dtype="uint16"), relay.var("x", shape=bits.shape, dtype=dtype)
    floats = bits.view(np.dtype(dtype))
    run = lambda x, body, value: relay.build(relay.IRModule.from_expr(relay.Function([x], body)), "llvm").run(x=value)
    np.testing.assert_array_equal(run(word, relay.reinterpret(word, dtype), bits).view("uint16"), bits)
    np.testing.assert_array_equal(run(number, relay.reinterpret(number, "uint16"), floats), bits)
    third = relay.multiply(number, relay.const(1 / 3, dtype))  # one kernel: what it gives is rounded before
    stored = run(number, third, floats).view("int16")
    np.testing.assert_array_equal(run(number, relay.reinterpret(third, "int16"), floats), stored)


@pytest.mark.parametrize("dtype", BITS)
def test_a_transposed_side_of_a_product_is_read_where_it_lies(dtype: str) -> None:
    """It was transposed as it became float32, and again as it was multiplied."""
    x, w = (RANDOM.normal(size=shape).astype(dtype) for shape in ((8, 1, 64), (8, 64, 300)))
    product = relay.nn.batch_matmul(variable("x", x), relay.transpose(variable("w", w), axes=[0, 2, 1]))
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(relay.IRModule.from_expr(product), "llvm")
    assert not any("transpose" in kernel for kernel in lib.kernels())
    want = x.astype("float64") @ w.astype("float64")
    np.testing.assert_allclose(lib.run(x=x, w=w).astype("float64"), want, rtol=2 * UNIT[dtype], atol=8 * UNIT[dtype])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", BITS)
def test_running_sums_are_converted_by_vectors(dtype: str, target: str) -> None:
    """Each element waited for the total, as its conversion was written into the same register."""
    x = (RANDOM.normal(size=(3, 700)) / 8).astype(dtype)
    for axis, exclusive in ((1, False), (1, True), (0, False), (None, False)):
        wide = np.cumsum(x.astype("float64"), axis=axis)
        want = np.concatenate([np.zeros((3, 1)), wide[:, :-1]], axis=1) if exclusive else wide
        got = run(relay.cumsum(variable("x", x), axis=axis, exclusive=exclusive), target, x=x)
        np.testing.assert_allclose(got.astype("float64"), want, rtol=UNIT[dtype], atol=UNIT[dtype] / 8)
    lib = relay.build(relay.IRModule.from_expr(relay.cumsum(variable("x", x), axis=1)), target)
    assert lib.inspect("loop", lib.kernels()[0]).count("vectorized") == 2
    near = (1 + RANDOM.normal(size=(2, 40)) / 64).astype(dtype)
    got = run(relay.cumprod(variable("x", near), axis=1), target, x=near)
    np.testing.assert_allclose(got.astype("float64"), np.cumprod(near.astype("float64"), axis=1), rtol=2 * UNIT[dtype])


@pytest.mark.parametrize("dtype", BITS)
def test_no_float32_copy_is_written_for_a_norm(dtype) -> None:
    """Mean, variance and what is normalised read the 16 bits, each for itself."""
    x, scale, shift = (RANDOM.normal(size=s).astype(dtype) for s in ((1, 8, 24, 24), (8,), (8,)))
    sides = [variable(n, a) for n, a in (("x", x), ("g", scale), ("b", shift))]
    body = relay.nn.group_norm(*sides, num_groups=2)
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(relay.IRModule.from_expr(relay.Function(sides, body)), "llvm")
    assert not [k for k in lib.kernels() if "out0 float32[4608]" in lib.inspect("loop", k)]
    wide = x.astype("float64").reshape(1, 2, -1)
    wide = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    want = wide.reshape(x.shape) * scale.astype("float64")[:, None, None] + shift.astype("float64")[:, None, None]
    found = lib.run(x=x, g=scale, b=shift).astype("float64")
    np.testing.assert_allclose(found, want, rtol=8 * UNIT[dtype], atol=8 * UNIT[dtype])
