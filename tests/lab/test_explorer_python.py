"""The explorer as Python sees it: what it takes, where it stands, what it says of mistakes."""

from __future__ import annotations

import pytest
from traitlets import TraitError

from relaylab import course, relay, study, viz
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

lab = pytest.importorskip("relaylab.lab.explorer")


def test_a_program_is_run() -> None:
    mod, _ = relay.testing.mlp.get_workload(1)
    for what in ("mlp", mod, study.explore("mlp")):
        assert "27 passes" in repr(lab.PassExplorer(what)).replace("26", "27")
    with pytest.raises(RelayError, match="int"):
        lab.PassExplorer(3)


def test_what_is_chosen_is_there() -> None:
    shown = lab.PassExplorer("mlp")
    with pytest.raises(TraitError, match="graph"):
        shown.pane = "grpah"
    with pytest.raises(RelayValueError) as told:
        shown.go(99)
    assert told.value.code == "explorer.frame" and "0 to" in told.value.message
    with pytest.raises(RelayValueError) as told:
        shown.toggle("FuseOp")
    assert told.value.help == "did you mean `FuseOps`?"


def test_an_edit_may_leave_fewer_stages_than_the_one_that_is_shown() -> None:
    """The selected node, figures and the picture for places without widgets were an IndexError."""
    shown = lab.PassExplorer("mlp")
    shown.go(len(shown.session.frames) - 1)
    while len(shown.session.pipeline.items) > 3:
        shown.session.pipeline.remove(3)
    shown.session.refresh()
    assert shown.frame == 3 < shown.after
    shown.selected = "main/nn.dense"
    assert shown.selected_node is not None
    shown.overlay("mine", {"main/nn.dense": 1.0})
    assert "image/svg+xml" in shown._repr_mimebundle_()[0]


def test_a_query_is_asked_of_a_view() -> None:
    mod, _ = relay.testing.mlp.get_workload(1)
    for what in ((viz.view(mod), 3), (mod, "op:nn.dense")):
        with pytest.raises(RelayTypeError) as told:
            viz.select(*what)
        assert told.value.code == "call.wrong-kind"


VIEW = viz.view(relay.testing.mlp.get_workload(1)[0])
WRONG = {
    "save": lambda: viz.save(VIEW, 3),  # type: ignore[arg-type]
    "overlay": lambda: viz.overlay(VIEW, "mine", [1, 2]),  # type: ignore[arg-type]
    "path": lambda: viz.path("mlp", "a", "b"),  # type: ignore[arg-type]
    "declare": lambda: viz.declare(3),  # type: ignore[arg-type]
    "kernel_times": lambda: viz.kernel_times(3, []),  # type: ignore[arg-type]
    "operator_table": lambda: viz.operator_table("mlp"),  # type: ignore[arg-type]
    "extract": lambda: viz.extract(VIEW, "op:nn.dense"),  # type: ignore[arg-type]
    "run": lambda: study.run("mlp", [1.0]),  # type: ignore[arg-type]
    "llvm_steps": lambda: study.llvm_steps(None, "dense"),  # type: ignore[arg-type]
    "compare": lambda: study.compare("mlp", 3),  # type: ignore[arg-type]
    "pipeline": lambda: study.explore("mlp", passes=[3]),
    "hint": lambda: course.hint(3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_function_does_not_take_is_told(name: str) -> None:
    """They were errors of attributes from inside."""
    with pytest.raises(RelayTypeError) as told:
        WRONG[name]()
    assert told.value.code in ("call.wrong-kind", "study.not-a-pass") and told.value.help


def test_a_trait_that_there_is_not_is_refused():
    w = lab.PassExplorer("mlp")
    for wrong in (lambda: setattr(w, "selectd", "main/nn.dense"), lambda: lab.PassExplorer("mlp", selectd="")):
        with pytest.raises(RelayError, match="did you mean `selected`"):
            wrong()
    with pytest.raises(RelayError, match=r"w.go\(frame\) shows another stage"):
        w.stage = 3
    w.after, w.layout.width = 1, "50%"


def test_a_figure_of_a_node_that_no_program_has_is_refused():
    x = relay.var("x", shape=(2,))
    w = lab.PassExplorer(relay.exp(x))
    with pytest.raises(RelayError, match="give ids, or nodes of"):
        w.overlay("mine", {relay.exp(x): 1.0})
    assert "mine" not in w.overlays
