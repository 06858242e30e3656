"""Places along a layer: each layer in turn is an exact weighted isotonic regression.

Every item wishes to stand where its neighbours are; the order and the distances within the layer are
constraints. Subtracting the packed offsets turns "at least this far apart" into "not decreasing", which
pool-adjacent-violators solves exactly (Barlow et al., Statistical Inference under Order Restrictions, 1972).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STILL = 0.25  # points: when nothing moves further than this, the picture has settled
REST = 0.02  # the weight of staying where one is

Ends = list[list[tuple[int, float]]]


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
        self.weight = [1.0] * len(width)
        self.anchor: Mapping[int, float] = {}

    def run(self, rounds: int) -> list[float]:
        """Settle in at most `rounds` passes over the layers, down and up in turn; the places."""
        for turn in range(rounds):
            both = turn >= rounds // 3
            moved = 0.0
            for r in range(len(self.layers)) if turn % 2 == 0 else range(len(self.layers) - 1, -1, -1):
                moved = max(moved, self._settle(r, down=turn % 2 == 0, both=both))
            if moved < STILL and both:
                break
        return self.x

    def _settle(self, r: int, down: bool, both: bool) -> float:
        layer, offsets = self.layers[r], self.offsets[r]
        blocks: list[tuple[float, float, int]] = []
        for v, offset in zip(layer, offsets):
            wish, weight = self._wish(v, down, both)
            block = ((wish - offset) * weight, weight, 1)
            while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
                before = blocks.pop()
                block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
            blocks.append(block)
        return self._move(layer, offsets, blocks)

    def _wish(self, v: int, down: bool, both: bool) -> tuple[float, float]:
        """Where `v` would like to be, and how much."""
        x, own = self.x, self.weight[v]
        ends = self.up[v] + self.down[v] if both else self.up[v] if down else self.down[v]
        total, weight = x[v] * REST, REST
        for u, shift in ends:
            w = own * self.weight[u]
            total += (x[u] + shift) * w
            weight += w
        if v in self.anchor:
            total, weight = total + self.anchor[v] * 400.0, weight + 400.0
        return total / weight, weight

    def _move(self, layer: list[int], offsets: list[float], blocks: list[tuple[float, float, int]]) -> float:
        moved, i, x = 0.0, 0, self.x
        for total, weight, count in blocks:
            base = total / weight
            for _ in range(count):
                v, at = layer[i], base + offsets[i]
                moved = max(moved, abs(at - x[v]))
                x[v] = at
                i += 1
        return moved


def _packed(layer: list[int], width: Sequence[float], gap: float) -> list[float]:
    """The centres of a layer's items when pushed together, the first at 0."""
    offsets = [0.0] if layer else []
    for a, b in zip(layer, layer[1:]):
        offsets.append(offsets[-1] + (width[a] + width[b]) / 2 + gap)
    return offsets
