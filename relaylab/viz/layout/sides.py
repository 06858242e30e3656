"""Left and right in turn: what hangs off a long path beside it, as near to it as there is room.

Drawn without a crossing, branches that overlap along a path each stand outside the one before: a picture as wide as
it is long. Here each branch takes the innermost free lane on either side, the shortest branches first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

Ends = list[list[tuple[int, float]]]


def trunk(rank: Sequence[int], up: Ends, real: int) -> list[int]:
    """The path down the layers with the most boxes on it (items before `real`; the others are bends of lines)."""
    most = [0] * len(rank)
    for v in sorted(range(len(rank)), key=rank.__getitem__):
        most[v] = (v < real) + max((most[u] for u, _ in up[v]), default=0)
    path = [max(range(len(rank)), key=most.__getitem__)] if rank else []
    while path and up[path[-1]]:
        path.append(max((u for u, _ in up[path[-1]]), key=most.__getitem__))
    return path


def lanes(rank: Sequence[int], up: Ends, down: Ends, middle: Collection[int]) -> dict[int, int]:
    """For everything that is not in `middle` its lane: 1, 2, … from the middle to the right, -1, -2, … to the left."""
    taken: dict[int, bytearray] = {}
    found: dict[int, int] = {}
    layers = max(rank, default=-1) + 1
    for branch in sorted(_branches(up, down, middle), key=lambda b: _span(b, rank)):
        low, high = min(rank[v] for v in branch), max(rank[v] for v in branch) + 1
        side = -1 if sum(d for v in branch for u, d in down[v] if u in middle) < 0 else 1
        for lane in _outward(side):
            room = taken.setdefault(lane, bytearray(layers))
            if not any(room[low:high]):
                room[low:high] = b"\1" * (high - low)
                found.update(dict.fromkeys(branch, lane))
                break
    return found


def _branches(up: Ends, down: Ends, middle: Collection[int]) -> Iterator[list[int]]:
    """What hangs together when the middle is taken away."""
    seen = bytearray(len(up))
    for v in middle:
        seen[v] = 1
    for start in range(len(up)):
        if seen[start]:
            continue
        seen[start] = 1
        branch = [start]
        for v in branch:
            for u, _ in (*up[v], *down[v]):
                if not seen[u]:
                    seen[u] = 1
                    branch.append(u)
        yield branch


def _span(branch: list[int], rank: Sequence[int]) -> tuple[int, int]:
    low = min(rank[v] for v in branch)
    return max(rank[v] for v in branch) - low, low


def _outward(side: int) -> Iterator[int]:
    for k in count(1):
        yield k * side
        yield -k * side
