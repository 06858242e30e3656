"""How far apart results are: infinities, NaNs, nothing at all, and shapes that differ."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.interp.agreement import relative_error
from relaylab.support.errors import RelayError

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "got, expected, error",
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 3.0], [1.0, 4.0], 0.25),
        ([INF, 1.0], [INF, 1.0], 0.0),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([1.0, 1.0], [INF, 1.0], INF),
        ([NAN, 2.0], [NAN, 4.0], 0.5),
        ([NAN, 2.0], [2.0, 2.0], INF),
        ([2.0, 2.0], [NAN, 2.0], INF),
        ([], [], 0.0),
        ([0.0], [0.0], 0.0),
    ],
)
def test_the_largest_difference_over_the_largest_value(got, expected, error):
    assert relative_error(np.array(got, "float32"), np.array(expected, "float32")) == error


def test_shapes_that_differ_are_said():
    with pytest.raises(RelayError, match="shapes"):
        relative_error(np.zeros(2), np.zeros((2, 1)))
