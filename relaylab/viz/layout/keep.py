"""New items go where there is room between those that keep their places of an earlier picture.

Choices: docs/choices.md, Pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

PUSH = 24.0  # points: two items that keep their places may be pushed apart so far (a line between them needs that)


def make_room(
    layer: list[int], fixed: Mapping[int, float], wish: Mapping[int, float], width: Sequence[float], gap: float
) -> None:
    """Move new items of `layer` past those in `fixed` where they would push these apart.

    `fixed` has the places that are kept, `wish` where each new item would like to be. What finds no room goes,
    the widest first, to the nearest gap that has some; left and right of all that is kept there always is.
    """
    kept = [v for v in layer if v in fixed]
    if not kept or len(kept) == len(layer):
        return
    gaps = _gaps(layer, fixed)
    room = _room(kept, fixed, width, gap)
    for i in range(1, len(kept)):
        needed = sum(width[v] + gap for v in gaps[i])
        for v in sorted(gaps[i], key=lambda v: -width[v]):
            if needed <= max(0.0, room[i][1] - room[i][0]) + PUSH:
                break
            _evict(v, i, gaps, room, wish[v], width, gap)
            needed -= width[v] + gap
    layer[:] = gaps[0]
    for v, after in zip(kept, gaps[1:]):
        layer += [v, *after]


def _gaps(layer: list[int], fixed: Mapping[int, float]) -> list[list[int]]:
    """The new items before, between and after the kept ones."""
    gaps: list[list[int]] = [[]]
    for v in layer:
        if v in fixed:
            gaps.append([])
        else:
            gaps[-1].append(v)
    return gaps


def _room(kept: list[int], fixed: Mapping[int, float], width: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """From where to where each gap is free for items that bring one distance with them; the outer ones have no end."""
    inner = [(fixed[a] + width[a] / 2 + gap, fixed[b] - width[b] / 2) for a, b in pairwise(kept)]
    first, last = kept[0], kept[-1]
    left, right = fixed[first] - width[first] / 2, fixed[last] + width[last] / 2 + gap
    return [(-float("inf"), left), *inner, (right, float("inf"))]


def _evict(
    v: int,
    at: int,
    gaps: list[list[int]],
    room: list[tuple[float, float]],
    wish: float,
    width: Sequence[float],
    gap: float,
) -> None:
    """Move `v` from gap `at` to the gap with room that is nearest to its wish, on the side from which it comes."""

    def far(i: int) -> float:
        left, right = room[i]
        taken = sum(width[u] + gap for u in gaps[i]) + width[v] + gap
        if i == at or right - left < taken:
            return float("inf")
        low, high = left + width[v] / 2, right - gap - width[v] / 2
        return abs(min(max(wish, low), high) - wish)

    to = min(range(len(gaps)), key=far)
    gaps[at].remove(v)
    gaps[to].insert(len(gaps[to]) if to < at else 0, v)
