"""float16 on every instruction set: conversions to the bit, products summed in float32 and rounded once."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.build import BASELINE
from relaylab.runtime import cpu, graph_executor

TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", BASELINE)
RANDOM = np.random.default_rng(3)


def run(body: relay.Expr, target: str, **inputs: np.ndarray) -> np.ndarray:
    params = relay.analysis.free_vars(body)
    lib = relay.build(relay.IRModule.from_expr(relay.Function(params, body)), target)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(**inputs)
    return module.get_output(0).numpy()


def variable(name: str, x: np.ndarray) -> relay.Var:
    return relay.var(name, shape=x.shape, dtype=x.dtype.name)


def halfway(dtype: str) -> np.ndarray:
    """Every half, the numbers between neighbours, those just beside them, and some at random."""
    every = np.arange(1 << 16, dtype="uint16").view("float16")
    finite = np.sort(every[np.isfinite(every)].astype("float64"))
    middle = (finite[1:] + finite[:-1]) / 2
    beside = [np.nextafter(middle.astype(dtype), np.array(end, dtype)) for end in (-np.inf, np.inf)]
    ends = [65519.99, 65520.0, -65520.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**-25, 2.0**-26]
    some = RANDOM.standard_normal(1000) * 10.0 ** RANDOM.integers(-9, 6, 1000)
    return np.concatenate([x.astype(dtype) for x in (every, middle, *beside, np.array(ends), some)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conversions_round_as_numpy_does(target: str, dtype: str) -> None:
    x = halfway(dtype)
    found = run(relay.cast(variable("x", x), "float16"), target, x=x)
    with np.errstate(over="ignore"):
        want = x.astype("float16")
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
    back = run(relay.cast(variable("x", want), dtype), target, x=want)
    np.testing.assert_array_equal(back, want.astype(dtype))


@pytest.mark.parametrize("target", TARGETS)
def test_integers_round_before_they_are_used(target: str) -> None:
    x = np.array([2049, 2051, -4097, 65519, 70000, 7, 0, 1 << 24], "int32")
    found = run(relay.cast(relay.cast(variable("x", x), "float16"), "float32"), target, x=x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype("float16").astype("float32"))


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
def test_products_are_rounded_once(name: str, target: str, constant: bool) -> None:
    """Within the float32 sum's error and half a unit of float16 of torch's product in float64."""
    torch = pytest.importorskip("torch")
    shape, weight_shape, make = PRODUCTS[name]
    x, w = (RANDOM.standard_normal(s).astype("float16") for s in (shape, weight_shape))
    weight = relay.const(w) if constant else variable("w", w)
    found = run(make(variable("x", x), weight), target, **({"x": x} if constant else {"x": x, "w": w}))
    a, b = (torch.from_numpy(v).double() for v in (x, w))
    f = torch.nn.functional
    want = {
        "dense": lambda: a @ b.T,
        "batch_matmul": lambda: a @ b.transpose(1, 2),
        "conv2d": lambda: f.conv2d(a, b, padding=1),
        "depthwise": lambda: f.conv2d(a, b, padding=1, groups=20),
        "transpose": lambda: f.conv_transpose2d(a, b, stride=2),
    }[name]()
    assert found.dtype == np.float16
    sums = 1e-5 * np.abs(want.numpy()).max()  # minimal filtering is relative to the largest
    np.testing.assert_allclose(found.astype("float64"), want.numpy(), rtol=2**-11 * 1.01, atol=sums)


@pytest.mark.parametrize("target", TARGETS)
def test_a_layer_of_halves_is_one_kernel(target: str) -> None:
    """Bias, activation and residual sum read halves in the kernel of the product, and NaN passes."""
    x, w, bias, rest = (RANDOM.standard_normal(s).astype("float16") for s in ((3, 20), (35, 20), (35,), (3, 35)))
    x[1, 4], rest[2, 1] = np.nan, np.inf
    dense = relay.nn.bias_add(relay.nn.dense(variable("x", x), relay.const(w), units=35), relay.const(bias), axis=-1)
    body = relay.nn.relu(dense) + variable("r", rest)
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    names = relay.build(mod, target).kernels()
    assert sum("dense" in n for n in names) == 1 and len(names) == 2, names  # the product, and x in float32
    rounded = (x.astype("float64") @ w.T.astype("float64")).astype("float16")
    want = np.maximum((rounded + bias).astype("float16"), 0) + rest
    np.testing.assert_allclose(run(body, target, x=x, r=rest), want, rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize(("target", "expected"), [("llvm -mcpu=x86-64-v3", True), (BASELINE, False)])
def test_conversions_are_instructions_where_there_are_some(target: str, expected: bool) -> None:
    x = relay.var("x", shape=(64, 64), dtype="float16")
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), target)
    text = lib.inspect("asm")
    assert bool(re.search(r"vcvtph2ps\s+\S+,\s+%ymm", text)) is expected
    assert bool(re.search(r"vcvtps2ph\s+\S+,\s+%ymm", text)) is expected
    assert "extendhfsf" not in text and "truncsfhf" not in text
