"""What is said of slips in the form of an operator."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.loop.builder import OutSpec
from relaylab.loop.procedure import Procedure, perform
from relaylab.support.errors import RelayError

X = np.ones((2, 3), "float32")


def _scratch(p: Procedure, out, x) -> None:
    with p.parallel(2):
        p.scratch((1,), "float32")


def _tuple(p: Procedure, out, x) -> None:
    with p.parallel(2) as row:
        p.store(out, ((row, 0),), x(0, 0))


def _read(p: Procedure, out, x) -> None:
    with p.parallel(2) as row:
        p.store(out, (row, 0), x((row, 0), 0))


def _outside(p: Procedure, out, x) -> None:
    p.let(x(0, 0))


@pytest.mark.parametrize(
    ("write", "code", "says"),
    [
        (_scratch, "loop.scratch", "not (1,)"),
        (_tuple, "loop.index-kind", "write x(*i, k)"),
        (_read, "loop.index-kind", "write x(*i, k)"),
        (_outside, "loop.outside", "with p.parallel(extent)"),
    ],
)
def test_slips_are_told_in_the_words_of_the_form(write, code, says) -> None:
    with pytest.raises(RelayError) as caught:
        perform([OutSpec((2, 3), "float32")], write, [X])
    assert caught.value.code == code and says in str(caught.value)
