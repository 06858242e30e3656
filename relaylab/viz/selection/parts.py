"""The parts of a view in order: what is directly in each group, and how these hang together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from relaylab.support.order import post_order
from relaylab.viz.graph.view import View
from relaylab.viz.selection.fold import outer_first


class Parts:
    """The parts (nodes and groups) of every group in evaluation order, with the edges between them.

    `items`: the parts of each group and, under the empty name, the top level; `parent`: the group that each is in;
    `sources`: for a part those that it needs, of the same group, and through which port; `users`: the reverse.
    """

    def __init__(self, view: View):
        self.view = view
        self.parent = {g.id: g.parent for g in view.groups} | {n.id: n.group for n in view.nodes}
        self.depth = {"": 0}
        for group in outer_first(view):
            self.depth[group.id] = self.depth[group.parent] + 1
        self.sources: dict[str, list[tuple[str, Hashable]]] = {}
        self.users: dict[str, list[str]] = {}
        for edge in view.edges:
            if edge.kind != "recursion":
                self._lift(edge.source, edge.target, (edge.position, edge.kind))
        self.items = self._ordered()

    def _lift(self, source: str, target: str, port: Hashable) -> None:
        """Note an edge between the two parts of the innermost group that holds both ends."""
        a, b, parent = source, target, self.parent
        while parent[a] != parent[b]:
            deeper = self._level(a) - self._level(b)
            a, b = (parent[a] if deeper >= 0 else a), (parent[b] if deeper <= 0 else b)
        if a != b:
            self.sources.setdefault(b, []).append((a, port if b == target else ""))
            self.users.setdefault(a, []).append(b)

    def _level(self, name: str) -> int:
        return self.depth[self.parent[name]]

    def _ordered(self) -> dict[str, list[str]]:
        """The parts of each group, sources first, each part as late as its first user allows."""
        members: dict[str, list[str]] = {}
        for name in (*(n.id for n in self.view.nodes), *(g.id for g in self.view.groups)):
            members.setdefault(self.parent[name], []).append(name)
        return {home: self._post_order(names) for home, names in members.items()}

    def _post_order(self, names: Sequence[str]) -> list[str]:
        results = [n for n in names if n not in self.users]
        return post_order((*results, *names), lambda name: [source for source, _ in self.sources.get(name, ())])
