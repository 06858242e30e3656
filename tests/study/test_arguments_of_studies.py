"""What is said where a study is given something else: the name of the parameter, and nothing from inside."""

from __future__ import annotations

import pytest

from relaylab import study
from relaylab.support.errors import RelayTypeError


@pytest.mark.parametrize(
    ("ask", "parameter"),
    [
        (lambda: study.describe("mlp"), "lib"),
        (lambda: study.listing("mlp"), "lib"),
        (lambda: study.control_flow("mlp", "dense"), "lib"),
        (lambda: study.seeded(3), "lib"),
        (lambda: study.race({"a": 3}), "libraries"),
        (lambda: study.stage_diff("mlp"), "history"),
        (lambda: study.rule_hits("mlp"), "history"),
        (lambda: study.bisect_history("mlp"), "history"),
        (lambda: study.crash_of("mlp"), "history"),
        (lambda: study.compare_recordings("a.rlab", "b.rlab"), "a"),
        (lambda: study.exceeded("time", ["time+3%"]), "quantities"),
        (lambda: study.why_not("SimplifyExpr", "mlp"), "module"),
        (lambda: study.explain(3), "code"),
        (lambda: study.read("net.relay"), "path"),
        (lambda: study.operators("mlp"), "mod"),
        (lambda: study.difference("mlp", "mlp"), "before"),
        (lambda: study.profile("mlp", number="many"), "repeat"),
    ],
)
def test_a_wrong_argument_is_told_by_its_parameter(ask, parameter):
    with pytest.raises(RelayTypeError) as caught:
        ask()
    assert caught.value.code == "call.wrong-kind" and f"`{parameter}` must be" in caught.value.message


def test_several_of_a_kind_are_spelled_in_english():
    with pytest.raises(RelayTypeError, match="a list of Quantities"):
        study.exceeded("time", [])
