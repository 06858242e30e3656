"""Discrete Fourier transforms as two products with small matrices.

Of n = a b elements, element b j + m is that of j in column m of an a x b matrix. Its transform is one of a points of
every column, and then one of b points of every row, whose elements are turned before: W_n^(m c) in row c (Cooley and
Tukey, 1965). Rows c and a - c of real frames are conjugates, so that a // 2 + 1 of them are enough.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylab.ir.expr import Constant, Expr
from relaylab.op.base import call_operator

ADVANTAGE = 1.2  # of fewer products in two steps, whose matrices are smaller
MOST_TURNS = 1 << 22  # of the matrix of a transform: with more, each is computed where it is used


def turned(steps: np.ndarray, n: int, inverse: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The real and imaginary parts of so many steps back (`inverse`: forward) on a circle of n, in float64."""
    angle = steps % n * (2 * np.pi / n)
    return np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)


@dataclass(frozen=True)
class TwoStepTransform:
    """The transform of frames of `rows` times `columns` points: of the columns of matrices, then of their rows.

    `parts` are 1 for real frames, 2 for complex ones.
    """

    rows: int
    columns: int
    parts: int = 1
    inverse: bool = False

    @staticmethod
    def instead_of(products: int, n: int, parts: int = 1, inverse: bool = False) -> TwoStepTransform | None:
        """That of n points with the fewest products; None for a prime number, or if it is no better than so many."""
        found = [TwoStepTransform(k, n // k, parts, inverse) for k in range(2, n // 2 + 1) if n % k == 0]
        best = min(found, key=lambda t: t.products, default=None)
        fits = best is not None and best.products * ADVANTAGE < products and best.numbers <= MOST_TURNS
        return best if fits else None

    @property
    def own(self) -> int:
        """How many rows are not the conjugate of another."""
        return self.rows // 2 + 1 if self.parts == 1 else self.rows

    @property
    def products(self) -> int:
        """Multiplications for one frame."""
        return 2 * self.own * self.columns * (self.parts * self.rows + 2 * self.columns)

    @property
    def numbers(self) -> int:
        """Elements of both matrices."""
        return 2 * self.own * (self.parts * self.rows + 2 * self.columns**2)

    def transformed(self, frames: Expr, frequencies: int, scale: float, dtype: str) -> Expr:
        """The first `frequencies` of frames (parts, points, many), as (frequencies, many, 2)."""
        first, second = (x.astype(dtype) for x in self._matrices(scale))
        found = call_operator("reshape", frames, newshape=(self.parts * self.rows, -1))
        found = call_operator("nn.matmul", Constant(first), found)
        found = call_operator("reshape", found, newshape=(self.own, 2 * self.columns, -1))
        found = call_operator("nn.batch_matmul", Constant(second), found, transpose_b=False)
        found = call_operator("reshape", found, newshape=(self.own * 2 * self.columns, -1))
        places, signs = self._places(frequencies)
        found = call_operator("take", found, Constant(places), axis=0)
        found = call_operator("transpose", found, axes=(0, 2, 1))
        return call_operator("multiply", found, Constant(signs.astype(dtype)[:, None]))

    def _matrices(self, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """What columns are multiplied by: (own * 2, parts * rows), and rows: (own, 2 * columns, 2 * columns), whose
        numbers are real parts, then imaginary ones.
        """
        c, d, n = np.arange(self.own), np.arange(self.columns), self.points
        real, imaginary = turned(np.outer(c, np.arange(self.rows)) * self.columns, n, self.inverse)
        first = np.stack([np.hstack([real, -imaginary]), np.hstack([imaginary, real])], axis=1)
        first = first[..., : self.parts * self.rows].reshape(2 * self.own, -1)
        steps = np.outer(c, d)[:, None] + self.rows * np.outer(d, d)  # [c, to, from]
        real, imaginary = turned(steps, n, self.inverse)
        return first, scale * np.block([[real, -imaginary], [imaginary, real]])

    @property
    def points(self) -> int:
        """The length of a frame."""
        return self.rows * self.columns

    def _places(self, frequencies: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of all results each frequency's two parts are, and their signs."""
        k = np.arange(frequencies)
        c, d = k % self.rows, k // self.rows
        mirrored = c >= self.own
        c, d = np.where(mirrored, self.rows - c, c), np.where(mirrored, self.columns - 1 - d, d)
        place = c * 2 * self.columns + d
        signs = np.stack([np.ones(frequencies), np.where(mirrored, -1, 1)], axis=1)
        return np.stack([place, place + self.columns], axis=1).astype("int32"), signs
