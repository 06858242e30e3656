"""A function's body in the place of a call: arguments and types take the places of its parameters."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay

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
