"""A few nodes of a view as a picture of their own, with holes for what flows into them; what a pass touched, in pairs.

A pair is what stood somewhere before a pass and what stands there after it: nodes that were made from each other, a
fused kernel with all that went into it, and removed nodes with what read them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from relaylab.viz.graph.view import Node, View
from relaylab.viz.selection.fold import outermost

HOLE = ("dash:5 4",)
"""How the border of a hole is painted."""


def hole(node: Node, title: str = "") -> Node:
    """What stands in the place of a node that is not shown: its name and type, with a broken border."""
    return Node(
        node.id,
        "hole",
        title or node.title,
        family="value",
        group=node.group,
        type=node.type,
        span=node.span,
        paint=HOLE,
    )


def minigraph(view: View, ids: Collection[str]) -> View:
    """The nodes of `ids`, each value that flows into them from elsewhere as a hole, and the groups around them."""
    inside = {name for name in ids if name in view.node_by_id}
    edges = [e for name in inside for e in view.incoming.get(name, ())]
    outside = dict.fromkeys(e.source for e in edges if e.source not in inside and e.source in view.node_by_id)
    homes = {g.id for name in inside for g in view.around(view.node_by_id[name].group)}
    groups = tuple(g for g in view.groups if g.id in homes and g.kind == "primitive")
    known = {g.id for g in groups} | {""}
    holes = [replace(hole(view.node_by_id[name]), group="") for name in outside]
    nodes = [replace(n, group=n.group if n.group in known else "") for n in view.nodes if n.id in inside]
    there = inside | set(outside)
    return View(
        view.title,
        (*holes, *nodes),
        tuple(e for e in edges if e.source in there),
        tuple(replace(g, parent=g.parent if g.parent in known else "") for g in groups),
    )


@dataclass(frozen=True)
class Pair:
    """The ids of what stood somewhere before a pass, and of what stands there after it."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class _Joined:
    """Sets of names that are joined two by two."""

    def __init__(self) -> None:
        self.above: dict[str, str] = {}

    def find(self, name: str) -> str:
        while (up := self.above.get(name, name)) != name:
            self.above[name] = self.above.get(up, up)  # half of the way is left out next time
            name = up
        return name

    def join(self, a: str, b: str) -> None:
        self.above[self.find(a)] = self.find(b)


def pairs(before: View, after: View) -> list[Pair]:
    """What a pass touched, in order, given the views before and after it with roles (`Difference.sides`)."""
    home = outermost(after, {g.id for g in after.groups if g.role})
    new = [n for n in after.nodes if n.role or home[n.id]]
    old = [n for n in before.nodes if n.role or home.get(n.id)]
    there = {n.id for n in (*old, *new)}
    joined = _Joined()
    for node in new:
        for name in (home[node.id], *node.origins):
            if name in there or name == home[node.id] != "":
                joined.join(node.id, name)
    made = {origin for n in new for origin in n.origins} | {n.id for n in new}
    was = {n.id for n in old}
    for view, nodes, known in ((before, old, made), (after, new, was)):
        for node in nodes:
            # what came from nothing, and what became nothing, goes with what reads it
            if node.id not in known and not (view is after and was.intersection(node.origins)):
                for name in _readers(view, node, there):
                    joined.join(node.id, name)
    return _sorted(before, old, new, joined)


def _readers(view: View, node: Node, there: Collection[str]) -> Iterator[str]:
    return (e.target for e in view.outgoing.get(node.id, ()) if e.target in there)


def _sorted(view: View, old: list[Node], new: list[Node], joined: _Joined) -> list[Pair]:
    """The joined nodes, in the order of the program before the pass."""
    sides: dict[str, tuple[list[str], list[str]]] = {}
    for side, nodes in ((0, old), (1, new)):
        for node in nodes:
            sides.setdefault(joined.find(node.id), ([], []))[side].append(node.id)
    place = {n.id: k for k, n in enumerate(view.nodes)}
    found = [Pair(tuple(before), tuple(after)) for before, after in sides.values()]
    return sorted(found, key=lambda p: min((place[name] for name in p.before), default=len(place)))
