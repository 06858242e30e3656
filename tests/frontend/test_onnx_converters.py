"""Converters of one's own."""

from __future__ import annotations

import pytest

from relaylab.frontend.onnx.table import TABLE, converts, lookup
from relaylab.support.errors import RelayError

CELL = "@converts('Own', domain='org.cells')\ndef own(g, node, x):\n    return {}"


def test_a_cell_that_is_run_again_takes_the_place_of_its_converter():
    try:
        spaces = [{"converts": converts, "__name__": "cell"} for _ in range(2)]
        for value, space in zip((1, 2), spaces):
            exec(CELL.format(value), space)
        assert lookup("org.cells", "Own", 1).run(None, None, None) == 2
        with pytest.raises(RelayError, match="has a converter"):
            converts("Own", domain="org.cells")(lambda g, node, x: x)
    finally:
        TABLE.pop(("org.cells", "Own"))
