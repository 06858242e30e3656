"""Far from 0: curves keep their digits where 1 + exp(x) has none, casts wrap as numpy's; held against float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import imported, node_model, number_of, run

X = np.array([-1e30, -88, -60, -20, -9.5, -6, -3, -0.5, 0, 0.5, 6, 20, 90, 1e30], "float32")
WIDE = X.astype("float64")


def found(name: str, x: np.ndarray, **attrs) -> np.ndarray:
    proto, inputs = node_model(name, {"x": x}, **attrs)
    return run(imported(proto), inputs, "graph")[0]


def test_softplus_is_the_exponential_far_below_0() -> None:
    want = np.maximum(WIDE, 0) + np.log1p(np.exp(-np.abs(WIDE)))
    np.testing.assert_allclose(found("Softplus", X), want, rtol=1e-6, atol=1e-38)


def test_mish_keeps_its_digits() -> None:
    want = WIDE * np.tanh(np.maximum(WIDE, 0) + np.log1p(np.exp(-np.abs(WIDE))))
    np.testing.assert_allclose(found("Mish", X, opset=18), want, rtol=1e-6, atol=1e-37)


def test_gelu_with_tanh_is_nothing_far_below_0() -> None:
    with np.errstate(all="ignore"):
        u = np.sqrt(2 / np.pi) * (WIDE + 0.044715 * WIDE**3)
        want = WIDE / (1 + np.exp(-2 * u))  # x (1 + tanh(u)) / 2
    np.testing.assert_allclose(found("Gelu", X, opset=20, approximate="tanh"), want, rtol=2e-5, atol=1e-38)


@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_casts_of_floats_to_small_integers_wrap(source: str, target: str) -> None:
    x = np.array([-1, -1.5, -129, 128, 129.5, 255, 256, 300, -300, 40000, -40000, np.nan], source)
    want = np.where(np.isnan(x), 0, x).astype("int64").astype(target)
    np.testing.assert_array_equal(found("Cast", x, to=number_of(target)), want)
