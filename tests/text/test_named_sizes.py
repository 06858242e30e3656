"""Sizes with names are written and read by their names."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import OPERATORS, IRModule, SizeVar, TensorType, TupleType, Var, structural_equal

from relaylab.ir.dims import larger
from relaylab.op.base import call_operator
from relaylab.study.live import LiveText
from relaylab.study.stage_text import Constants, printed
from relaylab.support.errors import RelayError

N, M = SizeVar("n"), SizeVar("m")


def program(name: str = "batch") -> IRModule:
    batch, seq = relay.SizeVar(name), relay.SizeVar("seq")
    x = relay.var("x", shape=(batch, 2 * seq))
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.nn.relu(x)))


def shape_of(dims: str) -> tuple[object, ...]:
    mod = relay.parse(f"def @main(%y: Tensor[(n, m), float32], %x: Tensor[({dims}), float32]) {{ (%x, %y) }}")
    x, y = mod["main"].params[1].type_annotation, mod["main"].params[0].type_annotation
    return (*y.shape, *x.shape)


def test_every_text_has_names_and_is_read_back() -> None:
    mod = program()
    for text in (str(mod), mod.astext(), "\n".join(printed(mod, Constants()).lines)):
        assert "%x: Tensor[(batch, 2 * seq), float32]" in text and "meta[" not in text
        assert structural_equal(relay.transform.InferType()(relay.parse(text)), mod)
    assert "nn.relu(%x) /* ty=Tensor[(batch, 2 * seq), float32] */" in str(mod["main"].body)


@pytest.mark.parametrize("name", ["ba*/tch /*", "inf", "3", "floordiv", "max", "let", "a/b", "größe", ""])
def test_names_that_are_no_words_are_kept_beside_the_text(name: str) -> None:
    mod = program(name)
    again = relay.parse(mod.astext())
    assert again["main"].params[0].type_annotation.shape[0].name == name and again.astext() == mod.astext()
    assert relay.parse(str(mod))["main"].params[0].name_hint == "x"


def test_sizes_of_one_name_are_told_apart() -> None:
    one, other = SizeVar("n"), SizeVar("n")
    x, y = relay.var("x", shape=(one, other, 1)), relay.var("y", shape=(other, one + other, 2))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Tuple([x, y])))
    again = relay.parse(mod.astext())
    a, b, _ = again["main"].params[0].type_annotation.shape
    c, d, _ = again["main"].params[1].type_annotation.shape
    assert a is not b and c is b and d == a + b and a.name == b.name == "n"
    assert again.astext() == mod.astext() and structural_equal(again, mod)


@pytest.mark.parametrize(
    "dims, expected",
    [
        ("2 * n + m - 1", lambda n, m: 2 * n + m - 1),
        ("(n + 1) * (m - 1)", lambda n, m: (n + 1) * (m - 1)),
        ("floordiv(n + floordiv(m, 2), 3)", lambda n, m: (n + m // 2) // 3),
        ("max(n - 3, 0) + 2 * m", lambda n, m: larger(n - 3, 0) + 2 * m),
        ("max(n, m)", lambda n, m: larger(n, m)),
        ("floormod(n, 4)", lambda n, m: n % 4),
        ("3 - n + 2*m", lambda n, m: 3 - n + 2 * m),
        ("2 * 3", lambda n, m: 6),
    ],
)
def test_expressions_are_read(dims: str, expected: object) -> None:
    n, m, found = shape_of(dims)
    assert found == expected(n, m) and n is not m  # type: ignore[operator]


@pytest.mark.parametrize(
    "dims, why",
    [
        ("n/2", r"a division is floordiv\(n, 2\)"),
        ("floordiv(n, 0)", "divided by a positive number"),
        ("floordiv(n, m)", "divided by a positive number"),
        ("n * 1.5", "sizes are whole numbers"),
        ("n +", "expected a size"),
        ("-3", "a number that is not negative"),
        ("(" * 200 + "n", "levels deep"),
        (" * ".join(f"(a{k} + 1)" for k in range(12)), "so many terms"),
        ("n m", "expected `,` or"),
        ("99999999999 * 99999999999", "too large"),
        (" * ".join(["99999999999"] * 400) + " * n", "too large"),
        ("n * 99999999999 * 99999999999", "too large"),
        (" * ".join(["n"] * 100000), "too large"),
    ],
)
def test_what_is_no_size_is_refused_where_it_stands(dims: str, why: str) -> None:
    with pytest.raises(RelayError, match=why):
        shape_of(dims)


def test_an_attribute_has_only_sizes_that_the_text_knows() -> None:
    mod = relay.parse("def @main(%x: Tensor[(n, 4), float32]) { reshape(%x, newshape=[2 * n, -1]) }")
    assert str(relay.transform.InferType()(mod)["main"].body.checked_type).startswith("Tensor[(2 * n, ")
    with pytest.raises(RelayError, match="the value of an attribute"):
        relay.parse("def @main(%x: Tensor[(n, 4), float32]) { reshape(%x, newshape=[k, -1]) }")


def test_sizes_that_are_typed_in_are_those_that_were_there() -> None:
    mod = program()
    live = LiveText(mod)
    assert live.read(live.text.replace("nn.relu(", "tanh("))
    assert live.mod["main"].params[0].checked_type.shape[0] is mod["main"].params[0].checked_type.shape[0]


def test_every_operator_with_open_sizes_is_read_back() -> None:
    counted = 0
    for name, op in OPERATORS.items():
        for sample in op.definition.samples()[:2]:
            names: dict[int, SizeVar] = {}
            params = [Var(f"x{k}", opened(a, names)) for k, a in enumerate(sample.args)]
            try:
                body = call_operator(name, *params, **sample.attrs)
                mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))
            except RelayError:
                continue  # what this operator has numbers for
            again = relay.parse(mod.astext())
            assert structural_equal(relay.transform.InferType()(again), mod), name
            assert again.astext() == mod.astext()
            counted += bool(names)
    assert counted > 300


def opened(a: object, names: dict[int, SizeVar]) -> TensorType | TupleType:
    """The type of an argument of a sample with a size for each extent: equal ones are one size."""
    if isinstance(a, (tuple, list)):
        return TupleType([opened(part, names) for part in a])
    t = a if isinstance(a, TensorType) else TensorType(np.shape(a), np.asarray(a).dtype.name)
    return TensorType([names.setdefault(int(n), SizeVar(f"n{n}")) for n in t.concrete_shape], t.dtype)
