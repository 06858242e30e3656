"""Few output channels on narrow vectors: results that are summed over lanes must fit into one vector of columns."""

from __future__ import annotations

import numpy as np
import pytest
from fault_programs import TARGETS, alike

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_columns(dtype: str, columns: int, target: str) -> None:
    rng = np.random.default_rng(columns)
    x, w, k = (rng.uniform(-1, 1, shape).astype(dtype) for shape in ((1, 9, 9, 16), (3, 3, 16, columns), (columns, 16)))
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    conv = f'nn.conv2d(%a, %b, padding=[1, 1, 1, 1], channels={columns}, data_layout="NHWC", kernel_layout="HWIO")'
    alike(
        f"({conv}, nn.dense(reshape(%a, newshape=[81, 16]), %c, units=None))",
        x,
        w,
        k,
        target=target,
        tolerance=tolerance,
        built_in="bc",
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_columns_of_a_transposed_convolution(dtype: str, target: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (1, 8, 8, 8)).astype(dtype), rng.uniform(-1, 1, (8, 3, 4, 4)).astype(dtype)
    sizes = "channels=3, kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]"
    body = f'nn.conv2d_transpose(%a, %b, {sizes}, kernel_layout="IOHW")'
    alike(body, x, w, target=target, tolerance=1e-12 if dtype == "float64" else 1e-5, built_in="b")
