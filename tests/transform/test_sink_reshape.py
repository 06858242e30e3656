"""SinkReshape: products of more axes have their epilogues, and every program computes what it did."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.values import assert_same_results

from relaylab import relay
from relaylab.ir import Call, Expr, IRModule, op_name, post_order
from relaylab.transform.fusion.sink_reshape import FAR, regrouped

nn = relay.nn


def module(body: Expr) -> IRModule:
    return relay.transform.InferType()(IRModule.from_expr(body))


def dense(x: Expr, shape: tuple[int, ...], ins: int, outs: int, name: str = "w") -> Expr:
    """A product of more than two axes, as it is imported."""
    return relay.reshape(nn.dense(relay.reshape(x, (-1, ins)), relay.var(name, shape=(outs, ins))), (*shape, outs))


def gelu(x: Expr) -> Expr:
    return x * relay.const(0.5) * (relay.erf(x / relay.const(1.4142135)) + relay.const(1.0))


def calls(mod: IRModule) -> list[str]:
    return [op_name(e) for e in post_order(mod["main"].body) if isinstance(e, Call)]


def test_a_block_of_a_transformer_has_two_products_and_nothing_between_them() -> None:
    x = relay.var("x", shape=(2, 5, 16))
    wide = gelu(dense(x, (2, 5), 16, 32) + relay.var("b", shape=(32,)))
    mod = module(x + dense(wide, (2, 5), 32, 16, "v") + relay.var("c", shape=(16,)))
    with relay.transform.PassContext(opt_level=3):
        kernels = relay.build(mod, target="llvm").summary()
    assert "2 kernels" in str(kernels)
    assert_same_results(mod, relay.transform.SinkReshape()(mod), 1e-5)


def test_norms_keep_their_reductions_of_all_axes() -> None:
    """What is made of a sum that goes around does not meet again: squares are fused with their mean, not with it."""
    x = relay.var("x", shape=(2, 5, 16))
    y = x + dense(x, (2, 5), 16, 16)
    mod = module(y / relay.sqrt(relay.mean(y * y, axis=[2], keepdims=True)) + y)
    after = relay.transform.SinkReshape()(mod)
    assert calls(after)[-7:] == ["add", "reshape", "multiply", "mean", "sqrt", "divide", "add"]
    assert_same_results(mod, after, 1e-5)


@pytest.mark.parametrize("far", [1, FAR, 3 * FAR])
def test_long_ways_are_not_walked(far: int) -> None:
    y = dense(relay.var("x", shape=(2, 3, 4)), (2, 3), 4, 4)
    z = y
    for _ in range(far):
        z = relay.negative(z)
    mod = module(y + z)
    after = relay.transform.SinkReshape()(mod)
    assert (calls(after)[-1] == "reshape") == (far < FAR)
    assert_same_results(mod, after, 1e-5)


def test_axes_that_are_counted_stay() -> None:
    y = dense(relay.var("x", shape=(2, 3, 4)), (2, 3), 4, 3)
    mod = module(relay.tile(nn.bias_add(y, relay.var("b", shape=(3,)), axis=1), (2, 1, 1)))
    assert calls(relay.transform.SinkReshape()(mod)) == calls(mod)


@pytest.mark.parametrize(
    ("whole", "other", "fitting"),
    [
        ((2, 3, 4), (6, 4), 4),
        ((6, 4), (2, 3, 4), 4),
        ((1, 2, 1, 4), (2, 4), 4),
        ((8,), (1, 8, 1), 2),
        ((2, 6), (4, 3), 2),
    ],
)
def test_shapes_beside_a_reshaped_tensor_broadcast_to_the_same_elements(
    whole: tuple[int, ...], other: tuple[int, ...], fitting: int
) -> None:
    found = 0
    for part in set(itertools.product(*((1, n) for n in whole))):
        x = np.arange(np.prod(part)).reshape(part)
        wanted = regrouped(part, whole, other)
        if wanted is not None:
            found += 1
            assert np.array_equal(np.broadcast_to(x.reshape(wanted), other).reshape(whole), np.broadcast_to(x, whole))
            short = part[1:] if part[0] == 1 else part
            assert regrouped(short, whole, other) == wanted
    assert found == fitting
