"""Products with seven half-size products: against numpy, odd rows, tails, epilogues, error, when they are taken."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, bias_relu_residual, framed, index_scale, place, runnable_targets, window

from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import MemoryView, dense_strides
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.product_family import contractions
from relaylab.codegen.templates.conv import conv_problem
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.product_family import product_of
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import WeightMatrix
from relaylab.codegen.templates.strassen import pack_strassen, supports_strassen
from relaylab.codegen.templates.program_parts import ProgramParts
from relaylab.codegen.templates.strassen_kernel import LEAST_TILES, StrassenLoops

SHAPES = [(2, 32, 2), (3, 64, 10), (49, 96, 66), (40, 160, 128), (29, 224, 34), (128, 192, 64)]  # M, N, K


def run(shape, target, epilogue=None, pitch=0, splits=1, dtype="float32", in_place=False):
    m, n, k = shape
    out = MemoryView(dtype, (1, m, n), dense_strides((1, m, n + pitch)), pitch // 2)
    spec = T.GemmSpec(
        MemoryView(dtype, (1, m, k), dense_strides((1, m, k + 3))), MemoryView.dense((1, k, n), dtype), out
    )
    problem, rng = gemm_problem(spec), np.random.default_rng(11)
    assert supports_strassen(problem, TARGETS[target]) == ""
    x, w, r, bias = (rng.standard_normal(s).astype(dtype) for s in (spec.a.shape, (k, n), out.shape, (n,)))
    want = x.astype("float64") @ w
    extra = Epilogue()
    if epilogue == "residual":
        extra, want = bias_relu_residual(out), np.maximum(want + bias + r, 0)
    elif epilogue == "index":
        extra, want = index_scale(3), want * (1 + np.indices(out.shape).sum(0))
    kernel = contractions("gemm", [problem], TARGETS[target], extra, spec.roles, 0, T.STRASSEN)
    packed = pack_strassen(problem, TARGETS[target], WeightMatrix.of(w[None])).array()
    result = place(out, r if in_place else None, fill=77)
    buffers = {
        "in0": place(spec.a, x, fill=np.nan),
        "weight0": place(MemoryView.dense(packed.shape, dtype), packed),
        "out0": result,
        "r0": result if in_place else place(out, r),
        "b0": place(MemoryView.dense((n,), dtype), bias),
    }
    Runner(kernel, TARGETS[target]).run(buffers, splits)
    assert (result == 77).sum() >= result.size - out.size, "wrote outside the view"
    return window(result, out).copy(), want


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_numpy(shape, target):
    got, want = run(shape, target)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * abs(want).max() + 1e-6)


@pytest.mark.parametrize("epilogue", ["residual", "index"])
@pytest.mark.parametrize("shape", SHAPES[1:5], ids=str)
def test_epilogue_into_a_slice(shape, epilogue):
    got, want = run(shape, runnable_targets()[-1], epilogue, pitch=6)
    np.testing.assert_allclose(got, want, rtol=0, atol=4e-6 * abs(want).max())


def test_residual_in_place_and_doubles():
    got, want = run(SHAPES[2], runnable_targets()[-1], "residual", in_place=True)
    np.testing.assert_allclose(got, want, rtol=0, atol=4e-6 * abs(want).max())
    got, want = run(SHAPES[3], runnable_targets()[-1], dtype="float64")
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_error_stays_near_that_of_the_ordinary_product():
    """The documented bound: a few rounding units times the square root of the depth."""
    for depth in (128, 512, 2048):
        got, want = run((64, 64, depth), runnable_targets()[-1])
        assert np.sqrt(np.mean((got - want) ** 2)) / np.sqrt(np.mean(want**2)) < 1.2e-7 * np.sqrt(depth)


@pytest.mark.parametrize("shape", SHAPES[2:5], ids=str)
def test_split_of_items_does_not_change_a_bit(shape):
    whole, _ = run(shape, runnable_targets()[-1])
    for splits in (2, 3):
        assert (run(shape, runnable_targets()[-1], splits=splits)[0] == whole).all()


def test_more_cores_get_more_items_and_the_same_bits():
    spec, rng = large(64, 2048, 128), np.random.default_rng(5)
    x, w = rng.standard_normal(spec.a.shape).astype("float32"), rng.standard_normal((128, 2048)).astype("float32")
    items, results = [], []
    for cores in (1, 8, 12):
        target, problem = CpuTarget.parse(f"llvm -num-cores={cores}"), gemm_problem(spec)
        kernel = contractions("gemm", [problem], target, Epilogue(), spec.roles, 0, T.STRASSEN)
        packed = pack_strassen(problem, target, WeightMatrix.of(w[None])).array()
        out = place(spec.out, None)
        Runner(kernel, target).run(
            {"in0": place(spec.a, x), "weight0": place(MemoryView.dense(packed.shape, "float32"), packed), "out0": out}
        )
        items.append(kernel.items)
        results.append(out.copy())
    assert items[0] < items[1] < items[2]
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("target", ("avx2", "avx512"))
def test_few_rows_are_one_block(target):
    """Every block reads all weights: with one tile in each they were read four times."""
    for rows in (64, 128, 197, 512):
        loops = StrassenLoops(gemm_problem(large(rows, 2048, 5632)), TARGETS[target], Epilogue(), ProgramParts({}))
        assert loops.blocks.count == 1 or loops.blocks.size >= LEAST_TILES


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(
    "case", [(1, 6, 7, 32, 64), (3, 7, 7, 64, 96), (1, 5, 30, 34, 32), (4, 14, 3, 16, 32)], ids=str
)
def test_images_with_gaps_between_rows(case, target):
    n, h, w, ic, oc = case
    halo = ((0, 0), (1, 1), (1, 2), (0, 0))
    data, out = framed((n, h, w, ic), halo), framed((n, h, w, oc), halo)
    spec = T.ConvSpec(data, out, (1, 1), (1, 1), (1, 1), (0, 0))
    problem, rng = conv_problem(spec), np.random.default_rng(2)
    assert supports_strassen(problem, TARGETS[target]) == ""
    x, r = rng.standard_normal(data.shape).astype("f"), rng.standard_normal(out.shape).astype("f")
    weight, bias = rng.standard_normal((ic, oc)).astype("f"), rng.standard_normal(oc).astype("f")
    extra = bias_relu_residual(out)
    kernel = contractions("conv", [problem], TARGETS[target], extra, spec.roles, 0, T.STRASSEN)
    packed = pack_strassen(problem, TARGETS[target], WeightMatrix.of(weight[None])).array()
    result = place(out, fill=77)
    buffers = {
        "in0": place(data, x, fill=np.nan),
        "weight0": place(MemoryView.dense(packed.shape), packed),
        "out0": result,
        "r0": place(out, r),
        "b0": place(MemoryView.dense((oc,)), bias),
    }
    Runner(kernel, TARGETS[target]).run(buffers, 3)
    np.testing.assert_allclose(window(result, out), np.maximum(x @ weight + bias + r, 0), rtol=0, atol=2e-4)
    assert (result == 77).sum() >= result.size - out.size, "wrote outside the view"


def large(m: int, n: int, k: int, minimal: bool = True) -> T.GemmSpec:
    return T.GemmSpec(
        MemoryView.dense((1, m, k)), MemoryView.dense((1, k, n)), MemoryView.dense((1, m, n)), minimal=minimal
    )


def test_taken_for_large_products_when_allowed():
    target = TARGETS["avx512"]
    assert product_of(gemm_problem(large(1024, 1024, 1024)), target) is T.STRASSEN
    assert product_of(gemm_problem(large(1, 1024, 1024)), target) is T.TILES
    assert product_of(gemm_problem(large(512, 512, 64)), target) is T.TILES
    assert "product in 7" in str(T.gemm(large(256, 512, 512), target).program)
    assert "product in 7" not in str(T.gemm(large(256, 512, 512, minimal=False), target).program)
    w = np.ones((1, 512, 512), "f")
    assert (
        T.pack_gemm(large(256, 512, 512), target, w).size * 4
        == 7 * T.pack_gemm(large(256, 512, 512, minimal=False), target, w).size
    )


@pytest.mark.parametrize("change", ["odd depth", "odd columns", "batch", "strided"])
def test_declined(change):
    m, n, k = 64, 64 + (change == "odd columns"), 64 + (change == "odd depth")
    batch = 2 if change == "batch" else 1
    a = MemoryView("float32", (batch, m, k), (m * k, 1, m)) if change == "strided" else MemoryView.dense((batch, m, k))
    spec = T.GemmSpec(a, MemoryView.dense((batch, k, n)), MemoryView.dense((batch, m, n)))
    assert supports_strassen(gemm_problem(spec), TARGETS["avx512"])


def test_rows_that_are_padding_stay_zero():
    """Such a row would be the rounding error of another one, which a norm makes a direction of."""
    x, w = relay.var("x", shape=(60, 4, 512)), relay.var("w", shape=(512, 512))
    padded = relay.nn.pad(x, ((0, 68), (0, 4), (0, 0)))
    rows = relay.reshape(relay.transpose(padded, (1, 0, 2)), (-1, 512))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(rows, w)))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((60, 4, 512), (512, 512)))
    out = relay.build(mod, "llvm", params={"w": w}).run(x=x).reshape(8, 128, 512)
    assert out[:4, :60].all() and not out[:, 60:].any() and not out[4:].any()


def test_equal_products_differ_where_one_has_padded_rows(tmp_path, monkeypatch):
    """In one build, and in two that share a cache: the kernel of one does not read the panels of the other."""
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(shape).astype("float32") for shape in ((1020, 512), (512, 512), (512, 512)))
    data, padding = relay.var("x", shape=x.shape), ((0, 4), (0, 0))

    def rows_of(padded):
        """Rows of zeros that padding left, or the cosines of such, which are none."""
        rows = relay.nn.pad(data, padding)
        return rows if padded else relay.annotation.stop_fusion(relay.cos(rows))

    def check(*kinds):
        made = [relay.nn.dense(rows_of(padded), relay.const(weight)) for padded, weight in kinds]
        found = relay.build(relay.IRModule.from_expr(relay.Function([data], relay.Tuple(made))), "llvm").run(x=x)
        for (padded, weight), got in zip(kinds, np.reshape(found, (len(kinds), 1024, 512)), strict=True):
            rows = np.pad(x, padding).astype("float64")
            want = (rows if padded else np.cos(rows)) @ weight.T
            np.testing.assert_allclose(got, want, atol=1e-5 * abs(want).max())

    check((True, w))
    check((False, w))
    check((True, v), (False, w), (True, w), (False, v))
