"""Weights are the numbers that numpy draws for the whole array, whatever its size and order in memory."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.zoo.init import PART, Xavier

LARGE = (5, PART // 2 + 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3), LARGE, (0, 4)], ids=["small", "large", "empty"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_weights_are_drawn_as_by_numpy(kind: str, order: str, shape: tuple[int, int], dtype: str) -> None:
    found = np.empty(shape, dtype, order=order)
    np.random.seed(7)
    Xavier(kind)("a_weight", found)
    after = np.random.random_sample()
    np.random.seed(7)
    scale = np.sqrt(3 / max(sum(shape) / 2, 1))
    wanted = np.random.uniform(-scale, scale, shape) if kind == "uniform" else np.random.normal(0, scale, shape)
    assert after == np.random.random_sample(), "what is drawn next is the same too"
    np.testing.assert_array_equal(found, wanted.astype(dtype))
