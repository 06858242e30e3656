"""What is said of arguments in each other's places, and of variables without a value."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError, RelayTypeError

X = relay.var("x", shape=(2, 2))
MOD = relay.IRModule.from_expr(relay.nn.relu(X))


def test_parameters_in_the_place_of_the_target_are_told():
    with pytest.raises(RelayTypeError, match="params=params"):
        relay.build(MOD, {"w": np.ones(3, "float32")})


@pytest.mark.parametrize("kind", ["graph", "vm"])
def test_a_variable_that_is_computed_from_itself_has_no_value(kind):
    x = relay.var("x", shape=(), dtype="int32")
    mod = relay.IRModule.from_expr(relay.Function([], relay.Let(x, relay.add(x, relay.const(1)), x)))
    with pytest.raises(RelayError, match="has no value"):
        relay.create_executor(kind, mod=mod).evaluate()()


def test_the_machine_refuses_an_input_that_there_is_not():
    machine = relay.vm.VirtualMachine(relay.vm.compile(MOD, "llvm"))
    with pytest.raises(RelayTypeError, match="did you mean `x`"):
        machine.set_input("main", xx=np.ones((2, 2), "float32"))
