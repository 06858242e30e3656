"""What Python's operators mean between expressions, and what is said where they mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayTypeError

X, W = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4))
A, B = (np.random.default_rng(k).uniform(0.5, 2, shape).astype("float32") for k, shape in enumerate([(2, 3), (3, 4)]))


def _run(expr, **inputs):
    return relay.create_executor("debug", relay.IRModule.from_expr(expr)).evaluate()(**inputs).numpy()


def test_products_and_powers_are_numpys():
    np.testing.assert_allclose(_run(relay.Function([X, W], X @ W), x=A, w=B), A @ B, rtol=1e-6)
    np.testing.assert_allclose(_run(relay.Function([X], X ** relay.const(3, "float32")), x=A), A**3, rtol=1e-6)
    batch = relay.var("batch", shape=(5, 2, 3))
    values = np.stack([A] * 5)
    np.testing.assert_allclose(_run(relay.Function([batch, W], batch @ W), batch=values, w=B), values @ B, rtol=1e-6)


@pytest.mark.parametrize("ask", [bool, lambda x: not x, lambda x: x and 1, lambda x: x or 1, lambda x: 1 if x else 2])
@pytest.mark.parametrize("expr", [X > W, relay.equal(X, X), relay.logical_not(X > W), relay.any(X)])
def test_no_comparison_is_true_or_false(ask, expr):
    with pytest.raises(RelayTypeError, match="neither true nor false") as caught:
        ask(expr)
    assert caught.value.code == "ir.no-truth" and "relay.If(" in caught.value.help


@pytest.mark.parametrize("expr", [X, relay.const(0), relay.nn.relu(X), relay.TupleGetItem(X, 0), relay.Tuple([X])])
def test_other_expressions_are_true_as_in_relay(expr):
    assert expr and (None or expr) is expr
    assert relay.Function([X], X) and relay.GlobalVar("f") and relay.op.get("add")


@pytest.mark.parametrize("ask", [lambda x: x[0], lambda x: [*x], lambda x: 3 in x, lambda x: print(*x)])
def test_an_expression_has_no_items(ask):
    with pytest.raises(RelayTypeError, match="has no items") as caught:
        ask(relay.nn.relu(X))
    assert caught.value.code == "ir.no-items" and "TupleGetItem" in caught.value.help


def test_the_fields_of_a_tuple_are_items():
    both = relay.Tuple([X, W])
    assert both[1] is W and [*both] == [X, W] and len(both) == 2
    first, second = relay.split(X, 2, axis=0)
    assert (first.index, second.index) == (0, 1)


@pytest.mark.parametrize(
    "use",
    [lambda x: x**2, lambda x: 2**x, lambda x: x + 2, lambda x: 2 - x, lambda x: x @ 2, lambda x: np.int32(2) * x],
)
def test_a_number_is_written_with_the_type_of_the_other_side(use):
    with pytest.raises(RelayTypeError) as caught:
        use(X)
    assert caught.value.help == 'write relay.const(2, "float32")'


@pytest.mark.parametrize("use", [lambda x: A + x, lambda x: x + A, lambda x: A @ x, lambda x: A < x])
def test_an_array_is_refused_as_a_whole(use):
    with pytest.raises(RelayTypeError, match="ndarray") as caught:
        use(X)
    assert caught.value.help == "write relay.const(array)"
