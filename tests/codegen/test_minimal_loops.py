"""The loop programs of minimal filtering and Strassen's products: proven; evaluated and compiled they agree (law 8)."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, bias_relu_residual, framed, index_scale, runnable_targets

from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.templates.conv import conv_problem
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.product_family import contraction_program, contractions
from relaylab.codegen.templates.winograd_kernel import MinimalFiltering, winograd_programs
from relaylab.loop.program import LoopProgram
from relaylab.loop.run import run
from relaylab.loop.verify import unproven

FILTERED = {  # batch, height, width, in channels, out channels, kernel, stride, padding, m, elements between pixels
    "blocked": (1, 7, 9, 20, 33, 3, 1, 1, 4, 0),
    "images": (2, 6, 5, 3, 8, 3, 1, 0, 2, 0),
    "one channel": (1, 8, 8, 17, 1, 3, 1, 1, 2, 0),
    "many blocks": (1, 26, 20, 2, 5, 3, 1, 1, 4, 0),
    "three kernels": (1, 3, 3, 70, 66, 3, 1, 1, 4, 0),
    "phases": (1, 8, 6, 5, 18, 4, 2, 1, 3, 0),
    "phases apart": (1, 8, 6, 5, 18, 4, 2, 1, 3, 16),
    "two taps": (1, 6, 7, 5, 18, 2, 1, 0, 2, 0),
    "taps of zero": (1, 11, 14, 3, 18, 7, 2, 3, 3, 0),
    "dilated": (2, 8, 7, 17, 18, 3, 2, 2, 2, 0),
    "dilated, many weights": (1, 5, 6, 70, 66, 3, 3, 3, 4, 0),
    "transposed": (1, 5, 4, 5, 18, 4, 2, 1, 2, 0),
    "transposed, images apart": (2, 3, 4, 17, 3, 6, 3, 2, 2, 16),
    "transposed, stride 1": (1, 5, 6, 20, 9, 3, 1, 1, 2, 0),
}
TURNED = [case for case in FILTERED if case.startswith("transposed")]


def filtered(case: str) -> tuple[T.ConvSpec, MinimalFiltering]:
    n, h, w, ic, oc, k, s, pad, m, gap = FILTERED[case]
    s, d = (1, s) if case.startswith("dilated") else (s, 1)
    family = (T.FLIPPED if case in TURNED else T.MINIMAL)[m, -(-k // s)]
    edge = lambda n: (n - 1) * s - 2 * pad + k if case in TURNED else (n + 2 * pad - d * (k - 1) - 1) // s + 1
    out = MemoryView.dense((n, edge(h), edge(w), oc))
    rest = out, (k, k), (s, s), (d, d), (pad, pad)
    halo = family.reads(T.ConvSpec(MemoryView.dense((n, h, w, ic)), *rest))
    return T.ConvSpec(framed((n, h, w, ic), (*halo[:3], (0, gap))), *rest), family


def filled(programs: tuple[LoopProgram, ...]) -> dict[str, np.ndarray]:
    """Whole numbers in every operand, so small that their sums are exact; what is computed is 0."""
    rng, found = np.random.default_rng(1), dict[str, np.ndarray]()
    for role, tensor in (buffer for program in programs for buffer in program.buffers):
        found.setdefault(role, aligned(tensor.shape[0], tensor.dtype))
        if role[:3] not in ("out", "wor"):
            found[role][:] = rng.integers(-4, 5, tensor.shape[0])
    return found


def evaluated(programs: tuple[LoopProgram, ...], operands: dict[str, np.ndarray]) -> np.ndarray:
    """The output by the loop evaluator."""
    held = {role: values.copy() for role, values in operands.items()}
    for program in programs:
        run(program, {tensor: held[role][: tensor.shape[0]] for role, tensor in program.buffers})
    return held["out0"]


@pytest.mark.parametrize("case", FILTERED)
def test_filtering_is_what_is_compiled(case: str) -> None:
    spec, family = filtered(case)
    target = TARGETS[runnable_targets()[-1]]
    epilogue = index_scale(4) if case == "images" else bias_relu_residual(spec.out)
    programs = winograd_programs(spec, family.shape(spec), target, epilogue)
    kernels = family.build(spec, target, epilogue).kernels
    assert len(programs) == (
        3 if case in ("three kernels", "dilated, many weights") or family.shape(spec).parts > 1 else 1
    )
    for program, kernel in zip(programs, kernels, strict=True):
        assert str(program).split("(", 1)[1] == str(kernel.program).split("(", 1)[1] and program.items == kernel.items
    operands = filled(programs)
    want = evaluated(programs, operands)
    for kernel in kernels:
        Runner(kernel, target).run(operands, splits=3)
    # Six points are fractions: sums of their products round, once where the machine fuses them.
    near = 1e-6 * np.abs(want).max() if family.filter.edge == 6 else 0
    np.testing.assert_allclose(operands["out0"], want, rtol=0, atol=near)
    assert np.any(want)


@pytest.mark.parametrize("isa", TARGETS)
def test_every_access_of_filtering_is_proven(isa: str) -> None:
    for case in FILTERED:
        spec, family = filtered(case)
        for program in winograd_programs(spec, family.shape(spec), TARGETS[isa], bias_relu_residual(spec.out)):
            assert unproven(program) is None, (case, program.name)


def halved(case: str) -> tuple[T.GemmSpec | T.ConvSpec, Problem]:
    if "x" in case:
        m, n, k = map(int, case.split(" x "))
        product = T.GemmSpec(*(MemoryView.dense((1, *shape)) for shape in ((m, k), (k, n), (m, n))))
        return product, gemm_problem(product)
    h, w, ic, oc = map(int, case.split()[1:])
    data, out = (framed((1, h, w, c), ((0, 0), (1, 1), (1, 2), (0, 0))) for c in (ic, oc))
    image = T.ConvSpec(data, out, (1, 1), (1, 1), (1, 1), (0, 0))
    return image, conv_problem(image)


HALVED = ("2 x 32 x 2", "61 x 160 x 10", "64 x 96 x 10", "image 6 7 8 32", "image 7 5 6 32")


@pytest.mark.parametrize("case", HALVED)
def test_seven_products_are_what_is_compiled(case: str) -> None:
    spec, problem = halved(case)
    target = TARGETS[runnable_targets()[-1]]
    for epilogue in (bias_relu_residual(spec.out, rolled=case == "61 x 160 x 10"), index_scale(len(spec.out.shape))):
        program = contraction_program("gemm", [problem], target, epilogue, spec.roles, T.STRASSEN)
        kernel = contractions("gemm", [problem], target, epilogue, spec.roles, 0, T.STRASSEN)
        assert str(program).split("(", 1)[1] == str(kernel.program).split("(", 1)[1] and program.items == kernel.items
        operands = filled((program,))
        want = evaluated((program,), operands)
        Runner(kernel, target).run(operands, splits=3)
        np.testing.assert_array_equal(operands["out0"], want)
        assert np.any(want)


@pytest.mark.parametrize("isa", TARGETS)
def test_every_access_of_seven_products_is_proven(isa: str) -> None:
    for case in (*HALVED, "1024 x 1024 x 1024"):
        spec, problem = halved(case)
        epilogue = bias_relu_residual(spec.out)
        program = contraction_program("gemm", [problem], TARGETS[isa], epilogue, spec.roles, T.STRASSEN)
        assert unproven(program) is None, case
