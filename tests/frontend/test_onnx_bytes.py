"""Quantized ONNX graphs become products of bytes: QDQ, dynamic and QLinear forms against ONNX's own reference."""

from __future__ import annotations

import re

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from relaylab import relay  # noqa: E402
from relaylab.codegen.build import BASELINE  # noqa: E402
from relaylab.runtime import cpu, graph_executor  # noqa: E402

TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", BASELINE)
RANDOM = np.random.default_rng(11)


def model(nodes: list, constants: dict[str, np.ndarray], x: np.ndarray, kind: int = TensorProto.FLOAT):
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def compiled(proto, x: np.ndarray, target: str):
    """What the compiled model gives, and the text of its kernels."""
    mod, params = relay.frontend.from_onnx(proto, shape={"x": x.shape}, dtype=x.dtype.name)
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target, params=params)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(x=x)
    return module.get_output(0).numpy(), lib.inspect("relay")


def number(value: float, dtype: str) -> np.ndarray:
    return np.array(value, dtype)


def qdq(per_channel: bool, zero: int, dtype: str, channels: int):
    """Quantize, convolve with padding, add a bias, quantize again."""
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    scales = RANDOM.uniform(0.01, 0.05, 6).astype("float32") if per_channel else number(0.03, "float32")
    zeros = np.zeros(6, "int8") if per_channel else number(0, "int8")
    constants = {
        "xs": number(0.02, "float32"), "xz": number(zero, dtype), "ws": scales, "wz": zeros,
        "w": RANDOM.integers(-127, 128, (6, channels, 3, 3)).astype("int8"),
        "b": RANDOM.normal(size=6).astype("float32"),
        "ys": number(0.1, "float32"), "yz": number((low + high) // 2, dtype),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=0),
        node("Conv", ["d", "v", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]),
        node("QuantizeLinear", ["c", "ys", "yz"], ["r"]),
        node("DequantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    x = RANDOM.normal(0, 1.5, (2, channels, 7, 9)).astype("float32")
    return model(nodes, constants, x), x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("per_channel", "zero", "dtype", "channels"),
    [
        (True, 0, "uint8", 8),
        (False, 131, "uint8", 8),
        (True, -5, "int8", 8),
        (True, 0, "uint8", 3),
        (False, 99, "int8", 3),
    ],
)
def test_a_convolution_between_quantizers_is_one_of_bytes(
    target: str, per_channel: bool, zero: int, dtype: str, channels: int
) -> None:
    proto, x = qdq(per_channel, zero, dtype, channels)
    found, text = compiled(proto, x, target)
    assert re.search(r'nn.conv2d.*out_dtype="int32"', text) and ", int8]" in text
    want = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    # sums of floats and of integers differ in the last bits: at a tie that is one step of the result
    steps = np.abs(found - want) / np.float32(0.1)
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.01


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("weight_zero", "depth"), [(0, 24), (3, 24), (0, 27)])
def test_a_dynamically_quantized_layer_is_exact(target: str, weight_zero: int, depth: int) -> None:
    w = RANDOM.integers(-100, 100, (depth, 10)).astype("int8")
    node = helper.make_node
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z", "wz"], ["y"])]
    x = RANDOM.normal(size=(3, 5, depth)).astype("float32")
    proto = model(nodes, {"w": w, "wz": number(weight_zero, "int8")}, x, TensorProto.INT32)
    found, text = compiled(proto, x, target)
    assert f"Tensor[(10, {-(-depth // 4) * 4}), int8]" in text
    np.testing.assert_array_equal(found, ReferenceEvaluator(proto).run(None, {"x": x})[0])


def test_a_scale_per_unit_follows_its_weight_through_transposes() -> None:
    w, scales = RANDOM.integers(-127, 128, (8, 5)).astype("int8"), RANDOM.uniform(0.1, 1, 5).astype("float32")
    node = helper.make_node
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=1),
        node("MatMul", ["d", "v"], ["y"]),
    ]
    constants = {
        "xs": number(0.5, "float32"), "xz": number(7, "uint8"), "w": w, "ws": scales, "wz": np.zeros(5, "int8"),
    }  # fmt: skip
    x = RANDOM.integers(0, 256, (4, 8)).astype("uint8")
    proto = model(nodes, constants, x)
    found, text = compiled(proto, x, "llvm")
    assert 'out_dtype="int32"' in text
    want = ((x.astype("float64") - 7) * 0.5) @ (w * scales.astype("float64"))
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-4)
