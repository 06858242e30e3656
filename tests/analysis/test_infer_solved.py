"""What type relations found is kept: a later call with the same attributes and types asks no relation again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relaylab import relay
from relaylab.ir import OPERATORS, IRModule, TensorType
from relaylab.op.base import Elementwise, RelationError, op
from relaylab.support.errors import DiagnosticError
from relaylab.transform import InferType

NAME = "test.counted"


@pytest.fixture
def asked() -> Iterator[list]:
    """The argument types that the relation of a new operator was asked about; it refuses integers."""
    seen: list = []

    @op(NAME)
    class counted(Elementwise):
        """A test operator."""

        factor: int = 1

        def relation(self, s, data):
            seen.append(data)
            if data.dtype == "int32":
                s.unify(s.out, data) if self.factor > 1 else None
                raise RelationError("no integers", code="type.operator")
            return TensorType([d * self.factor for d in data.shape], data.dtype)

        def reference(self, data):
            return data

    yield seen
    OPERATORS.remove(NAME)


def infer(call: relay.Expr, x: relay.Var) -> IRModule:
    return InferType()(IRModule.from_expr(relay.Function([x], call)))


def call(x: relay.Expr, attrs: object) -> relay.Call:
    return relay.Call(relay.op.get(NAME), [x], attrs)


def test_the_same_attributes_and_types_are_asked_once(asked: list) -> None:
    x, attrs = relay.var("x", shape=(2, 3)), OPERATORS[NAME].definition(factor=2)
    first = infer(call(x, attrs), x)["main"].body.checked_type
    again = relay.var("x", shape=(2, 3))
    assert infer(call(again, attrs), again)["main"].body.checked_type == first == TensorType((4, 6))
    assert len(asked) == 1


def test_other_types_and_other_records_are_asked_anew(asked: list) -> None:
    record = OPERATORS[NAME].definition
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(5,))
    attrs = record(factor=2)
    shapes = [
        infer(call(v, a), v)["main"].body.checked_type.shape for v, a in ((x, attrs), (y, attrs), (x, record(factor=3)))
    ]
    assert shapes == [(4,), (10,), (6,)]
    assert len(asked) == 3


@pytest.mark.parametrize("factor", [1, 2])
def test_an_error_is_reported_every_time(asked: list, factor: int) -> None:
    """Also where the relation had told the result before it refused."""
    attrs = OPERATORS[NAME].definition(factor=factor)
    for _ in range(2):
        x = relay.var("x", shape=(2,), dtype="int32")
        with pytest.raises(DiagnosticError, match="no integers"):
            infer(call(x, attrs), x)
    assert len(asked) == 2
