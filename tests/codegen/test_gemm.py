"""Matrix product kernels against numpy: odd tails, transposes, batches, strided outputs, dtypes, every ISA."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, bias_relu_residual, index_scale, place, runnable_targets, window

from relaylab.codegen.kernels.kernel import MemoryView, dense_strides
from relaylab.codegen.templates import GemmSpec, gemm, pack_gemm

pytestmark = pytest.mark.slow

SHAPES = [  # batch of a, batch of b, M, N, K
    (1, 1, 1, 1, 1),
    (1, 1, 1, 10, 128),
    (1, 1, 5, 33, 7),
    (1, 1, 49, 100, 65),
    (1, 1, 29, 130, 3),
    (3, 1, 7, 20, 18),
    (2, 2, 15, 40, 17),
    (1, 3, 4, 24, 9),
    (2, 2, 31, 16, 16),
    (1, 1, 300, 200, 40),
    (1, 1, 2, 1000, 12),
    (1, 1, 70, 1, 100),
    (3, 3, 9, 4, 35),
    (1, 1, 2, 3, 300),
    (1, 1, 13, 40, 384),
    (2, 2, 8, 24, 263),
    (2, 2, 37, 2, 263),
    (1, 1, 50, 3, 16),
]


def views(case: tuple[int, ...], a_order=(0, 1, 2), b_order=(0, 1, 2), pitch: int = 0, dtype: str = "float32"):
    ab, bb, m, n, k = case
    batch = max(ab, bb)
    return (
        permuted((ab, m, k), a_order, dtype),
        permuted((bb, k, n), b_order, dtype),
        MemoryView(dtype, (batch, m, n), dense_strides((batch, m, n + pitch)), pitch // 2),
    )


def permuted(shape: tuple[int, ...], order: tuple[int, ...], dtype: str) -> MemoryView:
    """A view of `shape` whose memory order of axes is `order`."""
    inner = dense_strides(tuple(shape[a] for a in order))
    return MemoryView(dtype, shape, tuple(inner[order.index(a)] for a in range(len(shape))))


def check(
    case, target, a_order=(0, 1, 2), b_order=(0, 1, 2), packed=True, pitch=0, epilogue=None, dtype="float32", splits=1
):
    a, b, out = views(case, a_order, b_order, pitch, dtype)
    rng = np.random.default_rng(7)
    make = (lambda s: rng.integers(-9, 9, s)) if "int" in dtype else rng.standard_normal
    x, w, r, bias = (make(s).astype(dtype) for s in (a.shape, b.shape, out.shape, out.shape[2:]))
    exact = "int32" if "int" in dtype else "float64"  # long sums of float32 would be as far from the truth as ours
    spec, want = GemmSpec(a, b, out, packed), np.matmul(x.astype(exact), w.astype(exact))
    extra = None
    if epilogue == "residual":
        extra, want = bias_relu_residual(out), np.maximum(want + bias + r, 0)
    elif epilogue == "index":
        extra, want = index_scale(3), want * (1 + np.indices(out.shape).sum(0))
    kernel = gemm(spec, TARGETS[target], extra)
    result = place(out, fill=77)
    weights = place(MemoryView.dense((0,))) if packed else place(b, w)
    if packed:
        packed_data = pack_gemm(spec, TARGETS[target], w).array()
        weights = place(MemoryView.dense(packed_data.shape, dtype), packed_data)
    buffers = {
        "in0": place(a, x),
        "weight0": weights,
        "in1": weights,
        "out0": result,
        "r0": place(out, r),
        "b0": place(MemoryView.dense(bias.shape, dtype), bias),
    }
    Runner(kernel, TARGETS[target]).run(buffers, splits)
    np.testing.assert_allclose(window(result, out), want, rtol=2e-5, atol=2e-4)
    assert (result == 77).sum() == result.size - out.size or pitch == 0, "wrote outside the view"
    return window(result, out).copy()


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_packed(case, target):
    check(case, target)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("b_order", [(0, 1, 2), (0, 2, 1), (1, 2, 0)], ids=str)
@pytest.mark.parametrize("case", SHAPES[2:9], ids=str)
def test_transposed_and_unpacked(case, b_order, target):
    check(case, target, a_order=(0, 2, 1), b_order=b_order, packed=False)


@pytest.mark.parametrize("epilogue", ["residual", "index"])
@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("case", [*SHAPES[2:8], *SHAPES[11:]], ids=str)
def test_epilogue_and_pitch(case, target, epilogue):
    check(case, target, pitch=10, epilogue=epilogue)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("target", runnable_targets())
def test_dtypes(target, dtype):
    check((2, 1, 9, 21, 33), target, dtype=dtype)
    check((1, 1, 30, 70, 5), target, dtype=dtype, b_order=(0, 2, 1), packed=False)


@pytest.mark.parametrize("case", [(1, 1, 49, 100, 65), (1, 1, 300, 200, 40), (2, 2, 15, 40, 17)], ids=str)
def test_split_of_items_does_not_change_a_bit(case):
    whole = check(case, runnable_targets()[-1])
    for splits in (2, 3, 7):
        assert (check(case, runnable_targets()[-1], splits=splits) == whole).all()
