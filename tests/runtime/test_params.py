"""Saved parameters: exact bytes, round trips, and damage at every byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaylab.runtime import load_param_dict, save_param_dict
from relaylab.runtime.ndarray import DTYPES
from relaylab.runtime.params import ParameterError
from relaylab.support.errors import RelayTypeError


def sample() -> dict[str, np.ndarray]:
    return {
        "w": np.arange(6, dtype="float32").reshape(2, 3),
        "größe": np.array(True),
        "empty": np.zeros((0, 2), "int8"),
    }


def test_exact_bytes() -> None:
    expected = struct.pack("<QQQQ1sQ", 0xF7E58D4F05049CB7, 0, 1, 1, b"x", 1)
    expected += struct.pack("<QQiiiBBHqq2h", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 0, 16, 1, 2, 4, 5, -6)
    assert bytes(save_param_dict({"x": np.array([5, -6], "int16")})) == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3).astype(dtype)
    loaded = load_param_dict(save_param_dict({"a": values}))["a"]
    assert loaded.dtype == dtype
    np.testing.assert_array_equal(loaded.numpy(), values)


def test_order_and_names_are_kept() -> None:
    assert list(load_param_dict(bytes(save_param_dict(sample())))) == list(sample())


def test_every_truncation_is_refused() -> None:
    data = bytes(save_param_dict(sample()))
    for size in range(len(data)):
        with pytest.raises(ParameterError):
            load_param_dict(data[:size])
    with pytest.raises(ParameterError):
        load_param_dict(data + b"\0")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_never_crashes(at: int, value: int) -> None:
    data = save_param_dict(sample())
    data[at % len(data)] = value
    try:
        load_param_dict(data)
    except ParameterError as error:
        assert "byte" in str(error) and "help" in str(error)


@pytest.mark.parametrize("data", ["text", None, 3, ["a"]])
def test_other_kinds_are_refused(data: object) -> None:
    with pytest.raises(RelayTypeError):
        load_param_dict(data)


def test_names_that_would_not_be_read_back_are_refused() -> None:
    assert "ä" * 32768 in load_param_dict(save_param_dict({"ä" * 32768: 1.0}))
    with pytest.raises(RelayTypeError, match="65536 bytes"):
        save_param_dict({"a" * 65537: 1.0})


@pytest.mark.parametrize("shape", [(0, 2**62), (2**62, 0, 2**62), (2**63 - 1, 2**63 - 1, 0), (0,) * 32])
def test_shapes_that_no_array_can_have_are_refused(shape: tuple[int, ...]) -> None:
    data = struct.pack("<QQQQ1sQ", 0xF7E58D4F05049CB7, 0, 1, 1, b"x", 1)
    data += struct.pack(f"<QQiiiBBH{len(shape)}qq", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), 2, 32, 1, *shape, 0)
    if max(shape) == 0:
        assert load_param_dict(data)["x"].shape == shape
        return
    with pytest.raises(ParameterError, match="of shape .* claims 0 bytes"):
        load_param_dict(data)
