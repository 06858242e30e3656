"""Which numbers 8 bits shall cover: thresholds found in what a program computed on examples.

Migacz, 8-bit Inference with TensorRT, GTC 2017: of all thresholds, the one under which the quantized distribution is
nearest to the true one in the sense of Kullback and Leibler. Empty bins are smoothed as in MXNet and TVM.
"""

from __future__ import annotations

import numpy as np

from relaylab.support.errors import RelayValueError

BINS, LEVELS, SMOOTHING = 8001, 255, 1e-4


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values).reshape(-1)
    if not values.size or not np.isfinite(values).all():
        what = "are not all finite" if values.size else "are none"
        raise RelayValueError(f"the numbers that a threshold is sought for {what}", code="quantize.dataset")
    return values


def by_divergence(values: np.ndarray, bins: int = BINS, levels: int = LEVELS) -> float:
    """The threshold of least divergence, among the edges of `bins` equal bins, for `levels` quantized values.

    0 for numbers that are all 0. `RelayValueError` for numbers that are not finite.
    """
    values = _finite(values)
    greatest = float(np.max(np.abs(values)))
    if greatest == 0.0:
        return 0.0
    counts, edges = np.histogram(values, bins, range=(-greatest, greatest))
    middle, half = bins // 2, levels // 2
    found = [divergence(counts, middle - k, middle + k + 1, levels) for k in range(half, middle + 1)]
    return float(edges[middle + half + int(np.argmin(found)) + 1])


def divergence(counts: np.ndarray, start: int, stop: int, levels: int = LEVELS) -> float:
    """How far the bins start..stop, quantized to `levels`, are from all bins, the outer ones moved to the border."""
    inner = counts[start:stop]
    truth = inner.astype("float64")
    truth[0] += counts[:start].sum()
    truth[-1] += counts[stop:].sum()
    starts = np.arange(levels) * (inner.size // levels)
    size = np.add.reduceat(truth != 0, starts, dtype="int64")
    coarse = np.repeat(np.add.reduceat(inner, starts) / np.maximum(size, 1), size)
    truth = truth[truth != 0]
    p, q = _smoothed(truth, inner.size), _smoothed(coarse, inner.size)
    if p is None or q is None:
        return float("inf")
    empty = inner.size - truth.size
    ratio = coarse.sum() / truth.sum()
    told = (p * np.log(p / q * ratio)).sum() + empty * SMOOTHING * np.log(ratio)
    return float(told / truth.sum())


def _smoothed(counts: np.ndarray, size: int) -> np.ndarray | None:
    """Counts of which each empty one of `size` bins got a little, taken from the others; None: they have too little."""
    filled = np.count_nonzero(counts)
    taken = SMOOTHING * (size - filled) / filled if filled else 1.0
    out = np.where(counts > 0, counts - taken, SMOOTHING)
    return out if taken < 1.0 and (out > 0).all() else None


def by_percentile(values: np.ndarray, share: float = 0.99999) -> float:
    """The number that this share of the absolute values stays below."""
    values = np.abs(_finite(values))
    place = min(int(values.size * share), values.size - 1)
    return float(np.partition(values, place)[place])
