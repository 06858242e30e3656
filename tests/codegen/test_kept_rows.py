"""Exponentials of long rows are kept where their results go, those of short ones in scratch."""

import numpy as np
import pytest
from kernel_runner import runnable_targets

from relaylab import relay
from relaylab.relay.transform import PassContext

TARGETS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}


def built(x, isa, after=lambda e: e):
    var = relay.var("x", shape=x.shape, dtype=x.dtype.name)
    with PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        mod = relay.IRModule.from_expr(after(relay.nn.softmax(var)))
        return relay.build(mod, target=f"llvm -mcpu={TARGETS[isa]}")


def softmax(x):
    wide = x.astype("float64")
    with np.errstate(invalid="ignore"):
        weights = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 100), (2, 4095), (2, 3, 4097), (1, 70001)])
def test_softmax_of_rows(shape, dtype, isa):
    x = np.random.default_rng(3).normal(size=shape).astype(dtype) * 4
    x[..., -1, 7] = -np.inf
    if shape[-2] > 1:
        x[..., 0, 50] = np.nan
    lib = built(x, isa)
    assert ("scratch" in lib.inspect("loop", "softmax")) == (shape[-1] < 4096)
    found, want = lib.run(x=x), softmax(x)
    assert np.isnan(found).any(axis=-1).sum() == (0 if shape[-2] == 1 else np.isnan(want).any(axis=-1).sum())
    np.testing.assert_allclose(found, want, rtol=4e-3 if dtype == "float16" else 2e-5, atol=1e-7)


def test_what_follows_does_not_change_what_is_kept():
    x = np.random.default_rng(5).normal(size=(2, 5000)).astype("float32")
    lib = built(x, runnable_targets()[-1], lambda e: relay.sqrt(e) + relay.const(1.0))
    np.testing.assert_allclose(lib.run(x=x), np.sqrt(softmax(x)) + 1, rtol=2e-5)
