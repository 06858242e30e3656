"""Layouts: packed ones spread as far as blocks divide, and functions that a program registers decide first."""

from __future__ import annotations

import numpy as np
import pytest
from support.values import assert_same_results

from relaylab import relay
from relaylab.ir.expr import Call
from relaylab.ir.module import IRModule
from relaylab.ir.op import op_name
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayTypeError
from relaylab.op.base import call_operator
from relaylab.transform import PassContext, run_pipeline

DATA = relay.var("data", shape=(1, 8, 9, 9))
WEIGHT = relay.var("weight", shape=(8, 8, 3, 3))
BIAS = relay.var("bias", shape=(8, 1, 1))
SCALE = [relay.var(n, shape=(8,)) for n in ("gamma", "beta", "mean", "var")]


def conv(data, weight=WEIGHT, **attrs):
    return relay.nn.conv2d(data, weight, **{"channels": 8, "kernel_size": (3, 3), "padding": (1, 1), **attrs})


def module(body) -> IRModule:
    return relay.transform.InferType()(IRModule.from_expr(body))


def operators(mod: IRModule, skip: str = "") -> list[str]:
    return [op_name(n) for n in walk((mod["main"],)) if isinstance(n, Call) and op_name(n) != skip]


def counted(y, **attrs):
    return call_operator("strided_slice", y, end=(9,) * len(attrs["begin"]), strides=(1,), **attrs)


FOLLOW = {
    "relu": (relay.nn.relu, 0),
    "bias": (lambda y: relay.add(y, BIAS), 0),
    "scalar": (lambda y: relay.multiply(y, relay.const(2.0)), 0),
    "two": (lambda y: relay.add(y, relay.tanh(y)), 0),
    "ones": (lambda y: relay.add(y, relay.var("e", shape=(1, 1, 9, 9))), 0),
    "max_pool": (lambda y: relay.nn.max_pool2d(y, (2, 2), (2, 2)), 0),
    "avg_pool": (lambda y: relay.nn.avg_pool2d(y, (3, 3), padding=(1, 1)), 0),
    "global_pool": (relay.nn.global_avg_pool2d, 0),
    "adaptive": (lambda y: relay.nn.adaptive_avg_pool2d(y, (3, 3)), 0),
    "pad": (lambda y: relay.nn.pad(y, ((0, 0), (0, 0), (1, 2), (0, 1))), 0),
    "pad channels": (lambda y: relay.nn.pad(y, ((0, 0), (1, 3), (0, 0), (0, 0))), None),
    "concatenate": (lambda y: relay.concatenate([y, relay.nn.relu(y)], 1), 0),
    "concatenate rows": (lambda y: relay.concatenate([y, y], -1), 0),
    "split rows": (lambda y: relay.split(y, 3, 2)[1], 0),
    "split channels": (lambda y: relay.split(y, 4, 1)[1], None),
    "sum": (lambda y: relay.sum(y, [1], keepdims=True), 0),
    "mean": (lambda y: relay.mean(y, [2, 3], keepdims=True), 0),
    "mean of all": (lambda y: relay.mean(y, [1, 2, 3]), None),
    "argmax": (lambda y: relay.argmax(y, 1), None),
    "slice": (lambda y: relay.strided_slice(y, [0, 0, 1, 0], [1, 8, 9, 9], [1, 1, 2, 1]), 0),
    "slice channels": (lambda y: relay.strided_slice(y, [0, 1, 0, 0], [1, 6, 9, 9]), None),
    "slice of an axis": (lambda y: relay.strided_slice(y, [1], [3], axes=[2]), 0),
    "so many of an axis": (lambda y: counted(y, begin=(1,), axes=(2,), count=(3,)), 0),
    "so many of each axis": (lambda y: counted(y, begin=(0, 2, 1, 3), count=(1, 5, 7, 4)), None),
    "batch_norm": (lambda y: relay.nn.batch_norm(y, *SCALE)[0], None),
    "prelu": (lambda y: relay.nn.prelu(y, SCALE[0]), None),
    "bias_add": (lambda y: relay.nn.bias_add(y, SCALE[0]), None),
    "softmax": (lambda y: relay.nn.softmax(y, 1), None),
    "conv": (lambda y: conv(relay.nn.relu(y), relay.var("w2", shape=(8, 8, 3, 3))), 0),
    "transpose": (lambda y: relay.transpose(y, (0, 2, 3, 1)), None),
    "reshape": (lambda y: relay.reshape(y, (1, -1)), None),
}
"""What follows a convolution, and whether it works in blocks: then no transform stands before it."""
PACKED = [
    ("NCHW1c", "OIHW1i1o"),
    ("NCHW2c", "OIHW2i4o"),
    ("NCHW4c", "OIHW4i4o"),
    ("NCHW8c", "OIHW8i8o"),
    ("NCHW8c", "default"),
    ("NHWC", "default"),
    ("NHWC", "HWIO"),
]


@pytest.mark.parametrize("layouts", PACKED, ids="-".join)
@pytest.mark.parametrize("name", FOLLOW)
def test_what_follows_a_convolution_in_blocks(name: str, layouts: tuple[str, str]) -> None:
    follow, transforms = FOLLOW[name]
    mod = module(follow(conv(DATA)))
    if layouts == ("NCHW8c", "default"):
        layouts = ("NCHW8c", "OIHW")
    after = relay.transform.ConvertLayout({"nn.conv2d": list(layouts)})(mod)
    assert_same_results(mod, after, 1e-4, low=0.1)
    convs = [n for n in walk((after["main"],)) if op_name(n) == "nn.conv2d"]
    assert {n.attrs.data_layout for n in convs} == {layouts[0]}
    if layouts[0] == "NCHW4c" and transforms == 0:
        inner = [n for n in walk((after["main"],)) if op_name(n) == "layout_transform"]
        assert not [n for n in inner if n.attrs.src_layout == "NCHW4c" and n is not after["main"].body]


def test_channels_that_blocks_do_not_divide_stay() -> None:
    mod = module(relay.nn.relu(conv(DATA, relay.var("w", shape=(6, 8, 3, 3)), channels=6)))
    after = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW3c", "OIHW3i3o"]})(mod)
    assert after["main"].body.args[0].attrs.data_layout == "NCHW"


# ---- functions that a program registers


def packing(data: str, kernel: str, calls: list):
    def alter(attrs, inputs, tinfos, out_type):
        calls.append((list(map(str, tinfos)), str(out_type)))
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": data, "kernel_layout": kernel})

    return alter


def altered(mod: IRModule, name: str, function, key: str = "FTVMAlterOpLayout", made=None) -> IRModule:
    made = made or relay.transform.AlterOpLayout()
    with relay.testing.TempOpAttr(name, key, function):
        history = run_pipeline(mod, made, PassContext(opt_level=4))
    if history.error:
        raise history.error
    assert all(not stage.unaccounted() for stage in history)
    return history.mod


@pytest.mark.parametrize("name", [n for n, (_, t) in FOLLOW.items() if t == 0])
def test_a_registered_function_chooses_the_layouts(name: str) -> None:
    calls = []
    mod = module(FOLLOW[name][0](conv(DATA)))
    after = altered(mod, "nn.conv2d", packing("NCHW4c", "OIHW4i4o", calls))
    assert len(calls) == operators(mod).count("nn.conv2d")
    assert calls[0] == (
        ["Tensor[(1, 8, 9, 9), float32]", "Tensor[(8, 8, 3, 3), float32]"],
        "Tensor[(1, 8, 9, 9), float32]",
    )
    assert {n.attrs.data_layout for n in walk((after["main"],)) if op_name(n) == "nn.conv2d"} == {"NCHW4c"}
    assert_same_results(mod, after, 1e-4, low=0.1)


def test_layouts_meet_between_two_altered_calls() -> None:
    mod = module(conv(relay.nn.relu(conv(DATA)), relay.var("w2", shape=(8, 8, 3, 3))))
    after = altered(mod, "nn.conv2d", packing("NCHW8c", "OIHW8i8o", []))
    assert operators(after).count("layout_transform") == 4  # the data, two weights, the result


def test_another_argument_and_the_same_layout() -> None:
    def doubled(attrs, inputs, tinfos, out_type):
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0)), **dict(attrs))

    after = altered(module(conv(DATA)), "nn.conv2d", doubled)
    assert operators(after) == ["multiply", "nn.conv2d"]
    wanted = module(conv(DATA, relay.multiply(WEIGHT, relay.const(2.0))))
    assert_same_results(wanted, after)


def test_none_leaves_the_call_as_it_is() -> None:
    calls = []
    mod = module(relay.nn.relu(conv(DATA)))
    assert altered(mod, "nn.conv2d", lambda *given: calls.append(given)) is mod
    mod = module(relay.nn.global_max_pool2d(conv(DATA)))
    assert len(calls) == 1
    pooled = altered(mod, "nn.global_max_pool2d", lambda *given: calls.append(given))
    assert len(calls) == 2 and pooled["main"].body.attrs.layout == "NCHW"
    assert_same_results(mod, pooled, 1e-4)


def test_another_operator_in_blocks() -> None:
    def packed(attrs, inputs, tinfos, out_type):
        new = {**dict(attrs), "data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o", "out_layout": "NCHW4c"}
        return relay.nn.contrib_conv2d_nchwc(*inputs, **new)

    mod = module(relay.nn.relu(conv(DATA)))
    after = altered(mod, "nn.conv2d", packed)
    assert "nn.contrib_conv2d_NCHWc" in operators(after)
    assert_same_results(mod, after, 1e-4)

    x, w = relay.var("x", shape=(3, 6)), relay.var("w", shape=(8, 6))

    def blocked(attrs, inputs, tinfos, out_type):
        return relay.nn.contrib_dense_pack(*inputs, "NC4n", None, out_type.dtype)

    dense = module(relay.nn.relu(relay.nn.dense(x, w)))
    after = altered(dense, "nn.dense", blocked)
    assert operators(after) == ["layout_transform", "nn.contrib_dense_pack", "nn.relu"]
    assert_same_results(dense, after, 1e-4)


def test_an_operator_without_layouts_is_exchanged() -> None:
    mod = module(relay.nn.relu(relay.tanh(conv(DATA))))
    both = {"nn.conv2d": packing("NCHW4c", "OIHW4i4o", [])}
    with relay.testing.TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", both["nn.conv2d"]):
        other = altered(mod, "tanh", lambda attrs, inputs, tinfos, out: relay.sigmoid(*inputs))
        back = altered(mod, "tanh", lambda attrs, inputs, tinfos, out: relay.nn.softmax(*inputs, axis=1))
    assert operators(other, "layout_transform") == ["nn.conv2d", "sigmoid", "nn.relu"]
    assert_same_results(module(relay.nn.relu(relay.sigmoid(conv(DATA)))), other, 1e-4)
    assert_same_results(module(relay.nn.relu(relay.nn.softmax(conv(DATA), axis=1))), back, 1e-4)


def test_only_calls_are_taken() -> None:
    with pytest.raises(RelayTypeError) as caught:
        altered(module(conv(DATA)), "nn.conv2d", lambda attrs, inputs, tinfos, out: inputs[0])
    assert caught.value.code == "layout.not-a-call"


def test_convert_layout_asks_with_the_layouts_that_are_wanted() -> None:
    asked = []

    def convert(attrs, inputs, tinfos, desired):
        asked.append(list(desired))
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NHWC", "kernel_layout": "HWIO"})

    mod, made = module(relay.nn.relu(conv(DATA))), relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})
    after = altered(mod, "nn.conv2d", convert, "FTVMConvertOpLayout", made)
    assert asked == [["NHWC", "OHWI"]]
    assert [n.attrs.kernel_layout for n in walk((after["main"],)) if op_name(n) == "nn.conv2d"] == ["HWIO"]
    assert_same_results(mod, after, 1e-4)
    others = relay.transform.ConvertLayout({"nn.max_pool2d": ["NHWC"]})
    altered(mod, "nn.conv2d", convert, "FTVMConvertOpLayout", others)
    assert len(asked) == 1


def test_functions_are_registered_at_a_level() -> None:
    conv2d = relay.op.get("nn.conv2d")
    try:
        for level, data in ((10, "NCHW4c"), (15, "NCHW8c"), (12, "NCHW2c")):
            relay.op.register_alter_op_layout("nn.conv2d", packing(data, f"OIHW{data[4]}i{data[4]}o", []), level)
        after = relay.transform.AlterOpLayout()(module(conv(DATA)))
        assert {n.attrs.data_layout for n in walk((after["main"],)) if op_name(n) == "nn.conv2d"} == {"NCHW8c"}
    finally:
        conv2d.reset_attr("FTVMAlterOpLayout")
    relay.op.register_convert_op_layout("nn.conv2d")(lambda *given: None)
    try:
        mod = module(conv(DATA))
        assert relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod) is mod
    finally:
        conv2d.reset_attr("FTVMConvertOpLayout")


def test_a_build_uses_them() -> None:
    mod = module(relay.nn.relu(conv(DATA)))
    calls = []
    with relay.testing.TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", packing("NCHW8c", "OIHW8i8o", calls)):
        with PassContext(opt_level=3):
            lib = relay.build(mod, target="llvm")
    assert len(calls) == 1
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 8, 9, 9)).astype("float32"), rng.normal(size=(8, 8, 3, 3)).astype("float32")
    wanted = relay.create_executor("debug", mod=mod).evaluate()(x, w).numpy()
    np.testing.assert_allclose(lib.run(data=x, weight=w), wanted, rtol=1e-4, atol=1e-4)


def test_an_operator_without_inputs_has_no_layout() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.add(x, relay.ones((2, 3), "float32"))))
    assert relay.transform.AlterOpLayout()(mod) is mod
