"""The order in which what leads to each other is done."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def post_order(roots: Iterable[N], below: Callable[[N], Sequence[N]]) -> list[N]:
    """Everything that the roots lead to, each once and after what it leads to, from left to right. No recursion."""
    found: list[N] = []
    seen: set[N] = set()
    stack = [(root, False) for root in reversed(tuple(roots))]
    while stack:
        node, done = stack.pop()
        if done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((n, False) for n in reversed(below(node)))
    return found
