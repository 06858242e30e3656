"""Scales that move into weights: only where the sums stay what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import Call, Expr, IRModule, op_name, walk
from relaylab.transform import FoldScaleAxis, InferType, PassContext

SCALES = {
    "ordinary": [2.0, 0.5, 3.0],
    "a zero": [2.0, 0.0, 3.0],
    "nearly zero": [2.0, 1e-30, 3.0],
    "negative": [2.0, -1.0, 3.0],
}
BEFORE = {"add": relay.add, "subtract": relay.subtract, "from": lambda a, b: relay.subtract(b, a)}
BIAS = relay.const(np.array([1.0, -2.0, 0.5], "float32").reshape(3, 1, 1))


def convolved(x: Expr, dtype: str = "float32", out: str = "") -> Expr:
    weight = np.random.default_rng(1).uniform(-3, 3, (4, 3, 3, 3)).astype(dtype)
    return relay.nn.conv2d(x, relay.const(weight, dtype), channels=4, kernel_size=(3, 3), padding=(1, 1), out_dtype=out)


def folded(build: Callable[[Expr], Expr], dtype: str = "float32") -> bool:
    """Whether a multiplication was folded away; the results must be as before."""
    x = relay.var("x", shape=(1, 3, 6, 5), dtype=dtype)
    mod = InferType()(IRModule.from_expr(relay.Function([x], build(x))))
    with PassContext(opt_level=3):
        after = FoldScaleAxis()(mod)
    data = (
        np.random.default_rng(0)
        .uniform(-100 if "int" in dtype else -2, 100 if "int" in dtype else 2, (1, 3, 6, 5))
        .astype(dtype)
    )
    want, got = (np.asarray(Interpreter(m).evaluate()(data)).astype("float64") for m in (mod, after))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 if "float" in dtype else 0)
    count = [sum(isinstance(e, Call) and op_name(e) == "multiply" for e in walk((m["main"],))) for m in (mod, after)]
    return count[1] < count[0]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", SCALES)
def test_a_bias_is_not_divided_by_zero(name: str, before: str, relu: bool) -> None:
    scale = relay.const(np.array(SCALES[name], "float32").reshape(3, 1, 1))

    def build(x: Expr) -> Expr:
        value = BEFORE[before](relay.multiply(x, scale), BIAS)
        return convolved(relay.nn.relu(value) if relu else value)

    assert folded(build) == (name == "ordinary" or (name == "negative" and not relu))


@pytest.mark.parametrize(("dtype", "out", "moves"), [
    ("float32", "", True), ("float64", "", True), ("int8", "int32", False), ("int32", "", False),
    ("float16", "float32", False),
])  # fmt: skip
def test_scales_move_among_floats_of_one_type(dtype: str, out: str, moves: bool) -> None:
    before = relay.const(np.array([3, 5, 7]).reshape(3, 1, 1).astype(dtype), dtype)
    after = relay.const(np.array([3, 5, 7, 100]).reshape(4, 1, 1).astype(out or dtype), out or dtype)
    assert folded(lambda x: convolved(relay.multiply(x, before), dtype, out), dtype) == moves
    assert folded(lambda x: relay.multiply(convolved(x, dtype, out), after), dtype) == moves
