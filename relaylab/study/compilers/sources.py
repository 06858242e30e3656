"""The operations of a program as relaylab reads it, and what its own pipeline makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.ir import Call, Expr, Function, Op, TupleGetItem, children, walk
from relaylab.study.compilers.compiled import Compiled, FusedKernel, SourceOperation, SourceProgram
from relaylab.study.pipeline import Pipeline
from relaylab.support.source import Span
from relaylab.transform.engine.history import nodes_of
from relaylab.viz.graph.facts import kind_family

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Namer = Callable[[Expr], str]


def name_of(node: NodeProto, number: int) -> str:
    """The name under which the importer knows a node of an ONNX graph."""
    return node.name or next((o for o in node.output if o), f"node {number}")


def of_onnx(graph: GraphProto, title: str, families: dict[str, str]) -> SourceProgram:
    """The nodes of an ONNX graph; `families` are the colour classes by name. Those that give constants are left out."""
    makers: dict[str, str] = {}
    operations: list[SourceOperation] = []
    for number, node in enumerate(graph.node):
        if node.op_type in ("Constant", "Identity"):
            if node.input and node.input[0] in makers:
                makers[node.output[0]] = makers[node.input[0]]
            continue
        name = name_of(node, number)
        sources = tuple(makers[i] for i in node.input if i in makers)
        operations.append(SourceOperation(name, node.op_type, sources, families.get(name, "opaque")))
        makers.update(dict.fromkeys(node.output, name))
    return SourceProgram(title, tuple(operations))


def spanned(node: Expr) -> str:
    """The name of the imported node that an expression stands for."""
    return node.span.source_name.name if isinstance(node.span, Span) else ""


def families(pipeline: Pipeline) -> dict[str, str]:
    """The colour class of each imported node: that of the first operator that it became."""
    found: dict[str, str] = {}
    for node in _calls(pipeline):
        found.setdefault(spanned(node), kind_family(node)[1])
    return found


def of_relay(pipeline: Pipeline, title: str) -> tuple[SourceProgram, Namer]:
    """The calls of a Relay program, and the names they have here; what is no call passes on what it is given."""
    names: dict[Expr, str] = {}
    through: dict[Expr, tuple[str, ...]] = {}
    operations: list[SourceOperation] = []
    for node in nodes_of(pipeline.source):
        brought = tuple(name for child in children(node) for name in through.get(child, ()))
        if isinstance(node, Call) and isinstance(node.op, Op):
            names[node] = f"{node.op.name} {len(operations)}"
            operations.append(SourceOperation(names[node], node.op.name, brought, kind_family(node)[1]))
            brought = (names[node],)
        elif isinstance(node, TupleGetItem) and node.tuple_value in names:
            names[node] = names[node.tuple_value]  # a result of several stands for its call
        through[node] = brought
    return SourceProgram(title, tuple(operations)), lambda node: names.get(node, "")


def _calls(pipeline: Pipeline) -> list[Call]:
    return [n for n in nodes_of(pipeline.source) if isinstance(n, Call) and isinstance(n.op, Op)]


def ours(pipeline: Pipeline, program: SourceProgram, named: Namer) -> Compiled:
    """The kernels at the end of a pipeline, each with the operations that its calls were made from.

    What only moves the result of an operation into another layout does not compute it.
    """
    kernels: list[FusedKernel] = []
    history, order = pipeline.history, {o.name: k for k, o in enumerate(program.operations)}
    inside = {
        function: [n for n in walk([function.body]) if isinstance(n, Call)]
        for function in nodes_of(pipeline.modules[-1])
        if isinstance(function, Function) and function.is_primitive
    }
    made = {c: {named(old) for old in history.parents(c)} & order.keys() for calls in inside.values() for c in calls}
    computed = {name for call, names in made.items() if _title(call) != "layout_transform" for name in names}
    for calls in inside.values():
        members = {n for c in calls for n in made[c] if _title(c) != "layout_transform" or n not in computed}
        kernels.append(FusedKernel("+".join(_title(c) for c in calls), tuple(sorted(members, key=order.__getitem__))))
    return Compiled("relaylab", tuple(kernels))


def _title(call: Call) -> str:
    return call.op.name if isinstance(call.op, Op) else "call"
