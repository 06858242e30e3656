"""The terminal plotter of relay_viz: a tree of `type detail` lines for every function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from relaylab.ir import Call, Expr, Function, GlobalVar, If, Let, Op
from relaylab.viz.relay_viz.interface import DefaultVizParser, Parsed, Plotter, VizEdge, VizGraph, VizNode, VizParser
from relaylab.viz.scene.metrics import plain
from relaylab.viz.write import files

DEEP = 200
"""A tree indented further than this goes on at the margin."""
LONG = 10_000
"""Lines of a tree up to which parts are written wherever they are used."""


class TermVizParser(VizParser):
    """Parses for a terminal: short nodes, operators as nodes of their own."""

    def __init__(self) -> None:
        self._default_parser = DefaultVizParser()

    def get_node_edges(self, node: Expr, relay_param: Mapping[str, object], node_to_id: Mapping[Expr, str]) -> Parsed:
        """The node and the edges from its parts."""
        own = self._own(node)
        if own is None:
            return self._default_parser.get_node_edges(node, relay_param, node_to_id)
        type_name, detail, parts = own
        identity = node_to_id[node]
        return VizNode(identity, type_name, detail), [VizEdge(node_to_id[part], identity) for part in parts]

    @staticmethod
    def _own(node: Expr) -> tuple[str, str, tuple[Expr, ...]] | None:
        match node:
            case Call():
                return "Call", "", (node.op, *node.args)
            case Let():
                return "Let", "(var, val, body)", (node.var, node.value, node.body)
            case GlobalVar():
                return "GlobalVar", node.name_hint, ()
            case If():
                return "If", "(cond, true, false)", (node.cond, node.true_branch, node.false_branch)
            case Op():
                return node.name, "", ()
            case Function():
                return "Func", ", ".join(f"%{p.name_hint}" for p in node.params), (node.body,)
        return None


class TermNode:
    """A node of the tree: its type and its detail on one line."""

    def __init__(self, viz_node: VizNode):
        self.type = viz_node.type_name
        self.other_info = plain(viz_node.detail.replace("\n", ", "))

    def __str__(self) -> str:
        return f"{self.type} {self.other_info}"


class TermGraph(VizGraph):
    """The tree of one function in the form of `tvm.contrib.relay_viz`: a part of several nodes is written at each.

    Of a tree of more than `LONG` lines such a part is written once, marked `[n]`, and then named `^n`.
    """

    def __init__(self, name: str):
        self._name = name
        self._graph: dict[str, list[str]] = {}
        self._id_to_term_node: dict[str, TermNode] = {}
        self._root: str | None = None

    def node(self, viz_node: VizNode) -> None:
        """Take in a node; the last one is the root."""
        self._id_to_term_node[viz_node.identity] = TermNode(viz_node)
        self._graph.setdefault(viz_node.identity, [])
        self._root = viz_node.identity

    def edge(self, viz_edge: VizEdge) -> None:
        """Take in an edge; the tree runs from users to operands."""
        self._graph.setdefault(viz_edge.end, []).append(viz_edge.start)

    def render(self) -> str:
        """The text: the function's name and parameters, then the tree below its body."""
        if self._root is None:
            return f"@{self._name}()"
        head = f"@{self._name}({self._id_to_term_node[self._root].other_info})"
        return "\n".join([head, *_lines(self._graph, self._id_to_term_node, self._root)])


def _lines(graph: Mapping[str, list[str]], nodes: Mapping[str, TermNode], root: str) -> Iterable[str]:
    users = Counter(name for below in graph.values() for name in below)
    once = _length(graph, root) > LONG
    number: dict[str, int] = {}
    shown: set[tuple[str, str]] = set()
    stack = [("", name, i == 0) for i, name in enumerate(reversed(graph[root]))]
    while stack:
        prefix, name, last = stack.pop()
        text = str(nodes[name]) if name in nodes else name
        inner = prefix + ("   " if last else "|  ") if len(prefix) < 3 * DEEP else ""
        place = ("" if once else inner, name)
        if once and users[name] > 1 and graph.get(name):
            mark = number.setdefault(name, len(number) + 1)
            text = f"^{mark} {text}" if place in shown else f"[{mark}] {text}"
        yield prefix + ("`--" if last else "|--") + text
        if place not in shown:
            shown.add(place)
            stack += [(inner, child, i == 0) for i, child in enumerate(reversed(graph.get(name, [])))]


def _length(graph: Mapping[str, list[str]], root: str) -> int:
    """The lines of a tree that writes a part again wherever it is used, at most a few more than `LONG`."""
    lines: dict[str, int] = {}
    for name, below in graph.items():  # nodes come after their parts
        lines[name] = min(LONG + 1, sum(1 + lines.get(part, 0) for part in below))
    return lines[root]


class TermPlotter(Plotter):
    """Prints the trees of all functions, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> TermGraph:
        """A new tree."""
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        """Print all trees, or write them to `filename`; raises `RelayValueError` if it cannot be written."""
        text = "\n".join(graph.render() for graph in self._name_to_graph.values())
        if filename is None:
            print(text)
        else:
            files.write(filename, text)
