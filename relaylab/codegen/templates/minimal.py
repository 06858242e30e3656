"""The minimal filtering algorithms F(2, 3), F(3, 2) and F(4, 3): transforms of input tiles, weights and outputs.

Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks (2016). F(m, r) makes a tile of m x m outputs from (m + r - 1) x (m + r - 1) inputs with as many products,
instead of r^2 m^2. Its points are 0, 1, -1 and infinity, with 2 and -2 for m = 4.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.codegen.llvm.text import IRFunction, Value, constant

TAPS = {2: 3, 3: 2, 4: 3}  # r of each F(m, r)
WEIGHT_TRANSFORM = {  # G: r taps -> m + r - 1 points
    2: np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
    3: np.array([[1, 0], [1 / 2, 1 / 2], [1 / 2, -1 / 2], [0, 1]]),
    4: np.array(
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ]
    ),
}
COLUMNS = 768  # of a product that stays in the second-level cache, and for which OpenBLAS wakes no threads


def combine(f: IRFunction, *terms: tuple[float, Value]) -> Value:
    """The sum of coefficient * value with as few instructions as additions and fused products allow."""
    ordered = sorted(terms, key=lambda term: abs(term[0]) != 1)
    factor, total = ordered[0]
    if factor != 1:
        total = f.negate(total) if factor == -1 else f.binary("fmul", total, factor)
    for factor, value in ordered[1:]:
        if abs(factor) == 1:
            total = f.binary("fadd" if factor == 1 else "fsub", total, value)
        else:
            total = f.fma(value, constant(value.type, factor), total)
    return total


def input_points(f: IRFunction, m: int, d: Sequence[Value]) -> list[Value]:
    """B^T d: inputs to as many points."""
    if len(d) == 4:
        return [
            f.binary("fsub", d[0], d[2]),
            f.binary("fadd", d[1], d[2]),
            f.binary("fsub", d[2], d[1]),
            f.binary("fsub", d[1], d[3]),
        ]
    even, odd = combine(f, (1, d[4]), (-4, d[2])), combine(f, (1, d[3]), (-4, d[1]))
    near, wide = f.binary("fsub", d[4], d[2]), f.binary("fsub", d[3], d[1])
    return [
        combine(f, (1, d[4]), (-5, d[2]), (4, d[0])),
        f.binary("fadd", even, odd),
        f.binary("fsub", even, odd),
        combine(f, (1, near), (2, wide)),
        combine(f, (1, near), (-2, wide)),
        combine(f, (1, d[5]), (-5, d[3]), (4, d[1])),
    ]


def outputs(f: IRFunction, m: int, p: Sequence[Value]) -> list[Value]:
    """A^T p: points to m outputs."""
    both, apart = f.binary("fadd", p[1], p[2]), f.binary("fsub", p[1], p[2])
    if m == 3:
        return [f.binary("fadd", p[0], both), apart, f.binary("fsub", both, p[3])]
    if m == 2:
        return [f.binary("fadd", p[0], both), f.binary("fsub", apart, p[3])]
    far, split = f.binary("fadd", p[3], p[4]), f.binary("fsub", p[3], p[4])
    return [
        combine(f, (1, p[0]), (1, both), (1, far)),
        combine(f, (1, apart), (2, split)),
        combine(f, (1, both), (4, far)),
        combine(f, (1, apart), (1, p[5]), (8, split)),
    ]


def transform_square(f: IRFunction, m: int, one_way, square: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """Apply a transform to the columns, then to the rows, of a square given as rows."""
    columns = [one_way(f, m, [row[c] for row in square]) for c in range(len(square))]
    return [one_way(f, m, [column[r] for column in columns]) for r in range(len(columns[0]))]


def transform_weights(m: int, taps: np.ndarray) -> np.ndarray:
    """G g G^T for taps [r^2, n] (kernel row, column): points [(m + r - 1)^2, n]."""
    matrix = np.kron(WEIGHT_TRANSFORM[m], WEIGHT_TRANSFORM[m]).astype(taps.dtype)
    points = np.empty((len(matrix), taps.shape[1]), taps.dtype)
    for k in range(0, taps.shape[1], COLUMNS):
        points[:, k : k + COLUMNS] = matrix @ taps[:, k : k + COLUMNS]
    return points
