"""relay_viz as Relay's users know it: arguments, render, custom parsers and plotters; its old defects mended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from programs import SOURCES, program

from relaylab import relay
from relaylab.contrib import relay_viz
from relaylab.contrib.relay_viz.dot import DotPlotter
from relaylab.contrib.relay_viz.interface import DefaultVizParser, VizEdge, VizNode, VizParser
from relaylab.contrib.relay_viz.terminal import TermGraph, TermPlotter, TermVizParser
from relaylab.ir import Call, Function, IRModule, Op, TensorType, Var, const
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError
from relaylab.viz.scene.theme import paint_of


class Recorder(relay_viz.Plotter):
    """A plotter of one's own: keeps what it is given."""

    def __init__(self):
        self.graphs: dict[str, RecorderGraph] = {}

    def create_graph(self, name):
        self.graphs[name] = RecorderGraph()
        return self.graphs[name]

    def render(self, filename):
        return filename


class RecorderGraph(relay_viz.VizGraph):
    def __init__(self):
        self.nodes: dict[str, VizNode] = {}
        self.edges: list[VizEdge] = []

    def node(self, viz_node):
        self.nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge):
        self.edges.append(viz_edge)


def parsed(name: str, params=None) -> Recorder:
    plotter = Recorder()
    relay_viz.RelayVisualizer(program(name), params, plotter, relay_viz.DotVizParser())
    return plotter


def test_names_of_the_package():
    assert relay_viz.DotVizParser is DefaultVizParser
    for name in (
        "RelayVisualizer",
        "Plotter",
        "VizGraph",
        "VizParser",
        "TermPlotter",
        "TermVizParser",
        "DotPlotter",
        "DotVizParser",
    ):
        assert hasattr(relay_viz, name)


def test_main_comes_first_and_ids_are_unique():
    graphs = parsed("adt").graphs
    assert list(graphs) == ["main", "length"]
    ids = [n for g in graphs.values() for n in g.nodes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", SOURCES)
def test_no_node_is_unknown_and_ids_are_stable(name):
    first, second = parsed(name).graphs, parsed(name).graphs
    for key, graph in first.items():
        assert not [n for n in graph.nodes.values() if "unknown" in n.type_name]
        assert list(graph.nodes) == list(second[key].nodes)
        assert all(e.start in graph.nodes and e.end in graph.nodes for e in graph.edges)


def test_node_contents():
    nodes = {n.type_name: n for n in parsed("fused", {"w": None}).graphs["main"].nodes.values()}
    assert {
        "Var(Param)",
        "Var(Input)",
        "Call nn.conv2d",
        "Call Anonymous Func",
        "Tuple",
        "TupleGetItem",
        "Func ",
    } <= nodes.keys()
    assert nodes["Var(Param)"].detail == "name_hint: w\nshape: (4, 4, 3, 3)\ndtype: float32"
    assert (
        "padding: (1, 1, 1, 1)" in nodes["Call nn.conv2d"].detail
        and 'data_layout: "NCHW"' in nodes["Call nn.conv2d"].detail
    )
    assert nodes["TupleGetItem"].detail == "idx: 0"
    assert repr(nodes["TupleGetItem"]).count("\n") == 0


def test_dynamic_shapes_are_no_error():
    node = next(n for n in parsed("dynamic").graphs["main"].nodes.values() if n.type_name == "Var(Input)")
    assert "shape: (?, 16)" in node.detail


def test_a_call_has_an_edge_from_its_function():
    graph = parsed("fused").graphs["main"]
    kinds = [(graph.nodes[e.start].type_name, graph.nodes[e.end].type_name) for e in graph.edges if e.kind == "callee"]
    assert kinds == [("Func ", "Call Anonymous Func")]


def test_term_plotter_prints_or_writes(capsys, tmp_path):
    viz = relay_viz.RelayVisualizer(program("fused"))
    assert viz.render() is None
    printed = capsys.readouterr().out
    assert printed.startswith("@main(%x, %w)\n`--Tuple \n   |--") and "nn.conv2d" in printed
    viz.render(str(tmp_path / "tree.txt"))
    assert (tmp_path / "tree.txt").read_text() + "\n" == printed and capsys.readouterr().out == ""


def test_a_shared_part_is_written_at_each_of_its_users_as_tvm_does(capsys):
    """The lines are those that TVM's plotter writes for this program; only a very long tree has marks instead."""
    x = relay.var("x", shape=(2, 3))
    shared = relay.nn.relu(x)
    relay_viz.RelayVisualizer(relay.IRModule.from_expr(relay.add(shared, relay.exp(shared)))).render()
    leaf = "Var(Input) name_hint: x, shape: (2, 3), dtype: float32"
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "@main(%x)",
        "`--Call",
        "   |--add",
        "   |--Call",
        "   |  |--nn.relu",
        f"   |  `--{leaf}",
        "   `--Call",
        "      |--exp",
        "      `--Call",
        "         |--nn.relu",
        f"         `--{leaf}",
    ]
    for _ in range(40):  # 2^40 lines
        shared = relay.add(shared, shared)
    relay_viz.RelayVisualizer(relay.IRModule.from_expr(shared)).render()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 200 and sum("^" in line for line in lines) == 40


@pytest.mark.parametrize("name", SOURCES)
def test_render_leaves_a_pdf_and_shows_itself(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")  # no program is needed
    drawing = relay_viz.RelayVisualizer(program(name), {}, relay_viz.DotPlotter(), relay_viz.DotVizParser()).render("1")
    assert Path("1.pdf").read_bytes().startswith(b"%PDF") and [p.name for p in tmp_path.iterdir()] == ["1.pdf"]
    assert drawing._repr_mimebundle_()["image/svg+xml"].startswith("<svg") and str(drawing) == "1.pdf"


@pytest.mark.parametrize(
    "kwargs, left",
    [
        ({"format": "svg"}, {"g.svg"}),
        ({"format": "svg", "filename": "other"}, {"g.svg"}),
        ({"cleanup": False}, {"g", "g.pdf"}),
        ({"directory": "sub", "format": "svg"}, {"sub/g.svg"}),
        ({"outfile": "o.pdf"}, {"o.pdf"}),
    ],
)
def test_render_kwargs(kwargs, left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    relay_viz.RelayVisualizer(
        program("fused"), plotter=DotPlotter(render_kwargs=kwargs), parser=DefaultVizParser()
    ).render("g")
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == left


def test_an_unwritable_place_is_one_clear_error(tmp_path):
    with pytest.raises(RelayValueError) as err:
        relay_viz.RelayVisualizer(program("fused"), plotter=DotPlotter(), parser=DefaultVizParser()).render(
            str(tmp_path / "no" / "g")
        )
    assert err.value.code == "viz.unwritable" and not list(tmp_path.iterdir())


def get_node_attr(node):
    if "nn.conv2d" in node.type_name and "NCHW" in node.detail:
        return {"fillcolor": "green", "style": "filled", "shape": "box"}
    return {"shape": "ellipse"} if "Var" in node.type_name else {"shape": "box"}


def styled(**render_kwargs) -> relay_viz.RelayVisualizer:
    plotter = DotPlotter(
        graph_attr={"color": "red"},
        node_attr={"color": "blue"},
        edge_attr={"color": "black"},
        get_node_attr=get_node_attr,
        render_kwargs=render_kwargs,
    )
    return relay_viz.RelayVisualizer(program("fused"), {"w": None}, plotter, relay_viz.DotVizParser())


def test_attributes_of_ones_own_are_drawn(tmp_path):
    viz = styled(format="svg")
    text = Path(viz.render(str(tmp_path / "g"))).read_text()
    assert "fill:#00ff00" in text and "stroke:#0000ff" in text


def test_the_kernel_is_nested_and_linked_in_a_styled_picture():
    view = styled()._plotter.picture.view
    kernel = next(g for g in view.groups if g.kind == "primitive")
    inside = {n.title for n in view.nodes if n.group == kernel.id}
    assert {"Call nn.conv2d", "Call add", "Call nn.relu", "Func "} <= inside
    assert any(e.kind == "callee" and view.node_by_id[e.target].title == "Call Anonymous Func" for e in view.edges)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the program dot of Graphviz")
@pytest.mark.dot
def test_graphviz_draws_where_it_is_asked_to(tmp_path):
    path = Path(styled(format="svg", engine="dot").render(str(tmp_path / "g")))
    assert "graphviz" in path.read_text().lower()


def test_names_are_text_in_the_dot_of_a_plotter():
    """Graphviz would read `&lt;` as a bracket, and no zero at all."""
    made = IRModule.from_expr(Function([Var(name := "a&lt;\0\ud800", TensorType((1,)))], const(1.0)))
    plotter = DotPlotter()
    relay_viz.RelayVisualizer(made, plotter=plotter, parser=DefaultVizParser())
    source = plotter.digraph.source
    assert "a&amp;lt; \ufffd" in source and name not in source and source.encode()


def test_unknown_colours_and_engines_are_refused(tmp_path):
    plotter = DotPlotter(node_attr={"color": "bleu"})
    with pytest.raises(RelayValueError) as err:
        relay_viz.RelayVisualizer(program("fused"), plotter=plotter, parser=DefaultVizParser()).render(
            str(tmp_path / "g")
        )
    assert "blue" in err.value.help
    with pytest.raises(RelayValueError, match="penwidth"):
        paint_of({"penwidth": "wide"})
    with pytest.raises(RelayError):
        styled(engine="neato").render(str(tmp_path / "g"))


class AwesomeParser(VizParser):
    def __init__(self):
        self.delegate = TermVizParser()

    def get_node_edges(self, node, relay_param, node_to_id):
        if isinstance(node, Call) and node.op == Op.get("add"):
            return VizNode(node_to_id[node], "AwesomeAdd", "NOTHING"), [
                VizEdge(node_to_id[arg], node_to_id[node]) for arg in node.args
            ]
        return self.delegate.get_node_edges(node, relay_param, node_to_id)


class AwesomeGraph(TermGraph):
    def node(self, viz_node):
        if viz_node.type_name == "AwesomeAdd":
            viz_node = VizNode(viz_node.identity, "AwesomeAddAgain", "NOTHING")
        super().node(viz_node)


class AwesomePlotter(TermPlotter):
    def create_graph(self, name):
        self._name_to_graph[name] = AwesomeGraph(name)
        return self._name_to_graph[name]


def test_a_parser_and_a_plotter_of_ones_own(capsys):
    relay_viz.RelayVisualizer(program("fused"), {}, AwesomePlotter(), AwesomeParser()).render()
    assert "AwesomeAddAgain NOTHING" in capsys.readouterr().out


def test_a_parser_of_ones_own_with_the_graphical_plotter(tmp_path):
    class Mine(AwesomeParser):
        def __init__(self):
            self.delegate = relay_viz.DotVizParser()

    plotter = DotPlotter(render_kwargs={"format": "svg"})
    path = Path(relay_viz.RelayVisualizer(program("fused"), {}, plotter, Mine()).render(str(tmp_path / "g")))
    assert "AwesomeAdd" in path.read_text()


def test_what_is_not_a_module_is_refused():
    with pytest.raises(RelayTypeError):
        relay_viz.RelayVisualizer("text")
