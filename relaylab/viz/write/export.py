"""Views for other viewers: Model Explorer's graph JSON, and an ONNX file for Netron.

Netron reads no JSON graphs of its own and no plain text that could hold any graph; what it reads of any operator
set is ONNX. So `netron` writes a structure-only ONNX model (operators in the domain `relay`, no weights), and needs
the package `onnx`, which is optional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from relaylab.support.errors import RelayError
from relaylab.viz.graph.view import Node, View
from relaylab.viz.selection.fold import outer_first

_TENSOR = re.compile(r"Tensor\[\(([^()]*)\), (\w+)\]")


def model_explorer(*views: View, indent: int | None = None) -> str:
    """Views as a graph collection of Model Explorer: nodes with namespaces, incoming edges, attributes, shapes.

    Groups become namespaces; an edge out of a group (a function that is called) begins at the group's first node.
    """
    label = (views[0].title if views else "") or "relay"
    return json.dumps({"label": label, "graphs": [_explorer_graph(view) for view in views]}, indent=indent)


def _explorer_graph(view: View) -> dict[str, Any]:
    spaces = _namespaces(view)
    ports: dict[tuple[str, str], str] = {}
    nodes = [_explorer_node(view, node, spaces, ports) for node in view.nodes]
    return {"id": view.title or "relay", "nodes": nodes}


def _namespaces(view: View) -> dict[str, str]:
    """The path of each group: titles without slashes, and the id where two siblings have one title."""
    paths = {"": ""}
    taken: set[str] = set()
    for group in outer_first(view):
        title = group.title.replace("/", "∕") or group.kind
        path = "/".join(filter(None, (paths[group.parent], title)))
        if path in taken:
            path += f" ({group.id.replace('/', '∕')})"
        taken.add(path)
        paths[group.id] = path
    return paths


def _explorer_node(
    view: View, node: Node, spaces: Mapping[str, str], ports: dict[tuple[str, str], str]
) -> dict[str, Any]:
    attrs = {"type": node.type, "text": node.text, "span": node.span, "role": node.role, "note": node.note}
    attrs |= {a.name: a.value for a in node.attrs}
    attrs |= {o.name or f"operand {o.position}": f"{o.text} {o.type}".strip() for o in node.operands if o.text}
    attrs |= {name: f"{value:g}" for name, value in node.cost}
    incoming = [
        {"sourceNodeId": source, "sourceNodeOutputId": "0", "targetNodeInputId": str(k)}
        for k, edge in enumerate(view.incoming.get(node.id, ()))
        if (source := _end(view, edge.source))
    ]
    shape = [{"key": "tensor_shape", "value": node.type}] if node.type else []
    return {
        "id": node.id,
        "label": node.title,
        "namespace": spaces[node.group],
        "incomingEdges": incoming,
        "attrs": [{"key": k, "value": v} for k, v in attrs.items() if v],
        "outputsMetadata": [{"id": "0", "attrs": shape}],
    }


def _end(view: View, name: str) -> str:
    """The node that stands for the end of an edge: itself, or the function node of a box."""
    if name in view.node_by_id:
        return name
    inside = [n for n in view.nodes if n.group == name]
    return next((n.id for n in inside if n.kind == "function"), inside[0].id if inside else "")


def netron(view: View) -> bytes:
    """The view as the bytes of a structure-only ONNX model; raises `RelayError` where the package onnx is absent.

    One output a node, named by the node's id; operands folded into rows are inputs of their own; kinds that are no
    operators (`if`, `match`, a call of a function) are operators of the domain `relay` by their title.
    """
    try:
        from onnx import helper
    except ImportError:
        raise RelayError(
            "a picture for Netron is an ONNX file, and the package onnx is not installed",
            code="viz.no-onnx",
            help='pip install "relaylab[onnx]"',
        ) from None
    view = View.from_json(view.to_json())  # no file holds half of a character
    inputs = [n for n in view.nodes if n.kind == "var"]
    made = [_onnx_node(helper, view, n) for n in view.nodes if n.kind != "var"]
    results = [n for n in view.nodes if n.id not in view.outgoing]
    graph = helper.make_graph(
        made, view.title or "relay", [_value(helper, n) for n in inputs], [_value(helper, n) for n in results]
    )
    model = helper.make_model(graph, producer_name="relaylab", opset_imports=[helper.make_opsetid("relay", 1)])
    return model.SerializeToString()


def _onnx_node(helper: Any, view: View, node: Node) -> Any:
    brought = [(e.position, _end(view, e.source)) for e in view.incoming.get(node.id, ()) if e.kind != "recursion"]
    folded = [(o.position, f"{o.text} : {o.type}" if o.type else o.text) for o in node.operands if o.text]
    made = helper.make_node(
        node.operator or node.title,
        [name for _, name in sorted(brought + folded) if name],
        [node.id],
        name=node.id,
        domain="relay",
        doc_string=node.text,
    )
    made.attribute.extend(helper.make_attribute(a.name, a.value) for a in node.attrs)
    return made


def _value(helper: Any, node: Node) -> Any:
    found = _TENSOR.fullmatch(node.type)
    if not found:
        return helper.make_empty_tensor_value_info(node.id)
    from onnx import TensorProto

    kind = {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BFLOAT16"}.get(found[2], found[2].upper())
    shape = [None if d == "?" else int(d) for d in found[1].rstrip(",").split(", ") if d]
    return helper.make_tensor_value_info(node.id, getattr(TensorProto, kind, TensorProto.UNDEFINED), shape)
