"""Names by which values are given to parameters: each is used once, and a parameter's own name goes before a number."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule, Var, parameter_names
from relaylab.runtime import cpu, graph_executor
from relaylab.support.errors import RelayTypeError


@pytest.mark.parametrize(("hints", "names"), [
    ("a b", "a b"), ("a a a", "a a1 a2"), ("a a a1", "a a2 a1"), ("a1 a a", "a1 a a2"), ("a a a1 a1", "a a2 a1 a11"),
    ("a a1 a a1 a", "a a1 a2 a11 a3"), ("", ""),
])  # fmt: skip
def test_names_are_used_once(hints: str, names: str) -> None:
    assert parameter_names([Var(h) for h in hints.split()]) == names.split()


X = {name: np.full((2, 3), k, "float32") for k, name in enumerate(("data", "data2", "data1"), 1)}


def weighed() -> IRModule:
    """data + 10 * (the second) data + 100 * data1."""
    x, y, z = (relay.var(name, shape=(2, 3)) for name in ("data", "data", "data1"))
    return IRModule.from_expr(relay.Function([x, y, z], x + relay.const(10.0) * y + relay.const(100.0) * z))


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_values_are_given_by_these_names(kind: str) -> None:
    run = relay.create_executor(kind, weighed()).evaluate()
    for given in (run(**X), run(X["data"], data1=X["data1"], data2=X["data2"])):
        np.testing.assert_array_equal(given.numpy(), np.full((2, 3), 321, "float32"))
    with pytest.raises(RelayTypeError, match="no value is given for data2"):
        run(data=X["data"], data1=X["data1"])


def test_a_network_has_these_names() -> None:
    module = graph_executor.GraphModule(relay.build(weighed(), "llvm")["default"](cpu(0)))
    assert list(module.get_input_info()[0]) == ["data", "data2", "data1"] and module.get_input_index("data1") == 2
    module.run(**X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.full((2, 3), 321, "float32"))


def test_the_virtual_machine_keeps_positional_inputs_of_one_name() -> None:
    machine = relay.vm.VirtualMachine(relay.vm.compile(weighed(), "llvm"), cpu(0))
    machine.set_input("main", *X.values())
    machine.invoke_stateful("main")
    np.testing.assert_array_equal(machine.get_outputs()[0].numpy(), np.full((2, 3), 321, "float32"))
