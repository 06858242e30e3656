"""Weights laid out at build time the way the kernels read them: one strided numpy copy each.

A packed operand is a flat array for a buffer with the alignment of an arena (64 bytes).
"""

from __future__ import annotations

import numpy as np


def pack_panels(matrix: np.ndarray, panel: int, width: int) -> np.ndarray:
    """[batch, K, N] as, per batch member, panels [K][panel] and a last one of the remaining columns.

    The last panel is as wide as whole vectors of `width` lanes need, zero padded, and all is flat; without a last one
    it is a view [batch, panels, K, panel], which is copied once it is known where to.
    """
    batch, depth, columns = matrix.shape
    full, rest = divmod(columns, panel)
    if not rest:
        return matrix.reshape(batch, depth, full, panel).transpose(0, 2, 1, 3)
    tail = -(-rest // width) * width
    packed = np.empty((batch, depth * (full * panel + tail)), matrix.dtype)
    body = packed[:, : depth * full * panel].reshape(batch, full, depth, panel)
    body[...] = matrix[:, :, : full * panel].reshape(batch, depth, full, panel).transpose(0, 2, 1, 3)
    last = packed[:, depth * full * panel :].reshape(batch, depth, tail)
    last[:, :, :rest] = matrix[:, :, full * panel :]
    last[:, :, rest:] = 0
    return packed.reshape(-1)


def conv_matrix(weight: np.ndarray, groups: int) -> np.ndarray:
    """[OC, IC / groups, *kernel] as [group, *kernel x IC / groups, OC / groups]."""
    out_channels = weight.shape[0] // groups
    grouped = weight.reshape(groups, out_channels, *weight.shape[1:])
    taps = np.moveaxis(grouped, (1, 2), (-1, -2))  # group, *kernel, IC, OC
    return taps.reshape(groups, -1, out_channels)
