"""Views from JSON: relaylab's own (`View.to_json`) and the graph collections of Model Explorer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaylab.support.errors import RelayValueError
from relaylab.support.schema import read_json
from relaylab.viz.graph.view import FORMAT, Attr, Edge, Group, Node, View

SHAPE = "tensor_shape"
"""What Model Explorer calls the type of an output."""


def from_json(text: str, graph: int = 0) -> View:
    """The view in a JSON text; of a collection of Model Explorer, the graph of that number.

    Namespaces become nested boxes, attributes stay text. `RelayValueError` for any other JSON.
    """
    try:
        data = read_json(text)
    except ValueError as error:
        raise _foreign(str(error)) from None
    if isinstance(data, dict) and data.get("format") == FORMAT:
        return View.from_json(text)
    try:
        found = _graphs(data)
        if 0 <= graph < len(found):
            return _view(found[graph])
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise _foreign(f"{type(error).__name__}: {error}") from None
    raise _foreign(f"it has {len(found)} graphs, none is number {graph}")


def _foreign(why: str) -> RelayValueError:
    return RelayValueError(
        f"this JSON is no graph of relaylab or of Model Explorer: {why}",
        code="viz.view-foreign",
        help="viz.save(program, 'x.json') or 'x.modelexplorer.json' writes one, and so do adapters of Model Explorer",
    )


def _graphs(data: object) -> list[dict]:
    """The graphs of a collection, of several, or of what Model Explorer's command writes around them."""
    waiting, found = [data], []
    while waiting:
        at = waiting.pop()
        if isinstance(at, list):
            waiting += reversed(at)
        elif isinstance(at, dict) and "nodes" in at:
            found.append(at)
        elif isinstance(at, dict):
            waiting += [at[key] for key in ("graphs", "graphCollections") if key in at]
        else:
            raise ValueError(f"{type(at).__name__} is no graph")
    return found


def _view(graph: Mapping) -> View:
    spaces: dict[str, Group] = {}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for data in graph["nodes"]:
        name, space = str(data["id"]), str(data.get("namespace") or "")
        _boxes(space, spaces)
        attrs = {str(a["key"]): str(a["value"]) for a in data.get("attrs", ())}
        outputs = [a for o in data.get("outputsMetadata", ()) for a in o.get("attrs", ()) if a.get("key") == SHAPE]
        nodes.append(
            Node(
                name,
                "call",
                str(data.get("label") or name),
                group=_box(space) if space else "",
                type=str(outputs[0]["value"]) if outputs else "",
                attrs=tuple(Attr(k, v) for k, v in attrs.items()),
            )  # fmt: skip
        )
        edges += _edges(name, data.get("incomingEdges", ()))
    return View(str(graph.get("id", "")), tuple(nodes), tuple(edges), tuple(spaces.values())).check()


def _edges(target: str, incoming: Iterable[Mapping]) -> Iterable[Edge]:
    """Operands where they are numbered, else in their order; two of one number are told apart."""
    taken: set[int] = set()
    for k, edge in enumerate(incoming):
        said = str(edge.get("targetNodeInputId", k))
        position = (
            int(said) if said.isdecimal() and len(said) < 6 and int(said) not in taken else max(taken, default=-1) + 1
        )
        taken.add(position)
        yield Edge(str(edge["sourceNodeId"]), target, position)


def _box(space: str) -> str:
    return f"namespace {space}"


def _boxes(space: str, known: dict[str, Group]) -> None:
    """The boxes of a namespace, outer ones first."""
    parent = ""
    for part in space.split("/") if space else ():
        path = f"{parent}/{part}" if parent else part
        if path not in known:
            known[path] = Group(_box(path), "function", part, _box(parent) if parent else "")
        parent = path
