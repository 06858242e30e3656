"""ConvertLayout: operators after a convolution take its new layout, and every program computes what it did."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.values import assert_same_results

from relaylab import relay
from relaylab.ir import Call, Expr, Function, IRModule, post_order
from relaylab.relay import transform as t

c, q, nn = relay.const, relay.qnn.op, relay.nn
SCALES = c(np.array([0.5, 0.25, 2.0, 1.0], "float32"))
ZEROS = c(np.array([1, -2, 0, 3], "int32"))


def conv() -> Expr:
    x, w = relay.var("x", shape=(1, 5, 6, 3)), relay.var("w", shape=(3, 3, 3, 4))
    return nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")


def qconv(groups: int = 1, transposed: bool = False, name: str = "x") -> Expr:
    x = relay.var(name, shape=(1, 5, 6, 4), dtype="int8")
    kernel = (3, 3, 4, 4) if groups == 1 else (3, 3, 4, 1)
    w = c(np.random.default_rng(3).integers(-9, 9, kernel).astype("int8"))
    make = q.conv2d_transpose if transposed else q.conv2d
    how = {"data_layout": "NHWC", "kernel_layout": "HWIO" if groups == 1 else "HWOI", "groups": groups}
    return make(x, w, c(1), c(0), c(1.0), SCALES, kernel_size=(3, 3), channels=4, padding=(1, 1), **how)


def small(value: Expr) -> Expr:
    return q.requantize(value, SCALES, c(np.zeros(4, "int32")), c(2.0), c(3), axis=3, out_dtype="int8")


CASES: dict[str, tuple[Callable[[], Expr], list[str]]] = {
    "topk": (lambda: relay.topk(conv(), k=2, axis=-1, ret_type="values"), ["topk"]),
    "lrn": (lambda: nn.lrn(conv(), size=3, axis=3), ["nn.lrn"]),
    "cumsum": (lambda: relay.cumsum(conv(), axis=1), ["cumsum"]),
    "cumprod": (lambda: relay.cumprod(conv(), axis=3, exclusive=True), ["cumprod"]),
    "where": (
        lambda: relay.where(
            relay.var("m", shape=(1, 5, 6, 4), dtype="bool"), conv(), relay.var("y", shape=(1, 1, 6, 1))
        ),
        ["where"],
    ),
    "squeeze": (lambda: relay.squeeze(relay.mean(conv(), [1], keepdims=True), [0, 1]), ["mean", "squeeze"]),
    "l2": (lambda: nn.l2_normalize(conv(), eps=1e-3, axis=[1, 3]), ["nn.l2_normalize"]),
    "norm": (
        lambda: nn.layer_norm(conv(), relay.var("g", shape=(4,)), relay.var("b", shape=(4,)), axis=-1),
        ["nn.layer_norm"],
    ),
    "slice_like": (lambda: relay.slice_like(conv(), relay.var("y", shape=(1, 2, 9, 3)), [1, -1]), ["slice_like"]),
    "like": (lambda: relay.slice_like(relay.var("y", shape=(2, 7, 8, 9)), conv()), ["slice_like"]),
    "quantized": (lambda: small(qconv()), ["qnn.conv2d", "qnn.requantize"]),
    "depthwise": (lambda: small(qconv(groups=4)), ["qnn.conv2d", "qnn.requantize"]),
    "transposed": (lambda: qconv(transposed=True), ["qnn.conv2d_transpose"]),
    "qadd": (lambda: q.add(small(qconv()), small(qconv(name="z")), *[c(2.0), c(3)] * 3), ["qnn.requantize", "qnn.add"]),
    "qmul": (
        lambda: q.mul(
            small(qconv()),
            relay.var("z", shape=(1, 5, 6, 4), dtype="int8"),
            c(2.0),
            c(3),
            SCALES,
            ZEROS,
            c(2.0),
            c(0),
            rhs_axis=3,
        ),
        ["qnn.requantize", "qnn.mul"],
    ),
    "qcat": (
        lambda: q.concatenate(
            [small(qconv()), small(qconv(name="z"))], [c(2.0)] * 2, [c(3)] * 2, c(1.0), c(0), axis=-1
        ),
        ["qnn.requantize", "qnn.concatenate"],
    ),
    "real": (lambda: q.dequantize(small(qconv()), SCALES, ZEROS, axis=3), ["qnn.requantize", "qnn.dequantize"]),
}
WANTED = {name: ["NCHW", "default"] for name in ("nn.conv2d", "qnn.conv2d", "qnn.conv2d_transpose")}


def module(body: Expr) -> IRModule:
    return t.InferType()(IRModule.from_expr(body))


def calls(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call)]


@pytest.mark.parametrize("name", CASES)
def test_what_follows_takes_the_layout(name: str) -> None:
    make, followers = CASES[name]
    before = module(make())
    after = t.ConvertLayout(WANTED)(before)
    order = calls(after)
    # the way back to the program's layout comes last, after all that could take the new one
    assert order[-2:] == [followers[-1], "layout_transform"] and set(followers) <= set(order)
    assert_same_results(before, after, 1e-4)


def test_a_transposition_is_the_way_back() -> None:
    before = module(nn.relu(relay.transpose(conv(), [0, -1, 1, 2])))
    after = t.ConvertLayout(WANTED)(before)
    assert calls(after)[-2:] == ["nn.conv2d", "nn.relu"]  # the axes are where they were: nothing is moved
    assert_same_results(before, after)


def test_deformable_convolutions_take_their_offsets_along() -> None:
    x, w = relay.var("x", shape=(1, 4, 5, 2)), relay.var("w", shape=(3, 3, 2, 3))
    how = {"data_layout": "NHWC", "kernel_layout": "HWIO", "kernel_size": (3, 3), "channels": 3, "padding": (1, 1)}
    before = module(nn.deformable_conv2d(x, relay.var("o", shape=(1, 4, 5, 18)), w, **how))
    after = t.ConvertLayout({"nn.deformable_conv2d": ["NCHW", "default"]})(before)
    assert calls(after) == ["layout_transform"] * 3 + ["nn.deformable_conv2d", "layout_transform"]
    assert_same_results(before, after)


def test_poolings_that_say_their_layout_keep_it() -> None:
    pool = lambda **how: nn.max_pool2d(conv(), (2, 2), layout="NHWC", **how)
    free, fixed = (t.ConvertLayout(WANTED)(module(pool(**how))) for how in ({}, {"out_layout": "NHWC"}))
    assert calls(free)[-2:] == ["nn.max_pool2d", "layout_transform"]
    assert calls(fixed)[-2:] == ["layout_transform", "nn.max_pool2d"]
    chosen = t.ConvertLayout({**WANTED, "nn.max_pool2d": ["NHWC"]})(module(pool()))
    found = chosen["main"].body
    assert (found.attrs.layout, found.attrs.out_layout) == ("NHWC", "NHWC")
    for after in (free, fixed, chosen):
        assert isinstance(after["main"], Function)
        assert_same_results(module(pool()), after)
