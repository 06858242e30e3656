"""The explorer over programs of the virtual machine: a node leads to its kernel, its code, its time, its memory."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.explorer.session import Session
from relaylab.lab import saved_page
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

OPEN = """
def @main(%x: Tensor[(n, 64), float32], %w: Tensor[(32, 64), float32], %b: Tensor[(32), float32]) {
  nn.softmax(nn.relu(nn.bias_add(nn.dense(%x, %w, units=32), %b)))
}"""
FOUND = """
def @main(%x: Tensor[(128, 64), float32], %w: Tensor[(32, 64), float32], %t: Tensor[(128), bool]) {
  nn.relu(nn.dense(take(%x, squeeze(argwhere(%t), axis=[1]), axis=0), %w, units=32))
}"""
IMAGES = """
def @main(%x: Tensor[(1, 3, h, w), float32], %w: Tensor[(8, 3, 3, 3), float32]) {
  nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]))
}"""
LOOP = """
def @main(%i: int32, %x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
  if (less(%i, 10)) { @main(add(%i, 1), nn.relu(multiply(%x, 1.5f))) } else { %x }
}"""
CASES = {
    "open": (OPEN, {"nn.dense", "nn.bias_add", "nn.relu", "nn.softmax"}, set()),
    "images": (IMAGES, {"nn.conv2d", "nn.relu"}, set()),
    "found": (FOUND, {"squeeze", "take", "nn.dense", "nn.relu"}, {"argwhere"}),
    "loop": (LOOP, {"less", "add", "nn.relu", "multiply"}, set()),
}


def session(text: str) -> Session:
    return Session(study.explore(relay.parse(text)))


@pytest.mark.parametrize("case", CASES)
def test_nodes_of_every_stage_lead_to_their_kernel(case: str) -> None:
    text, compiled, others = CASES[case]
    asked = session(text)
    for frame in (0, len(asked.frames) - 1):
        found = {n.operator: asked.ask("kernel", frame, n.id) for n in asked.frames.views[frame].nodes if n.operator}
        known = {{"add": "nn.bias_add"}.get(o, o) if case == "open" else o for o in found} - others
        assert known - {"layout_transform"} == compiled
        assert {o for o, answer in found.items() if "asm" not in answer} == others
        for operator, answer in found.items():
            if operator in others:
                assert "exe.summary()" in str(answer["error"])
                continue
            assert operator in str(answer["relay"]) or operator == "nn.bias_add", "CanonicalizeOps makes an add of it"
            titles = [title for title, _ in answer["parts"]]  # type: ignore[union-attr]
            assert answer["llvm"] and answer["asm"] and answer["why"] and len(titles) > 0
            linked = {id for _, id in answer["parts"] if id}  # type: ignore[union-attr]
            assert linked & set(asked.frames.ids[-1].values()), "lines of code lead back to nodes"
    assert "scene" in asked.ask("memory")


def test_what_takes_the_time_is_told_where_sizes_are_known() -> None:
    for case in ("found", "loop"):
        text, compiled, _ = CASES[case]
        values = session(text).ask("overlay", "time", 0)["values"]
        told = {str(name).rpartition("/")[2].partition(".2")[0] for name in values}  # type: ignore[union-attr]
        assert len(told & compiled) >= 2, values


@pytest.mark.parametrize("case,sizes", [("open", "n = 8"), ("images", "h = 8, w = 8")])
def test_times_of_open_sizes_say_for_which(case: str, sizes: str) -> None:
    """Nobody can give an explorer arrays: sizes are those of the figures of `exe.summary()`."""
    asked = session(CASES[case][0])
    found = asked.ask("overlay", "time", 0)
    assert found["values"] and str(found["note"]).endswith(f"measured for {sizes}")
    table = asked.ask("operators", 0, True)
    assert table["sizes"] == sizes and any(row[-1] for row in table["rows"])  # type: ignore[union-attr]


def test_the_table_of_operators_has_their_times() -> None:
    for case, heavy in (("found", "nn.dense"), ("loop", "less")):
        table = study.operator_table(relay.parse(CASES[case][0]), number=2)
        assert {row.operator for row in table.rows if row.time} >= {heavy}, table
    with pytest.raises(RelayError, match="say sizes behind the name"):
        study.operator_table(relay.parse(OPEN))


def test_flow_and_passes_of_llvm() -> None:
    asked = session(OPEN)
    last = len(asked.frames) - 1
    (name,) = [n.id for n in asked.frames.views[last].nodes if n.operator == "nn.softmax"]
    assert "scene" in asked.ask("flow", last, name) and asked.ask("llvm", last, name)["steps"]


@pytest.mark.parametrize(
    "case,operator,steps,made",
    [
        ("open", "nn.softmax", "vectorize i1", "vectorized"),
        ("open", "nn.dense", "parallel i0", "parallel i0"),
        ("images", "nn.conv2d", "from picked", ""),
        ("loop", "multiply", "split i1 4", "i1o in 2"),
    ],
)
def test_schedules_are_tried_on_kernels_of_the_virtual_machine(case: str, operator: str, steps: str, made: str) -> None:
    asked = session(CASES[case][0])
    last = len(asked.frames) - 1
    name = next(n.id for n in asked.frames.views[last].nodes if n.operator == operator)
    found = asked.ask("loops", last, name, steps)
    assert "error" not in found, found
    assert made in "\n".join(str(row) for row in found["rows"])  # type: ignore[union-attr]
    assert found["error_size"] < 1e-6 and min(found["times"]) > 0  # type: ignore[operator, call-overload]
    assert found["sizes"] == {"open": "n = 8", "images": "h = 8, w = 8"}.get(case, "")


def test_what_a_schedule_of_open_loops_may_not_do_is_said() -> None:
    asked = session(OPEN)
    last = len(asked.frames) - 1
    name = next(n.id for n in asked.frames.views[last].nodes if n.operator == "nn.softmax")
    assert "is known when the kernel runs" in str(asked.ask("loops", last, name, "split i0 2")["error"])
    assert "no schedule step named" in str(asked.ask("loops", last, name, "nonsense")["error"])
    asked = session(FOUND)
    last = len(asked.frames) - 1
    name = next(n.id for n in asked.frames.views[last].nodes if n.operator == "nn.dense")
    assert "when data has decided its sizes" in str(asked.ask("loops", last, name, "")["error"])


def test_a_trial_of_an_open_kernel_is_held_against_the_picked_loops() -> None:
    kernels = session(OPEN).kernels
    function = next(f for f, name in kernels.names.items() if "softmax" in name)
    trial = kernels.trial(function, "vectorize i1")
    assert trial.error < 1e-6 and trial.evaluated is None and "sizes that a run says" in trial.measures
    assert [m.step for m in trial.timeline] == ["the plain loops", "vectorize i1"] and trial.bisect() is None
    assert "fmuladd" in trial.llvm or "define" in trial.llvm
    assert trial.share > 0
    # the form for all sizes is what is measured, however often it ran for these
    assert trial.scheduled.specializations.forms == {}  # type: ignore[union-attr]


def test_a_saved_page_has_the_code() -> None:
    code = saved_page.snapshot(session(FOUND))["code"]
    assert "tvmgen_open_fused_squeeze_take" in {k.get("name") for k in code["kernels"]} and code["homes"]


def test_sizes_without_a_name_are_measured_too() -> None:
    x = relay.var("x", shape=(relay.Any(), 4))
    asked = Session(study.explore(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))))
    found = asked.ask("overlay", "time", 0)
    assert found["values"] and str(found["note"]).endswith("measured for ? = 8")
