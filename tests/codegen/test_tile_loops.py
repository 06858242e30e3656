"""The loop programs of products and convolutions: proven, evaluated and compiled they say the same (law 8)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, bias_relu_residual, framed, index_scale, runnable_targets

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.templates import DEPTHWISE, DIRECT, PHASES, ConvolutionFamily, ConvSpec, Epilogue, GemmSpec, gemm
from relaylab.codegen.templates.product_family import contraction_program
from relaylab.codegen.templates.conv import conv_problem
from relaylab.codegen.templates.conv_transpose import transpose_problems
from relaylab.codegen.templates.depthwise import depthwise_program
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.schedule import SUPPLY_CYCLES, schedule_contraction
from relaylab.codegen.templates.winograd_kernel import MINIMAL
from relaylab.loop.expr import Const, Tensor
from relaylab.loop.program import Body, For, IfThenElse, LoopNest, LoopProgram, Prefetch, Statement, Store
from relaylab.loop.run import run
from relaylab.loop.verify import unproven

dense = MemoryView.dense


def contracted(spec, problems: list[Problem], target: CpuTarget, epilogue: Epilogue) -> LoopProgram:
    """The program of some contractions."""
    return contraction_program("kernel", problems, target, epilogue, spec.roles)


def only(family: ConvolutionFamily):
    """What makes the one kernel of a family."""
    return lambda *at: family.build(*at).kernels[0]


def product(batch: int, m: int, n: int, k: int, packed: bool = True, turned: bool = False):
    """A product with the shapes of its logical operands."""
    b = MemoryView("float32", (batch, k, n), (n * k, 1, k)) if turned else dense((batch, k, n))
    spec = GemmSpec(dense((batch, m, k)), b, dense((batch, m, n)), packed)
    return spec, gemm, lambda *at: contracted(spec, [gemm_problem(spec)], *at)


def convolution(size: int, channels: int, kernel: int, out: int, stride: int = 1, groups: int = 1, batch: int = 1):
    pad, half = kernel // 2, (size - 1) // stride + 1
    data = framed((batch, size, size, channels), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    result = dense((batch, half, half, out))
    spec = ConvSpec(data, result, (kernel,) * 2, (stride,) * 2, (1, 1), (pad, pad), groups)
    return spec, only(DIRECT), lambda *at: contracted(spec, [conv_problem(spec)], *at)


def transposed_convolution():
    plain = ConvSpec(dense((1, 4, 4, 5)), dense((1, 8, 8, 20)), (4, 4), (2, 2), (1, 1), (1, 1))
    data = framed((1, 4, 4, 5), PHASES.reads(plain))
    spec = ConvSpec(data, plain.out, (4, 4), (2, 2), (1, 1), (1, 1))
    return spec, only(PHASES), lambda *at: contracted(spec, transpose_problems(spec, at[0]), *at)


def depthwise_convolution(space: tuple[int, ...], channels: int, kernel: int, stride: int = 1, dilation: int = 1):
    pad, rank = kernel // 2 * dilation, len(space)
    halo = ((0, 0), *[(pad, pad)] * rank, (0, 0))
    out = dense((1, *((n - 1) // stride + 1 for n in space), channels))
    same = ((kernel,) * rank, (stride,) * rank, (dilation,) * rank, (pad,) * rank)
    spec = ConvSpec(framed((1, *space, channels), halo), out, *same, channels)
    return spec, only(DEPTHWISE), lambda *at: depthwise_program(spec, *at)


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
    "few columns": lambda: convolution(3, 21, 3, 3),
    "few columns of a product": lambda: product(2, 9, 2, 37),
    "one column": lambda: product(1, 5, 1, 40),
    "depthwise": lambda: depthwise_convolution((2, 11), 21, 3),
    "depthwise, rows of tiles": lambda: depthwise_convolution((2, 30), 16, 3),
    "depthwise, strides": lambda: depthwise_convolution((3, 12), 24, 3, stride=2),
    "depthwise, rows of weights": lambda: depthwise_convolution((2, 4), 17, 7),
    "depthwise, far taps": lambda: depthwise_convolution((9,), 16, 3, dilation=9),
    "depthwise, cubes": lambda: depthwise_convolution((2, 2, 3), 5, 3, dilation=2),
}
EPILOGUES = {
    "none": lambda view: Epilogue(),
    "residual": bias_relu_residual,
    "channels first": lambda view: bias_relu_residual(channels_first(view)),
    "rolled": lambda view: bias_relu_residual(view, rolled=True),
    "index": lambda view: index_scale(len(view.shape)),
}


def channels_first(view: MemoryView) -> MemoryView:
    """The same shape in memory whose neighbours are pixels: lanes lie apart."""
    batch, *space, channels = view.shape
    pixels = math.prod(space)
    return MemoryView("float32", view.shape, (channels * pixels, *dense((batch, *space)).strides[1:], pixels))


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
    spec, make, write = CASES[case]()
    isa = runnable_targets()[-1]
    for name in EPILOGUES if case in ("tails", "taps", "few columns", "depthwise") else ("residual", "channels first"):
        epilogue = EPILOGUES[name](spec.out)
        program = write(TARGETS[isa], epilogue)
        kernel = make(spec, TARGETS[isa], epilogue)
        assert str(program).split("(", 1)[1] == str(kernel.program).split("(", 1)[1] and program.items == kernel.items
        operands = filled(program)
        want = evaluated(program, operands)
        Runner(kernel, TARGETS[isa]).run(operands, splits=3)
        np.testing.assert_array_equal(operands["out0"], want)
        assert np.any(want)


ACROSS = {
    "pointwise": lambda: convolution(9, 12, 1, 18),
    "taps": lambda: convolution(11, 3, 3, 20, stride=2, batch=2),
    "groups": lambda: convolution(9, 6, 3, 16, groups=2),
    "one channel": lambda: convolution(9, 12, 1, 33),
    "sums in memory": lambda: convolution(5, 260, 1, 19),
    "depthwise": lambda: depthwise_convolution((2, 11), 21, 3),
    "depthwise, strides": lambda: depthwise_convolution((3, 14), 24, 3, stride=2),
    "minimal": lambda: minimal(5, 18),
    "minimal, whole tiles": lambda: minimal(8, 5),
}


def minimal(size: int, channels: int):
    spec, _, _ = convolution(size, channels, 3, channels)
    data = framed(spec.data.shape, MINIMAL[4, 3].reads(spec))
    return replace(spec, data=data, minimal=True), only(MINIMAL[4, 3]), None


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("case", ACROSS)
def test_results_whose_pixels_lie_side_by_side_are_the_same(case: str, isa: str) -> None:
    spec, make, _ = ACROSS[case]()
    batch, *_, channels = spec.out.shape
    pixels_first = lambda x: x.reshape(batch, channels, -1).swapaxes(1, 2).ravel()
    for name in ("residual", "rolled", "index"):
        plain = make(spec, TARGETS[isa], EPILOGUES[name](spec.out))
        kernel = make(across := replace(spec, out=channels_first(spec.out)), TARGETS[isa], EPILOGUES[name](across.out))
        operands = filled(kernel.program)
        want = {role: aligned(x.size) for role, x in operands.items()}
        for role, x in operands.items():
            want[role][:] = pixels_first(x) if x.size == spec.out.size else x
        Runner(plain, TARGETS[isa]).run(want, splits=3)
        Runner(kernel, TARGETS[isa]).run(operands, splits=3)
        np.testing.assert_array_equal(pixels_first(operands["out0"]), want["out0"])
        assert unproven(kernel.program) is None
        assert isa == "generic" or "scatter" not in kernel.text  # that has tiles of one pixel
    told = evaluated(kernel.program, operands)
    # Points of minimal filtering are fractions: LLVM fuses products and sums, the evaluator does not.
    bound = 1e-6 * np.abs(told).max() if "minimal" in case else 0
    np.testing.assert_allclose(operands["out0"], told, rtol=0, atol=bound)


@pytest.mark.parametrize("isa", TARGETS)
def test_every_access_is_proven(isa: str) -> None:
    for case, make in CASES.items():
        spec, _, write = make()
        for epilogue in (bias_relu_residual(spec.out), bias_relu_residual(spec.out, rolled=True)):
            program = write(TARGETS[isa], epilogue)
            assert unproven(program) is None, case


def test_a_product_is_that_of_numpy() -> None:
    spec, _, write = product(2, 9, 37, 19, packed=False, turned=True)
    target = TARGETS["avx2"]
    program = write(target, Epilogue())
    operands = filled(program)
    x, w = operands["in0"].reshape(2, 9, 19), operands["in1"].reshape(2, 37, 19)
    np.testing.assert_array_equal(evaluated(program, operands).reshape(2, 9, 37), x @ w.transpose(0, 2, 1))


def test_long_sums_round_in_their_parts_only() -> None:
    isa = runnable_targets()[-1]
    rng = np.random.default_rng(5)
    for depth in (255, 256, 700, 4096):  # the first is one sum; 700 has parts and a rest
        spec, _, _ = product(1, 13, 48, depth, packed=False)
        kernel = gemm(spec, TARGETS[isa])
        assert ("for part" in str(kernel.program)) == (depth > 255)
        x, w, out = (aligned(n) for n in (13 * depth, depth * 48, 13 * 48))
        x[:], w[:] = rng.standard_normal(x.size), rng.standard_normal(w.size)
        Runner(kernel, TARGETS[isa]).run({"in0": x, "in1": w, "out0": out}, splits=2)
        a, b = x.reshape(13, depth).astype("float64"), w.reshape(depth, 48).astype("float64")
        # Each of the 128 or fewer terms of a part, and each part, rounds once: u times what the sum has come to.
        bound = np.finfo("float32").eps / 2 * (depth**0.5 * 128**0.5)
        error = np.sqrt(np.mean((out.reshape(13, 48) - a @ b) ** 2))
        assert error < (bound if depth > 255 else 2 * bound)


def test_large_matrices_are_packed_when_they_are_inputs() -> None:
    isa = runnable_targets()[-1]
    rng = np.random.default_rng(2)
    for rows, copied in ((128, True), (16, False)):
        spec, _, _ = product(1, rows, 900, 600, packed=False)
        kernel = gemm(spec, TARGETS[isa])
        assert ("panel" in str(kernel.program)) == copied
        x, w, out = (aligned(n) for n in (rows * 600, 600 * 900, rows * 900))
        x[:], w[:] = rng.standard_normal(x.size), rng.standard_normal(w.size)
        Runner(kernel, TARGETS[isa]).run({"in0": x, "in1": w, "out0": out}, splits=3)
        want = x.reshape(rows, 600).astype("float64") @ w.reshape(600, 900)
        np.testing.assert_allclose(out.reshape(rows, 900), want, atol=1e-3)


def marking(body: Body, role: str, asked: Tensor) -> Body:
    """The statements with a mark stored for each line of an operand that is asked for, and no other store."""

    def one(statement: Statement) -> Statement | None:
        match statement:
            case Store():
                return None
            case Prefetch(buffer, address):
                return Store(asked, address // 16, Const(1, "float32")) if buffer.name == role else None
            case For() if statement.kind != "vectorized":
                return replace(statement, body=marking(statement.body, role, asked))
            case IfThenElse():
                sides = (marking(side, role, asked) for side in (statement.body, statement.otherwise))
                return IfThenElse(statement.condition, *sides)
        return None if isinstance(statement, For) else statement

    return tuple(found for s in body if (found := one(s)) is not None)


def asked_for(program: LoopProgram, role: str, lines: int) -> np.ndarray:
    """Whether each of so many lines of an operand is asked for."""
    asked = Tensor("asked", (lines,), "float32")
    (nest,) = program.nests
    nest = LoopNest(replace(nest.loop, body=marking(nest.loop.body, role, asked)), nest.grain)
    memory = {t: np.zeros(t.shape[0], t.dtype) for t in (*(t for _, t in program.buffers), asked)}
    run(replace(program, buffers=(*program.buffers, ("asked", asked)), nests=(nest,), registers=()), memory)
    return memory[asked] > 0


@pytest.mark.parametrize("outer", (0, 1))
@pytest.mark.parametrize("rows", (13, 30, 49))  # tiles that do not divide a panel
def test_tiles_ask_for_the_whole_of_the_next_panel(rows: int, outer: int) -> None:
    spec, _, _ = product(1, rows, 64, 40)
    choices = {"outer": outer, "prefetch": 1, "rows": 6, "vectors": 2, "tiles": -(-rows // 6), "panels": 1}
    spec, panel = replace(spec, choices=tuple(choices.items())), 40  # lines
    program = contracted(spec, [gemm_problem(spec)], TARGETS["avx2"], Epilogue())
    asked = asked_for(program, "weight0", 8 * panel)
    assert not asked[:panel].any(), "the first panel is not the next one of any"
    assert asked[panel : 4 * panel].all()


def test_lines_are_asked_for_before_they_are_written() -> None:
    spec, _, _ = product(1, 13, 80, 40)
    program = contracted(spec, [gemm_problem(spec)], TARGETS["avx2"], Epilogue())
    assert asked_for(program, "out0", 13 * 80 // 16).all()
    _, _, write = depthwise_convolution((5, 7), 64, 3)
    rows = asked_for(write(TARGETS["avx512"], Epilogue()), "out0", 6 * 7 * 4).reshape(6, 7 * 4)
    assert rows[1:].all() and not rows[0].any(), "those of the next row"


def test_a_panel_comes_while_some_tiles_are_done() -> None:
    for m, n, k in ((49, 768, 3072), (64, 2048, 5632), (577, 768, 3072), (577, 3072, 768)):
        spec, _, _ = product(1, m, n, k)
        for isa in ("avx2", "avx512"):
            plan = schedule_contraction(gemm_problem(spec), TARGETS[isa])
            assert plan.prefetch and plan.tiles >= 5, (m, n, k, isa)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("depth", [64, 128, 256])
def test_one_row_has_sums_enough_to_hide_how_long_one_takes(isa: str, depth: int) -> None:
    spec, _, _ = product(1, 1, 768, depth)
    assert schedule_contraction(gemm_problem(spec), TARGETS[isa]).vectors >= 4


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("shape", [(64, 2048, 5632), (128, 768, 3072), (64, 384, 4032), (49, 512, 4608)])
def test_a_panel_that_the_cache_does_not_hold_twice_meets_many_rows(isa: str, shape: tuple[int, int, int]) -> None:
    spec, _, _ = product(1, *shape)
    target = TARGETS[isa]
    plan = schedule_contraction(gemm_problem(spec), target)
    panel = plan.vectors * target.facts.vector_bytes * shape[2]
    assert 2 * panel <= target.facts.second_cache or math.prod(plan.tile) >= 2 * SUPPLY_CYCLES - 1


def test_short_rows_of_pixels_make_one_tile_where_a_set_of_the_cache_holds_them() -> None:
    data, out = framed((1, 4, 4, 1024), ((0, 0), (1, 1), (1, 1), (0, 0))), dense((1, 8, 8, 512))
    spec = ConvSpec(data, out, (4, 4), (2, 2), (1, 1), (1, 1))
    for problem in transpose_problems(spec, TARGETS["avx512"]):
        assert schedule_contraction(problem, TARGETS["avx512"]).tile == (2, 4)
