"""RelayVisualizer: walks a module and hands every node to a parser, what comes back to a plotter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.ir import Expr, Function, IRModule, Op
from relaylab.ir.node import expect
from relaylab.viz.draw.graph_builder import GraphBuilder, GraphParts
from relaylab.viz.graph.boxes import BoxPlan
from relaylab.viz.graph.facts import kind_family
from relaylab.viz.graph.identity import Identities
from relaylab.viz.relay_viz.dot import DotPlotter
from relaylab.viz.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizParser, bindings
from relaylab.viz.relay_viz.terminal import TermPlotter, TermVizParser


class RelayVisualizer:
    """A picture of a module, `main` first. `relay_param` maps the names of parameters to their values; by default it
    plots text with `TermPlotter` and `TermVizParser`. Ids are stable: two renderings of a program agree."""

    def __init__(
        self,
        relay_mod: IRModule,
        relay_param: Mapping[str, Any] | None = None,
        plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ):
        expect(relay_mod, IRModule, "what RelayVisualizer draws")
        self._plotter = plotter if plotter is not None else TermPlotter()
        self._relay_param = relay_param if relay_param is not None else {}
        self._parser = parser if parser is not None else TermVizParser()
        names = [gv.name_hint for gv in relay_mod.get_global_vars()]
        functions = {name: relay_mod[name] for name in sorted(names, key=lambda n: n != "main")}
        ids = self._identify(functions)
        for name, func in functions.items():
            self._add(name, func, ids)
        if isinstance(self._plotter, DotPlotter) and type(self._parser) is DefaultVizParser:
            self._plotter.program(relay_mod, frozenset(self._relay_param))

    @staticmethod
    def _identify(functions: Mapping[str, Function]) -> dict[str, dict[Expr, str]]:
        """An id for every node of every function; unique over all graphs."""
        nodes = [(name, e) for name, func in functions.items() for e in BoxPlan(func, name).order]
        stems = {(n, e): f"{n}/{getattr(getattr(e, 'op', None), 'name', kind_family(e)[0])}" for n, e in nodes}
        ids = Identities().name({**stems})
        table: dict[str, dict[Expr, str]] = {name: {} for name in functions}
        for name, expr in nodes:
            table[name][expr] = ids[name, expr]
        return table

    def _add(self, name: str, func: Function, ids: Mapping[str, dict[Expr, str]]) -> None:
        graph = self._plotter.create_graph(name)
        node_to_id = ids[name]
        plan = BoxPlan(func, name)
        for node in plan.order:
            viz_node, edges = self._parser.get_node_edges(node, self._relay_param, node_to_id)
            if viz_node is not None:
                graph.node(viz_node)
            for edge in edges:
                graph.edge(edge)
            self._bind(graph, node, node_to_id)
        graph.nest(*_boxes(plan, node_to_id, name))

    def _bind(self, graph: VizGraph, node: Expr, node_to_id: Mapping[Expr, str]) -> None:
        """The edges from a value to the variable that a let or a pattern binds to it (a terminal tree has its own)."""
        if isinstance(self._parser, TermVizParser):
            return
        for value, var, label in bindings(node):
            graph.edge(VizEdge(node_to_id[value], node_to_id[var], label))

    def render(self, filename: str | None = None) -> object:
        """Draw: the plotter decides where to (`DotPlotter`: to `<filename>.pdf`); the result shows in a notebook."""
        return self._plotter.render(filename=filename)


def _boxes(plan: BoxPlan, ids: Mapping[Expr, str], name: str) -> tuple[dict[str, tuple[str, str, str]], dict[str, str]]:
    """The groups inside a function, as `VizGraph.nest` wants them; the function's own group is the graph itself."""
    parts = GraphParts()
    builder = GraphBuilder(plan, parts, {}, {}, lambda expr: {})
    own = builder.open((plan.root, 0))
    keys = {expr: builder.open(plan.group(expr)) for expr in plan.order if not isinstance(expr, Op)}
    title = {key: f"{name}/{stem}#{i}" for i, (key, stem) in enumerate(parts.stems.items())}
    groups = {
        title[key]: (g.kind, g.title, "" if parent == own else title[parent])
        for key, parent, g in parts.groups
        if key != own
    }
    return groups, {ids[e]: title[key] for e, key in keys.items() if key is not None and key != own}
