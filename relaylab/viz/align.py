"""Which node of one view corresponds to which of another, found by structure alone (no trail is known).

First nodes with equal names and equal history of operands, then nodes alike in themselves in the order of
the two views, then nodes of the same operator between those; what is left has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import SequenceMatcher

from relaylab.viz.view import Node, View

LONG = 4000
"""Sequences longer than this are matched by counting (first with first), which takes no quadratic time."""


def align(before: View, after: View) -> dict[str, str]:
    """For ids of `after` the ids of `before` that they correspond to, one to one."""
    pairs: dict[str, str] = {}
    deep = [_deep_keys(view) for view in (before, after)]
    _match(pairs, before.nodes, after.nodes, lambda n, side: deep[side][n.id])
    for key in (_own_key, _name_key):
        taken = set(pairs.values())
        left = [n for n in before.nodes if n.id not in taken]
        right = [n for n in after.nodes if n.id not in pairs]
        _match(pairs, left, right, lambda n, side, key=key: key(n))
    titles = {(g.kind, g.title): g.id for g in reversed(before.groups)}
    pairs.update((g.id, titles[g.kind, g.title]) for g in _once(after, titles))
    return pairs


def _once(view: View, titles: dict) -> Iterable:
    """The groups that have a counterpart by kind and title; each title once."""
    return {(g.kind, g.title): g for g in reversed(view.groups) if (g.kind, g.title) in titles}.values()


def _own_key(node: Node) -> Hashable:
    rows = tuple((o.position, o.text, o.type) for o in node.operands if o.text)
    return node.kind, node.title, node.attrs, rows, node.type


def _name_key(node: Node) -> Hashable:
    return node.kind, node.title


def _deep_keys(view: View) -> dict[str, int]:
    """A number for each node: equal for nodes that are alike with all that flows into them."""
    keys: dict[str, int] = {}
    for node in view.nodes:
        below = tuple((e.position, e.kind, keys.get(e.source, 0)) for e in view.incoming.get(node.id, ()))
        keys[node.id] = hash((_own_key(node), below))
    return keys


def _match(
    pairs: dict[str, str], left: Sequence[Node], right: Sequence[Node], key: Callable[[Node, int], Hashable]
) -> None:
    a, b = [key(n, 0) for n in left], [key(n, 1) for n in right]
    for i, j in _common(a, b):
        pairs[right[j].id] = left[i].id


def _common(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterable[tuple[int, int]]:
    """Pairs of positions of equal elements, in order."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        yield start, start
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        yield len(a) - 1 - end, len(b) - 1 - end
        end += 1
    rest_a, rest_b = a[start : len(a) - end], b[start : len(b) - end]
    if max(len(rest_a), len(rest_b)) > LONG:
        yield from _counted(rest_a, rest_b, start)
        return
    for block in SequenceMatcher(None, rest_a, rest_b, autojunk=False).get_matching_blocks():
        yield from ((start + block.a + k, start + block.b + k) for k in range(block.size))


def _counted(a: Sequence[Hashable], b: Sequence[Hashable], start: int) -> Iterable[tuple[int, int]]:
    places: dict[Hashable, list[int]] = {}
    for i in range(len(a) - 1, -1, -1):
        places.setdefault(a[i], []).append(i)
    for j, element in enumerate(b):
        if places.get(element):
            yield start + places[element].pop(), start + j
