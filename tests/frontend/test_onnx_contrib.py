"""Operators of the domain com.microsoft and integer convolutions, against onnxruntime, which defines them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import imported, node_model, reference, run

RNG = np.random.default_rng(0)
CONTRIB = {"domain": "com.microsoft"}


def f(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def u(*shape):
    return RNG.integers(0, 255, shape).astype("uint8")


def quantized(name: str, scale: float, zero: int, *shape: int):
    return {name: u(*shape), f"{name}_scale": np.array(scale, "float32"), f"{name}_zero": np.array(zero, "uint8")}


def result(scale: float, zero: int):
    return {"scale": np.array(scale, "float32"), "zero": np.array(zero, "uint8")}


WORDS = {
    "w": np.array([[1, 2, 3]], "int32"),
    "s": np.array([[0, 1, 0]], "int32"),
    "we": f(5, 4),
    "pe": f(6, 4),
    "se": f(2, 4),
    "g": f(4),
    "b": f(4),
}
CONV = {
    **quantized("x", 0.1, 128, 1, 2, 5, 5),
    "w": u(3, 2, 3, 3),
    "ws": np.array([0.1, 0.2, 0.3], "float32"),
    "wz": np.full(3, 120, "uint8"),
    **result(20.0, 120),
    "b": np.array([1, 2, 3], "int32"),
}
CASES = [
    ("BiasGelu", {"x": f(2, 3, 4), "b": f(4)}, CONTRIB), ("FastGelu", {"x": f(2, 4), "b": f(4)}, CONTRIB),
    ("QuickGelu", {"x": f(2, 4)}, CONTRIB), ("Gelu", {"x": f(2, 4)}, CONTRIB),
    ("SkipLayerNormalization", {"x": f(2, 3, 4), "s": f(2, 3, 4), "g": f(4), "b": f(4), "c": f(4)}, CONTRIB),
    ("SkipSimplifiedLayerNormalization", {"x": f(2, 3, 4), "s": f(2, 3, 4), "g": f(4)}, CONTRIB),
    ("SimplifiedLayerNormalization", {"x": f(2, 4), "s": f(4)}, {}),
    ("EmbedLayerNormalization", WORDS, {**CONTRIB, "outputs": 2}),
    ("Attention", {"x": f(2, 3, 8), "w": f(8, 24), "b": f(24)}, {**CONTRIB, "num_heads": 2}),
    ("Attention", {"x": f(2, 3, 8), "w": f(8, 24), "b": f(24)}, {**CONTRIB, "num_heads": 2, "unidirectional": 1}),
    ("FusedMatMul", {"a": f(2, 3, 4), "b": f(2, 5, 4)}, {**CONTRIB, "transB": 1, "alpha": 0.5}),
    ("FusedConv", {"x": f(1, 2, 5, 5), "w": f(3, 2, 3, 3), "b": f(3)},
      {**CONTRIB, "activation": "LeakyRelu", "activation_params": [0.2]}),
    ("QLinearAdd", {**quantized("a", 0.1, 3, 2, 3), **quantized("b", 0.2, 5, 3), **result(0.3, 7)}, CONTRIB),
    ("QLinearMul", {**quantized("a", 0.1, 3, 2, 3), **quantized("b", 0.2, 5, 3), **result(0.9, 7)}, CONTRIB),
    ("QLinearSigmoid", {**quantized("a", 0.1, 128, 20), **result(0.004, 0)}, CONTRIB),
    ("QLinearLeakyRelu", {**quantized("a", 0.1, 128, 20), **result(0.1, 100)}, {**CONTRIB, "alpha": 0.2}),
    ("QLinearGlobalAveragePool", {**quantized("a", 0.1, 128, 1, 2, 3, 3), **result(0.1, 100)}, CONTRIB),
    ("QLinearAveragePool", {**quantized("a", 0.1, 128, 1, 2, 4, 4), **result(0.1, 100)},
      {**CONTRIB, "kernel_shape": [2, 2]}),
    ("QLinearConcat", {**result(0.1, 100), **quantized("a", 0.1, 128, 2, 3), **quantized("b", 0.2, 5, 2, 3)},
      {**CONTRIB, "axis": 1}),
    ("QLinearConv", CONV, {"constants": ("x_scale", "x_zero", "ws", "wz", "scale", "zero"), "pads": [1, 1, 1, 1]}),
    ("ConvInteger", {"x": u(1, 2, 5, 5), "w": u(3, 2, 3, 3), "z": np.array(128, "uint8")}, {"pads": [1, 1, 1, 1]}),
    ("MatMulInteger", {"x": u(2, 5), "w": u(5, 3), "z": np.array(128, "uint8"), "y": np.array([1, 2, 3], "uint8")}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "more"), CASES, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(CASES)])
def test_as_onnxruntime_says(name, inputs, more):
    pytest.importorskip("onnxruntime", reason="these operators are onnxruntime's own")
    proto, free = node_model(name, inputs, **more)
    for got, want in zip(run(imported(proto), free), reference(proto, free)):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        one = 1 if want.dtype == np.uint8 else 0  # a value between two integers goes to either
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=1e-4, atol=max(one, 1e-5))
