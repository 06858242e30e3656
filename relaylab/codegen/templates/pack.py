"""Weights laid out at build time the way the kernels read them, written where they stay.

A packed operand is flat, for a buffer with the alignment of an arena (64 bytes). What has to be computed is computed a
few panels at a time: beside the plain and the packed weights there is a block that stays in the second-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

BLOCK = 1 << 20  # bytes that are computed before they go to their place


@dataclass(frozen=True, slots=True)
class Packing:
    """How many elements packed weights have, and what writes them into that many zeros."""

    size: int
    dtype: np.dtype
    write: Callable[[np.ndarray], object]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def array(self) -> np.ndarray:
        """The packed weights in memory of their own."""
        out = np.zeros(self.size, self.dtype)
        self.write(out)
        return out

    @staticmethod
    def copied(array: np.ndarray) -> Packing:
        """An array as it is, row by row."""
        return Packing(array.size, array.dtype, lambda out: np.copyto(out.reshape(array.shape), array))

    @staticmethod
    def joined(parts: Sequence[Packing]) -> Packing:
        """Some one after another."""
        ends = list(accumulate(part.size for part in parts))

        def write(out: np.ndarray) -> None:
            for part, end in zip(parts, ends):
                part.write(out[end - part.size : end])

        return Packing(ends[-1], parts[0].dtype, write)


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """Plain weights as [batch, K, N], of which `columns` gives those from one to another: a view or a copy."""

    shape: tuple[int, int, int]
    dtype: np.dtype
    columns: Callable[[int, int], np.ndarray]

    @staticmethod
    def of(matrix: np.ndarray) -> WeightMatrix:
        """An array [batch, K, N], any strides."""
        batch, depth, columns = matrix.shape
        return WeightMatrix((batch, depth, columns), matrix.dtype, lambda first, last: matrix[:, :, first:last])


def pack_panels(matrix: WeightMatrix, panel: int, width: int) -> Packing:
    """Per batch member panels [K][panel] and a last one of the remaining columns.

    The last panel is as wide as whole vectors of `width` lanes need, zero padded.
    """
    batch, depth, columns = matrix.shape
    full, rest = divmod(columns, panel)
    tail = -(-rest // width) * width
    pitch = depth * (full * panel + tail)
    step = panels_in_block(batch * depth * panel * matrix.dtype.itemsize)

    def write(out: np.ndarray) -> None:
        members = out.reshape(batch, pitch)
        for first in range(0, full, step):
            last = min(first + step, full)
            place = members[:, first * depth * panel : last * depth * panel].reshape(batch, last - first, depth, panel)
            values = matrix.columns(first * panel, last * panel).reshape(batch, depth, last - first, panel)
            np.copyto(place, values.transpose(0, 2, 1, 3))
        if rest:
            place = members[:, full * depth * panel :].reshape(batch, depth, tail)
            place[:, :, :rest] = matrix.columns(full * panel, columns)

    return Packing(batch * pitch, matrix.dtype, write)


def panels_in_block(nbytes: int) -> int:
    """How many panels of so many bytes are computed at once."""
    return max(1, BLOCK // max(1, nbytes))


def conv_matrix(weight: np.ndarray, groups: int) -> WeightMatrix:
    """[OC, IC / groups, *kernel] as [group, *kernel x IC / groups, OC / groups]."""
    out_channels = weight.shape[0] // groups
    grouped = weight.reshape(groups, out_channels, *weight.shape[1:])

    def columns(first: int, last: int) -> np.ndarray:
        taps = np.moveaxis(grouped[:, first:last], (1, 2), (-1, -2))  # group, *kernel, IC, OC
        return taps.reshape(groups, -1, last - first)

    return WeightMatrix((groups, math.prod(weight.shape[1:]), out_channels), weight.dtype, columns)
