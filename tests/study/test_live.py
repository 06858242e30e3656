"""Relay text while it is typed: where what is wrong, what is kept, what a text changes."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.ir import Constant, walk

TEXT = """def @main(%x: Tensor[(2, 8), float32]) {
  %0 = add(%x, meta[relay.Constant][0]);
  %1 = multiply(%0, meta[relay.Constant][1]);
  nn.relu(%1)
}
"""


@pytest.fixture
def live() -> study.LiveText:
    x = relay.var("x", shape=(2, 8))
    added, scale = relay.const(np.full((2, 8), 3.0, "float32")), relay.const(np.full((2, 8), 5.0, "float32"))
    body = relay.nn.relu(relay.multiply(relay.add(x, added), scale))
    return study.LiveText(relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], body))))


def constants(mod: relay.IRModule) -> list[float]:
    return [float(n.data.numpy().flat[0]) for n in walk([mod["main"].body]) if isinstance(n, Constant)]


def under(text: str, fault: study.Fault) -> str:
    return text.split("\n")[fault.line - 1][fault.column - 1 : fault.end_column]


def test_its_own_text_changes_nothing(live):
    assert live.text.split("->")[0].startswith("def @main(%x: Tensor[(2, 8), float32])") and "/*" not in live.text
    assert live.read(live.text) and live.mod is live.source and live.difference().counts == {}
    assert live.read(f"// a remark\n{live.text}") and live.mod is live.source, "form is no difference"


@pytest.mark.parametrize(
    "old, new, wrong, says",
    [
        ("nn.relu", "nn.reluu", ["nn.reluu"], "no operator"),
        ("add(%x", "add(%y", ["%y"], "not bound"),
        ("add(%x,", "add(%x;", [";", ")"], "expected"),
        ("nn.relu(%1)", "nn.dense(%1, %0, units=3)", ["nn.dense(%1, %0, units=3)"], "units"),
        ("add(%x, meta[relay.Constant][0])", "add(%u, %v)", ["%u", "%v"], "not bound"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_under_its_place(live, old, new, wrong, says):
    text = TEXT.replace(old, new)
    assert not live.read(text)
    assert [under(text, f) for f in live.faults] == wrong and says in live.faults[0].message
    assert live.mod is live.source, "the last good program stays"
    assert live.read(TEXT) and live.faults == ()


def test_a_text_against_the_good_one_before(live):
    assert live.read(TEXT.replace("nn.relu", "tanh"))
    assert live.difference().counts == {"changed": 1}
    assert not live.read("def @main(") and live.difference().counts == {"changed": 1}
    assert live.read(TEXT.replace("nn.relu", "tanh").replace("add(", "subtract("))
    assert live.difference().counts == {"changed": 1}
    assert live.difference(live.source).counts == {"changed": 2}


def test_constants_stay_what_they_are(live):
    """Also when one before them goes, and in a text that was written for the program before an edit."""
    without = TEXT.replace("  %0 = add(%x, meta[relay.Constant][0]);\n", "").replace("%0", "%x")
    assert live.read(without) and constants(live.mod) == [5.0]
    live.follow(live.mod)
    assert "meta[relay.Constant][1]" in live.text and "meta[relay.Constant][0]" not in live.text
    assert live.read(without) and constants(live.mod) == [5.0]
    assert live.read(TEXT) and constants(live.mod) == [3.0, 5.0]
    out = relay.create_executor("debug", mod=live.mod).evaluate()(np.ones((2, 8), "float32"))
    assert float(out.numpy()[0, 0]) == 20.0


def test_an_edit_of_the_program_is_an_edit_of_the_pipeline():
    pipeline = study.explore("mlp").pipeline
    live = study.LiveText(pipeline.source)
    assert live.read(live.text.replace("nn.relu(", "tanh("))
    runs, segments = pipeline.runs, pipeline.segments
    pipeline.begin_with(live.mod)
    assert "tanh" in str(pipeline.modules[-1]) and pipeline.runs > runs
    pipeline.undo()
    assert "tanh" not in str(pipeline.modules[-1]) and pipeline.segments[0] is segments[0], (
        "what was known is not run again"
    )
    pipeline.redo()
    assert pipeline.source is live.mod
