"""Depth and size: a hundred thousand nodes, lets and diamonds pass through view, layout and every writer."""

from __future__ import annotations

import contextlib
import io

import pytest
from programs import all_used_at_the_end, chain, diamonds, lets

from relaylab.contrib import relay_viz
from relaylab.ir import Call, Function, If, IRModule, TensorType, Var, const
from relaylab.viz import diff, show, view
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.write.pdf import pdf
from relaylab.viz.write.terminal import tree

pytestmark = pytest.mark.slow

FORMS = ("svg", "pdf", "html", "dot", "txt", "json")


def test_a_chain_of_a_hundred_thousand():
    picture = show(chain(100_000), texts={})
    assert len(picture.view.nodes) == 100_002
    assert picture.scene.height > 100_000
    assert len(picture.data("svg")) > 10_000_000


def test_a_hundred_thousand_nested_lets():
    made = view(lets(100_000), ViewOptions(texts={}))
    assert len(made.nodes) == 100_002 and len(made.groups) == 1
    lines = tree(made).splitlines()
    assert len(lines) == 100_002 and max(map(len, lines)) < 60


@pytest.mark.parametrize("make, size", [(chain, 3000), (lets, 3000), (diamonds, 30), (all_used_at_the_end, 400)])
def test_every_format_of_deep_programs(make, size):
    picture = show(make(size))
    for form in FORMS:
        assert picture.data(form)


@pytest.mark.parametrize("make", [chain, lets])
def test_relay_viz_of_deep_programs(make, tmp_path):
    mod = make(3000)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        relay_viz.RelayVisualizer(mod).render()
    assert out.getvalue().count("nn.relu") >= 3000
    relay_viz.RelayVisualizer(
        mod, plotter=relay_viz.DotPlotter(get_node_attr=lambda n: {}), parser=relay_viz.DotVizParser()
    ).render(str(tmp_path / "deep"))


def test_a_long_picture_is_tiled():
    assert pdf([show(chain(1000)).scene], paper="a4").count(b"/MediaBox") > 5


def test_shared_parts_are_written_once():
    assert len(show(diamonds(30)).data("txt").splitlines()) < 100
    with contextlib.redirect_stdout(io.StringIO()) as out:
        relay_viz.RelayVisualizer(diamonds(30)).render()
    assert len(out.getvalue().splitlines()) < 150


def test_edges_of_quadratic_length_become_labelled_stubs():
    scene = show(all_used_at_the_end(600)).scene
    assert sum(len(f.shapes) for f in scene.elements) < 20_000
    texts = [s.text for f in scene.elements if f.kind == "edge" for s in f.shapes if hasattr(s, "text")]
    assert any(t.startswith("from ") for t in texts)


def test_deeply_nested_functions_and_branches_are_drawn():
    x = Var("x", TensorType((4,)))
    y = x
    for i in range(300):
        v = Var("v")
        y = (
            If(const(True), Call(Function([v], Call(v, [y])), [x]), y)
            if i % 2
            else Call(Function([v], Call(v, [y])), [x])
        )
    picture = show(IRModule.from_expr(Function([x], y)))
    assert picture.scene.height > 0 and picture.data("dot")


def test_the_difference_of_deep_programs():
    assert diff(chain(3000), chain(3001)).counts == {"added": 1}
