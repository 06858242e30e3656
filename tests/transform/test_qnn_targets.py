"""Quantized products for a target: TVM 0.10's recorded forms, and the numbers of the program as it was."""

import numpy as np
import pytest

import relaylab
from relaylab import relay
from relaylab.contrib.target import Target
from relaylab.ir import structural_equal

FAST = ["llvm -mcpu=skylake-avx512", "llvm -mcpu=cascadelake", "llvm -mcpu=nehalem"]
SLOW = ["llvm", "llvm -mcpu=core2"]


def conv2d(data, kernel, per_channel=False):
    x, w = relay.var("x", shape=(1, 4, 6, 6), dtype=data), relay.var("w", shape=(8, 4, 3, 3), dtype=kernel)
    zero = relay.const(np.arange(8, dtype="int32") - 3) if per_channel else relay.const(2)
    scale = relay.const(np.full(8, 0.5, "float32")) if per_channel else relay.const(0.5)
    y = relay.qnn.op.conv2d(x, w, relay.const(1), zero, relay.const(0.25), scale, (3, 3), 8, padding=(1, 1))
    return relay.Function([x, w], y)


def dense(data, kernel, per_channel=False):
    x, w = relay.var("x", shape=(3, 16), dtype=data), relay.var("w", shape=(8, 16), dtype=kernel)
    zero = relay.const(np.arange(8, dtype="int32") - 3) if per_channel else relay.const(2)
    scale = relay.const(np.full(8, 0.5, "float32")) if per_channel else relay.const(0.5)
    return relay.Function([x, w], relay.qnn.op.dense(x, w, relay.const(1), zero, relay.const(0.25), scale, 8))


def legalized(f, target):
    mod = relay.transform.InferType()(relay.IRModule.from_expr(f))
    with Target(target):
        return mod, relay.qnn.transform.Legalize()(mod)


def numbers(mod):
    types, rng = [p.checked_type for p in mod["main"].params], np.random.default_rng(7)
    limits = [np.iinfo(t.dtype) for t in types]
    return [rng.integers(m.min, m.max, t.concrete_shape, t.dtype, endpoint=True) for t, m in zip(types, limits)]


@pytest.mark.parametrize("build", [conv2d, dense])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("target", FAST)
def test_fast_products_take_unsigned_data_and_a_signed_weight(build, dtype, target):
    mod, new = legalized(build(dtype, dtype), target)
    text = str(new)
    assert "cast" in text and f"qnn.{build.__name__}" in text
    call = relay.transform.InferType()(new)["main"].body
    assert [a.checked_type.dtype for a in call.args[:2]] == ["uint8", "int8"]
    shift = {"int8": (129, 2), "uint8": (1, 2 - 128)}[dtype]
    assert tuple(int(z.data.numpy()) for z in call.args[2:4]) == shift


@pytest.mark.parametrize("build", [conv2d, dense])
@pytest.mark.parametrize("target", FAST)
def test_what_fast_products_want_stays(build, target):
    mod, new = legalized(build("uint8", "int8"), target)
    assert structural_equal(mod, new)


@pytest.mark.parametrize("build", [conv2d, dense])
@pytest.mark.parametrize("kinds", [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")])
@pytest.mark.parametrize("target", SLOW)
def test_other_cpus_get_the_ordinary_operator_on_words(build, kinds, target):
    _, new = legalized(build(*kinds), target)
    assert "cast" in str(new) and "qnn" not in str(new)
    call = relay.transform.InferType()(new)["main"].body
    assert [a.checked_type.dtype for a in call.args] == ["int16", "int16"] and call.checked_type.dtype == "int32"


@pytest.mark.parametrize("build", [conv2d, dense])
@pytest.mark.parametrize("kinds", [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("target", [FAST[0], SLOW[0]])
def test_the_numbers_stay(build, kinds, per_channel, target):
    mod, new = legalized(build(*kinds, per_channel), target)
    values = numbers(mod)
    expected = relay.create_executor("debug", mod=mod).evaluate()(*values).numpy()
    for kind in ("debug", "graph"):
        np.testing.assert_array_equal(relay.create_executor(kind, mod=new).evaluate()(*values).numpy(), expected)


def test_nothing_changes_without_a_target_or_for_other_kinds_of_numbers():
    mod = relay.transform.InferType()(relay.IRModule.from_expr(conv2d("int8", "int8")))
    assert structural_equal(relay.qnn.transform.Legalize()(mod), mod)
    wide = relay.transform.InferType()(relay.IRModule.from_expr(dense("int16", "int8")))
    with Target("llvm"):
        assert structural_equal(relay.qnn.transform.Legalize()(wide), wide)


def test_a_registered_function_comes_first():
    relaylab.install_as_tvm()
    try:
        from tvm.relay.testing.temp_op_attr import TempOpAttr

        mod = relay.transform.InferType()(relay.IRModule.from_expr(dense("int8", "int8")))
        with TempOpAttr("qnn.dense", "FTVMQnnLegalize", lambda attrs, inputs, types: None), Target("llvm"):
            assert structural_equal(relay.qnn.transform.Legalize()(mod), mod)
    finally:
        relaylab.compat.uninstall_tvm()
