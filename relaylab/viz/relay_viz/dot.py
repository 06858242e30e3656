"""The graphical plotter of relay_viz. It needs no program: the built-in engine draws, `dot` only if asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaylab.ir import IRModule
from relaylab.support.errors import RelayValueError
from relaylab.viz.graph.view import Edge, Group, Node, View
from relaylab.viz.picture import Picture, show
from relaylab.viz.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode
from relaylab.viz.scene.theme import paint_of
from relaylab.viz.write import files

if TYPE_CHECKING:
    from graphviz import Digraph
from relaylab.viz.write.dot import label, node_name, run_dot

DotVizParser = DefaultVizParser
Attributes = Mapping[str, str]
BUILTIN = ("pdf", "svg", "png", "html", "json")


def _default_get_node_attr(node: VizNode) -> dict[str, str]:
    return {"shape": "ellipse" if "Var" in node.type_name else "box"}


class DotGraph(VizGraph):
    """The graph of one function: kept as neutral nodes and edges, with the Dot attributes that were asked for."""

    def __init__(
        self,
        name: str,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ):
        self._name = name
        self._get_node_attr = get_node_attr or _default_get_node_attr
        self.graph_attr, self.node_attr, self.edge_attr = (
            dict(graph_attr or {}),
            dict(node_attr or {}),
            dict(edge_attr or {}),
        )
        self.nodes: dict[str, VizNode] = {}
        self.edges: list[VizEdge] = []
        self.groups: Mapping[str, tuple[str, str, str]] = {}
        self.home: Mapping[str, str] = {}

    def node(self, viz_node: VizNode) -> None:
        """Take in a node."""
        self.nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        """Take in an edge."""
        self.edges.append(viz_edge)

    def nest(self, groups: Mapping[str, tuple[str, str, str]], home: Mapping[str, str]) -> None:
        """Learn the boxes inside the function."""
        self.groups, self.home = groups, home

    @property
    def digraph(self) -> Digraph:
        """The graph as a `graphviz.Digraph`, a cluster named after the function."""
        import graphviz

        graph = graphviz.Digraph(
            name=label(f"cluster_{self._name}"),
            graph_attr={"label": label(self._name), **self.graph_attr},
            node_attr=self.node_attr,
            edge_attr=self.edge_attr,
        )
        for node in self.nodes.values():
            lines = (node.type_name, *node.detail.split("\n"))
            graph.node(node_name(node.identity), label(*lines), **self._get_node_attr(node))
        for edge in self.edges:
            named = {"label": label(edge.label)} if edge.label else {}
            graph.edge(node_name(edge.start), node_name(edge.end), **named)
        return graph

    def parts(self, prefix: str) -> tuple[list[Node], list[Edge], list[Group]]:
        """The graph as parts of a view; `prefix` is the id of the function's own group."""
        groups = [Group(prefix, "function", self._name)]
        groups += [Group(g, kind, title, parent or prefix) for g, (kind, title, parent) in self.groups.items()]
        nodes = [self._node(n, self.home.get(n.identity) or prefix) for n in self.nodes.values()]
        position: dict[str, int] = {}
        edges = []
        for e in self.edges:
            position[e.end] = position.get(e.end, -1) + 1
            edges.append(Edge(e.start, e.end, position[e.end], e.kind, e.label, e.type))
        return nodes, edges, groups

    def _node(self, node: VizNode, group: str) -> Node:
        kind = "var" if "Var" in node.type_name else "call"
        paint = paint_of({**self.node_attr, **self._get_node_attr(node)})
        rows = tuple(line for line in node.detail.split("\n") if line)
        return Node(
            node.identity, kind, node.type_name, family=node.family, group=group, rows=rows, type=node.type, paint=paint
        )


class DotPlotter(Plotter):
    """Draws all functions in one figure. `get_node_attr` gives the Dot attributes of a node; `render_kwargs` are those
    of `graphviz.Digraph.render` (`format`, `filename`, `directory`, `view`, `cleanup`, `engine`).

    The built-in engine draws pdf, svg and png and follows the attributes color, fillcolor, fontcolor, penwidth and
    style; `render_kwargs={"engine": "dot"}`, or a format that only Graphviz has, runs the program `dot`.
    """

    def __init__(
        self,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
        render_kwargs: Mapping[str, Any] | None = None,
    ):
        self._name_to_graph: dict[str, DotGraph] = {}
        self._graph_attr, self._node_attr, self._edge_attr = graph_attr, node_attr, edge_attr
        self._get_node_attr = get_node_attr
        self._render_kwargs = dict(render_kwargs or {})
        self._program: tuple[IRModule, frozenset[str]] | None = None

    def create_graph(self, name: str) -> DotGraph:
        """A new graph."""
        graph = DotGraph(name, self._graph_attr, self._node_attr, self._edge_attr, self._get_node_attr)
        self._name_to_graph[name] = graph
        return graph

    def program(self, mod: IRModule, params: frozenset[str]) -> None:
        """Learn what program the graphs show; it is drawn directly where no attribute and no parser is one's own."""
        own = (self._graph_attr, self._node_attr, self._edge_attr, self._get_node_attr)
        if not any(own) and type(self) is DotPlotter:
            self._program = mod, params

    @property
    def picture(self) -> Picture:
        """The figure as the built-in engine draws it."""
        if self._program:
            mod, params = self._program
            inputs = {p.name_hint for f in mod.functions.values() for p in f.params} - params if params else None
            return show(mod, inputs=inputs)
        return Picture(self._view())

    def _view(self) -> View:
        nodes: list[Node] = []
        edges: list[Edge] = []
        groups: list[Group] = []
        for name, graph in self._name_to_graph.items():
            own = graph.parts(f"{name}/@graph")
            nodes += own[0]
            edges += own[1]
            groups += own[2]
        known = {n.id for n in nodes}
        return View(
            "", tuple(nodes), tuple(e for e in edges if e.source in known and e.target in known), tuple(groups)
        ).check()

    @property
    def digraph(self) -> Digraph:
        """The whole figure as a `graphviz.Digraph`."""
        import graphviz

        root = graphviz.Digraph(graph_attr=self._graph_attr, node_attr=self._node_attr, edge_attr=self._edge_attr)
        for graph in self._name_to_graph.values():
            root.subgraph(graph.digraph)
        return root

    def render(self, filename: str | None = None) -> WrittenPicture:
        """Write `<filename>.<format>` (pdf unless `render_kwargs` say otherwise); the result shows in a notebook."""
        options = {"cleanup": True, **self._render_kwargs}
        if filename is not None:
            options["filename"] = filename
        form = str(options.get("format") or "pdf")
        base = Path(options.get("directory") or "") / (options.get("filename") or "Digraph.gv")
        path = Path(options["outfile"]) if options.get("outfile") else base.with_name(f"{base.name}.{form}")
        by_dot = options.get("engine") or form not in BUILTIN
        picture = self.picture
        files.write(path, self._by_dot(form, options) if by_dot else picture.data(form))
        if not options["cleanup"]:
            files.write(base, self.digraph.source)
        return WrittenPicture(picture, path)

    def _by_dot(self, form: str, options: Mapping[str, Any]) -> bytes:
        engine = str(options.get("engine") or "dot")
        if engine != "dot":
            raise RelayValueError(f"`engine` cannot be {engine!r}; it is dot", code="viz.option")
        return run_dot(self.digraph.source, form)


class WrittenPicture(os.PathLike):
    """A picture that was written to `path`; shows itself in a notebook."""

    def __init__(self, picture: Picture, path: Path):
        self.picture, self.path = picture, path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<drawing in {self.path}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture._repr_mimebundle_(include, exclude)
