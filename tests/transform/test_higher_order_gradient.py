"""Gradients of programs with branches, recursion, closures, cells and data: held against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.analysis import Feature, detect_feature
from relaylab.ir import Function, IRModule, TupleGetItem
from relaylab.relay import transform
from relaylab.relay.testing import check_grad, run_infer_type
from relaylab.support.errors import RelayTypeError, RelayValueError

HEAD = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'
PROGRAMS = {
    "branch": "def @main(%a: float64) -> float64 { if (%a < 0f64) { exp(%a) } else { %a * %a } }",
    "recursion": """
def @pow(%x: float64, %n: int32) -> float64 {
  if (equal(%n, 0)) { 1f64 } else { %x * @pow(%x, subtract(%n, 1)) }
}
def @main(%a: float64) -> float64 { @pow(%a, 3) + %a }""",
    "closures": """
def @main(%a: float64) -> float64 {
  let %f = fn (%x: float64) -> float64 { %x * %a };
  let %loop = fn (%i: float64) -> float64 { if (%i < 1f64) { %a } else { %f(%loop(%i - 1f64)) } };
  %loop(3f64)
}""",
    "cell": """
def @main(%a: float64) -> float64 {
  let %r = ref(%a);
  let %u = ref_write(%r, ref_read(%r) * %a);
  ref_read(%r) * ref_read(%r)
}""",
    "data": """
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @total(%l: List[float64]) -> float64 { match (%l) { Cons(%h, %t) => { %h * %h + @total(%t) }, Nil => { 0f64 } } }
def @f(%x: float64) -> float64 { %x * exp(%x) }
def @main(%a: float64) -> float64 {
  let %c = Cons;
  @total(@map(@f, %c(%a, Cons(2f64, Cons(%a * %a, Nil)))))
}""",
    "tuples": """
def @main(%a: float64) -> float64 {
  let %s = split(stack((%a, %a * %a), axis=0), indices_or_sections=2, axis=0);
  let %g = if (%a < 5f64) { %s } else { (%s.1, %s.0) };
  sum(concatenate((%g.0, %g.1, %g.1), axis=0))
}""",
}


def run(mod: IRModule, x: float, kind: str = "debug"):
    return relay.create_executor(kind, mod=mod).evaluate()(np.float64(x))


def slope(mod: IRModule, x: float) -> float:
    ends = [float(run(mod, x + s).numpy()) for s in (1e-6, -1e-6)]
    return (ends[0] - ends[1]) / 2e-6


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_the_slopes(name: str) -> None:
    mod = transform.InferType()(relay.fromtext(HEAD + PROGRAMS[name]))
    wanted = {x: (float(run(mod, x).numpy()), slope(mod, x)) for x in (-0.7, 1.3)}
    mod["main"] = transform.gradient(mod["main"], mod)
    assert Feature.fRefCreate in detect_feature(mod["main"])
    for kind in ("debug", "vm"):
        for x, (value, by_difference) in wanted.items():
            out, (grad,) = run(mod, x, kind)
            np.testing.assert_allclose(out.numpy(), value)
            np.testing.assert_allclose(grad.numpy(), by_difference, rtol=1e-5, atol=1e-6)


def test_matrices_of_a_branch() -> None:
    x, w = relay.var("x", shape=(2, 3), dtype="float64"), relay.var("w", shape=(4, 3), dtype="float64")
    big = relay.greater(relay.sum(x), relay.const(100.0, "float64"))
    check_grad(Function([x, w], relay.nn.dense(relay.If(big, x, relay.tanh(x)), w)), scale=1.0)


def test_inputs_that_are_one_array_are_varied_one_by_one():
    x, y = (relay.var(n, shape=(3,), dtype="float64") for n in "xy")
    same = np.array([1.0, 2.0, 3.0])
    check_grad(Function([x, y], x * x * y), [same, same])


def test_a_gradient_has_a_gradient() -> None:
    mod = transform.InferType()(relay.fromtext(HEAD + PROGRAMS["branch"]))
    first = transform.gradient(mod["main"])
    y = relay.var("y", shape=(), dtype="float64")
    slope_of = Function([y], TupleGetItem(TupleGetItem(first(y), 1), 0))
    second = transform.InferType()(IRModule.from_expr(transform.gradient(run_infer_type(slope_of))))
    for x, wanted in ((-0.7, np.exp(-0.7)), (1.3, 2.0)):
        _, (grad,) = run(second, x)
        np.testing.assert_allclose(grad.numpy(), wanted)


@pytest.mark.parametrize(
    "text, kind, words",
    [
        (
            "def @main(%a: Tensor[(3), float64]) { let %r = ref(%a); nn.fast_softmax(ref_read(%r)) }",
            RelayValueError,
            "gradient of nn.fast_softmax is not known",
        ),
        (
            "type B { Box(float64) }\ndef @main(%a: float64) { match (Box(%a)) { Box(%b) => { %b } } }",
            RelayValueError,
            "declared to hold tensors",
        ),
        (
            "type B { Box(float64), No }\ndef @main(%a: float64) { match (No) { Box(%b) => { %b }, No => { %a } } }",
            RelayValueError,
            "declared to hold tensors",
        ),
        ("def @main(%a: float64) { let %r = ref(%a); %r }", RelayTypeError, "needs tensors"),
        ("def @main[A](%a: A, %c: bool) -> A { if (%c) { %a } else { %a } }", RelayValueError, "type parameters"),
    ],
)
def test_what_has_no_gradient(text: str, kind: type, words: str) -> None:
    mod = transform.InferType()(relay.fromtext(HEAD + text))
    with pytest.raises(kind, match=words):
        transform.gradient(mod["main"], mod)
