"""The neutral graph view: the one model behind every picture, and its versioned JSON.

A view knows nothing of Relay's classes and nothing of coordinates. `from_ir` makes one from a
program, `relay_viz` from a user's own parser, `diff` from two others; every plotter reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar, cast, get_args, get_origin, get_type_hints

from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
FORMAT = "relaylab.view"
VERSION = 1

ROLES = ("added", "removed", "changed", "moved", "merged")
"""What a diff may say about a node, an edge or a group; the empty role is "the same"."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a node. `text` is empty where an edge brings the value, else the folded variable or constant."""

    position: int
    name: str = ""
    kind: str = "edge"
    text: str = ""
    type: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute: its name, its value as text, and whether it is just the default."""

    name: str
    value: str
    default: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the picture.

    `kind` is the node class in lower case (`call`, `var`, `if`, `match`, ...), `operator` the operator's
    registered name, `family` the colour class, `names` the let variables bound to the value, `cost`
    figures such as MACs and bytes, `text` the Relay text of the node, `origins` ids it came from, `paint` styles of
    the user's own (`fill:#ff0000`).
    """

    id: str
    kind: str
    title: str
    operator: str = ""
    family: str = ""
    group: str = ""
    names: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    type: str = ""
    attrs: tuple[Attr, ...] = ()
    span: str = ""
    cost: tuple[tuple[str, float], ...] = ()
    text: str = ""
    role: str = ""
    note: str = ""
    origins: tuple[str, ...] = ()
    paint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A value on its way: from `source` to operand `position` of `target`.

    `kind` is `data`, `callee` (a function to the call of it), `body` (a result to its function) or
    `recursion`; `label` is drawn beside the arrow head (the operand's name where order matters).
    """

    source: str
    target: str
    position: int = 0
    kind: str = "data"
    label: str = ""
    type: str = ""
    role: str = ""

    @property
    def id(self) -> str:
        """A name that is unique within a view."""
        return f"{self.source}>{self.target}:{self.position}:{self.kind}{self.role and '!' + self.role}"


@dataclass(frozen=True, slots=True)
class Group:
    """A box around nodes: a function, a fused kernel, a branch, a match clause or a let scope."""

    id: str
    kind: str
    title: str
    parent: str = ""
    detail: str = ""
    rows: tuple[str, ...] = ()
    type: str = ""
    attrs: tuple[Attr, ...] = ()
    span: str = ""
    cost: tuple[tuple[str, float], ...] = ()
    text: str = ""
    role: str = ""
    note: str = ""


@dataclass(frozen=True)
class View:
    """A graph to draw: nodes, edges, nested groups. Immutable; ids are unique over nodes and groups."""

    title: str = ""
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    groups: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def node_by_id(self) -> dict[str, Node]:
        """Nodes by id."""
        return {n.id: n for n in self.nodes}

    @cached_property
    def group_by_id(self) -> dict[str, Group]:
        """Groups by id."""
        return {g.id: g for g in self.groups}

    @cached_property
    def incoming(self) -> dict[str, list[Edge]]:
        """The edges into each node, by operand position."""
        return _by_end(self.edges, "target")

    @cached_property
    def outgoing(self) -> dict[str, list[Edge]]:
        """The edges out of each node."""
        return _by_end(self.edges, "source")

    def around(self, group: str) -> Iterator[Group]:
        """The group of that id and those around it, the innermost first; none for the empty id."""
        at = self.group_by_id.get(group)
        while at is not None:
            yield at
            at = self.group_by_id.get(at.parent)

    def kernel_around(self, group: str) -> Group | None:
        """The fused function that a group is or is in."""
        return next((g for g in self.around(group) if g.kind == "primitive"), None)

    def check(self) -> View:
        """The view itself, or `RelayValueError` if ids repeat or an edge or group ends nowhere."""
        ids = [n.id for n in self.nodes] + [g.id for g in self.groups]
        if len(set(ids)) != len(ids):
            raise RelayValueError("two parts of the view have one id", code="viz.duplicate-id")
        for name in self._references():
            if name not in self.node_by_id and name not in self.group_by_id:
                raise RelayValueError(f"the view mentions `{name}`, which is not in it", code="viz.unknown-id")
        return self

    def renamed(self, ids: Mapping[str, str]) -> View:
        """The view with other ids for some of its nodes and groups."""
        if not ids:
            return self
        nodes = tuple(replace(n, id=ids.get(n.id, n.id), group=ids.get(n.group, n.group)) for n in self.nodes)
        groups = tuple(replace(g, id=ids.get(g.id, g.id), parent=ids.get(g.parent, g.parent)) for g in self.groups)
        ends = ((e, ids.get(e.source, e.source), ids.get(e.target, e.target)) for e in self.edges)
        return View(self.title, nodes, tuple(replace(e, source=a, target=b) for e, a, b in ends), groups, self.notes)

    def _references(self) -> Iterable[str]:
        for edge in self.edges:
            yield from (edge.source, edge.target)
        yield from (n.group for n in self.nodes if n.group)
        yield from (g.parent for g in self.groups if g.parent)

    def to_json(self, *, indent: int | None = None) -> str:
        """Versioned JSON: fields with their default value are left out."""
        return json.dumps({"format": FORMAT, "version": VERSION, **_packed(self)}, indent=indent)

    @staticmethod
    def from_json(text: str) -> View:
        """Read what `to_json` wrote; raises `RelayValueError` for anything else."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as err:
            raise RelayValueError(f"this is not JSON: {err}", code="viz.view-json") from None
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT or data.pop("version", None) != VERSION:
            raise RelayValueError(
                f"this is not a graph view of format {FORMAT}, version {VERSION}", code="viz.view-version"
            )
        return _unpack(View, data).check()


def _by_end(edges: Iterable[Edge], end: str) -> dict[str, list[Edge]]:
    table: dict[str, list[Edge]] = {}
    for edge in edges:
        name = getattr(edge, end)
        if (known := table.get(name)) is None:
            table[name] = [edge]
        else:
            known.append(edge)
    for ends in table.values():
        if len(ends) > 1:
            ends.sort(key=lambda e: e.position)
    return table


def _packed(record: DataclassInstance) -> dict[str, object]:
    """A data class as a dictionary; the nesting is that of the classes above, never that of a program."""
    kept = ((f, getattr(record, f.name)) for f in fields(record))
    return {f.name: _pack(v) for f, v in kept if v != f.default}


def _pack(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _packed(value)
    return [_pack(v) for v in value] if isinstance(value, tuple) else value


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind)


def _unpack(kind: type[T], data: object) -> T:
    hints = _hints(kind)
    if not isinstance(data, Mapping) or (unknown := set(data) - set(hints)):
        what = f"fields {sorted(unknown)}" if isinstance(data, Mapping) else repr(data)[:40]
        raise RelayValueError(f"the view's {kind.__name__} cannot have {what}", code="viz.view-json")
    try:
        return kind(**{name: _unpack_field(hints[name], value) for name, value in data.items()})
    except (TypeError, ValueError) as err:
        raise RelayValueError(f"the view's {kind.__name__} is not complete: {err}", code="viz.view-json") from None


def _unpack_field(hint: object, value: object) -> object:
    if isinstance(hint, type) and is_dataclass(hint):
        return _unpack(hint, value)
    if isinstance(hint, type) and get_origin(hint) is None:
        return _expect(hint, value)
    args = get_args(hint)
    inner = args[0] if args[-1] is Ellipsis else None
    return tuple(_unpack_field(inner or args[i], v) for i, v in enumerate(_expect(list, value)))


def _expect(kind: type[T], value: object) -> T:
    if not isinstance(value, (int, float) if kind is float else kind):
        raise ValueError(f"expected {kind.__name__}, found {type(value).__name__}")
    return cast("T", value)  # a whole number may stand for a float
