"""Convolutions in numpy, channels last, straight from their definitions."""

from __future__ import annotations

import itertools

import numpy as np


def conv(
    x: np.ndarray, w: np.ndarray, out: tuple[int, ...], strides, dilation, padding, groups: int, dtype="float64"
) -> np.ndarray:
    """x [N, *spatial, C], w [OC, C / groups, *kernel] -> [N, *out, OC]."""
    spatial, kernel = x.shape[1:-1], w.shape[2:]
    after = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, strides, kernel, dilation)]
    padded = np.zeros((x.shape[0], *(max(p + n, a) for p, n, a in zip(padding, spatial, after)), x.shape[-1]), dtype)
    padded[(slice(None), *(slice(p, p + n) for p, n in zip(padding, spatial)))] = x
    result = np.zeros((x.shape[0], *out, w.shape[0]), dtype)
    per_in, per_out = x.shape[-1] // groups, w.shape[0] // groups
    for tap in itertools.product(*map(range, kernel)):
        cut = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, strides))
        part = padded[(slice(None), *cut)]
        for g in range(groups):
            a, b = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
            result[..., b] += part[..., a] @ w[(b, slice(None), *tap)].T
    return result


def conv_transpose(
    x: np.ndarray, w: np.ndarray, out: tuple[int, ...], strides, dilation, padding, groups: int, dtype="float64"
) -> np.ndarray:
    """x [N, *spatial, C], w [C, OC / groups, *kernel] -> [N, *out, OC]."""
    spatial, kernel = x.shape[1:-1], w.shape[2:]
    full = [
        max((n - 1) * s + (k - 1) * d + 1, p + o)
        for n, s, k, d, p, o in zip(spatial, strides, kernel, dilation, padding, out)
    ]
    per_in, per_out = x.shape[-1] // groups, w.shape[1]
    total = np.zeros((x.shape[0], *full, groups * per_out), dtype)
    for tap in itertools.product(*map(range, kernel)):
        cut = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, spatial, strides))
        for g in range(groups):
            a, b = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
            total[(slice(None), *cut, b)] += x[..., a] @ w[(a, slice(None), *tap)]
    return total[(slice(None), *(slice(p, p + o) for p, o in zip(padding, out)))]
