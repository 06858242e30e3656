"""Index arithmetic in normal form: the same values, fewer divisions."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from relaylab.loop import Apply, Axis, OutSpec, Tensor, b, evaluate
from relaylab.loop.expr import post_order
from relaylab.loop.simplify import Simplifier


def flat(indices, shape):
    total = 0
    for i, n in zip(indices, shape):
        total = i + n * total
    return total


def unflat(value, shape):
    indices = []
    for n in reversed(shape):
        indices.append(value % n)
        value = value // n
    return tuple(reversed(indices))


def divisions(e):
    return sum(isinstance(n, Apply) and n.op in ("floordiv", "floormod") for n in post_order(e))


@pytest.mark.parametrize("source,target", [
    ((4, 6), (24,)), ((24,), (4, 6)), ((2, 3, 4, 5), (6, 20)), ((6, 20), (2, 3, 4, 5)), ((4, 6), (8, 3)),
    ((2, 12), (2, 2, 6)), ((3, 1, 8), (3, 8)), ((2, 3, 4), (4, 3, 2)),
])  # fmt: skip
def test_a_reshape_costs_no_division_in_its_address(source, target):
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(target))
    address = flat(unflat(flat(axes, target), source), source)
    simple = Simplifier()(address)
    assert divisions(simple) == 0
    size = int(np.prod(target))
    assert (evaluate(simple, axes, "int64", {}).ravel() == np.arange(size)).all()


def test_equal_expressions_are_one_object():
    s, i, x = Simplifier(), Axis("i", 9), Tensor("x", (9,), "float32")
    assert s(b.exp(x(i + 1 - 1)) + 1) is s(b.exp(x(i)) + 1)
    assert s((i + 2) * 3 - 6) is s(i * 3)


def test_bounds_decide_comparisons_and_clamps():
    s, i = Simplifier(), Axis("i", 10)
    for condition in (i < 10, i >= 0, i // 5 < 2, b.ne(i, 11), b.eq(i * 2 // 2, i)):
        assert s(condition).value is True
    assert s(b.max(b.min(i, 9), 0)) is s(i)
    assert s(b.guard(i + 3 < 2, lambda: i * 5, i)) is s(i)
    narrowed = Simplifier({i: (2, 4)})
    assert narrowed(i >= 2).value is True and narrowed(i >= 5).value is False
    assert s(b.cast(b.cast(i, "int32"), "int64")) is s(i)
    assert s(b.cast(b.cast(i * 100, "int8"), "int64")) is not s(i * 100)


def test_what_whole_tiles_leave_keeps_its_bounds():
    i = Axis("i", 1000)
    left = i - i // 14 * 14
    for tiles in (left // 4, left // 4 * 4 // 2, (left * 3 + 1) // 9):
        s = Simplifier()
        assert 0 <= s.bounds(s(tiles))[0] and s.bounds(s(tiles))[1] < 8
        values = [np.asarray(evaluate(e, (i,), "int64", {})) for e in (tiles, s(tiles))]
        np.testing.assert_array_equal(*values)


def random_index(rng, axes, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(axes) if rng.random() < 0.8 else b.const(rng.randint(-9, 9), "int64")
    left = random_index(rng, axes, depth - 1)
    if rng.random() < 0.5:
        divisor = rng.randint(1, 7)
        return rng.choice(
            [left // divisor, left % divisor, left * divisor, b.truncdiv(left, divisor), b.truncmod(left, divisor)]
        )
    right = random_index(rng, axes, depth - 1)
    condition = rng.choice([left < right, left >= right, b.eq(left, right)])
    return rng.choice(
        [left + right, left - right, b.max(left, right), b.min(left, right), b.select(condition, left, right)]
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_index_expressions_keep_their_values_and_bounds(seed):
    rng = random.Random(seed)
    axes = [Axis(f"i{d}", rng.randint(1, 6)) for d in range(3)]
    value = random_index(rng, axes, 5) + axes[0] * 0
    s = Simplifier()
    simple = s(value)
    before, after = (evaluate(e, tuple(axes), "int64", {}) for e in (value, simple))
    np.testing.assert_array_equal(before, after)
    low, high = s.bounds(simple)
    assert low <= before.min() and before.max() <= high
    for point in itertools.islice(np.ndindex(*before.shape), 3):
        at = Simplifier({a: (p, p) for a, p in zip(axes, point)})(value)
        assert at.value == before[point]


@pytest.mark.parametrize("divisor", [0, -1, -3])
def test_what_is_divided_by_nothing_or_less_stays_as_it_is(divisor):
    """The address of an element of an empty tensor."""
    i, j = Axis("i", 4), Axis("j", 6)
    value = (i * 6 + j) % divisor + (i * 6 + j) // divisor * divisor + j // divisor // 2
    before, after = (evaluate(e, (i, j), "int64", {}) for e in (value, Simplifier()(value)))
    assert (before == after).all()


def test_deep_chains_do_not_recurse():
    i = Axis("i", 4)
    value = i
    for k in range(20_000):
        value = value + 1 if k % 2 else b.max(value, k)
    assert Simplifier()(value).value == 19_999
    assert OutSpec((3,), "int64").ndim == 1


@pytest.mark.parametrize("exponent,products", [(2, 1), (3, 2), (4, 2), (5, 0), (0.5, 0)])
def test_small_powers_are_products(exponent, products):
    i, x = Axis("i", 9), Tensor("x", (9,), "float32")
    simple = Simplifier()(b.pow(x(i), b.const(exponent, "float32")))
    ops = [n.op for n in post_order(simple) if isinstance(n, Apply)]
    assert (ops.count("mul"), ops.count("pow")) == (products, products == 0)
    data = np.array([-3, -0.0, 0, 1.5, 2, np.inf, -np.inf, np.nan, 1e20], "float32")
    with np.errstate(all="ignore"):
        wanted = data.astype("float64") ** exponent
        np.testing.assert_allclose(evaluate(simple, (i,), "float32", {x: data}), wanted.astype("float32"), rtol=3e-7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_a_cast_to_an_integer_limits_by_itself(dtype):
    """What quantized operators write before a cast: limits that are those of the integer, or further, go."""
    info, i, x = np.iinfo(dtype), Axis("i", 12), Tensor("x", (12,), "float32")
    least, most = float(np.float32(info.min)), float(np.float32(info.max))
    tighter = max(least / 2, -100.0), 100.0
    data = np.array([-3e9, -200, -129, -128.5, -0.0, 1.5, 127.9, 255.5, 3e9, np.inf, -np.inf, np.nan], "float32")
    for low, high, goes in [(least, most, True), (least - 5e9, most + 5e9, True), (*tighter, False)]:
        value = b.cast(b.min(b.max(x(i), b.const(low, "float32")), b.const(high, "float32")), dtype)
        simple = Simplifier()(value)
        assert any(isinstance(n, Apply) for n in post_order(simple)) != goes
        np.testing.assert_array_equal(evaluate(simple, (i,), dtype, {x: data}), evaluate(value, (i,), dtype, {x: data}))
    for edge in (b.max(x(i), b.const(np.nan, "float32")), b.min(x(i), b.const(-np.inf, "float32"))):
        assert any(isinstance(n, Apply) for n in post_order(Simplifier()(b.cast(edge, dtype))))
