"""Weights of 16 bits that few rows meet are read as they are given, and widened in registers."""

import numpy as np
import pytest
from kernel_runner import runnable_targets

from relaylab import relay
from relaylab.relay.transform import PassContext
from relaylab.support.dtypes import BFLOAT16

TARGETS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}


def product(rows, depth, columns, dtype, name="dense", data=None, out=None):
    """A program, its input, its weight, and what it gives in float64."""
    rng = np.random.default_rng(rows + columns)
    shape = (columns, depth) if name == "dense" else (depth, columns)
    x = rng.normal(size=(rows, depth)).astype(data or dtype)
    w = (rng.normal(size=shape) / 8).astype(dtype)
    var = relay.var("x", shape=x.shape, dtype=x.dtype.name)
    call = getattr(relay.nn, name)(var, relay.const(w), **({"out_dtype": out} if out else {}))
    wide = x.astype("float64"), w.astype("float64")
    return relay.IRModule.from_expr(call), x, wide[0] @ (wide[1].T if name == "dense" else wide[1])


def built(mod, isa):
    with PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        return relay.build(mod, target=f"llvm -mcpu={TARGETS[isa]}")


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("dtype", ["float16", BFLOAT16.name])
@pytest.mark.parametrize("name", ["dense", "matmul"])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 512, 300), (8, 700, 129), (3, 130, 515), (9, 512, 300)])
def test_products_by_weights_of_16_bits(rows, depth, columns, name, dtype, isa):
    mod, x, want = product(rows, depth, columns, dtype, name)
    lib = built(mod, isa)
    found = lib.run(x=x)
    assert found.dtype == np.dtype(dtype)
    step = 2**-10 if dtype == "float16" else 2**-7
    np.testing.assert_allclose(found.astype("float64"), want, rtol=step, atol=1e-5)
    text = "\n".join(lib.inspect("loop", kernel) for kernel in lib.kernels())
    reads = dtype == BFLOAT16.name or isa != "generic"  # SSE2 has no conversion of halves
    assert (f"weight0 {dtype}[" in text) == (rows <= 8 and reads), text


@pytest.mark.parametrize(("data", "out"), [("float32", "float32"), ("float32", "float16"), ("float16", "float32")])
def test_data_and_results_of_other_types(data, out):
    mod, x, want = product(2, 600, 200, "float16", data=data, out=out)
    lib = built(mod, runnable_targets()[-1])
    found = lib.run(x=x)
    assert found.dtype == np.dtype(out)
    np.testing.assert_allclose(found.astype("float64"), want, rtol=2**-10 if out == "float16" else 2e-5, atol=1e-5)


def test_subnormal_and_infinite_weights():
    """Each number of 16 bits is the float32 that it is."""
    every = np.arange(1 << 16, dtype="uint16")
    for dtype in ("float16", BFLOAT16.name):
        w = every.view(dtype)
        mod = relay.IRModule.from_expr(relay.nn.dense(relay.var("x", shape=(1, 1)), relay.const(w.reshape(-1, 1))))
        wide = built(mod, runnable_targets()[-1]).run(x=np.ones((1, 1), "float32"))
        np.testing.assert_array_equal(wide.reshape(-1), w.astype("float32"))


def test_a_bias_and_what_follows_are_fused():
    mod, x, want = product(1, 512, 256, "float16")
    bias = np.linspace(-3, 3, 256).astype("float16")
    body = relay.nn.relu(relay.nn.bias_add(mod["main"].body, relay.const(bias)))
    lib = built(relay.IRModule.from_expr(relay.Function(mod["main"].params, body)), runnable_targets()[-1])
    want = np.maximum(want.astype("float16").astype("float64") + bias, 0)
    np.testing.assert_allclose(lib.run(x=x).astype("float64"), want, rtol=2**-9, atol=2**-8)


INPUTS = [
    ("dense", (1, 300), (250, 300), {}),
    ("dense", (4, 300), (250, 300), {}),
    ("matmul", (2, 300), (300, 257), {}),
    ("batch_matmul", (3, 1, 64), (3, 500, 64), {}),
    ("batch_matmul", (3, 4, 70), (3, 500, 70), {}),
    ("batch_matmul", (3, 2, 500), (3, 500, 70), {"transpose_b": False}),
    ("batch_matmul", (2, 500, 3), (2, 500, 70), {"transpose_a": True, "transpose_b": False}),
    ("batch_matmul", (3, 2, 500), (1, 500, 140), {"transpose_b": False}),
]


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("dtype", ["float16", BFLOAT16.name])
@pytest.mark.parametrize("case", INPUTS, ids=str)
def test_a_side_of_16_bits_that_is_an_input(case, dtype, isa):
    """A cache of keys and values: nothing is written in float32 before few rows meet it."""
    name, left, right, attrs = case
    rng = np.random.default_rng(left[-1])
    inputs = {"x": rng.normal(size=left).astype(dtype), "w": (rng.normal(size=right) / 8).astype(dtype)}
    sides = [relay.var(n, shape=a.shape, dtype=dtype) for n, a in inputs.items()]
    lib = built(relay.IRModule.from_expr(getattr(relay.nn, name)(*sides, **attrs)), isa)
    x, w = (a.astype("float64") for a in inputs.values())
    x = x.swapaxes(1, 2) if attrs.get("transpose_a") else x
    turned = name == "dense" or attrs.get("transpose_b", name == "batch_matmul")
    want = x @ (w.swapaxes(-1, -2) if turned else w)
    step = 2**-10 if dtype == "float16" else 2**-7
    np.testing.assert_allclose(lib.run(**inputs).astype("float64"), want, rtol=step, atol=2e-5)
    text = "\n".join(lib.inspect("loop", kernel) for kernel in lib.kernels())
    assert f"in1 {dtype}[" in text, text


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_keys_that_the_program_widens(rows):
    """As PyTorch writes attention of float16: keys, transposed and scaled, and values become float32 first."""
    rng = np.random.default_rng(rows)
    shapes = {"q": (1, 3, rows, 32), "k": (1, 3, 700, 32), "v": (1, 3, 700, 32)}
    inputs = {n: rng.normal(size=s).astype("float16") for n, s in shapes.items()}
    q, k, v = (relay.cast(relay.var(n, shape=s, dtype="float16"), "float32") for n, s in shapes.items())
    k = relay.transpose(k, (0, 1, 3, 2)) * relay.const(0.25, "float32")
    q, k, v = (relay.reshape(a, (3, *s)) for a, s in zip((q, k, v), ((rows, 32), (32, 700), (700, 32))))
    weights = relay.nn.softmax(relay.nn.batch_matmul(q, k, transpose_b=False))
    lib = built(relay.IRModule.from_expr(relay.nn.batch_matmul(weights, v, transpose_b=False)), runnable_targets()[-1])
    q, k, v = (a.astype("float64")[0] for a in inputs.values())
    scores = np.exp(q @ k.swapaxes(1, 2) / 4)
    want = scores / scores.sum(axis=-1, keepdims=True) @ v
    np.testing.assert_allclose(lib.run(**inputs), want, rtol=2e-5, atol=2e-6)
    wide = [k for k in lib.kernels() if "cast" in k and "67200" in lib.inspect("loop", k).split("out0")[2]]
    assert len(wide) == (2 if rows > 4 else 0)
