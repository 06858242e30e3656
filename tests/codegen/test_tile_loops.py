"""The loop programs of products and convolutions: proven, evaluated and compiled they say the same (law 8)."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, bias_relu_residual, index_scale, runnable_targets

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.templates import ConvSpec, Epilogue, GemmSpec, conv, conv_transpose, gemm
from relaylab.codegen.templates.assemble import contraction_program
from relaylab.codegen.templates.conv import conv_problem
from relaylab.codegen.templates.conv_transpose import needed_transpose_halo, transpose_problems
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.loop.program import LoopProgram
from relaylab.loop.run import run
from relaylab.loop.verify import unproven

dense = MemoryView.dense


def product(batch: int, m: int, n: int, k: int, packed: bool = True, turned: bool = False):
    """A product with the shapes of its logical operands."""
    b = MemoryView("float32", (batch, k, n), (n * k, 1, k)) if turned else dense((batch, k, n))
    spec = GemmSpec(dense((batch, m, k)), b, dense((batch, m, n)), packed)
    return spec, gemm, lambda target: [gemm_problem(spec)]


def convolution(size: int, channels: int, kernel: int, out: int, stride: int = 1, groups: int = 1, batch: int = 1):
    pad, half = kernel // 2, (size - 1) // stride + 1
    data = MemoryView.padded((batch, size, size, channels), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    result = dense((batch, half, half, out))
    spec = ConvSpec(data, result, (kernel,) * 2, (stride,) * 2, (1, 1), (pad, pad), groups)
    return spec, conv, lambda target: [conv_problem(spec)]


def transposed_convolution():
    plain = ConvSpec(dense((1, 4, 4, 5)), dense((1, 8, 8, 20)), (4, 4), (2, 2), (1, 1), (1, 1))
    data = MemoryView.padded((1, 4, 4, 5), needed_transpose_halo(plain))
    spec = ConvSpec(data, plain.out, (4, 4), (2, 2), (1, 1), (1, 1))
    return spec, conv_transpose, lambda target: transpose_problems(spec, target)


CASES = {
    "one row": lambda: product(1, 1, 33, 7),
    "tails": lambda: product(1, 29, 70, 9),
    "batch": lambda: product(3, 7, 20, 6),
    "two inputs": lambda: product(2, 9, 21, 5, packed=False),
    "gathered": lambda: product(2, 9, 37, 19, packed=False, turned=True),
    "deep panels": lambda: product(1, 8, 600, 220),
    "pointwise": lambda: convolution(5, 12, 1, 18),
    "taps": lambda: convolution(7, 3, 3, 40, stride=2, batch=2),
    "groups": lambda: convolution(4, 6, 3, 16, groups=2),
    "transposed": transposed_convolution,
}
EPILOGUES = {
    "none": lambda view: Epilogue(),
    "residual": bias_relu_residual,
    "rolled": lambda view: bias_relu_residual(view, rolled=True),
    "index": lambda view: index_scale(len(view.shape)),
}


def filled(program: LoopProgram) -> dict[str, np.ndarray]:
    """Numbers in every operand, so small that sums of them are exact."""
    rng = np.random.default_rng(1)
    found = {role: aligned(t.shape[0], t.dtype) for role, t in program.buffers}
    for role, values in found.items():
        values[:] = 0 if role == "out0" else rng.integers(-4, 5, values.size)
    return found


def evaluated(program: LoopProgram, operands: dict[str, np.ndarray]) -> np.ndarray:
    """The output by the loop evaluator."""
    memory = {t: operands[role].copy() for role, t in program.buffers}
    run(program, memory)
    return memory[dict(program.buffers)["out0"]]


@pytest.mark.parametrize("case", CASES)
def test_the_program_is_what_is_compiled(case: str) -> None:
    spec, make, problems = CASES[case]()
    isa = runnable_targets()[-1]
    for name in EPILOGUES if case in ("tails", "taps") else ("residual",):
        epilogue = EPILOGUES[name](spec.out)
        program = contraction_program("kernel", problems(TARGETS[isa]), TARGETS[isa], epilogue, spec.roles)
        kernel = make(spec, TARGETS[isa], epilogue)
        assert str(program).split("(", 1)[1] == kernel.loops.split("(", 1)[1] and program.items == kernel.items
        operands = filled(program)
        want = evaluated(program, operands)
        Runner(kernel, TARGETS[isa]).run(operands, splits=3)
        np.testing.assert_array_equal(operands["out0"], want)
        assert np.any(want)


@pytest.mark.parametrize("isa", TARGETS)
def test_every_access_is_proven(isa: str) -> None:
    for case, make in CASES.items():
        spec, _, problems = make()
        for epilogue in (bias_relu_residual(spec.out), bias_relu_residual(spec.out, rolled=True)):
            program = contraction_program("kernel", problems(TARGETS[isa]), TARGETS[isa], epilogue, spec.roles)
            assert unproven(program) is None, case


def test_a_product_is_that_of_numpy() -> None:
    spec, _, problems = product(2, 9, 37, 19, packed=False, turned=True)
    target = TARGETS["avx2"]
    program = contraction_program("kernel", problems(target), target, Epilogue(), spec.roles)
    operands = filled(program)
    x, w = operands["in0"].reshape(2, 9, 19), operands["in1"].reshape(2, 37, 19)
    np.testing.assert_array_equal(evaluated(program, operands).reshape(2, 9, 37), x @ w.transpose(0, 2, 1))


def test_large_matrices_are_packed_when_they_are_inputs() -> None:
    isa = runnable_targets()[-1]
    rng = np.random.default_rng(2)
    for rows, copied in ((128, True), (16, False)):
        spec, _, _ = product(1, rows, 900, 600, packed=False)
        kernel = gemm(spec, TARGETS[isa])
        assert ("panel" in kernel.loops) == bool(kernel.scratch) == copied
        x, w, out = (aligned(n) for n in (rows * 600, 600 * 900, rows * 900))
        x[:], w[:] = rng.standard_normal(x.size), rng.standard_normal(w.size)
        Runner(kernel, TARGETS[isa]).run({"in0": x, "in1": w, "out0": out}, splits=3)
        want = x.reshape(rows, 600).astype("float64") @ w.reshape(600, 900)
        np.testing.assert_allclose(out.reshape(rows, 900), want, atol=1e-3)
