"""Ranks: which layer each item is in. Cycles are broken first, then longest paths to the results, then tightening."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[int, int]


def back_edges(count: int, pairs: Sequence[Pair]) -> set[int]:
    """The indices of edges that close a cycle in a depth-first walk, self-loops included (iterative)."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    entered = [0] * count
    for index, (a, b) in enumerate(pairs):
        out[a].append((b, index))
        entered[b] += a != b
    state = bytearray(count)  # 0 new, 1 on the path, 2 finished
    found: set[int] = set()
    for start in sorted(range(count), key=lambda v: entered[v] > 0):
        _walk(start, out, state, found)
    return found


def _walk(start: int, out: list[list[tuple[int, int]]], state: bytearray, found: set[int]) -> None:
    if state[start]:
        return
    state[start] = 1
    stack = [(start, iter(out[start]))]
    while stack:
        node, rest = stack[-1]
        for target, index in rest:
            if state[target] == 1:
                found.add(index)
            elif not state[target]:
                state[target] = 1
                stack.append((target, iter(out[target])))
                break
        else:
            state[node] = 2
            stack.pop()


def assign_ranks(count: int, pairs: Sequence[Pair], first: set[int], last: set[int]) -> list[int]:
    """A rank for each of `count` items of an acyclic graph: 0 is the top.

    Items in `first` share rank 0 with nothing else, items in `last` share the lowest rank.
    """
    above, below = neighbours(count, pairs)
    order = _topological(above, below)
    height = longest(order[::-1], below)
    top = max(height, default=0) + bool(first)
    rank = [0 if v in first else top - h for v, h in enumerate(height)]
    _pull_up(order, above, below, rank, first)
    bottom = max((r for v, r in enumerate(rank) if v not in last), default=0)
    for v in last:
        rank[v] = bottom + 1
    return rank


def neighbours(count: int, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    """For each item the items above it and those below it."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        below[a].append(b)
        above[b].append(a)
    return above, below


def _topological(above: list[list[int]], below: list[list[int]]) -> list[int]:
    waiting = [len(a) for a in above]
    order = [v for v, n in enumerate(waiting) if not n]
    for v in order:
        for w in below[v]:
            waiting[w] -= 1
            if not waiting[w]:
                order.append(w)
    return order


def _pull_up(order: list[int], above: list, below: list, rank: list[int], first: set[int]) -> None:
    """Everything is as low as its users allow; what has more operands than users goes up to its operands instead."""
    for v in order:
        if above[v] and len(above[v]) > len(below[v]) and v not in first:
            rank[v] = max(rank[u] for u in above[v]) + 1


def longest(order: Sequence[int], before: list[list[int]]) -> list[int]:
    """For each item the length of the longest path that ends at it, along an `order` in which `before` come first."""
    length = [0] * len(before)
    for v in order:
        length[v] = max((length[u] + 1 for u in before[v]), default=0)
    return length
