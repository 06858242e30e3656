"""NaN and infinities through every kind of kernel: they come out where the interpreter has them, and nowhere else.

Exceptions, by design: minimal filtering and Strassen's products spread them over the tile they are in, and an infinite
weight of a transposed convolution meets the zeros around its input.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fault_programs import TARGETS, alike, compiled, poisoned, program

from relaylab import relay

pytestmark = pytest.mark.slow

UNARY = (
    "exp log log2 log10 sqrt rsqrt tanh sigmoid erf sin cos tan asin acos atan sinh cosh asinh acosh atanh floor ceil "
    "round trunc abs negative sign nn.relu isnan isinf isfinite fast_exp fast_tanh fast_erf"
).split()
BINARY = (
    "add subtract multiply divide power maximum minimum floor_divide mod floor_mod less less_equal equal not_equal"
    " greater"
).split()
ROWS = (
    "clip(%a, a_min=-1f, a_max=1f)",
    "nn.leaky_relu(%a, alpha=0.1f)",
    "nn.softmax(%a)",
    "nn.softmax(%a, axis=0)",
    "nn.log_softmax(%a)",
    "nn.fast_softmax(%a)",
    "cumsum(%a, axis=1)",
    "sum(%a, axis=[0])",
    "sum(%a, axis=[1])",
    "prod(%a, axis=[1])",
    "max(%a, axis=[0])",
    "max(%a, axis=[1])",
    "min(%a, axis=[0])",
    "min(%a, axis=[1])",
    "argmax(%a, axis=[0])",
    "argmax(%a, axis=[1])",
    "argmin(%a, axis=[0])",
    "argmin(%a, axis=[1])",
    "mean(%a, axis=[1])",
    "where(less(%a, 0f), %a, 1f)",
    'cast(%a, dtype="int32")',
    "all(isfinite(%a), axis=[1])",
)
IMAGES = (
    "nn.max_pool2d(%a, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",
    "nn.avg_pool2d(%a, pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1])",
    "nn.avg_pool2d(%a, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)",
    "nn.global_avg_pool2d(%a)",
    "nn.global_max_pool2d(%a)",
    "nn.adaptive_max_pool2d(%a, output_size=[2, 2])",
    "nn.lrn(%a)",
    "nn.softmax(%a, axis=1)",
    "concatenate((%a, nn.relu(%a)), axis=1)",
    "argmax(%a, axis=[1])",
    "nn.prelu(%a, nn.relu(mean(%a, axis=[0, 2, 3])))",
    "nn.upsampling(%a, scale_h=2f, scale_w=2f)",
    'nn.upsampling(%a, scale_h=2f, scale_w=2f, method="bilinear")',
    "image.resize2d(%a, size=[7, 9])",
    'image.resize2d(%a, size=[9, 20], method="cubic")',
    "nn.pad(%a, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [2, 1]])",
    'nn.max_pool2d(%a, pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1], layout="NHWC")',
)
PRODUCTS = {
    "dense": ("nn.dense(%a, %b, units=None)", (5, 64), (40, 64)),
    "batch_matmul": ("nn.batch_matmul(%a, %b, transpose_b=True)", (3, 7, 32), (3, 19, 32)),
    "matmul": ("nn.matmul(%a, %b)", (7, 32), (32, 19)),
    "conv 1x1": ("nn.conv2d(%a, %b, padding=[0, 0, 0, 0])", (1, 32, 12, 13), (48, 32, 1, 1)),
    "conv strided": ("nn.conv2d(%a, %b, padding=[1, 1, 1, 1], strides=[2, 2])", (1, 32, 12, 13), (48, 32, 3, 3)),
    "conv dilated": ("nn.conv2d(%a, %b, padding=[2, 2, 2, 2], dilation=[2, 2])", (1, 5, 12, 13), (7, 5, 3, 3)),
    "conv grouped": ("nn.conv2d(%a, %b, padding=[1, 1, 1, 1], groups=4)", (1, 32, 12, 13), (48, 8, 3, 3)),
    "depthwise": ("nn.conv2d(%a, %b, padding=[1, 1, 1, 1], groups=32)", (1, 32, 12, 13), (32, 1, 3, 3)),
    "transposed": ("nn.conv2d_transpose(%a, %b, padding=[1, 1, 1, 1], strides=[2, 2])", (1, 8, 5, 6), (16, 8, 3, 3)),
    "conv1d": ("nn.conv1d(%a, %b, padding=[1, 1])", (1, 32, 20), (48, 32, 3)),
    "conv3d": ("nn.conv3d(%a, %b, padding=[1, 1, 1, 1, 1, 1])", (1, 4, 5, 6, 7), (8, 4, 3, 3, 3)),
}  # fmt: skip
TAILS = (
    "nn.relu({})",
    "clip({}, a_min=0f, a_max=6f)",
    "sigmoid({})",
    "tanh(add({}, 1f))",
    "nn.leaky_relu({}, alpha=0.1f)",
)


def together(bodies: list[str]) -> str:
    return f"({', '.join(bodies)})"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_elementwise(dtype: str, target: str) -> None:
    x, y = poisoned((3, 41), dtype), np.roll(poisoned((3, 41), dtype, 5).reshape(-1), 5).reshape(3, 41)
    bodies = [f"{name}(%a)" for name in UNARY] + [f"{name}(%a, %b)" for name in BINARY]
    alike(together(bodies), x, y, target=target, tolerance=5e-3 if dtype == "float16" else 1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", ROWS)
def test_rows(body: str, target: str) -> None:
    alike(body, poisoned((6, 41)), target=target)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("body", IMAGES)
def test_images(body: str, level: int) -> None:
    alike(body, poisoned((1, 8, 12, 13)), level=level)


@pytest.mark.parametrize(
    ("name", "poison"), [(n, p) for n in PRODUCTS for p in ("data", "weight") if (n, p) != ("transposed", "weight")]
)
def test_products(name: str, poison: str) -> None:
    body, data, weight = PRODUCTS[name]
    x, w = poisoned(data), poisoned(weight, seed=1)
    if poison == "data":
        w = np.random.default_rng(1).uniform(-1, 1, weight).astype("float32")
    for target in TARGETS:
        alike(body, x, w, target=target)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", ["dense", "conv 1x1", "depthwise"])
def test_tails(name: str, tail: str) -> None:
    body, data, weight = PRODUCTS[name]
    alike(tail.format(body), poisoned(data), np.random.default_rng(1).uniform(-1, 1, weight).astype("float32"))


@pytest.mark.parametrize(("size", "kernel"), [(12, 3), (24, 3), (12, 1)])
def test_the_fast_algorithms_lose_no_nan(size: int, kernel: int) -> None:
    """Where the direct algorithm has NaN, minimal filtering and Strassen's products have it too."""
    x = np.zeros((1, 128, size, size), "float32")
    x[0, 5, 3, 4] = np.nan
    w, pad = np.ones((128, 128, kernel, kernel), "float32"), kernel // 2
    (got,) = compiled(program(f"nn.conv2d(%a, %b, padding=[{pad}, {pad}, {pad}, {pad}])", x, w), x, w)
    assert np.isnan(got[:, :, 3 - pad : 4 + pad, 4 - pad : 5 + pad]).all()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_a_sparse_weight_does_not_store_meets_no_nan(layout: str) -> None:
    data = np.arange(60, dtype="float32").reshape((1, 4, 5, 3) if layout == "NHWC" else (1, 3, 4, 5))
    data.flat[17], data.flat[40] = np.nan, np.inf
    weight = np.array([1, -2, 0.5], "float32"), np.array([3, 14, 20], "int32"), np.array([0, 2, 3], "int32")
    alike(f'nn.sparse_conv2d(%a, %b, %c, %d, layout="{layout}", kernel_size=3)', data, *weight)


def test_infinite_weights_of_minimal_filtering_are_no_warning() -> None:
    x, w = np.ones((1, 64, 12, 12), "float32"), np.ones((64, 64, 3, 3), "float32")
    w[3, 5, 1, 1], w[4, 6, 0, 2] = np.inf, -np.inf
    mod = program("nn.conv2d(%a, %b, padding=[1, 1, 1, 1])", x, w)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib = relay.build(mod, "llvm", params={"b": w})
    assert "winograd" in lib.summary()
