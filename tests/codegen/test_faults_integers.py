"""Integers at their ends: division by zero, INT_MIN / -1, shifts by the width, casts from what does not fit, indices
from anywhere. Compiled code gives what the interpreter gives, or stays inside its tensors."""

from __future__ import annotations

import numpy as np
import pytest
from fault_programs import TARGETS, compiled, interpreted, program, same

from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARITHMETIC = ("divide", "floor_divide", "trunc_divide", "mod", "floor_mod", "trunc_mod", "power")
SHIFTS = ("left_shift", "right_shift")


def ends(dtype: str) -> np.ndarray:
    """Every pair of extreme values of an integer dtype, as two rows."""
    info = np.iinfo(dtype)
    numbers = [n for n in (info.min, info.min + 1, -7, -1, 0, 1, 2, 8, info.bits, info.max) if info.min <= n]
    return np.array([[x, y] for x in numbers for y in numbers], dtype).T.copy()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_at_the_ends(dtype: str, target: str) -> None:
    x, y = ends(dtype)
    same(f"({', '.join(f'{name}(%a, %b)' for name in (*ARITHMETIC, 'add', 'multiply'))})", x, y, target=target)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_beside_whole_numbers(dtype: str) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    divisor = rng.integers(1, info.max, 600, dtype, endpoint=True) >> rng.integers(0, info.bits - 1, 600).astype(dtype)
    divisor = np.maximum(divisor, 1).astype(dtype)
    whole = info.max // divisor * divisor
    same("(divide(%a, %b), floor_mod(%a, %b))", whole, divisor)
    same("(divide(%a, %b), floor_divide(%a, %b))", whole - np.ones((), dtype), divisor)
    if info.min < 0:
        same("(divide(%a, %b), floor_divide(%a, %b))", -whole - np.ones((), dtype), divisor)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_more_than_the_width(dtype: str, target: str) -> None:
    bits = np.iinfo(dtype).bits
    x = np.repeat(ends(dtype)[0], 4)
    y = np.resize(np.array([0, bits - 1, bits, min(bits + 1, np.iinfo(dtype).max)], dtype), x.shape)
    same("(left_shift(%a, %b), right_shift(%a, %b))", x, y, target=target)


@pytest.mark.parametrize("name", [*ARITHMETIC, *SHIFTS])
def test_constants_at_the_ends(name: str) -> None:
    x = np.array([-(2**31), -1, 0, 5], "int32")
    for divisor in (0, -1, 31, 32):
        same(f"{name}(%a, {divisor})", x)
        same(f"{name}({divisor}, %a)", x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_casts_of_what_does_not_fit(source: str, target: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(
            [
                np.nan,
                np.inf,
                -np.inf,
                -0.0,
                1e30,
                -1e30,
                2.0**31,
                -(2.0**31) - 1e3,
                2.0**63,
                -(2.0**63),
                2.0**64,
                255.9,
                -1.5,
                300,
                70000,
            ]
        ).astype(source)
    kinds = ("bool", *INTEGERS, "float16", "float32", "float64")
    same(f"({', '.join(f'cast(%a, dtype={chr(34)}{k}{chr(34)})' for k in kinds)})", x, target=target)


def indices(dtype: str) -> np.ndarray:
    """Indices inside, just outside and far outside of four."""
    info = np.iinfo(dtype)
    return np.array([0, 3, 4, 100, info.max, info.min, -1 if info.min else 5], dtype)


@pytest.mark.parametrize("mode", ["clip", "wrap", "fast"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_taking_from_outside(dtype: str, mode: str) -> None:
    data, at = np.arange(12, dtype="float32").reshape(4, 3), indices(dtype)
    same(
        f'(take(%a, %b, axis=0, mode="{mode}"), take(%a, %b, axis=1, mode="{mode}"), take(%a, %b, mode="{mode}"))',
        data,
        at,
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_one_hot_of_what_is_outside(dtype: str) -> None:
    same('one_hot(%a, 1f, 0f, depth=4, axis=-1, dtype="float32")', indices(dtype))


READERS = {
    "gather": ("gather(%a, %b, axis=1)", (4, 7)),
    "gather_nd": ("gather_nd(%a, %b, batch_dims=0, index_rank=None)", (2, 7)),
    "adv_index": ("adv_index((%a, %b))", (7,)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_an_index_from_outside_reads_inside(name: str, dtype: str, target: str) -> None:
    """The interpreter refuses what must not occur; compiled code reads some element of the same tensor."""
    body, shape = READERS[name]
    data, at = np.arange(12, dtype="float32").reshape(4, 3), np.broadcast_to(indices(dtype), shape)
    mod = program(body, data, at)
    with pytest.raises(RelayError, match="out of bounds|outside"):
        interpreted(mod, data, at)
    (got,) = compiled(mod, data, at, target=target)
    assert np.isin(got, data).all()


@pytest.mark.parametrize("body", ["scatter(%a, %b, %c, axis=1)", "scatter_add(%a, %b, %c, axis=1)"])
def test_an_update_outside_is_not_written(body: str) -> None:
    data, at = np.arange(12, dtype="float32").reshape(4, 3), np.full((4, 2), 2**31 - 1, "int32")
    updates = np.full((4, 2), 9, "float32")
    mod = program(body, data, at, updates)
    with pytest.raises(RelayError):
        interpreted(mod, data, at, updates)
    np.testing.assert_array_equal(compiled(mod, data, at, updates)[0], data)


def test_an_index_goes_through_what_is_fused_before_it() -> None:
    """The index reads a tensor that is computed on the way: the place in its input is limited too."""
    data, at = np.arange(12, dtype="float32").reshape(4, 3), np.array([[0, 2**31 - 1, -(2**31)]] * 3, "int32")
    mod = program("gather(transpose(add(%a, %a), axes=[1, 0]), %b, axis=1)", data, at)
    (got,) = compiled(mod, data, at)
    assert np.isin(got, data * 2).all()


@pytest.mark.parametrize("body", ["take(%a, %b, axis=0)", 'take(%a, %b, axis=0, mode="wrap")'])
def test_there_is_nothing_to_take(body: str) -> None:
    data, at = np.zeros((0, 3), "float32"), np.array([0, 5], "int32")
    with pytest.raises(RelayError, match="has no elements"):
        program(body, data, at)
