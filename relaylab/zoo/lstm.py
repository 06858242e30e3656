"""A long short-term memory network, unrolled: one closure per step, bound by lets."""

from __future__ import annotations

from relaylab.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from relaylab.ir.free import free_vars
from relaylab.ir.leaves import var
from relaylab.ir.module import IRModule
from relaylab.ir.scope_builder import ScopeBuilder
from relaylab.ir.types import TensorType, TupleType
from relaylab.op import add, multiply, sigmoid, split, tanh, zeros
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import Size, create_workload


def lstm_cell(num_hidden: int, batch_size: Size = 1, dtype: str = "float32", name: str = "") -> Function:
    """One step: (inputs, (h, c), four weights and biases) -> (h', (h', c'))."""
    state = TensorType((batch_size, num_hidden), dtype)
    weight = TensorType((4 * num_hidden, num_hidden), dtype)
    bias = TensorType((4 * num_hidden,), dtype)
    states = TupleType([state, state])
    inputs_, states_ = Var("inputs", state), Var("states", states)
    weights = [Var("i2h_weight", weight), Var("i2h_bias", bias), Var("h2h_weight", weight), Var("h2h_bias", bias)]

    sb = ScopeBuilder()
    i2h = sb.let("i2h", layers.dense_add_bias(inputs_, *weights[:2], units=num_hidden * 4, name=f"{name}i2h"))
    h2h = sb.let(
        "h2h", layers.dense_add_bias(TupleGetItem(states_, 0), *weights[2:], units=num_hidden * 4, name=f"{name}h2h")
    )
    gates = sb.let("gates", add(i2h, h2h))
    slices = sb.let("slice_gates", split(gates, indices_or_sections=4, axis=1).astuple())
    in_gate = sb.let("in_gate", sigmoid(TupleGetItem(slices, 0)))
    forget_gate = sb.let("forget_gate", sigmoid(TupleGetItem(slices, 1)))
    in_transform = sb.let("in_transform", tanh(TupleGetItem(slices, 2)))
    out_gate = sb.let("out_gate", sigmoid(TupleGetItem(slices, 3)))
    next_c = sb.let("next_c", add(multiply(forget_gate, TupleGetItem(states_, 1)), multiply(in_gate, in_transform)))
    next_h = sb.let("next_h", multiply(out_gate, tanh(next_c)))
    sb.ret(sb.let("ret", Tuple([next_h, Tuple([next_h, next_c])])))
    return Function([inputs_, states_, *weights], sb.get(), TupleType([state, states]))


@checked
def get_net(iterations: int, num_hidden: int, batch_size: Size = 1, dtype: str = "float32") -> Function:
    """The network as a function of the inputs of all steps and its parameters."""
    state = TensorType((batch_size, num_hidden), dtype)
    sb = ScopeBuilder()
    initial = sb.let(("zeros", state), zeros((batch_size, num_hidden), dtype))
    states = sb.let(("init_states", TupleType([state, state])), Tuple([initial, initial]))
    if iterations < 1:
        raise RelayValueError(f"{iterations} steps are none", code="zoo.length", help="take one or more")
    out: Expr = initial
    for i in range(iterations):
        inputs = Var("data", state)
        weights = [var(f"{part}_{i}_{kind}") for part in ("i2h", "h2h") for kind in ("weight", "bias")]
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{i}")
        call = sb.let(f"call_{i}", Call(cell, [inputs, states, *weights]))
        out = sb.let(f"out_{i}", TupleGetItem(call, 0))
        states = sb.let(f"states_{i}", TupleGetItem(call, 1))
    sb.ret(out)
    net = sb.get()
    return Function(free_vars(net), net)


@checked
def get_workload(
    iterations: int, num_hidden: int, batch_size: Size = 1, dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; every step's input is called `data`."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
