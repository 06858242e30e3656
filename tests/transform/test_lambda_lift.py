"""Lifted functions are shared where they are equal, not where their hashes are."""

from __future__ import annotations

import pytest

import numpy as np

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import Call, Function, IRModule

pytestmark = pytest.mark.slow


def test_functions_that_differ_by_a_number_stay_two() -> None:
    x = relay.var("x", shape=(3,))

    def clipped(most: float) -> Function:
        p = relay.var("p", shape=(3,))
        return Function([p], relay.clip(p, 0.0, most))

    mod = IRModule.from_expr(Function([x], relay.Tuple([Call(clipped(most), [x]) for most in (1.0, 2.0, 1.0)])))
    lifted = relay.transform.LambdaLift()(relay.transform.InferType()(mod))
    assert len(lifted.functions) == 3
    values = [np.asarray(v) for v in Interpreter(lifted).evaluate()(np.array([-1, 1.5, 9], "float32"))]
    np.testing.assert_array_equal(values, [[0, 1, 1], [0, 1.5, 2], [0, 1, 1]])
