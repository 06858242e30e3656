"""The results of programs, for comparing what two programs compute."""

from __future__ import annotations

import numpy as np

from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import IRModule


def results(mod: IRModule, seed: int = 3, low: float = -1.0, high: float = 1.0) -> list[np.ndarray]:
    """The tensors that `main` returns on seeded inputs, tuples flattened."""
    out, stack = [], [Interpreter(mod).evaluate()(*random_inputs(mod["main"], seed, low, high))]
    while stack:
        value = stack.pop()
        if isinstance(value, (tuple, list)):
            stack.extend(reversed(value))
        else:
            out.append(np.asarray(value.numpy() if hasattr(value, "numpy") else value))
    return out


def assert_same_results(before: IRModule, after: IRModule, tolerance: float = 1e-4, **how: float) -> None:
    """Both modules compute the same, up to a relative and absolute tolerance."""
    for a, b in zip(results(before, **how), results(after, **how), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=tolerance, atol=tolerance)
