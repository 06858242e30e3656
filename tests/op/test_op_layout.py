"""Layouts: parsing, index maps, transforms and their inverses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaylab.op.layout import parse_layout, transform
from relaylab.support.errors import RelayError

LAYOUTS = ["NCHW", "NHWC", "NCHW4c", "NHWC2c", "NCHW2c2n", "CNWH", "NCHW2c4c"]
WHOLE = {"N": 2, "C": 8, "H": 3, "W": 5}


@given(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_transform_moves_every_element_to_its_index(a, b):
    src, dst = parse_layout(a), parse_layout(b)
    shape = [int(n) for n in src.shape(WHOLE)]
    x = np.arange(np.prod(shape)).reshape(shape)
    y = transform(x, src, dst)
    for i in list(np.ndindex(*x.shape))[::17]:
        assert y[dst.index(src.at(i))] == x[i]
    np.testing.assert_array_equal(transform(y, dst, src), x)


@pytest.mark.parametrize("text", LAYOUTS)
def test_index_and_position_are_inverse(text):
    layout = parse_layout(text)
    for i in np.ndindex(*(int(n) for n in layout.shape(WHOLE))):
        assert layout.index(layout.at(i)) == i


@pytest.mark.parametrize("text", ["NCHc", "NCHW16", "NNHW", "nchw", "NC HW", "NCHW0c", "16cHW"])
def test_what_is_no_layout(text):
    with pytest.raises(RelayError, match="layout|splits"):
        parse_layout(text)


def test_blocks_must_divide():
    with pytest.raises(RelayError, match="3 does not divide"):
        parse_layout("NCHW3c").shape(WHOLE)
