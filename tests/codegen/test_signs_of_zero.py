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
