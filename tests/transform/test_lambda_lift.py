"""Lifted functions are shared where they are equal, not where their hashes are."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import Call, Function, IRModule, structural_equal

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


POLYMORPHIC = {
    "an inner function of any type": "{ let %f = fn[T](%q: T) -> T { %q }; (%f(%y), %f(%n)) }",
    "one that captures": "{ let %f = fn[T](%q: T) -> (T, A) { (%q, %y) }; (%f(1), %f(%y)) }",
    "one that calls itself": """{
        let %f = fn[T](%k: int32, %v: T) -> T { if (equal(%k, 0)) { %v } else { %f(subtract(%k, 1), %v) } };
        (%f(%n, %y), %f(1, 2)) }""",
    "one that captures and calls itself": """{
        let %f = fn (%k: int32) -> A { if (equal(%k, 0)) { %y } else { %f(subtract(%k, 1)) } };
        %f(%n) }""",
    "one of a type of its own that captures and calls itself": """{
        let %f = fn[T](%k: int32, %v: T) -> (T, A) {
          if (equal(%k, 0)) { (%v, %y) } else { %f(subtract(%k, 1), %v) }
        };
        (%f(%n, 3f), %f(1, 2)) }""",
}


@pytest.mark.parametrize("body", POLYMORPHIC.values(), ids=POLYMORPHIC)
def test_type_parameters_go_with_the_function(body):
    text = f'#[version = "0.0.5"] def @g[A](%y: A, %n: int32) {body} def @main(%z: float32) {{ @g(%z, 3) }}'
    infer = relay.transform.InferType()
    mod = infer(relay.fromtext(text))
    lifted = infer(relay.transform.LambdaLift()(mod))
    assert all(f.ret_type is not None for f in lifted.functions.values())
    assert structural_equal(infer(relay.fromtext(lifted.astext())), lifted)
    before, after = (relay.create_executor("debug", m).evaluate()(np.float32(2.5)) for m in (mod, lifted))
    assert str(before) == str(after)
