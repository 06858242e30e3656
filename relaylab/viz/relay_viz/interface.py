"""The interfaces of relay_viz: nodes, edges, parsers, graphs and plotters, and the parser for all of Relay.

The names, constructor arguments and meanings are those that Relay's users know; a parser of one's own
turns a node of the program into a `VizNode` and the `VizEdge`s that lead to it, a plotter draws them.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping

from relaylab.ir.adt import Constructor, Match, pattern_vars
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType
from relaylab.ir.visit import children
from relaylab.viz.graph import facts

Parsed = tuple["VizNode | None", list["VizEdge"]]


class VizNode:
    """A node of a picture: `identity` is unique, `type_name` says what it is, `detail` more about it, line by line.

    `family` (a colour class of `theme.FAMILIES`) and `type` (the value's type) are optional extras.
    """

    def __init__(self, node_id: str, node_type: str, node_detail: str, family: str = "value", type: str = ""):
        self._id, self._type, self._detail = node_id, node_type, node_detail
        self.family, self.type = family, type

    @property
    def identity(self) -> str:
        """The id."""
        return self._id

    @property
    def type_name(self) -> str:
        """What the node is, in a word or two."""
        return self._type

    @property
    def detail(self) -> str:
        """More about it; may have several lines."""
        return self._detail

    def __repr__(self) -> str:
        return (
            f"VizNode(identity: {self._id}, type_name: {self._type}, detail: {self._detail}".replace("\n", ", ") + ")"
        )


class VizEdge:
    """An edge from an operand to its user; `label` names the operand, `kind` is that of `view.Edge`."""

    def __init__(self, start_node: str, end_node: str, label: str = "", kind: str = "data", type: str = ""):
        self._start, self._end = start_node, end_node
        self.label, self.kind, self.type = label, kind, type

    @property
    def start(self) -> str:
        """The id of the operand."""
        return self._start

    @property
    def end(self) -> str:
        """The id of the user."""
        return self._end

    def __repr__(self) -> str:
        return f"VizEdge(start: {self._start}, end: {self._end})"


class VizParser(abc.ABC):
    """Turns nodes of a program into nodes and edges of a picture."""

    @abc.abstractmethod
    def get_node_edges(self, node: Expr, relay_param: Mapping[str, object], node_to_id: Mapping[Expr, str]) -> Parsed:
        """The picture's node for `node` (None: nothing is drawn) and the edges that end at it."""


class VizGraph(abc.ABC):
    """The picture of one function while it is put together; nodes arrive operands first."""

    @abc.abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Take in a node."""

    @abc.abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Take in an edge; its ends may arrive later."""

    def nest(self, groups: Mapping[str, tuple[str, str, str]], home: Mapping[str, str]) -> None:  # noqa: B027 (optional)
        """Learn which nodes stand in which boxes: groups as id -> (kind, title, parent id); each node's group."""


class Plotter(abc.ABC):
    """Makes graphs and draws them together."""

    @abc.abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """A new empty graph for the function `name`."""

    @abc.abstractmethod
    def render(self, filename: str | None = None) -> object:
        """Draw all graphs."""


class DefaultVizParser(VizParser):
    """Parses every kind of node: none is unknown, shapes may be dynamic, functions are linked to their calls."""

    def get_node_edges(self, node: Expr, relay_param: Mapping[str, object], node_to_id: Mapping[Expr, str]) -> Parsed:
        """The node with its attributes and type, and an edge from each operand, named and in order."""
        if isinstance(node, Op):
            return None, []
        _, family = facts.kind_family(node)
        viz_node = VizNode(
            node_to_id[node], _type_name(node, relay_param), "\n".join(_detail(node)), family, facts.type_of(node)
        )
        edges = [
            VizEdge(node_to_id[operand], node_to_id[node], label, kind, facts.type_of(operand))
            for operand, label, kind in operands(node)
            if operand in node_to_id
        ]
        return viz_node, edges


def operands(node: Expr) -> list[tuple[Expr, str, str]]:
    """What flows into a node: the operand, its name, the kind of edge."""
    match node:
        case Call():
            args = [
                (a, n or str(i), "data") for i, (a, n) in enumerate(zip(node.args, facts.operand_names(node, node.op)))
            ]
            return args if isinstance(node.op, Op) else [*args, (node.op, "fn", "callee")]
        case Function():
            return [(node.body, "body", "body")]
        case Let():
            return [(node.body, "body", "data")]
        case If():
            return [(e, n, "data") for e, n in zip(children(node), ("cond", "then", "else"))]
        case Match():
            results = [(c.rhs, facts.pattern_text(c.lhs), "data") for c in node.clauses]
            return [(node.data, "value", "data"), *results]
        case Tuple():
            return [(e, str(i), "data") for i, e in enumerate(node.fields)]
    return [(e, n, "data") for e, n in zip(children(node), ("", "value"))]


def bindings(node: Expr) -> list[tuple[Expr, Var, str]]:
    """The variables that a node binds: where the value comes from, the variable, and a label."""
    if isinstance(node, Let):
        return [(node.value, node.var, "let")]
    if isinstance(node, Match):
        return [(node.data, v, facts.pattern_text(c.lhs)) for c in node.clauses for v in pattern_vars(c.lhs)]
    return []


def _type_name(node: Expr, relay_param: Mapping[str, object]) -> str:
    match node:
        case Var():
            return "Var(Param)" if node.name_hint in relay_param else "Var(Input)"
        case Function():
            return f"Func {node.attr('Composite', '')}"
        case Call():
            return f"Call {_callee_name(node.op)}"
        case Constant():
            return "Const"
    return type(node).__name__


def _callee_name(op: Expr) -> str:
    if isinstance(op, Op):
        return op.name
    if isinstance(op, Function):
        return str(op.attr("Composite", "Anonymous Func"))
    return type(op).__name__


def _detail(node: Expr) -> list[str]:
    match node:
        case Var():
            return [f"name_hint: {node.name_hint}", *_annotation(node)]
        case Constant():
            return [f"shape: {tuple(node.data.shape)}, dtype: {node.data.dtype}"]
        case TupleGetItem():
            return [f"idx: {node.index}"]
        case GlobalVar():
            return [f"name_hint: {node.name_hint}"]
        case Constructor():
            return [f"name_hint: {node.name_hint}", f"type: {node.belong_to.name_hint}"]
        case Let():
            return [f"%{node.var.name_hint}"]
        case Match():
            return [f"{i}: {facts.pattern_text(c.lhs)}" for i, c in enumerate(node.clauses)]
        case Call(op=GlobalVar() as called):
            return [f"GlobalVar.name_hint: {called.name_hint}"]
        case Call(op=Function()):
            return [f"{a.name}: {a.value}" for a in facts.attrs_of(node.op)]
        case Call(op=Op()) | Function():
            return [f"{a.name}: {a.value}" for a in facts.attrs_of(node)]
    return []


def _annotation(var: Var) -> list[str]:
    """Shape and data type of a tensor variable, dynamic dimensions as `?`; other types as text."""
    annotation = var.type_annotation or var.inferred
    if isinstance(annotation, TensorType):
        dims = [str(d) for d in annotation.shape]
        return [f"shape: ({', '.join(dims)}{',' if len(dims) == 1 else ''})", f"dtype: {annotation.dtype}"]
    return [f"type_annotation: {annotation}"] if annotation is not None else []
