"""Operators that onnx itself defines by other operators: the body of such a function, for one node.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.model import DTYPES, load_onnx
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.ir import AnyDim, Expr

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

_NUMBERS = {name: number for number, name in DTYPES.items()}


class _Parameter(Protocol):
    name: str
    option: enum.Enum


class Schema(Protocol):
    """What is used of onnx's own description of an operator (`onnx.defs.OpSchema`, whose stub does not say it all)."""

    min_input: int
    max_input: int
    inputs: Sequence[_Parameter]
    attributes: Mapping[str, Any]
    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: list[int]
    context_dependent_function_opset_versions: list[int]

    def get_function_with_opset_version(self, version: int, /) -> bytes:
        """The body as a serialized FunctionProto."""
        ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes], /
    ) -> bytes:
        """The body for a node and the types of its inputs."""
        ...


@cache
def definition(domain: str, name: str, version: int) -> Schema | None:
    """onnx's schema of an operator, if it says what the operator is made of."""
    defs = load_onnx().defs
    if not defs.has(name, domain):
        return None
    try:
        schema = cast("Schema", defs.get_schema(name, version, domain))
    except defs.SchemaError:  # of a newer opset
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def body_of(g: Graph, node: OnnxNode, ins: Sequence[Expr | None]) -> tuple[GraphProto, dict[str, Any], dict[str, int]]:
    """The nodes that a node stands for as a graph, what its names of inputs mean, and the opsets it is written in.

    The graph has those outputs that the node names. Bodies that depend on context are made for the node's attributes
    and the types of its inputs. Raises RelayError: inputs and attributes that the operator's schema does not have.
    """
    schema = definition(node.domain, node.op_type, node.version)
    assert schema is not None
    _check(node, schema, ins)
    defaults = {n: a.default_value for n, a in dict(schema.attributes).items() if a.default_value.type}
    return called(node, _written(g, node, schema, ins), ins, defaults)


def called(
    node: OnnxNode, function: FunctionProto, ins: Sequence[Expr | None], defaults: Mapping[str, AttributeProto]
) -> tuple[GraphProto, dict[str, Any], dict[str, int]]:
    """What `body_of` gives, for a function that is known; `defaults` of attributes are besides its own."""
    graph = load_onnx().GraphProto(name=node.op_type)
    graph.node.extend(function.node)
    for name, used in zip(function.output, node.outputs):  # bodies do not make what the node does not ask for
        if used:
            graph.output.add(name=name)
    own = {a.name: a for a in function.attribute_proto}
    _fill(graph, own | dict(defaults) | {a.name: a for a in node.proto.attribute})
    if len(ins) > len(function.input):
        raise node.error(f"takes {len(function.input)} inputs, {len(ins)} given", code="import.arity")
    scope = {name: ins[k] if k < len(ins) else None for k, name in enumerate(function.input)}
    return graph, scope, {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}


def _check(node: OnnxNode, schema: Schema, ins: Sequence[Expr | None]) -> None:
    least, most = schema.min_input, schema.max_input
    if not least <= len(ins) <= most:
        raise node.error(
            f"takes {least}{f' to {most}' if most != least else ''} inputs, {len(ins)} given", code="import.arity"
        )
    missing = [i.name for i, x in zip(schema.inputs, ins) if x is None and i.option.name == "Single"]
    if missing:
        raise node.error(f"the input `{missing[0]}` is left out", code="import.arity")
    for name in {a.name for a in node.proto.attribute} - set(schema.attributes):
        raise node.error(f"the attribute `{name}` of opset {node.version} is not imported", code="import.attribute")


def _written(g: Graph, node: OnnxNode, schema: Schema, ins: Sequence[Expr | None]) -> FunctionProto:
    """The function in the newest opset that is not above the model's."""
    versions = [*schema.function_opset_versions, *schema.context_dependent_function_opset_versions]
    version = max((v for v in versions if v <= node.version), default=min(versions))
    function = load_onnx().FunctionProto()
    try:
        if version in schema.function_opset_versions:
            function.ParseFromString(schema.get_function_with_opset_version(version))
        else:
            made = schema.get_context_dependent_function_with_opset_version
            function.ParseFromString(made(version, node.proto.SerializeToString(), [_type(g, x) for x in ins]))
    except Exception as error:  # whatever onnx's builders raise
        raise node.error(f"onnx cannot say what it is made of: {error}", code="import.functions") from None
    if not function.node:
        raise node.error("onnx does not say what this form of it is made of", code="import.functions")
    return function


def _type(g: Graph, value: object) -> bytes:
    """The type of an input as a serialized TypeProto; of one that is left out, an empty one."""
    proto = load_onnx().TypeProto()
    inner = proto
    if isinstance(value, list):
        inner = proto.sequence_type.elem_type
        value = value[0] if value else None
    if isinstance(value, Expr):
        found = g.tensor(value)
        inner.tensor_type.elem_type = _NUMBERS[found.dtype]
        inner.tensor_type.shape.SetInParent()
        for d in found.shape:
            dim = inner.tensor_type.shape.dim.add()
            if not isinstance(d, AnyDim):
                dim.dim_value = int(d)
    return proto.SerializeToString()


def _fill(graph: GraphProto, given: Mapping[str, AttributeProto]) -> None:
    """Put the values of the node's attributes where the body refers to them; what is not given is left out."""
    stack: list[Any] = [graph]
    while stack:
        for node in stack.pop().node:
            _fill_node(node, given)
            for a in node.attribute:
                stack += [a.g] * a.HasField("g") + list(a.graphs)


def _fill_node(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    for k in range(len(node.attribute) - 1, -1, -1):
        name, source = node.attribute[k].name, node.attribute[k].ref_attr_name
        if source and source in given:
            node.attribute[k].CopyFrom(given[source])
            node.attribute[k].name = name
        elif source:
            del node.attribute[k]
