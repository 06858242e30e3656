"""The accuracy of the elementary functions over dense sweeps of float32, and their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from native_group import TARGETS, run_native, single

from relaylab.codegen.isa.target import CpuTarget
from relaylab.loop import OutSpec

SWEEPS = {
    "exp": (-103.9, 88.7), "log": (1e-45, 3e38), "log2": (1e-45, 3e38), "log10": (1e-45, 3e38), "tanh": (-12.0, 12.0),
    "sigmoid": (-88.0, 80.0), "erf": (-5.0, 5.0), "sin": (-9e5, 9e5), "cos": (-300.0, 300.0), "tan": (-9000.0, 9000.0),
    "asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "atan": (-30.0, 30.0), "sinh": (-89.3, 89.3), "cosh": (-89.3, 89.3),
    "asinh": (-1e6, 1e6), "acosh": (1.0, 3e38), "atanh": (-0.9999999, 0.9999999),
}  # fmt: skip
ULP = {"exp": 2, "log": 2, "log2": 3, "log10": 3, "tanh": 6, "sigmoid": 4, "erf": 8, "sin": 2, "cos": 2, "tan": 4}
ULP |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"), 1)
EXACT = {
    "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": lambda x: np.array([math.erf(v) for v in x.ravel()]).reshape(x.shape),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
EDGES = np.array(
    [
        0,
        -0.0,
        1,
        -1,
        np.inf,
        -np.inf,
        np.nan,
        1e-30,
        -1e-30,
        89.5,
        -105,
        1e30,
        -1e30,
        0.5,
        2,
        1024,
        1e-40,
        -1e-45,
        -95,
        9.9e5,
        1e6,
        -3e7,
    ],
    "float32",
)


def native(name, x, isa):
    lower = lambda b, out, i, x: getattr(b, name)(x(*i))
    out = OutSpec(x.shape, "float32")
    return run_native(single(out, lower, [x]), [x], out, CpuTarget.parse(TARGETS[isa]))


def sweep(name):
    low, high = SWEEPS[name]
    if low > 0:
        return np.exp(np.linspace(np.log(low), np.log(high), 200_003)).astype("float32")
    small = np.geomspace(1e-20, high, 40_001)
    return np.concatenate([np.linspace(low, high, 200_001), small, -small[small < -low]]).astype("float32")


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("name", SWEEPS)
def test_error_over_a_dense_sweep(name, isa):
    x = sweep(name)
    exact = EXACT[name](x.astype("float64"))
    error = np.abs(native(name, x, isa) - exact) / np.spacing(np.maximum(np.abs(exact), 2.0**-126).astype("float32"))
    assert error.max() <= ULP[name], (float(error.max()), float(x[error.argmax()]))


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("name", [*SWEEPS, "sqrt", "rsqrt", "floor", "ceil", "round", "roundeven", "trunc"])
def test_edges(name, isa):
    exact = {
        **EXACT,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "round": lambda x: np.copysign(np.trunc(np.abs(x) + 0.5), x),
        "roundeven": np.rint,
    }
    with np.errstate(all="ignore"):
        expected = exact.get(name, getattr(np, name, None))(EDGES.astype("float64")).astype("float32")
    np.testing.assert_allclose(
        native(name, EDGES, isa), expected, rtol=1e-6, atol=2.0**-127 if name == "sigmoid" else 3e-45
    )


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("name", ["sin", "tan", "tanh", "erf", "asin", "atan", "sinh", "asinh", "atanh"])
def test_odd_functions_keep_the_sign_of_zero(name, isa):
    x = np.array([0.0, -0.0] * 20, "float32")
    np.testing.assert_array_equal(np.signbit(native(name, x, isa)), np.signbit(x))


def test_powers_of_the_base_are_exact():
    x = (2.0 ** np.arange(-120, 120)).astype("float32")
    np.testing.assert_array_equal(native("log2", x, "avx512"), np.arange(-120, 120))


@pytest.mark.parametrize("isa", TARGETS)
def test_tanh_reaches_one_and_never_more(isa):
    """Every float32 on the way: it stayed a quarter of a millionth below."""
    low, high = (int(np.float32(v).view("int32")) for v in (7.0, 10.0))
    x = np.arange(low, high, dtype="int32").view("float32")
    for sign in (1, -1):
        found = sign * native("tanh", sign * x, isa)
        assert found.max() == 1.0 and np.all(found[x >= np.float32(9.7)] == 1.0)
        np.testing.assert_allclose(found, np.tanh(x.astype("float64")), rtol=ULP["tanh"] * 2.0**-24)
