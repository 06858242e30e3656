"""Order within layers: barycentre sweeps that keep the order with the fewest crossings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Layers = list[list[int]]
Ends = list[list[tuple[int, float]]]  # per item: (neighbour, where the edge meets it minus where it leaves here)


class Sorter:
    """The layers being ordered, with the packed `x` of every item under the present order."""

    def __init__(self, layers: Layers, up: Ends, down: Ends, width: Sequence[float], gap: float):
        self.layers, self.up, self.down, self.width, self.gap = layers, up, down, width, gap
        self.x = [0.0] * len(width)
        self.fixed: Mapping[int, float] = {}
        """Items that keep their order among each other, and the places in an earlier picture that give it."""
        self.rows: Sequence[Sequence[int]] = ()
        """Items of one layer that stand in this order, whatever is between them."""
        self.pack()

    def pack(self) -> None:
        """Push the items of every layer together, in their present order."""
        for layer in self.layers:
            self._pack(layer)

    def _pack(self, layer: list[int]) -> None:
        """Give the items of a layer the places they have when pushed together around 0."""
        at, x, width, gap = 0.0, self.x, self.width, self.gap
        for v in layer:
            x[v] = at + width[v] / 2
            at += width[v] + gap
        middle = (at - gap) / 2
        for v in layer:
            x[v] -= middle

    def run(self, sweeps: int, keep: float = 1.0) -> int:
        """Sweep down and up; keep the best order seen. `keep` < 1 asks for that much fewer crossings to change."""
        if self.rows:
            self._in_order()
        first = best = self.crossings()
        kept = [list(layer) for layer in self.layers]
        stale = 0
        for sweep in range(sweeps):
            if best == 0 or stale == 4:
                break
            self._sweep(down=sweep % 2 == 0)
            if self.rows:
                self._in_order()
            count = self._transpose()
            stale += 1
            if count < best and count <= first * keep:
                best, kept, stale = count, [list(layer) for layer in self.layers], 0
        self._restore(kept)
        return best

    def _restore(self, kept: Layers) -> None:
        for layer, order in zip(self.layers, kept):
            layer[:] = order
            self._pack(layer)

    def _sweep(self, down: bool) -> None:
        ends = self.up if down else self.down
        layers = self.layers[1:] if down else self.layers[-2::-1]
        x = self.x
        for layer in layers:
            if len(layer) > 1:
                wish = {v: sum([x[u] + d for u, d in ends[v]]) / len(ends[v]) if ends[v] else x[v] for v in layer}
                layer.sort(key=wish.__getitem__)
                if self.fixed:
                    self._unswap(layer)
                self._pack(layer)

    def _unswap(self, layer: list[int]) -> None:
        """Put the fixed items of a layer in their order; each of them takes a place that one of them has."""
        slots = [i for i, v in enumerate(layer) if v in self.fixed]
        for i, v in zip(slots, sorted((layer[i] for i in slots), key=self.fixed.__getitem__)):
            layer[i] = v

    def _in_order(self) -> None:
        """Put the items of each row in their order; each of them takes a place that one of them has."""
        where = {v: (layer, i) for layer in self.layers for i, v in enumerate(layer)}
        for row in self.rows:
            layer = where[row[0]][0]
            for i, v in zip(sorted(where[v][1] for v in row), row):
                layer[i], where[v] = v, (layer, i)
        self.pack()

    def crossings(self) -> int:
        """How many pairs of edges cross."""
        return sum(self._between(layer) for layer in self.layers[:-1])

    def _between(self, layer: list[int]) -> int:
        """Crossings between this layer and the next: inversions counted by a binary indexed tree."""
        x = self.x
        if len(layer) == 1 and len(self.down[layer[0]]) < 2:
            return 0
        ends = [(x[v] - d * 1e-3, x[w] + d * 1e-3) for v in layer for w, d in self.down[v]]
        ends.sort()
        return inversions([b for _, b in ends])

    def _transpose(self) -> int:
        """Swap neighbours while that removes crossings (small pictures only), then count what is left."""
        if sum(map(len, self.layers)) <= 1500:
            pairs = {pair for row in self.rows for pair in zip(row, row[1:])}
            for layer in self.layers:
                for i in range(len(layer) - 1):
                    a, b = layer[i], layer[i + 1]
                    kept = (a in self.fixed and b in self.fixed) or (a, b) in pairs
                    if not kept and self._gain(a, b) > 0:
                        layer[i], layer[i + 1] = layer[i + 1], layer[i]
                        self._pack(layer)
        return self.crossings()

    def _gain(self, a: int, b: int) -> int:
        """Crossings saved by putting `b` left of `a`."""
        return sum(self._pairs(ends[a], ends[b]) for ends in (self.up, self.down))

    def _pairs(self, left: list[tuple[int, float]], right: list[tuple[int, float]]) -> int:
        x = self.x
        first = [x[u] + d * 1e-3 for u, d in left]
        second = [x[u] + d * 1e-3 for u, d in right]
        return sum((p > q) - (p < q) for p in first for q in second)


def inversions(values: list[float]) -> int:
    """The number of pairs that stand in the wrong order; equal values do not count."""
    ordered = sorted(values)
    if values == ordered:
        return 0
    place = {v: i for i, v in enumerate(dict.fromkeys(ordered), 1)}
    size = len(place)
    tree = [0] * (size + 1)
    found = 0
    for seen, value in enumerate(values):
        i = at = place[value]
        smaller = 0
        while i:
            smaller += tree[i]
            i &= i - 1
        found += seen - smaller
        while at <= size:
            tree[at] += 1
            at += at & -at
    return found
