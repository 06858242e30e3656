"""A function's body in the place of a call: arguments and types take the places of its parameters."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Call, Function, IRModule, Let, Op, Var
from relaylab.transform.normal_forms.first_order import first_order

POLYMORPHIC = """#[version = "0.0.5"]
type Chain[T] { End, Link(T, Chain[T]) }
def @last[A](%chain: Chain[A], %none: A) -> A {
  match (%chain) { Link(%x: A, %rest: Chain[A]) => { @last(%rest, %x) }, End => { %none } }
}
def @main(%x: float32) -> float32 { @last(Link(%x, End), 0f) }
"""


@pytest.mark.parametrize("typed", [True, False])
def test_type_parameters_are_replaced_with_the_function(typed: bool) -> None:
    mod = relay.transform.EtaExpand(expand_constructor=True, expand_global_var=True)(relay.fromtext(POLYMORPHIC))
    mod = relay.transform.InferType()(mod) if typed else mod
    after = relay.transform.InferType()(relay.transform.PartialEvaluate()(mod))
    assert relay.create_executor("debug", after).evaluate()(np.float32(3)).numpy() == 3


FOREIGN = """#[version = "0.0.5"]
def @twice(%a: float32, %b: float32, Compiler="dnn", global_symbol="twice") -> float32 { add(%b, %b) }
def @main() -> (float32, float32) {
  let %r = ref(1f);
  %0 = (let %v = ref_write(%r, 5f); 2f);
  let %y = @twice(%0, 3f);
  (%y, ref_read(%r))
}
"""


def test_an_effect_in_an_argument_that_a_foreign_function_does_not_use_stays() -> None:
    mod = relay.transform.InferType()(relay.fromtext(FOREIGN))
    back = relay.transform.InlineCompilerFunctionsBoundTo([mod.get_global_var("twice")])(mod)
    assert len(back.functions) == 1
    assert [float(v.numpy()) for v in relay.create_executor("debug", back).evaluate()()] == [6, 5]


def test_an_operator_with_an_effect_keeps_its_lets() -> None:
    x = relay.var("x", shape=(2,))
    mod = IRModule({"main": Function([x], Let(Var("_"), Call(Op.get("memory.kill"), [x]), x))})
    assert first_order(mod) is mod


def test_functions_that_live_elsewhere_stay_functions() -> None:
    text = """def @there(%a: float32, Inline=1, ATTR) -> float32 { add(%a, %a) }
    def @main(%x: float32) -> float32 { @there(%x) }"""
    for attr, kept in (("Extern=1", True), ('Compiler="dnn"', True), ("Note=1", False)):
        mod = relay.transform.Inline()(relay.transform.InferType()(relay.fromtext(text.replace("ATTR", attr))))
        assert isinstance(mod["main"].body.op, Function) == kept and len(mod.functions) == 1


def test_a_function_that_is_passed_as_a_value_is_inlined_as_one() -> None:
    text = """def @double(%a: float32, Inline=1) -> float32 { add(%a, %a) }
    def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
    def @main(%x: float32) -> float32 { @twice(@double, %x) }"""
    after = relay.transform.Inline()(relay.transform.InferType()(relay.fromtext(text)))
    assert sorted(v.name_hint for v in after.get_global_vars()) == ["main", "twice"]
    assert relay.create_executor("debug", after).evaluate()(np.float32(3)).numpy() == 12
