"""Chains of transposes and reshapes: what leaves the elements in their order is a reshape, whatever the axes are."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from relaylab import relay, tvm
from relaylab.ir import Expr, Function, IRModule, is_call_to, post_order
from relaylab.transform import create


def simplified(x: relay.Var, body: Expr) -> IRModule:
    mod = create("InferType")(IRModule.from_expr(Function([x], body)))
    return create("InferType")(create("SimplifyExpr")(mod))


def transposes(mod: IRModule) -> int:
    return sum(is_call_to(e, "transpose") for e in post_order(mod["main"].body))


def value(mod: IRModule, x: np.ndarray) -> np.ndarray:
    return relay.create_executor("debug", mod=mod).evaluate()(x).numpy()


@pytest.mark.parametrize("seed", range(40))
def test_what_keeps_the_order_is_a_reshape(seed: int) -> None:
    """Axes split or joined after a transpose come back, or not, and axes of one element stand between them."""
    draw = random.Random(seed)
    shape = [draw.choice((1, 2, 3, 4, 6)) for _ in range(draw.randint(2, 4))]
    first = draw.sample(range(len(shape)), len(shape))
    moved = [shape[a] for a in first]
    kinds = [draw.choice(("whole", "split", "unit")) for _ in moved]
    parts = [
        [extent // 2, 2] if kind == "split" and extent % 2 == 0 else [1, extent] if kind == "unit" else [extent]
        for extent, kind in zip(moved, kinds)
    ]
    starts = [sum(map(len, parts[:k])) for k in range(len(parts))]
    back = [starts[k] + i for axis in range(len(shape)) for k in [first.index(axis)] for i in range(len(parts[k]))]
    for second in (back, draw.sample(back, len(back))):
        x = relay.var("x", shape=shape)
        body = relay.transpose(relay.reshape(relay.transpose(x, first), sum(parts, [])), second)
        mod, data = simplified(x, body), np.arange(math.prod(shape), dtype="float32").reshape(shape)
        want = data.transpose(first).reshape(sum(parts, [])).transpose(second)
        np.testing.assert_array_equal(value(mod, data), want)
        assert bool(transposes(mod)) == bool((want.reshape(-1) != data.reshape(-1)).any())


@pytest.mark.parametrize("shape", [(2, "n", 3, 4), (2, 3, "n", 4), (5, 2, 4, "n")])
def test_sizes_with_names_are_axes_like_others(shape: tuple) -> None:
    n = tvm.tir.SizeVar("n", "int32")
    x = relay.var("x", shape=[n if d == "n" else d for d in shape])
    a, b, c, d = x.type_annotation.shape
    y = relay.reshape(relay.transpose(x, [0, 1, 3, 2]), [a * b, d, c])
    mod = simplified(x, relay.transpose(y, [0, 2, 1]))
    assert transposes(mod) == 0
    data = np.random.default_rng(0).normal(size=[7 if d == "n" else d for d in shape]).astype("float32")
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    want = data.reshape(-1, *data.shape[2:])
    np.testing.assert_array_equal(machine.invoke("main", data).numpy(), want)


@pytest.mark.parametrize("flags", [(False, True), (False, False), (True, True), (True, False)])
def test_products_take_transposed_matrices_as_they_are(flags: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(2, 4, 3) if flags[0] else (2, 3, 4)).astype("float32")
    b = rng.normal(size=(2, 4, 5) if flags[1] else (2, 5, 4)).astype("float32")
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    product = relay.nn.batch_matmul(x, relay.transpose(y, [0, 2, 1]), "float32", *flags)
    mod = create("InferType")(IRModule.from_expr(Function([x, y], product)))
    after = create("InferType")(create("CanonicalizeOps")(mod))
    assert transposes(after) == 0
    want = (a.transpose(0, 2, 1) if flags[0] else a) @ (b if flags[1] else b.transpose(0, 2, 1))
    np.testing.assert_allclose(relay.create_executor("debug", mod=after).evaluate()(a, b).numpy(), want, rtol=1e-5)
    np.testing.assert_allclose(relay.build(after, "llvm").run(x=a, y=b), want, rtol=1e-5)


def test_a_moved_batch_is_no_transposed_matrix() -> None:
    x, y = relay.var("x", shape=(3, 2, 4)), relay.var("y", shape=(5, 3, 4))
    product = relay.nn.batch_matmul(x, relay.transpose(y, [1, 0, 2]))
    mod = create("InferType")(IRModule.from_expr(Function([x, y], product)))
    assert transposes(create("CanonicalizeOps")(mod)) == 1
