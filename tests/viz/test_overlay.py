"""Figures over pictures, the options of `show`, the memory timeline, and the files for other viewers."""

from __future__ import annotations

import json
import re
from itertools import combinations
from types import SimpleNamespace

import pytest
from programs import SOURCES, program
from test_fold import layers

from relaylab import relay
from relaylab.runtime.executable import ArenaBlock, ExecutionPlan, KernelCall
from relaylab.support.errors import RelayValueError
from relaylab.viz import Node, View, save, select, show, view
from relaylab.viz.graph.figure import FIGURES, Figure, abbreviated, declare, macs
from relaylab.viz.write.export import model_explorer, netron
from relaylab.viz.selection.fold import collapse, of_kind
from relaylab.support.errors import RelayError
from relaylab.viz.figures.memory import bars, held_bytes, kept, peak, timeline
from relaylab.viz.figures.overlay import hot_path, kernel_boxes, kernel_times, measured, overlay, painted
from relaylab.viz.write.svg import svg


def heat(made: View, node: str) -> list[str]:
    return [p for p in made.node_by_id[node].paint if p.startswith("heat-")]


def test_a_metric_is_colour_badge_and_legend():
    made = overlay(layers(2), "error", {"conv0": 1.0, "relu1": 4.0, "add1": 0.0}, unit="ulp")
    assert (heat(made, "conv0"), heat(made, "relu1"), heat(made, "add1")) == (["heat-1"], ["heat-4"], [])
    assert made.node_by_id["relu1"].rows == ("error 4 ulp (80.0%)",)
    assert made.notes == ("error: pale 0 to strong 4 ulp, 5 ulp in all",)
    assert made.node_by_id["norm0"].paint == ()
    assert "heat-4" in svg(show(made).scene)


def test_groups_and_cards_show_sums():
    made = view(program("fused"))
    (kernel,) = of_kind(made, "primitive")
    shown = overlay(made, "MACs")
    assert shown.group_by_id[kernel].title.endswith("·  9.22k (100.0%)")
    timed = collapse(measured(made, "time", {kernel: 12.0}), {kernel})
    assert painted(timed, "time").node_by_id[kernel].rows[-1] == "time 12 µs (100.0%)"


def test_the_largest_instead_of_the_sum():
    made = view(program("fused"))
    relu, conv = (next(n.id for n in made.nodes if n.operator == op) for op in ("nn.relu", "nn.conv2d"))
    (kernel,) = of_kind(made, "primitive")
    card = collapse(measured(made, "error", {relu: 3.0, conv: 2.0}, how="max"), {kernel}).node_by_id[kernel]
    assert dict(card.cost)["error"] == 3.0
    card = collapse(measured(made, "error", {relu: 3.0, conv: 2.0}), {kernel}).node_by_id[kernel]
    assert dict(card.cost)["error"] == 5.0


def test_the_hot_path():
    made = layers(2)
    path = hot_path(made, {"conv0": 5.0, "add1": 1.0, "norm1": 2.0})
    assert path[0] == "in" and {"conv0", "norm0", "conv1", "norm1"} <= set(path) and path[-1] == "add1"


@pytest.mark.parametrize("bad", [{"nothing": 1.0}, {"conv0": float("nan")}])
def test_bad_figures_are_refused(bad):
    with pytest.raises(RelayValueError):
        overlay(layers(1), "error", bad)
    with pytest.raises(RelayValueError, match="no node of the picture"):
        overlay(layers(1), "unknown")


def test_numbers_for_people():
    assert [abbreviated(v) for v in (0, 12, 1234, 5.6e7, 3e9)] == ["0", "12", "1.23k", "56M", "3G"]
    assert [abbreviated(v) for v in (999.4, 999.6, 999_999, -999_999, 1e15)] == ["999", "1k", "1M", "-1M", "1P"]


def test_profiled_kernels_find_their_functions():
    made = view(program("fused"))
    (kernel,) = of_kind(made, "primitive")
    calls = [
        {"Name": f"tvmgen_default_fused_{name}", "Duration (us)": SimpleNamespace(value=us)}
        for name, us in (("nn_conv2d_add_nn_relu_3", 2.0), ("nn_conv2d_add_nn_relu_3", 5.0), ("nn_dense", 9.0))
    ]
    assert kernel_times(made, calls) == {kernel: 7.0}


def test_options_of_show():
    made = layers(6)
    assert len(show(made, fold=True).view.nodes) == 2
    shown = show(made, fold=True, select="op:conv | id:in", overlay="MACs").view
    assert shown.notes[-1] == "2 selected"  # the input, and the card that holds all convolutions
    assert [n.rows[-1] for n in shown.nodes if n.kind == "stack"] == ["MACs 240 (100.0%)"]
    assert {n.id for n in show(made, focus="norm2", hops=1).view.nodes} == {"conv2", "norm2", "relu2"}
    assert {n.id for n in show(made, focus="op:norm & id:norm2", hops=0).view.nodes} == {"norm2"}
    assert not show(program("closure"), collapse=0).view.groups
    assert not of_kind(show(program("fused"), collapse="primitive").view, "primitive")
    with pytest.raises(RelayValueError, match="no group"):
        show(made, collapse="primitives")
    with pytest.raises(RelayValueError, match="nothing in the picture"):
        show(made, focus="norm99")


PLAN = ExecutionPlan(
    (), (), tuple(KernelCall(f"k{k}", (), 1) for k in range(3)), arena_bytes=176, scratch_bytes=32,
    held=(ArenaBlock(0, 64, 0, 1), ArenaBlock(64, 64, 1, 2), ArenaBlock(128, 32, 1, 1, "workspace"),
          ArenaBlock(0, 32, 2, 2), ArenaBlock(160, 16, 2, 2, "padded")),
)  # fmt: skip


def test_the_memory_timeline():
    held = bars(PLAN)
    assert [(b.offset, b.size, b.first, b.last, b.label) for b in held][0] == (0, 64, 0, 1, "k0")
    assert peak(held) == (1, 176) and kept(held) == ((160, 176),)
    with pytest.raises(RelayError, match="`plan` must be an ExecutionPlan"):
        timeline(bars)
    scene = timeline(PLAN, "plan")
    assert [f.id for f in scene.elements if f.kind == "node"] == [
        "kept.0",
        "tensor.0",
        "tensor.1",
        "workspace.2",
        "tensor.3",
        "padded.4",
    ]
    assert all(
        word in svg(scene) for word in ("peak 176B at step 1", "4 tensors of 176B and 1 workspace of", "32B of scratch")
    )
    assert timeline(ExecutionPlan((), (), ())).elements


def test_the_plan_of_a_compiled_program_is_linked_to_its_kernels():
    pytest.importorskip("llvmlite")
    library = relay.build(program("fused"), "llvm")
    plan, made = library.executable.plan, view(relay.optimize(program("fused"), "llvm")[0])
    kernels = of_kind(made, "primitive")
    assert kernels and all(h.offset + h.nbytes <= plan.arena_bytes for h in plan.held)
    assert set(kernel_boxes(made, [step.label for step in plan.steps])) == kernels
    assert {b.home for b in bars(plan, made)} <= kernels
    assert all(0 <= size <= plan.arena_bytes for size in held_bytes(made, plan).values())
    for a, b in combinations(plan.held, 2):
        together = a.first <= b.last and b.first <= a.last
        assert not together or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset


@pytest.mark.parametrize("name", SOURCES)
def test_model_explorer_json(name):
    made = view(program(name))
    graph = json.loads(model_explorer(made))["graphs"][0]
    ids = {n["id"] for n in graph["nodes"]}
    assert ids == {n.id for n in made.nodes}
    assert all(e["sourceNodeId"] in ids for n in graph["nodes"] for e in n["incomingEdges"])
    assert len({n["namespace"] for n in graph["nodes"]}) > 1 or len(made.groups) == 1
    assert all(isinstance(a["value"], str) for n in graph["nodes"] for a in n["attrs"])


@pytest.mark.parametrize("name", SOURCES)
def test_onnx_for_netron(name):
    onnx = pytest.importorskip("onnx")
    made = view(program(name))
    graph = onnx.load_from_string(netron(made)).graph
    assert {n.name for n in graph.node} == {n.id for n in made.nodes if n.kind != "var"}
    assert {n.domain for n in graph.node} == {"relay"}
    assert netron(View(nodes=(Node("\ud800", "call", "\ud800"),)))  # protobuf holds no half of a character


def test_a_timeline_is_a_picture(tmp_path):
    picture = show(timeline(PLAN, "plan"))
    assert "image/svg+xml" in picture._repr_mimebundle_() and repr(picture) == "<picture: plan>"
    assert save(timeline(PLAN), tmp_path / "plan.svg").read_text().startswith("<svg")
    assert save([timeline(PLAN), program("fused")], tmp_path / "both.pdf").read_bytes().count(b"/Type/Page/") == 2
    with pytest.raises(RelayValueError, match="no graph"):
        save(timeline(PLAN), tmp_path / "plan.dot")


def test_a_figure_is_declared_once():
    """Then queries, overlays with unit and share, and legends know it."""
    made = layers(2)
    try:
        declare(Figure("fan out", "edges", lambda made, part: float(len(made.outgoing.get(part.id, ()))) or None))
        (most,) = {n.id for n in made.nodes if len(made.outgoing.get(n.id, ())) == 2} & {"in"}
        assert most in select(made, "fan_out>=2") and "conv0" not in select(made, "fan_out>=2")
        shown = overlay(made, "fan out")
        assert shown.node_by_id[most].rows[-1].startswith("fan out 2 edges (") and "edges in all" in shown.notes[-1]
        declare(Figure("per MAC", of=lambda made, part: macs(part) / 2 or None, ratio=True))
        assert "%" not in overlay(made, "per MAC").node_by_id["conv0"].rows[-1], "a ratio has no share"
    finally:
        for name in ("fan out", "per MAC"):
            FIGURES.remove(name)


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (lambda view, part: 1 / 0, "the figure `own` raised ZeroDivisionError at `"),
        (lambda view, part: "much", "the figure `own` is 'much' at `"),
        (lambda view: 1.0, "raised TypeError"),
        (3, "`of` of the figure `own` is 3"),
    ],
)
def test_a_figure_that_is_wrong_is_told_by_its_name(of, says):
    try:
        with pytest.raises(RelayError, match=re.escape(says)) as caught:
            declare(Figure("own", of=of))
            select(layers(2), "own>1")
        assert caught.value.code == "viz.figure"
    finally:
        FIGURES.remove("own")


def test_values_may_be_by_nodes_of_the_program():
    x = relay.var("x", shape=(2, 3))
    inner = relay.exp(x)
    outer = relay.nn.relu(inner * relay.const(2.0))
    for mod in (relay.IRModule.from_expr(relay.Function([x], outer)), outer):
        picture = show(mod, overlay={x: 9.0, inner: 1.0, outer: 3.0})
        costs = {n.operator: dict(n.cost).get("value") for n in picture.view.nodes if n.operator}
        assert costs == {"exp": 1.0, "multiply": None, "nn.relu": 3.0}


def test_values_by_what_is_not_in_the_picture_are_told():
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(RelayError, match="does not show this Call") as caught:
        show(relay.exp(x), overlay={relay.exp(x): 1.0})
    assert "a pass makes new ones" in str(caught.value)
    for draw in (
        lambda values: show(view(relay.exp(x)), overlay=values),
        lambda values: show(relay.exp(x), overlay=values),
    ):
        with pytest.raises(RelayError, match="not by an int"):
            draw({3: 1.0})
    with pytest.raises(RelayError, match="takes nodes of the program"):
        show(view(relay.exp(x)), overlay={x: 1.0})
