"""What a build does to be quick: weights are packed by several threads, in parts; garbage collection rests."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.operations.jobs import PackedConstant
from relaylab.codegen.operations.plan import ALIGNMENT, PREFETCHED, _ConstantPool
from relaylab.codegen.templates.minimal import COLUMNS, WEIGHT_TRANSFORM, transform_weights
from relaylab.support.errors import RelayError


def values(k: int) -> np.ndarray:
    return np.full(10 + 1000 * (k % 3), k, "float32")


def slow(k: int) -> PackedConstant:
    """The first ones take longest."""
    return PackedConstant((k,), lambda: (time.sleep(0.01 / (k + 1)), values(k))[1])


def test_many_lie_where_one_after_another_would() -> None:
    many, single = _ConstantPool(64), _ConstantPool(64)
    many.add_all(slow(k) for k in (0, 1, 2, 1, 3, 0, 4))
    offsets = [single.add(slow(k)) for k in range(5)]
    assert [many.add(slow(k)) for k in range(5)] == offsets
    assert many.blob().tobytes() == single.blob().tobytes()
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    assert len(many.blob()) >= offsets[-1] + values(4).nbytes + PREFETCHED


def test_an_error_while_packing_is_raised() -> None:
    def fail() -> np.ndarray:
        raise ValueError("no weights")

    with pytest.raises(ValueError, match="no weights"):
        _ConstantPool(64).add_all([slow(0), PackedConstant(("bad",), fail)])


@pytest.mark.parametrize("m", sorted(WEIGHT_TRANSFORM))
@pytest.mark.parametrize("count", [1, COLUMNS - 1, COLUMNS, 2 * COLUMNS + 5])
def test_weights_are_transformed_in_parts(m: int, count: int) -> None:
    g = WEIGHT_TRANSFORM[m]
    kernel = np.random.default_rng(m).standard_normal((g.shape[1], g.shape[1], count)).astype("float32")
    wanted, taps = np.einsum("pi,qj,ijn->pqn", g, g, kernel).reshape(-1, count), kernel.reshape(-1, count)
    assert transform_weights(m, taps).dtype == np.float32
    np.testing.assert_allclose(transform_weights(m, taps), wanted, rtol=1e-5, atol=1e-5)


def test_a_build_leaves_garbage_collection_as_it_was() -> None:
    x = relay.var("x", shape=(2, 3))
    good = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    bad = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(np.ones((2, 2), "float32")))))
    try:
        for switch in (gc.enable, gc.disable):
            switch()
            before = gc.isenabled()
            relay.build(good, "llvm")
            assert gc.isenabled() is before
            with pytest.raises(RelayError):
                relay.build(bad, "llvm")
            assert gc.isenabled() is before
    finally:
        gc.enable()
