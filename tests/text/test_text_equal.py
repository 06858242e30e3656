"""`structural_equal(m, parse(m.astext()))` for values and binders that a text can only just say; numbers too long."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import SizeVar
from relaylab.ir.base import VirtualDevice, placed
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.text.node_json import load_json, save_json

X = relay.var("x", shape=(3,))
N = relay.var("n", shape=(), dtype="int64")
DIGITS = "9" * 5000


def typed(expr: relay.Expr) -> relay.IRModule:
    return relay.transform.InferType()(relay.IRModule.from_expr(expr))


@pytest.mark.parametrize(
    "expr",
    [
        relay.arange(relay.const(5, "int64"), dtype="int64"),
        relay.arange(relay.const(1.5), relay.const(5.0), relay.const(0.5)),
        relay.arange(N, dtype="int64"),
        relay.arange(N, relay.add(N, N), dtype="int64"),
        relay.nn.l2_normalize(X, 1e300),
        relay.clip(X, -3.4028236e38, 3.5e38),
        relay.clip(X, math.nan, 1),
        relay.clip(X, -math.nan, math.inf),
        relay.clip(X, -math.inf, 5e-324),
        relay.clip(X, np.finfo("float32").max.item(), np.finfo("float64").max.item()),
        relay.cast(relay.const([math.nan, -0.0]), "float64"),
    ],
    ids=str,
)
def test_attributes_survive(expr: relay.Expr) -> None:
    mod = typed(expr)
    again = relay.parse(mod.astext())
    relay.assert_structural_equal(mod, again)
    assert relay.structural_hash(mod) == relay.structural_hash(again)
    assert again.astext() == mod.astext()


@pytest.mark.parametrize(
    "text",
    [
        "def @main() { let %f = fn[T](%q: T) -> T { %q }; %f(1) }",
        "def @main() { let %f = fn[T, U](%q: T, %r: U) -> (T, U) { (%q, %r) }; (%f(1, True), %f(2f, 3)) }",
        "def @main[A](%x: A) -> A { let %f = fn[B](%y: B) -> A { %x }; let %g = fn[C](%z: C) { %f(%z) }; %g(1) }",
        "def @f[T](%x: T) -> T { %x } def @main() { let %g = fn[T](%q: T) -> T { @f(%q) }; (%g(1), @f(2)) }",
    ],
)
def test_polymorphic_functions_survive(text: str) -> None:
    mod = relay.parse('#[version = "0.0.5"]\n' + text)
    relay.assert_structural_equal(mod, relay.parse(mod.astext()))


def test_functions_that_share_their_type_variables_survive() -> None:
    """As LambdaLift leaves them: text gives each function its own."""
    t = relay.TypeVar("T")
    mod = relay.IRModule()
    for name in ("f", "g"):
        x = relay.var("x", t)
        mod[name] = relay.Function([x], x, t, [t])
    relay.assert_structural_equal(mod, relay.parse(mod.astext()))


def test_type_variables_are_bound_where_they_stand() -> None:
    a, b, c, d = (relay.TypeVar(n) for n in "abcd")
    fn = relay.FuncType
    same = relay.structural_equal
    assert same(fn([a, b], a, [a, b]), fn([c, d], c, [c, d]))
    assert same(fn([a, b], a, [a, b]), fn([b, a], b, [b, a]))
    assert not same(fn([a, b], a, [a, b]), fn([c, d], d, [c, d]))
    assert not same(fn([a], b, [a]), fn([c], d, [c]))  # b and d are free, and two
    assert same(fn([fn([a], a, [a])], b, [b]), fn([fn([c], c, [c])], d, [d]))
    assert not same(fn([fn([a], b, [a])], b, [b]), fn([fn([c], c, [c])], d, [d]))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"def @main(%x: (int32,)) {{ %x.{DIGITS} }}", "parse.number-range"),
        (f"def @main(%x: (int32,)) {{ %x.0.{DIGITS} }}", "parse.number-range"),
        (f"def @main() {{ {DIGITS} }}", "parse.number-range"),
        (f"def @main() {{ -{DIGITS}i64 }}", "parse.number-range"),
        (f"def @main() {{ {DIGITS}f }}", "parse.number-range"),
        (f"def @main() {{ 1e{DIGITS}f64 }}", "parse.number-range"),
        (f"def @main(%x: Tensor[({DIGITS}), int32]) {{ %x }}", "parse.number-range"),
        (f"def @main(%x: int32) {{ nn.softmax(%x, axis={DIGITS}) }}", "parse.number-range"),
        (f"def @main() {{ meta[relay.attrs.PadAttrs][{DIGITS}] }}", "parse.unknown-metadata"),
        (f'def @main() {{ 1 }}\n#[metadata]\n{{"version": {DIGITS}}}', "parse.bad-metadata"),
    ],
    ids=lambda value: value.replace(DIGITS, "9…"),
)
def test_numbers_of_any_length_are_read_or_refused(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        relay.parse('#[version = "0.0.5"]\n' + text)
    first = (caught.value.diagnostics or [caught.value])[0]
    assert first.code == code and "-->" in first.place


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: relay.TupleType([t]),
        relay.RefType,
        lambda t: relay.FuncType([t], t),
        lambda t: relay.TypeCall(relay.GlobalTypeVar("List"), [t]),
    ],
)
def test_types_that_nest_too_deeply_are_refused_where_they_are_made(wrap: Callable[[relay.Type], relay.Type]) -> None:
    t = relay.TensorType((3,))
    with pytest.raises(RelayError, match="200 levels") as caught:
        for _ in range(5000):
            t = wrap(t)
    assert caught.value.code == "type.too-deep" and caught.value.help
    assert str(t) if wrap is relay.RefType else hash(t) == hash(t)  # what was made is walked


def test_a_program_whose_type_nests_too_deeply_is_refused() -> None:
    expr = relay.const(1)
    for _ in range(3000):
        expr = relay.Tuple([expr])
    with pytest.raises(RelayError, match="200 levels"):
        typed(expr)


def test_zeros_before_a_number_do_not_make_it_long() -> None:
    assert relay.parse_expr("0" * 5000 + "7").data.item() == 7


def test_whole_attributes_have_64_bits() -> None:
    with pytest.raises(RelayError, match="64 bits"):
        relay.nn.dense(X, X, units=10**30)


@pytest.mark.parametrize("name", ["True", "let", "let.a", "_.x", "match?", "a.let", "virtual_device", "ä", ""])
def test_attributes_of_any_name_survive(name: str) -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], x, x.checked_type, attrs={name: 3}))
    relay.assert_structural_equal(mod, relay.parse(mod.astext()))


@pytest.mark.parametrize("name", ["fn", "_", "True", "float32", "Tensor", "match?", "ä", ""])
def test_type_variables_of_any_name_survive(name: str) -> None:
    t, number = relay.TypeVar(name), relay.scalar_type("float32")
    x, y = relay.var("x", t), relay.var("y", number)
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x, y]), relay.TupleType([t, number]), [t]))
    relay.assert_structural_equal(mod, relay.parse(mod.astext()))


def test_sizes_with_names_survive() -> None:
    n = SizeVar("n")
    x = relay.var("x", shape=(n * 2 + 1, 3))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], relay.reshape(x, (n * 6 + 3,)))))
    relay.assert_structural_equal(mod, relay.parse(mod.astext()))
    relay.assert_structural_equal(mod, load_json(save_json(mod)))


@pytest.mark.parametrize(
    "value", [2**64 - 1, 2**63, -(2**63), np.float64(1.5), np.str_("a"), -0.0, 5e-324, "\ud800\0", {"a b": [(), None]}]
)
def test_values_of_attributes_survive(value: object) -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], x, x.checked_type, attrs={"a": value}))
    for read in (relay.parse(mod.astext()), load_json(save_json(mod))):
        relay.assert_structural_equal(mod, read)


def test_devices_survive() -> None:
    on = VirtualDevice(1, "llvm", "global")
    x = placed(relay.var("x", shape=(2,)), on)
    mod = relay.IRModule.from_expr(placed(relay.Function([x], x, x.checked_type), on))
    for read in (relay.parse(mod.astext()), load_json(save_json(mod))):
        assert read["main"].device == read["main"].params[0].device == on
