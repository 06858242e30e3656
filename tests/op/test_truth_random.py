"""The generator of TVM 0.10: its state, its numbers, and what is made of them, in every executor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relaylab import relay
from relaylab.relay import random as draws

EXECUTORS = ("debug", "graph")
# the vector of Threefry 4x64-20 for a key and a counter of zeros (Random123, kat_vectors); its last addition of the
# key adds 5 to the last word, and TVM leaves it out
KNOWN = [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B - 5]
TOP = 1 << 63


def run(executor: str, build, key: np.ndarray) -> list[np.ndarray]:
    """The fields of what `build` makes of a generator."""
    g = relay.var("g", shape=(10,), dtype="uint64")
    mod = relay.IRModule.from_expr(relay.Function([g], build(g).astuple()))
    return [x.numpy() for x in relay.create_executor(executor, mod).evaluate()(key)]


def generator(*words: int) -> np.ndarray:
    return np.array([*words, *[0] * (10 - len(words))], "uint64")


def test_a_seed_is_the_key_and_the_path_begins_at_its_left() -> None:
    assert [int(v) for v in draws.threefry_key(5 + (7 << 192)).data.numpy()] == [5, 0, 0, 7, 0, 0, 0, 0, TOP, 0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_words_are_those_of_threefry(executor: str) -> None:
    new, found = run(executor, lambda g: draws.threefry_generate(g, (4,)), draws.threefry_key(0).data.numpy())
    assert [int(v) for v in found] == KNOWN
    assert [int(v) for v in new] == [0] * 7 + [4, TOP, 0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("size, used", [(1, 4), (4, 4), (5, 8), (2048, 2048)])
def test_the_counter_grows_by_whole_blocks(executor: str, size: int, used: int) -> None:
    new, found = run(executor, lambda g: draws.threefry_generate(g, (size,)), generator(1, 2, 3, 4, 0, 0, 0, 8, TOP))
    assert [int(v) for v in new] == [1, 2, 3, 4, 0, 0, 0, 8 + used, TOP, 0] and len(set(found)) == size


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_full_counter_moves_the_path_and_a_full_path_the_key(executor: str) -> None:
    draw = lambda g: draws.threefry_generate(g, (2048,))
    new, _ = run(executor, draw, generator(0, 0, 0, 0, 0, 0, 0, 2**64 - 2, TOP))
    assert [int(v) for v in new] == [0, 0, 0, 0, TOP, 0, 0, 2048, TOP >> 1, 0]
    new, _ = run(executor, draw, generator(0, 0, 0, 0, 0, 0, 0, 2**64 - 2))
    assert new[:4].any() and [int(v) for v in new[4:]] == [0, 0, 0, 2048, TOP, 0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "before, left, right",
    [
        ((9, 0, 0, 0, 0, 0, 0, 3, TOP), (9, 0, 0, 0, 0, 0, 0, 3, TOP >> 1), (9, 0, 0, 0, TOP, 0, 0, 3, TOP >> 1)),
        ((9, 0, 0, 0, 4, 0, 0, 0, 1), (9, 0, 0, 0, 4, 0, 0, 0, 0, TOP), (9, 0, 0, 0, 5, 0, 0, 0, 0, TOP)),
        ((9, 0, 0, 0, 4, 0, 0, 0, 0, 1), (9, 0, 0, 0, 4), (9, 0, 0, 0, 4, 1)),
        ((0, 0, 0, 0), (*KNOWN, 0, 0, 0, 0, TOP >> 1), (*KNOWN, TOP, 0, 0, 0, TOP >> 1)),
    ],
)
def test_a_split_adds_a_bit_to_the_path(executor: str, before, left, right) -> None:
    found = run(executor, draws.threefry_split, generator(*before))
    np.testing.assert_array_equal(found, [generator(*left), generator(*right)])


def floats(words: np.ndarray, dtype: str = "float32") -> np.ndarray:
    """What has the upper bits of the words as its fraction and an exponent of 0, less 1."""
    if dtype == "float64":
        return ((words >> np.uint64(12)) | np.uint64(0x3FF << 52)).view("float64") - 1.0
    return ((words.astype("uint32") >> np.uint32(9)) | np.uint32(127 << 23)).view("float32") - np.float32(1)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_distributions_are_made_of_the_words(executor: str, dtype: str) -> None:
    key = draws.threefry_key(11).data.numpy()
    words = run(executor, lambda g: draws.threefry_generate(g, (2, 6)), key)[1]
    u, v = floats(words, dtype)
    np.testing.assert_array_equal(run(executor, lambda g: draws.uniform(g, (6,), dtype), key)[1], u)
    found = run(executor, lambda g: draws.uniform(g, (6,), dtype, -2.0, 3.0), key)[1]
    np.testing.assert_allclose(found, u * 5 - 2, rtol=4 * np.finfo(dtype).eps)
    new, found = run(executor, lambda g: draws.normal(g, (6,), dtype, 1.0, 2.0), key)
    wanted = np.sqrt(-2 * np.log(1 - u)) * np.sin(2 * math.pi * v) * 2 + 1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 if dtype == "float32" else 1e-13)
    assert new[7] == 12


@pytest.mark.parametrize("executor", EXECUTORS)
def test_classes_are_searched_among_the_sums_of_shares(executor: str) -> None:
    key, weights = draws.threefry_key(2).data.numpy(), np.array([[0.5, -3, 1.25, 0.25], [0, 0, 4, 4]], "float32")
    found = run(executor, lambda g: draws.multinomial(g, relay.const(weights), 300), key)[1]
    u = floats(run(executor, lambda g: draws.threefry_generate(g, (2, 300)), key)[1])
    ends = np.array([[0.25, 0.25, 0.875, 1], [0, 0, 0.5, 1]])
    np.testing.assert_array_equal(found, [np.searchsorted(e, x, side="right") for e, x in zip(ends, u)])
