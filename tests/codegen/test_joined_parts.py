"""Parts of a result that fill each other's gaps are one loop, whose vectors are interleaved."""

import numpy as np
import pytest
from kernel_runner import runnable_targets

from relaylab import relay
from relaylab.relay.transform import PassContext

TARGETS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}
SHAPES = [(2, 16), (3, 33), (1, 5, 64), (7, 15), (4, 130)]


def stacked(shape, dtype, count, isa):
    """The library of numbers of a row beside each other, each computed otherwise, and what it gives."""
    rng = np.random.default_rng(count)
    x = rng.integers(0, 2, shape).astype(dtype) if dtype == "bool" else (rng.normal(size=shape) * 9).astype(dtype)
    var = relay.var("x", shape=shape, dtype=dtype)
    if dtype == "bool":
        parts, want = [var, relay.logical_not(var)] * 4, [x, ~x] * 4
    else:
        parts = [relay.add(var, relay.const(k, dtype)) for k in range(8)]
        want = [
            (x.astype("float32") + k).astype(dtype) if dtype == "float16" else x + x.dtype.type(k) for k in range(8)
        ]
    mod = relay.IRModule.from_expr(relay.stack(parts[:count], axis=len(shape)))
    with PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        lib = relay.build(mod, target=f"llvm -mcpu={TARGETS[isa]}")
    return lib, lib.run(x=x), np.stack(want[:count], -1)


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint16", "int64", "bool"])
def test_numbers_beside_each_other(dtype, count, isa) -> None:
    for shape in SHAPES if dtype == "float32" else SHAPES[1:2]:
        _, found, want = stacked(shape, dtype, count, isa)
        np.testing.assert_array_equal(found, want)


def test_they_are_one_vectorised_loop() -> None:
    lib, _, _ = stacked((4, 130), "float16", 2, runnable_targets()[-1])
    (kernel,) = lib.kernels()
    text = lib.inspect("loop", kernel)
    assert text.count("parallel") == 1 and "vectorized" in text


def test_pairs_that_are_turned() -> None:
    """Rotary positions of neighbours: what is read lies as far apart as what is written."""
    shape, rng = (2, 5, 48), np.random.default_rng(1)
    x, c, s = rng.normal(size=shape).astype("float32"), *rng.normal(size=(2, 5, 24)).astype("float32")
    var, cos, sin = relay.var("x", shape=shape), relay.var("c", shape=(5, 24)), relay.var("s", shape=(5, 24))
    even, odd = (relay.strided_slice(var, [0, 0, k], [2, 5, 48], [1, 1, 2]) for k in range(2))
    pair = relay.stack([even * cos - odd * sin, odd * cos + even * sin], axis=3)
    lib = relay.build(relay.IRModule.from_expr(relay.reshape(pair, shape)), target="llvm")
    z = (x[..., ::2] + 1j * x[..., 1::2]) * (c + 1j * s)
    np.testing.assert_allclose(
        lib.run(x=x, c=c, s=s), np.stack([z.real, z.imag], -1).reshape(shape), rtol=2e-5, atol=1e-5
    )


def test_parts_with_sums_stay_apart() -> None:
    """A sum for each element is no vector that is worth interleaving: both ways are right."""
    x = np.random.default_rng(2).normal(size=(40, 9)).astype("float32")
    var = relay.var("x", shape=x.shape)
    both = relay.stack([relay.sum(var, axis=1), relay.max(var, axis=1)], axis=1)
    found = relay.build(relay.IRModule.from_expr(both), target="llvm").run(x=x)
    np.testing.assert_allclose(found, np.stack([x.sum(1), x.max(1)], 1), rtol=1e-5, atol=1e-5)
