"""What changed, in pieces that hang together: equal pieces are one exemplar, with how often it stands there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from relaylab.viz.graph.view import Node, View
from relaylab.viz.selection.fold import outermost


@dataclass(frozen=True)
class Exemplar:
    """The ids of one piece, of `count` equal ones; `others` are the ids in the rest of them."""

    nodes: tuple[str, ...]
    count: int
    others: frozenset[str] = frozenset()


def exemplars(view: View) -> list[Exemplar]:
    """The kinds of pieces of a picture of differences, the most frequent first; of each the first in order.

    A piece is what changed and is joined by edges; a group that changed, such as a fused kernel, is one by itself.
    Pieces are equal if their nodes have the same operators and roles and are joined in the same way. A node of which
    only the type is another follows from what changed before it: it is no piece where anything else changed.
    """
    found: dict[Hashable, list[tuple[str, ...]]] = {}
    for piece in _pieces(view):
        found.setdefault(_label(view, piece), []).append(piece)
    kinds = [Exemplar(first, 1 + len(rest), frozenset().union(*rest)) for first, *rest in found.values()]
    return sorted(kinds, key=lambda kind: -kind.count)


def _pieces(view: View) -> Iterator[tuple[str, ...]]:
    """The joined parts of what changed, each in the order of the view."""
    home = outermost(view, {g.id for g in view.groups if g.role})
    changed = [n for n in view.nodes if n.role or home[n.id]]
    left = dict.fromkeys(n.id for n in [n for n in changed if home[n.id] or not _follows(n)] or changed)
    order = {name: k for k, name in enumerate(left)}
    while left:
        start = next(iter(left))
        del left[start]
        piece, rim = [start], [start]
        while rim:
            at = rim.pop()
            near = [e.source for e in view.incoming.get(at, ())] + [e.target for e in view.outgoing.get(at, ())]
            fresh = [n for n in dict.fromkeys(near) if n in left and home[n] == home[start]]
            for name in fresh:
                del left[name]
            piece += fresh
            rim += fresh
        yield tuple(sorted(piece, key=lambda name: order[name]))


def _follows(node: Node) -> bool:
    """Whether only the type of a node is another."""
    return node.role == "changed" and node.note.startswith("type was ") and "; " not in node.note


def _label(view: View, piece: tuple[str, ...]) -> Hashable:
    place = {name: k for k, name in enumerate(piece)}
    joined = [(e, place[name]) for name in piece for e in view.incoming.get(name, ()) if e.source in place]
    nodes = [view.node_by_id[name] for name in piece]
    kinds = tuple((n.kind, n.operator or n.title, n.role) for n in nodes)
    return kinds, tuple(sorted((place[e.source], at, e.position) for e, at in joined))
