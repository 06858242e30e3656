"""The neutral graph view: the one model behind every picture, and its versioned JSON.

A view knows nothing of Relay's classes and nothing of coordinates. `from_ir` makes one from a
program, `relay_viz` from a user's own parser, `diff` from two others; every plotter reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from relaylab.support import schema
from relaylab.support.errors import RelayValueError
from relaylab.support.hook import Hook
from relaylab.support.words import counted

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = "relaylab.view"
VERSION = 1

ROLES = ("added", "removed", "changed", "moved", "merged")
"""What a diff may say about a node, an edge or a group; the empty role is "the same"."""
STYLES = {
    "role": re.compile(f"(?:{'|'.join(ROLES)})?"),
    "kind": re.compile(r"[\w-]+"),
    "family": re.compile(r"[\w-]*"),
    "paint": re.compile(r"(?:fill|stroke):(?:#[0-9a-fA-F]{6}|none)|width:\d+(?:\.\d+)?|dash:[\d. ]*|heat-\d"),
}
"""What of a view becomes styles of a picture as it is: a file of somebody else's may hold anything there."""


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


@Hook
def view_display(view: object) -> dict[str, str] | None:
    """What a notebook shows of a view that is the last value of a cell: its picture, once pictures are loaded."""
    return None


@dataclass(frozen=True)
class View:
    """A graph to draw: nodes, edges, nested groups. Immutable; ids are unique over nodes and groups."""

    title: str = ""
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    groups: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = (self.nodes, "node"), (self.edges, "edge"), (self.groups, "group")
        return f"<view of {', '.join(counted(len(found), what) for found, what in parts)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str] | None:
        return view_display(self)

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
        """The view itself, or `RelayValueError`: ids repeat, an edge or group ends nowhere, groups stand in each other
        in a circle, a word is no style.
        """
        ids = [n.id for n in self.nodes] + [g.id for g in self.groups]
        if len({*ids, ""}) <= len(ids):
            why = "a part of the view has no id" if "" in ids else "two parts of the view have one id"
            raise RelayValueError(why, code="viz.duplicate-id")
        for name in self._references():
            if name not in self.node_by_id and name not in self.group_by_id:
                raise RelayValueError(f"the view mentions `{name}`, which is not in it", code="viz.unknown-id")
        self._check_nesting()
        for field, told in self._styles():
            if wrong := [word for word in told if not STYLES[field].fullmatch(word)]:
                raise RelayValueError(f"the view has a {field} {wrong[0]!r:.60}, which is none", code="viz.view-style")
        return self

    def _check_nesting(self) -> None:
        settled = {""}
        for at in (*self.group_by_id, *{n.group for n in self.nodes}):
            way: dict[str, None] = {}
            while at not in settled:
                if at in way or at not in self.group_by_id:
                    why = "is in itself" if at in way else "is no group, and something is in it"
                    raise RelayValueError(f"`{at}` {why}", code="viz.nesting")
                way[at] = None
                at = self.group_by_id[at].parent
            settled.update(way)

    def _styles(self) -> Iterator[tuple[str, set[str]]]:
        parts = (*self.nodes, *self.groups)
        yield "role", {p.role for p in (*parts, *self.edges)}
        yield "kind", {p.kind for p in (*parts, *self.edges)}
        yield "family", {n.family for n in self.nodes}
        yield "paint", {style for n in self.nodes if n.paint for style in n.paint}

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
        """Versioned JSON: fields with their default value are left out, halves of characters are question marks."""
        data = {"format": FORMAT, "version": VERSION, **_packed(self)}
        return json.dumps(data, indent=indent, ensure_ascii=False).encode("utf-8", "replace").decode()

    @staticmethod
    def from_json(text: str) -> View:
        """Read what `to_json` wrote; raises `RelayValueError` for anything else."""
        try:
            data = schema.read_json(text)
            if not isinstance(data, dict) or data.pop("format", None) != FORMAT or data.pop("version", None) != VERSION:
                raise RelayValueError(
                    f"this is not a graph view of format {FORMAT}, version {VERSION}", code="viz.view-version"
                )
            return schema.read(View, data).check()
        except RelayValueError:
            raise
        except ValueError as err:
            raise RelayValueError(f"this is no graph view: {err}", code="viz.view-json") from None


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
