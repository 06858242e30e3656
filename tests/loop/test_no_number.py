"""What people write in the forms of an operator that numbers would allow, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.loop.builder import Builder
from relaylab.loop.expr import ScalarExpr, const
from relaylab.op.base import Elementwise, op, sample
from relaylab.support.errors import RelayAttributeError, RelayError, RelayTypeError

TWO = const(2, "float32")


def test_numbers_of_numpy_are_numbers() -> None:
    for found in (
        np.float32(2) * TWO,
        TWO * np.float32(2),
        np.float32(1) - TWO,
        np.int64(3) + TWO,
        np.float32(2) < TWO,
    ):
        assert isinstance(found, ScalarExpr)
    assert [type(x) for x in np.ones(2) * TWO] == [type(TWO)] * 2


@pytest.mark.parametrize("name", ["tanh", "exp", "maximum", "isnan"])
def test_functions_of_numpy_are_those_of_the_builder(name: str) -> None:
    """numpy said that `Load` has no callable method of that name."""
    with pytest.raises(RelayTypeError, match=f"numpy.{name} takes numbers") as told:
        getattr(np, name)(*[TWO] * (2 if name == "maximum" else 1))
    assert told.value.code == "loop.no-number" and f"b.{name}(" in told.value.help


def test_a_function_that_the_builder_lacks_is_told_with_the_nearest() -> None:
    with pytest.raises(RelayAttributeError) as told:
        Builder().tahn  # noqa: B018
    assert told.value.code == "loop.no-builder-function" and "`tanh`" in told.value.help
    assert not hasattr(Builder(), "nothing")


def test_a_form_without_a_return_is_told() -> None:
    """It was an IndexError from inside."""

    @op("example.without_return")
    class without_return(Elementwise):
        """Gives nothing."""

        def reference(self, data: np.ndarray) -> np.ndarray:
            return data

        def scalar(self, b: Builder, x: ScalarExpr) -> ScalarExpr:  # type: ignore[return]
            b.tanh(x)

        @classmethod
        def samples(cls) -> list[object]:
            return [sample((3,))]

    x = relay.var("x", shape=(3,))
    with pytest.raises(RelayError, match="not a scalar expression: None") as told:
        relay.build(relay.IRModule.from_expr(without_return(x)), "llvm")
    assert "lack a `return`" in told.value.help
