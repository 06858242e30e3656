"""The discrete Fourier transform as a matrix of cosines and sines, for importers."""

from __future__ import annotations

import numpy as np

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
