"""Short convolutions with few products, by evaluation and interpolation (Toom, Cook; for networks Winograd, Lavin).

`tile` neighbouring results of a kernel of `taps` elements need tile + taps - 1 products instead of tile * taps: with g
the kernel and d as many elements of data, they are result.T @ ((weight @ g) * (data @ d)). A row of `weight` is the
kernel, as a polynomial, at one point, divided by the product of the distances to the other points; the last point is
infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from relaylab.op.helpers import Element, ElementBuilder

_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
POINTS = tuple(
    map(Fraction, (0, -1, 1, _HALF, -2, -_HALF, 2, -_QUARTER, 4, _QUARTER, -4, Fraction(3, 4), Fraction(-4, 3)))
)
"""The finite points, in the order in which longer transforms take them: few digits are lost between small fractions
and their negative inverses (Barabasz et al., 2020).
"""


@dataclass(frozen=True, eq=False)
class Transforms:
    """The matrices of one axis: `tile` results at a time, from as many products as the matrices have rows."""

    tile: int
    weight: np.ndarray
    data: np.ndarray
    result: np.ndarray

    @property
    def points(self) -> int:
        """How many products a tile takes."""
        return len(self.weight)


@lru_cache(maxsize=128)
def transforms(tile: int, taps: int, points: Sequence[Fraction] = POINTS) -> Transforms:
    """The matrices for `tile` results at a time, (points, taps), (points, points) and (points, tile)."""
    count = tile + taps - 1
    chosen = points[: count - 1]
    others = [[q for q in chosen if q != p] for p in chosen]
    distances = [math.prod((p - q for q in rest), start=Fraction(1)) for p, rest in zip(chosen, others)]
    data = [[*_polynomial(rest), Fraction(0)] for rest in others] + [_polynomial(chosen)]
    if distances and distances[0] < 0:  # the first row of `weight` is the first element of the kernel as it is
        distances[0], data[0] = -distances[0], [-v for v in data[0]]
    weight = [[v / d for v in _powers(p, taps)] for p, d in zip(chosen, distances)] + [_last(taps)]
    result = [_powers(p, tile) for p in chosen] + [_last(tile)]
    return Transforms(tile, *(np.array(m, "float64").reshape(count, -1) for m in (weight, data, result)))


@lru_cache(maxsize=32)
def direct(taps: int) -> Transforms:
    """The matrices of an axis that is not transformed: one result at a time, a product for each tap."""
    return Transforms(1, np.eye(taps), np.eye(taps), np.ones((taps, 1)))


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the polynomial with these roots, lowest first."""
    out = [Fraction(1)]
    for root in roots:
        out = [high - root * low for high, low in zip([Fraction(0), *out], [*out, Fraction(0)])]
    return out


def _powers(p: Fraction, count: int) -> list[Fraction]:
    return [p**k for k in range(count)]


def _last(count: int) -> list[Fraction]:
    """What infinity reads of a polynomial: its highest coefficient."""
    return [Fraction(int(k == count - 1)) for k in range(count)]


def entry(b: ElementBuilder, matrix: np.ndarray, row: Element, column: Element, dtype: str) -> Element:
    """The element of a constant matrix at an index that is known only in the loop."""
    flat, found = row * matrix.shape[1] + column, b.const(0.0, dtype)
    if (matrix == matrix.flat[0]).all():
        return b.const(float(matrix.flat[0]), dtype)
    for k, value in enumerate(matrix.flat):
        if value:
            found = b.select(b.eq(flat, k), float(value), found)
    return found
