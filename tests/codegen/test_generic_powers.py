"""Powers and remainders of floats: their accuracy, signs, zeros and infinities, held against numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from native_group import TARGETS, run_native, single

from relaylab.codegen.isa.target import CpuTarget
from relaylab.loop import OutSpec

SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 1e30, -1e30, 1 / 3)
SPECIAL += (2.0**24 - 1, 2.0**24, 2.0**53 - 1, -(2.0**53 - 1), 0.99999, -1.00001, 1e-30, 1e38, 4, -7, 0.1, 1e-40)

every = pytest.mark.parametrize("isa", TARGETS)
floats = pytest.mark.parametrize("dtype", ["float32", "float64"])


def native(name, isa, *arrays):
    lower = lambda b, out, i, *inputs: getattr(b, name)(*(x(*i) for x in inputs))
    out = OutSpec(arrays[0].shape, arrays[0].dtype.name)
    return run_native(single(out, lower, list(arrays)), list(arrays), out, CpuTarget.parse(TARGETS[isa]))


def pairs(dtype):
    least = np.nextafter(np.zeros((), dtype), np.ones((), dtype))
    of = np.array([*SPECIAL, least, -least, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    return (np.array(side, dtype) for side in zip(*itertools.product(of, of)))


@every
@floats
def test_powers_of_ends(dtype, isa):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        truth = np.power(x, y)
        found = native("pow", isa, x, y)
        near = np.abs(found - truth) <= np.abs(np.spacing(truth))
    right = (np.isnan(found) & np.isnan(truth)) | (((found == truth) | near) & (np.signbit(found) == np.signbit(truth)))
    assert right.all(), [*zip(x[~right], y[~right], found[~right], truth[~right])][:9]


@every
@floats
def test_error_of_powers(dtype, isa):
    wide = np.longdouble if dtype == "float64" else np.float64
    if np.finfo(wide).nmant <= np.finfo(dtype).nmant:
        pytest.skip("long double has no more digits here")
    rng, count = np.random.default_rng(3), 20_000
    far, most = (300, 745) if dtype == "float64" else (37, 103)
    x = np.concatenate(
        [10 ** rng.uniform(-far, far, count), rng.uniform(0.5, 2, count), 1 + rng.uniform(-1e-3, 1e-3, count)]
    )
    y = rng.uniform(-most, most * 0.85, len(x)) / np.log(x)
    x, y = (
        np.append(x, rng.normal(size=count) * 3).astype(dtype),
        np.append(y, rng.integers(-20, 20, count)).astype(dtype),
    )
    with np.errstate(all="ignore"):
        truth = np.power(x.astype(wide), y.astype(wide))
        near = np.maximum(np.abs(truth.astype(dtype)), np.finfo(dtype).tiny)
        error = np.abs((native("pow", isa, x, y) - truth) / np.spacing(near)).astype("float64")
    here = np.isfinite(near)
    assert here.mean() > 0.9 and error[here].max() <= 1, (error[here].max(), x[here][error[here].argmax()])


@every
@floats
@pytest.mark.parametrize("name, judge", [("truncmod", np.fmod), ("floormod", np.mod), ("floordiv", np.floor_divide)])
def test_remainders(name, judge, dtype, isa):
    """Also of quotients that have more digits than a float, and of whole ones."""
    rng, count = np.random.default_rng(3), 10_000
    some = [(rng.normal(size=count) * 5, rng.normal(size=count)), 10 ** rng.uniform(-30, 30, (2, count))]
    some += [(rng.integers(-1000, 1000, count) * 0.1, np.full(count, 0.1))]
    some += [(rng.uniform(1, 2, count) * 2.0 ** rng.integers(0, 56, count), rng.uniform(1, 2, count))]
    for x, y in [*((np.asarray(x, dtype), np.asarray(y, dtype)) for x, y in some), tuple(pairs(dtype))]:
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(native(name, isa, x, y), judge(x, y))
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        truth = judge(x, y)
    if name == "truncmod":
        here = ~np.isnan(truth)
        np.testing.assert_array_equal(np.signbit(native(name, isa, x, y))[here], np.signbit(truth)[here])
