"""The accuracy of the elementary functions of float64 over all their numbers, held against long double."""

from __future__ import annotations

import math

import numpy as np
import pytest
from native_group import TARGETS, run_native, single

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import module_text
from relaylab.codegen.llvm.jit import emit_object
from relaylab.codegen.operations.generic import lower_group
from relaylab.loop import OutSpec

Long = np.longdouble
RANGES = {
    "exp": (-745.2, 709.7), "log": (5e-324, 1.7e308), "log2": (5e-324, 1.7e308), "log10": (5e-324, 1.7e308),
    "tanh": (-22.0, 22.0), "sigmoid": (-745.0, 40.0), "erf": (-6.5, 6.5), "sin": (-9e5, 9e5), "cos": (-9e5, 9e5),
    "tan": (-9e5, 9e5), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "atan": (-1e9, 1e9), "sinh": (-710.4, 710.4),
    "cosh": (-710.4, 710.4), "asinh": (-1e308, 1e308), "acosh": (1.0, 1.7e308), "atanh": (-1.0, 1.0),
}  # fmt: skip
ULP = dict.fromkeys(("exp", "log", "log2", "log10", "sin", "cos"), 1) | {"erf": 2, "atan": 2, "cosh": 2}  # others 3
SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.3e-308, 1e-300, -1e-17, 710.4)
SPECIAL += (-745.0, 711.0, 746.0, -1e300, 1.7e308, 0.5, 2.0, 1024.0, 1e6, -3e7, 1e22)

needs_long = pytest.mark.skipif(np.finfo(Long).nmant < 63, reason="long double has no more digits here")
both = pytest.mark.parametrize("isa", ["avx512", "avx2"])


def group(name, *arrays):
    lower = lambda b, out, i, *inputs: getattr(b, name)(*(x(*i) for x in inputs))
    out = OutSpec(arrays[0].shape, arrays[0].dtype.name)
    return single(out, lower, list(arrays)), out


def native(name, isa, *arrays):
    program, out = group(name, *arrays)
    return run_native(program, list(arrays), out, CpuTarget.parse(TARGETS[isa]))


def erf(x):
    """2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): no term is subtracted."""
    limited = np.clip(x, -7, 7)
    total = term = limited
    for n in range(1, 200):
        term = term * 2 * limited * limited / (2 * n + 1)
        total = total + term
    return total * np.exp(-limited * limited) * 2 / np.sqrt(4 * np.arctan(Long(1)))


EXACT = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh}
EXACT |= {"atanh": np.arctanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": erf}


def exact(name, *x):
    with np.errstate(all="ignore"):
        return EXACT.get(name, getattr(np, name, None))(*(v.astype(Long) for v in x))


def points(name, count=20_000):
    low, high = RANGES[name]
    rng = np.random.default_rng(1)
    sizes = np.exp(rng.uniform(-740, np.log(high), count))
    some = [
        rng.uniform(max(low, -1e300), high, count),
        sizes,
        -sizes,
        10 ** rng.uniform(-9, np.log10(min(high, 700)), count),
    ]
    some += [
        -some[-1],
        1 + rng.uniform(-1e-3, 1e-3, count),
        1 - 10 ** rng.uniform(-16, -1, count),
        rng.uniform(0.5, 2, count),
    ]
    some += [1 + 10 ** rng.uniform(-16, 2, count), rng.integers(-500_000, 500_000, count) * (math.pi / 2)]
    x = np.concatenate(some)
    return x[(x >= low) & (x <= high)]


def units(found, truth):
    """The error in units of the last place of the truth."""
    with np.errstate(all="ignore"):
        near = np.abs(truth.astype("float64"))
        apart = np.abs((found - truth) / np.spacing(np.maximum(near, 2.0**-1022)))
    return np.where(np.isfinite(near), apart, np.where(np.abs(found) == near, 0, np.inf)).astype("float64")


@needs_long
@both
@pytest.mark.parametrize("name", RANGES)
def test_error(name, isa):
    x = points(name)
    error = units(native(name, isa, x), exact(name, x))
    assert error.max() <= ULP.get(name, 3), (error.max(), x[error.argmax()])


@needs_long
@both
@pytest.mark.parametrize("name", RANGES)
def test_ends(name, isa):
    x = np.array(SPECIAL)
    truth, found = exact(name, x), native(name, isa, x)
    with np.errstate(over="ignore"):
        near = truth.astype("float64")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(near))
    here = ~np.isnan(near)
    assert units(found[here], truth[here]).max() <= 3
    np.testing.assert_array_equal(np.signbit(found[here]), np.signbit(near[here]))


@pytest.mark.parametrize("isa", TARGETS)
def test_cosines_of_what_is_nearly_a_right_angle_have_all_digits(isa):
    """pi / 2 less its float64, and others that one part of pi / 2 would leave without digits."""
    x = np.array([math.pi / 2, 11 * (math.pi / 2), 573_204 * (math.pi / 2)])
    found = native("cos", isa, x)
    assert abs(found[0] - 6.123233995736766035868820147292e-17) <= np.spacing(6.1e-17)
    if np.finfo(Long).nmant >= 63:
        assert units(found, exact("cos", x)).max() <= 1


@pytest.mark.parametrize("name", [*RANGES, "pow", "truncmod", "floormod", "floordiv"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiles_for_arm(name, dtype):
    arrays = [np.zeros(50, dtype)] * (2 if name not in RANGES else 1)
    target = CpuTarget.parse("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    kernel = lower_group(group(name, *arrays)[0], target)
    assert emit_object(module_text([kernel], attributes=target.attributes), target)
