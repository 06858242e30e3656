"""relay.op.debug: a function of Python sees a value while the program runs."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule


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
