"""Discrete Fourier transforms of real frames as two products with small matrices.

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


def turned(steps: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The real and imaginary parts of so many steps back on a circle of n, in float64."""
    angle = steps % n * (2 * np.pi / n)
    return np.cos(angle), -np.sin(angle)


@dataclass(frozen=True)
class TwoStepTransform:
    """The transform of real frames of `columns` times `rows` points: of the columns of matrices, then of rows."""

    rows: int
    columns: int

    @staticmethod
    def cheapest(n: int) -> TwoStepTransform | None:
        """That of n points with the fewest products; None for a prime number."""
        found = [TwoStepTransform(k, n // k) for k in range(2, n // 2 + 1) if n % k == 0]
        return min(found, key=lambda t: t.products, default=None)

    @property
    def points(self) -> int:
        """The length of a frame."""
        return self.rows * self.columns

    @property
    def half(self) -> int:
        """How many rows are not the conjugate of another."""
        return self.rows // 2 + 1

    @property
    def products(self) -> int:
        """Multiplications for one frame."""
        return 2 * self.half * (self.points + 2 * self.columns**2)

    @property
    def numbers(self) -> int:
        """Elements of both matrices."""
        return 2 * self.half * (self.rows + 2 * self.columns**2)

    def transformed(self, frames: Expr, many: int, frequencies: int, scale: float, dtype: str) -> Expr:
        """The first `frequencies` of frames (points, many), as (frequencies, many, 2)."""
        first, second = (x.astype(dtype) for x in self._matrices(scale))
        found = call_operator("reshape", frames, newshape=(self.rows, self.columns * many))
        found = call_operator("nn.matmul", Constant(first), found)
        found = call_operator("reshape", found, newshape=(self.half, 2 * self.columns, many))
        found = call_operator("nn.batch_matmul", Constant(second), found, transpose_b=False)
        found = call_operator("reshape", found, newshape=(self.half * 2 * self.columns, many))
        places, signs = self._places(frequencies)
        found = call_operator("take", found, Constant(places), axis=0)
        found = call_operator("transpose", found, axes=(0, 2, 1))
        return call_operator("multiply", found, Constant(signs.astype(dtype)[:, None]))

    def _matrices(self, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """What columns are multiplied by: (half * 2, rows), and rows: (half, 2 * columns, 2 * columns), whose numbers
        are real parts, then imaginary ones.
        """
        c, d, n = np.arange(self.half), np.arange(self.columns), self.points
        first = np.stack(turned(np.outer(c, np.arange(self.rows)) * self.columns, n), axis=1)
        real, imaginary = turned(np.outer(c, d)[:, None] + self.rows * np.outer(d, d), n)  # [c, to, from]
        second = np.block([[real, -imaginary], [imaginary, real]])
        return first.reshape(2 * self.half, self.rows), scale * second

    def _places(self, frequencies: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of all results each frequency's two parts are, and their signs."""
        k = np.arange(frequencies)
        c, d = k % self.rows, k // self.rows
        turned = c >= self.half
        c, d = np.where(turned, self.rows - c, c), np.where(turned, self.columns - 1 - d, d)
        place = c * 2 * self.columns + d
        signs = np.stack([np.ones(frequencies), np.where(turned, -1, 1)], axis=1)
        return np.stack([place, place + self.columns], axis=1).astype("int32"), signs
