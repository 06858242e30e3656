"""Strongly connected components of a directed graph, callees first, without recursion (Tarjan, 1972)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


def strong_components(edges: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The components of the graph in an order in which each comes after those that it points to."""
    state = _Tarjan(edges)
    for node in edges:
        if node not in state.index:
            state.search(node)
    return state.out


class _Tarjan(Generic[N]):
    def __init__(self, edges: Mapping[N, Iterable[N]]):
        self.edges = edges
        self.index: dict[N, int] = {}
        self.low: dict[N, int] = {}
        self.path: dict[N, None] = {}
        self.out: list[list[N]] = []

    def open(self, node: N) -> tuple[N, Iterator[N]]:
        self.index[node] = self.low[node] = len(self.index)
        self.path[node] = None
        return node, iter(self.edges[node])

    def search(self, root: N) -> None:
        stack = [self.open(root)]
        while stack:
            node, targets = stack[-1]
            new = next((t for t in targets if self.reach(node, t)), None)
            if new is not None:
                stack.append(self.open(new))
                continue
            stack.pop()
            if stack:
                self.low[stack[-1][0]] = min(self.low[stack[-1][0]], self.low[node])
            if self.low[node] == self.index[node]:
                self.close(node)

    def reach(self, node: N, target: N) -> bool:
        """Whether `target` is new; one on the path closes a cycle."""
        if target not in self.index:
            return True
        if target in self.path:
            self.low[node] = min(self.low[node], self.index[target])
        return False

    def close(self, root: N) -> None:
        members: list[N] = []
        while not members or members[-1] != root:
            members.append(self.path.popitem()[0])
        self.out.append(members[::-1])
