"""The discrete Fourier transform as a matrix of cosines and sines, for importers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, numbered
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Expr, const
from relaylab.op import nn

Extent = Any
"""A number, or an expression of sizes."""
LONGEST = 1 << 12
"""How many points a transform has at most: its matrix has their square."""


def turns(n: int, used: int, onesided: bool, inverse: bool) -> np.ndarray:
    """What the real and the imaginary part of each point add to those of each result: (used, 2, results, 2 or 1)."""
    count = n // 2 + 1 if onesided and not inverse else n
    angle = 2 * np.pi * (np.outer(np.arange(used), np.arange(count)) % n) / n * (1 if inverse else -1)
    turn = np.exp(1j * angle) / (n if inverse else 1)
    if onesided and inverse:  # a bin stands for its mirror image too
        twice = np.array([1 if k == 0 or 2 * k == n else 2 for k in range(used)])
        turn = turn * twice[:, None]
    table = np.array([[turn.real, turn.imag], [-turn.imag, turn.real]]).transpose(2, 0, 3, 1)
    return table[..., :1] if onesided and inverse else table


def open_transform(
    g: Graph, parts: Sequence[Expr], axis: int, n: Expr, size: Extent, half: bool, inverse: bool
) -> list[Expr]:
    """The parts of a transform of n points, `size` of which only run time knows, without a factor: the matrices are
    computed there. `half`: of a real signal one side is given (`inverse`), or asked for.
    """
    one, whole = const(1, "int64"), inverse or not half
    many = n if whole else op.add(op.right_shift(n, one), one)
    used = numbered(turns_of(parts[0], axis), g.dims(parts[0])[axis])
    results = numbered(many, size if whole else size // 2 + 1)
    turn = op.floor_mod(op.multiply(op.expand_dims(results, 1), used), op.maximum(n, one))
    share = op.divide(op.cast(turn, "float64"), op.cast(op.maximum(n, one), "float64"))
    angle = op.multiply(share, const(2 * np.pi if inverse else -2 * np.pi, "float64"))
    tables = [op.cos(angle), op.sin(angle)]
    if half and inverse:  # a bin stands for its mirror image too
        alone = op.logical_or(op.equal(used, const(0, "int64")), op.equal(op.add(used, used), n))
        tables = [op.multiply(t, op.where(alone, const(1.0, "float64"), const(2.0, "float64"))) for t in tables]
    cosines, sines = (op.cast(t, g.dtype(parts[0])) for t in tables)
    rank = g.rank(parts[0])
    order = [a for a in range(rank) if a != axis] + [axis]
    moved = [op.expand_dims(p, 0) if rank == 1 else op.transpose(p, order) for p in parts]
    real, *imag = (_summed(moved, by) for by in ((cosines, op.negative(sines)), (sines, cosines)))
    found = [real] if half and inverse else [real, *imag]
    back = [order.index(a) for a in range(rank)]
    return [op.squeeze(v, axis=[0]) if rank == 1 else op.transpose(v, back) for v in found]


def _summed(parts: Sequence[Expr], tables: Sequence[Expr]) -> Expr:
    products = [nn.dense(part, table) for part, table in zip(parts, tables)]
    return products[0] if len(products) == 1 else op.add(*products)
