"""How far apart two results are: one measure for checks, schedules, tuning and comparisons."""

from __future__ import annotations

import numpy as np

from relaylab.support.errors import RelayError


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference over the largest finite value that was expected; equal infinities and NaNs are no
    difference, and a NaN on one side alone is an infinite one. Raises RelayError `explore.shapes`."""
    if got.shape != expected.shape:
        raise RelayError(f"shapes {got.shape} and {expected.shape}", code="explore.shapes")
    if not expected.size:
        return 0.0
    wide_got, wide = got.astype("float64"), expected.astype("float64")
    with np.errstate(all="ignore"):
        same = (wide_got == wide) | (np.isnan(wide_got) & np.isnan(wide))
        apart = np.where(same, 0.0, np.abs(wide_got - wide))
        largest = np.max(np.abs(wide), where=np.isfinite(wide), initial=1e-30)
    found = float(np.max(apart) / largest)
    return found if found == found else float("inf")
