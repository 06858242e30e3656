"""Passes that change what a function takes: parameters bound, batches changed, weights transposed."""

from __future__ import annotations

import numpy as np
import pytest

import relaylab.text  # noqa: F401
from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import Constant, Function, IRModule, const, structural_equal, var
from relaylab.op.base import call_operator as call
from relaylab.support.errors import RelayValueError
from relaylab.transform import bind, bind_params_by_name, create

x, w = var("x", shape=(2, 3)), var("w", shape=(3, 4))


def typed(expr) -> IRModule:
    return create("InferType")(IRModule.from_expr(expr))


def test_binding_by_name():
    func = Function([x, w], call("nn.dense", x, call("transpose", w, axes=[1, 0])))
    bound = bind_params_by_name(func, {"w": np.ones((3, 4), "float32"), "unknown": np.ones(3)})
    assert [p.name_hint for p in bound.params] == ["x"]
    assert isinstance(bound.body.args[1].args[0], Constant)
    with pytest.raises(RelayValueError, match="the parameter `w` is a"):
        bind_params_by_name(func, {"w": np.ones((4, 3), "float32")})
    twice = Function([x, var("x", shape=(2, 3))], x)
    with pytest.raises(RelayValueError, match="two parameters"):
        bind_params_by_name(twice, {"x": np.ones((2, 3), "float32")})
    assert bind_params_by_name(func, {}) is func
    assert bind_params_by_name(func, {"w": np.ones((3, 4), "float64")}).params == func.params[:1]


def test_binding_expressions():
    y = var("y", shape=(2, 3))
    assert structural_equal(bind(call("tanh", x), {x: const(1.0)}), call("tanh", const(1.0)))
    func = bind(Function([x], call("tanh", x)), {x: call("exp", y)})
    assert list(func.params) == [y]


def test_changing_the_batch():
    mod = typed(Function([x], call("tanh", x)))
    after = create("ChangeBatch", {"x": 0}, 5)(mod)
    assert str(after["main"].checked_type) == "fn (Tensor[(5, 3), float32]) -> Tensor[(5, 3), float32]"
    assert create("ChangeBatch", {x: 0}, 5)(after) is after
    with pytest.raises(RelayValueError, match="no dimension 2"):
        create("ChangeBatch", {"x": 2}, 5)(mod)


def test_transposed_weights():
    mod = typed(Function([x, w], call("nn.dense", x, call("transpose", w, axes=[1, 0]), units=None)))
    after = create("SimplifyFCTranspose", ["w"])(mod)
    assert [p.name_hint for p in after["main"].params] == ["x", "w.T"] and "transpose(" not in str(after)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3)).astype("float32"), rng.normal(size=(3, 4)).astype("float32")
    before, now = Interpreter(mod).evaluate()(a, b), Interpreter(after).evaluate()(a, np.ascontiguousarray(b.T))
    np.testing.assert_allclose(np.asarray(before), np.asarray(now), rtol=1e-6)


def test_inline_keeps_what_nobody_called() -> None:
    x = relay.var("x", shape=(3,))
    mod = relay.IRModule()
    mod["g"] = relay.Function([x], x + x).with_attr("Inline", 1)
    assert list(relay.transform.Inline()(mod).functions) == list(mod.functions)
    y = relay.var("y", shape=(3,))
    mod["main"] = relay.Function([y], relay.tanh(mod.get_global_var("g")(y)))
    assert [gv.name_hint for gv in relay.transform.Inline()(mod).functions] == ["main"]


def test_a_shape_of_unknown_length_is_folded_before_it_is_typed() -> None:
    like = relay.shape_of(relay.var("y", shape=(1, 2), dtype="int64"))
    shape = relay.strided_slice(like, [0], relay.shape_of(like))
    for made in (relay.full(relay.const(4), shape, "int32"), relay.ones(shape, "int32"), relay.zeros(shape, "int32")):
        after = relay.transform.DynamicToStatic()(relay.IRModule.from_expr(made))
        assert after["main"].ret_type == relay.TensorType((1, 2), "int32")
