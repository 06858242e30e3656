"""The first k of a row, of every length that is ordered in another way, against numpy's stable order."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay

LENGTHS = [
    (7, 3),
    (50, 50),
    (128, 128),
    (129, 129),
    (257, 192),
    (257, 193),
    (300, 100),
    (600, 1),
    (1000, 500),
    (2500, 1000),
]
DTYPES = ["float32", "float64", "int64", "int16", "uint8", "float16"]


def row(n: int, dtype: str) -> np.ndarray:
    """Two rows, of numbers of which some are equal, and some no number."""
    x = np.random.default_rng(n).normal(size=(2, n)) * 60
    if not dtype.startswith("float"):
        return (np.abs(x) if dtype == "uint8" else x).astype(dtype)
    x[0, :: n // 5 + 1] = np.nan
    x[1, 1 :: n // 3 + 1] = 0.0
    x[1, 2 :: n // 3 + 1] = -0.0
    x[1, ::2] = x[1, 0]
    return x.astype(dtype)


def in_order(x: np.ndarray, ascending: bool) -> np.ndarray:
    """Where the elements of a row stand in order: equal ones as they stand, what is no number as the largest."""
    _, ranks = np.unique(x, return_inverse=True)
    return np.argsort(ranks if ascending else -ranks, kind="stable")


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), LENGTHS)
def test_the_first_of_a_row_are_those_of_its_order(n: int, k: int, dtype: str, ascending: bool) -> None:
    x = row(n, dtype)
    data = relay.var("x", shape=x.shape, dtype=dtype)
    found = relay.topk(data, k=k, axis=-1, ret_type="both", is_ascend=ascending, dtype="int64")
    lib = relay.build(relay.IRModule.from_expr(found.astuple()), target="llvm")
    values, places = lib.run(x=x)
    want = np.stack([in_order(r, ascending)[:k] for r in x])
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


def test_a_row_of_equal_numbers_keeps_its_order() -> None:
    x = np.zeros((1, 900), "float32")
    data = relay.var("x", shape=x.shape)
    lib = relay.build(relay.IRModule.from_expr(relay.topk(data, k=300, ret_type="indices", dtype="int64")), "llvm")
    np.testing.assert_array_equal(lib.run(x=x), np.arange(300)[None])
