"""The minimal filtering algorithms F(m, r): transforms of input tiles, weights and outputs.

Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks (2016). F(m, r) makes a tile of m x m outputs from (m + r - 1) x (m + r - 1) inputs with as many products,
instead of r^2 m^2. Three points are 0, 1 and infinity, four have -1 too; six are 0, 5/8, -5/8, 3/2, -3/2 and infinity,
which round half as much as 0, 1, -1, 2, -2 and infinity (Barabasz et al., Error analysis and
improving the accuracy of Winograd convolution, 2020). All their numbers but the weights' are exact.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from relaylab.loop.expr import ScalarExpr

Keep = Callable[[str, ScalarExpr], ScalarExpr]
"""Gives the register of that name with the value in it."""


class Filtering(NamedTuple):
    """F(m, r): m outputs along an axis by r taps."""

    m: int
    r: int

    @property
    def edge(self) -> int:
        """The inputs, and the points, along an axis."""
        return self.m + self.r - 1

    @property
    def points(self) -> int:
        """Products per tile and pair of channels."""
        return self.edge**2

    def __str__(self) -> str:
        return f"{self.m}x{self.r}"


Transform = Callable[[Filtering, Sequence[ScalarExpr], Keep], list[ScalarExpr]]
NEAR, FAR = 5 / 8, 3 / 2  # the points of six beside 0 and infinity, with either sign


def _six_points(r: int) -> np.ndarray:
    """G of six points for r taps: a row has the powers of a point over the product of its distances to all others."""

    def rows(point: float, other: float) -> list[list[float]]:
        norm = 2 * point**2 * (point**2 - other**2)
        return [[(sign * point) ** k / norm for k in range(r)] for sign in (1, -1)]

    none = [0.0] * (r - 1)
    return np.array([[1 / (NEAR * FAR) ** 2, *none], *rows(NEAR, FAR), *rows(FAR, NEAR), [*none, 1]])


WEIGHT_TRANSFORM = {  # G: r taps -> m + r - 1 points
    Filtering(2, 2): np.array([[1, 0], [1, 1], [0, 1]]),
    Filtering(2, 3): np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
    Filtering(3, 2): np.array([[1, 0], [1 / 2, 1 / 2], [1 / 2, -1 / 2], [0, 1]]),
    Filtering(4, 3): _six_points(3),
    Filtering(3, 4): _six_points(4),
    Filtering(2, 5): _six_points(5),
}
COLUMNS = 768  # of a product that stays in the second-level cache, and for which OpenBLAS wakes no threads


def input_points(f: Filtering, d: Sequence[ScalarExpr], keep: Keep) -> list[ScalarExpr]:
    """B^T d: inputs to as many points; `keep` names a value that is used twice."""
    if f.edge == 3:
        return [d[0] - d[1], d[1], d[1] - d[2]]
    if f.edge == 4:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    even, odd = keep("even", d[4] + d[2] * -(FAR**2)), keep("odd", d[3] + d[1] * -(FAR**2))
    near, wide = keep("near", d[4] + d[2] * -(NEAR**2)), keep("wide", d[3] + d[1] * -(NEAR**2))
    ends = [d[k + 4] + d[k + 2] * -(NEAR**2 + FAR**2) + d[k] * (NEAR * FAR) ** 2 for k in (0, 1)]
    return [ends[0], even + odd * NEAR, even + odd * -NEAR, near + wide * FAR, near + wide * -FAR, ends[1]]


def outputs(f: Filtering, p: Sequence[ScalarExpr], keep: Keep) -> list[ScalarExpr]:
    """A^T p: points to m outputs."""
    if f.edge == 3:
        return [p[0] + p[1], p[1] - p[2]]
    both, apart = keep("both", p[1] + p[2]), keep("apart", p[1] - p[2])
    if f.edge == 4:
        return [p[0] + both, apart, both - p[3]] if f.m == 3 else [p[0] + both, apart - p[3]]
    far, split = keep("far", p[3] + p[4]), keep("split", p[3] - p[4])
    powers = [(apart, NEAR, split, FAR), (both, NEAR**2, far, FAR**2), (apart, NEAR**3, split, FAR**3)]
    *inner, (x, a, y, b) = powers[: f.m - 1]
    return [p[0] + both + far, *(x * a + y * b for x, a, y, b in inner), p[5] + x * a + y * b]


def transform_weights(f: Filtering, taps: np.ndarray, points: np.ndarray) -> None:
    """Writes G g G^T for taps [r^2, n] (kernel row, column) to points [(m + r - 1)^2, n]."""
    matrix = np.kron(WEIGHT_TRANSFORM[f], WEIGHT_TRANSFORM[f]).astype(taps.dtype)
    for k in range(0, taps.shape[1], COLUMNS):
        np.matmul(matrix, taps[:, k : k + COLUMNS], out=points[:, k : k + COLUMNS])
