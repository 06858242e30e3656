"""Single conditions of passes that mutations of the code found untested: each on both of its sides."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.ir import Call, IRModule
from relaylab.support.errors import RelayValueError
from relaylab.transform import BindParams, ChangeBatch, CombineParallelDense, EliminateCommonSubexpr, InferType


def _typed(*args):
    return InferType()(IRModule.from_expr(relay.Function(*args)))


@pytest.mark.parametrize("batched, sliced", [(True, 0), (False, 3)])
def test_what_follows_dense_layers_is_combined_with_them(batched: bool, sliced: int) -> None:
    x = relay.var("x", shape=(2, 8))
    weights, biases = ([relay.var(f"{n}{k}", shape=s) for k in range(3)] for n, s in (("w", (4, 8)), ("b", (4,))))
    layers = [relay.nn.relu(relay.nn.dense(x, w) + b) for w, b in zip(weights, biases, strict=True)]
    before = _typed([x, *weights, *biases], relay.Tuple(layers))
    after = CombineParallelDense(3, batched)(before)
    count = study.operators(after)
    assert (count["add"], count["nn.relu"], count["strided_slice"]) == (1, 1, sliced)
    assert study.difference(before, after) < 1e-6


@pytest.mark.parametrize("given, fits", [("int32", True), ("int64", False), ("uint8", False), ("float32", False)])
def test_whole_numbers_are_bound_to_parameters_of_their_own_type(given: str, fits: bool) -> None:
    x = relay.var("x", shape=(2,), dtype="int32")
    mod, values = _typed([x], x + x), np.array([1, 2], given)
    if fits:
        assert not BindParams({"x": values})(mod)["main"].params
        return
    with pytest.raises(RelayValueError, match=f"the array given is a .*{given}"):
        BindParams({"x": values})(mod)


def test_a_batch_is_16_and_that_of_tensors_with_the_axis() -> None:
    x, pair = relay.var("x", shape=(1, 3)), relay.Var("pair", relay.TupleType([relay.TensorType((1, 3))]))
    mod = _typed([x, pair], relay.nn.relu(x))
    assert ChangeBatch({"x": 0})(mod)["main"].ret_type.concrete_shape == (16, 3)
    assert ChangeBatch({"x": -2}, 4)(mod)["main"].ret_type.concrete_shape == (4, 3)
    for name, axis in (("pair", 0), ("x", 2), ("x", -3)):
        with pytest.raises(RelayValueError, match=f"%{name} has no dimension {axis}"):
            ChangeBatch({name: axis})(mod)


def test_calls_of_functions_are_not_merged_as_operators_are() -> None:
    x, f = relay.var("x", shape=(2,)), relay.GlobalVar("f")
    y = relay.var("y", shape=(2,))
    calls = relay.Tuple([Call(f, [x]), Call(f, [x]), relay.exp(x), relay.exp(x)])
    mod = InferType()(IRModule({f: relay.Function([y], relay.exp(y)), "main": relay.Function([x], calls)}))
    first, second, third, fourth = EliminateCommonSubexpr()(mod)["main"].body.fields
    assert first is not second and third is fourth
