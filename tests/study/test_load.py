"""What can be explored, and what is said of what cannot."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.ir import structural_equal
from relaylab.relay import testing
from relaylab.support.errors import RelayError

X = relay.var("x", shape=(2,))
RELU = relay.Function([X], relay.nn.relu(X))


def test_a_workload_is_explored_as_it_comes():
    mod, params = testing.mlp.get_workload(1)
    found = study.load((mod, params))
    assert found.mod is mod and found.params is params
    assert study.load((mod, None)).params == {}
    bound = study.explore((mod, params)).pipeline.source["main"]
    assert [p.name_hint for p in bound.params] == ["data"]


def test_a_function_is_a_program():
    assert structural_equal(study.load(RELU).mod["main"], RELU)
    assert study.load((RELU, {})).mod["main"].params == RELU.params


@pytest.mark.parametrize(
    "what, words",
    [
        (3, "not int"),
        (None, "not NoneType"),
        ([RELU], "not list"),
        ((RELU,), "not tuple"),
        ((RELU, 3), "not tuple"),
        ("x\0y", "neither a network nor a file"),
        ("a" * 5000, "neither a network nor a file"),
        ("def @main(%x: int32) { %x }" * 99, "relay.parse(text)"),
    ],
)
def test_what_is_no_program_is_refused_in_few_words(what, words):
    with pytest.raises(RelayError) as error:
        study.load(what)
    assert words in str(error.value) and len(str(error.value)) < 1500
