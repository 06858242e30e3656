"""Places along a layer: each layer in turn is an exact weighted isotonic regression.

Every item wishes to stand where its neighbours are; the order and the distances within the layer are
constraints. Subtracting the packed offsets turns "at least this far apart" into "not decreasing", which
pool-adjacent-violators solves exactly (Barlow et al., Statistical Inference under Order Restrictions, 1972).

Choices: docs/choices.md, Pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

STILL = 0.25  # points: when nothing moves further than this, the picture has settled
REST = 0.02  # the weight of staying where one is
FIRM = 1e4  # the weight of a place given by an earlier picture
GIVEN = 1e3  # how much firmer such a place is than the longest new path that is to be straight
SPINE = 24.0  # the pull between two boxes of one path that is to be straight
CHAIN = 8.0  # the weight of standing in line with the only item above
_PULL = (4.0, 1.0, 8.0)  # how strongly two boxes, a box and a bend, two bends of one line pull on each other

Ends = list[list[tuple[int, float]]]
Force = tuple[float, float, list[tuple[int, float, float]]]
Wishes = Callable[[list[int]], list[tuple[float, float]]]


class Placer:
    """The places of all items while they settle."""

    def __init__(self, layers: list[list[int]], up: Ends, down: Ends, width: Sequence[float], gap: float):
        self.layers = layers
        self.x = [0.0] * len(width)
        self.offsets = [_packed(layer, width, gap) for layer in layers]
        for layer, offsets in zip(layers, self.offsets):
            middle = (offsets[-1] if offsets else 0.0) / 2
            for v, offset in zip(layer, offsets):
                self.x[v] = offset - middle
        self.up, self.down = up, down
        self.real = len(width)
        self.given: Mapping[int, float] = {}
        self.anchor: Mapping[int, float] = {}
        self.spine: dict[int, int] = {}
        self.firm: dict[int, float] = {}

    def run(self, rounds: int) -> list[float]:
        """Settle in at most `rounds` passes over the layers, down and up in turn; the places."""
        rows = self._loose_rows()
        downward, upward = self._wishes(self.up), self._wishes(self.down)
        between = self._wishes([a + b for a, b in zip(self.up, self.down)])
        still = 0
        for turn in range(rounds):
            both, down = turn >= rounds // 3, turn % 2 == 0
            wishes = between if both else downward if down else upward
            moved = max((self._settle(r, wishes) for r in (rows if down else reversed(rows))), default=0.0)
            still = still + 1 if moved < STILL else 0
            if still == 2:
                break
        return self.x

    def straighten(self, rounds: int) -> list[float]:
        """Put the longest paths of `spine` in straight columns, then let everything else settle around them."""
        length = _lengths(self.spine)
        least = max(length.values(), default=0) / 2
        self.firm = {v: n * FIRM for v, n in length.items() if n > least}
        spines = dict(self.firm)
        self.firm |= {v: GIVEN * self.firm.get(v, FIRM) for v in self.anchor}
        for r in self._loose_rows():
            self._settle(r, self._in_line)
        self.anchor = {**{v: self.x[v] for v in spines}, **self.anchor}
        self.run(rounds)
        for r in self._loose_rows():
            self._settle(r, self._in_line)
        return self.x

    def _loose_rows(self) -> list[int]:
        """The layers where something is to be placed; those where everything has a place and its distance stay."""
        return [r for r in range(len(self.layers)) if not self._rests(r)]

    def _rests(self, r: int) -> bool:
        layer, offsets, given, x = self.layers[r], self.offsets[r], self.given, self.x
        if any(v not in given or x[v] != given[v] for v in layer):
            return False
        return all(x[b] - x[a] >= p - o for a, b, o, p in zip(layer, layer[1:], offsets, offsets[1:]))

    def _settle(self, r: int, wishes: Wishes) -> float:
        """Put the items of a layer as near to their wishes as order and distances allow; how far one moved at most."""
        layer, offsets = self.layers[r], self.offsets[r]
        totals: list[float] = []
        weights: list[float] = []
        counts: list[int] = []
        for (wish, weight), offset in zip(wishes(layer), offsets):
            total, count = (wish - offset) * weight, 1
            while totals and totals[-1] * weight > total * weights[-1]:
                total, weight, count = total + totals.pop(), weight + weights.pop(), count + counts.pop()
            totals.append(total)
            weights.append(weight)
            counts.append(count)
        moved, first, x = 0.0, 0, self.x
        for total, weight, count in zip(totals, weights, counts):
            base = total / weight
            for i in range(first, first + count):
                v, at = layer[i], base + offsets[i]
                if (far := abs(at - x[v])) > moved:
                    moved = far
                x[v] = at
            first += count
        return moved

    def _wishes(self, ends: Ends) -> Wishes:
        """For every item of a layer where it would like to be among the neighbours in `ends`, and how much."""
        x = self.x
        forces: list[Force | None] = [None] * len(ends)

        def wishes(layer: list[int]) -> list[tuple[float, float]]:
            found = []
            for v in layer:
                if (force := forces[v]) is None:
                    force = forces[v] = self._force(v, ends[v])
                base, weight, pulls = force
                total = x[v] * REST + base
                for u, shift, w in pulls:
                    total += (x[u] + shift) * w
                found.append((total / weight, weight))
            return found

        return wishes

    def _force(self, v: int, ends: list[tuple[int, float]]) -> Force:
        """What holds an item, all weights in sum, and how strongly which neighbour pulls how far from its place:
        along a spine straight to it.
        """
        spine, above, bends = self.spine, self.spine.get(v), v >= self.real
        pulls = [
            (u, 0.0, SPINE) if above == u or spine.get(u) == v else (u, shift, _PULL[bends + (u >= self.real)])
            for u, shift in ends
        ]
        firm = self.firm.get(v, FIRM) if v in self.anchor else 0.0
        held = self.anchor[v] * firm if firm else 0.0
        return held, REST + firm + sum([w for _, _, w in pulls]), pulls

    def _in_line(self, layer: list[int]) -> list[tuple[float, float]]:
        """Right below the item that the spine comes from; lines straight on; others where they are."""
        return [self._below(v) for v in layer]

    def _below(self, v: int) -> tuple[float, float]:
        if v in self.anchor:
            return self.anchor[v], self.firm.get(v, FIRM)
        if v in self.spine:
            return self.x[self.spine[v]], self.firm.get(v, CHAIN)
        if len(self.up[v]) == 1 and len(self.down[self.up[v][0][0]]) == 1:
            u, shift = self.up[v][0]
            return self.x[u] + shift, CHAIN
        return self.x[v], 1.0


def _packed(layer: list[int], width: Sequence[float], gap: float) -> list[float]:
    """The centres of a layer's items when pushed together, the first at 0."""
    offsets = [0.0] if layer else []
    for a, b in zip(layer, layer[1:]):
        offsets.append(offsets[-1] + (width[a] + width[b]) / 2 + gap)
    return offsets


def _lengths(spine: Mapping[int, int]) -> dict[int, int]:
    """For every item of a straight path how long the path is."""
    below = {above: v for v, above in spine.items()}
    length: dict[int, int] = {}
    for head in below.keys() - spine.keys():
        path = [head]
        while path[-1] in below:
            path.append(below[path[-1]])
        length.update(dict.fromkeys(path, len(path)))
    return length
