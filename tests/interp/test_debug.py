"""relay.op.debug: a function of Python sees a value while the program runs."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.support.errors import DiagnosticError


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_the_function_is_called_with_the_value(kind: str) -> None:
    seen: list[np.ndarray] = []
    x = relay.var("x", shape=(3,))
    mod = IRModule.from_expr(relay.exp(relay.op.debug(x + x, debug_func=seen.append)))
    data = np.arange(3, dtype="float32")
    found = relay.create_executor(kind, mod).evaluate()(data).numpy()
    np.testing.assert_allclose(found, np.exp(2 * data), rtol=1e-5)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], 2 * data)


def test_one_bit_is_a_truth_value() -> None:
    assert relay.var("x", shape=(2,), dtype="uint1").type_annotation == relay.TensorType((2,), "bool")
    assert str(relay.parse_expr("fn (%x: uint1) { %x }").params[0].type_annotation) == "bool"


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_every_executor_refuses_an_ill_typed_program(kind: str) -> None:
    """The evaluator added an int32 to a float32, and took an axis that is not there."""
    x = relay.var("x", shape=(2,))
    wrong = {"operator": relay.nn.bias_add(x, x, axis=3), "mismatch": relay.If(relay.const(True), x, relay.const(1))}
    for code, body in wrong.items():
        with pytest.raises(DiagnosticError) as caught:
            relay.create_executor(kind, IRModule.from_expr(relay.Function([x], body))).evaluate()(np.ones(2, "float32"))
        assert caught.value.code == f"type.{code}"
    with pytest.raises(DiagnosticError, match="data types int32 and float32 do not match"):
        relay.create_executor(kind).evaluate(relay.add(relay.const(1), relay.const(1.0)))


def test_what_types_are_left_open_is_evaluated() -> None:
    x = relay.var("x")
    run = relay.create_executor("debug").evaluate(relay.Function([x], x + x))
    assert run(np.float32(2)).numpy() == 4
