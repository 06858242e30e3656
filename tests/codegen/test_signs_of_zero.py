"""Quotients and remainders that are rounded down: a 0 has the sign that numpy gives it."""

import numpy as np
import pytest
from kernel_runner import runnable_targets

from relaylab import relay

TARGETS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}
NUMBERS = (0.0, -0.0, 0.1, -0.1, 1.0, -1.0, 2.5, -2.5, 7.0, 1e4, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("name", "function"), [("floor_divide", np.floor_divide), ("floor_mod", np.mod), ("mod", np.fmod)]
)
def test_zeros_have_signs(name, function, dtype, isa) -> None:
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(NUMBERS, NUMBERS))
    sides = [relay.var(n, shape=x.shape, dtype=dtype) for n in "xy"]
    lib = relay.build(relay.IRModule.from_expr(getattr(relay, name)(*sides)), f"llvm -mcpu={TARGETS[isa]}")
    with np.errstate(all="ignore"):
        want = function(x, y)
    found, there = lib.run(x=x, y=y), ~np.isnan(want)
    np.testing.assert_array_equal(found[want == 0], want[want == 0])
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(want[there]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_relu_keeps_a_zero_everywhere(dtype) -> None:
    """The interpreter took numpy's maximum of two zeros, whose sign depends on the data type."""
    x = np.array([-0.0, 0.0, -1, 2, np.nan] * 9, dtype)
    mod = relay.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=x.shape, dtype=dtype)))
    known = relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
    for found in (known, relay.build(mod, "llvm").run(x=x)):
        np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(np.where(x < 0, 0, x)[:-1]))


def test_sigmoid_has_digits_where_the_exponential_is_infinite() -> None:
    """1 / (1 + e^-x) for x below -709.8; the values are e^x."""
    x = np.array([-709.0, -710.1, -720.0, -744.0])
    mod = relay.IRModule.from_expr(relay.sigmoid(relay.var("x", shape=x.shape, dtype="float64")))
    np.testing.assert_allclose(
        relay.create_executor("debug", mod=mod).evaluate()(x).numpy(), np.exp(x), rtol=0, atol=5e-324
    )
