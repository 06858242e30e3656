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
