"""Bodies of `outlined` loops: functions that kernels share, whatever the sizes around them are (law 8)."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import FUNCTION, TARGETS, Runner, aligned, runnable_targets

import relaylab
from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import Kernel, MemoryView, module_texts
from relaylab.codegen.llvm.jit import compile_objects
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.product_family import contractions
from relaylab.loop.parse import parse
from relaylab.loop.run import run
from relaylab.runtime.native import linker

TARGET = TARGETS[runnable_targets()[-1]]


def product(m: int, n: int, k: int, pitch: int = 0) -> Kernel:
    """The kernel of a product whose rows of A lie `pitch` elements apart."""
    a = MemoryView("float32", (1, m, k), (m * (pitch or k), pitch or k, 1))
    spec = T.GemmSpec(a, MemoryView.dense((1, k, n)), MemoryView.dense((1, m, n)))
    return contractions("gemm", [gemm_problem(spec)], TARGET, Epilogue(), spec.roles, 0)


def operands(kernel: Kernel) -> dict[str, np.ndarray]:
    """Whole numbers in every operand, so small that their sums are exact."""
    assert kernel.program is not None
    rng, found = np.random.default_rng(0), dict[str, np.ndarray]()
    for role, tensor in kernel.program.buffers:
        found[role] = aligned(tensor.shape[0], tensor.dtype)
        if role != "out0":
            found[role][:] = rng.integers(-4, 5, tensor.shape[0])
    return found


def expected(kernel: Kernel, given: dict[str, np.ndarray]) -> np.ndarray:
    assert kernel.program is not None
    held = {role: values.copy() for role, values in given.items()}
    run(kernel.program, {tensor: held[role] for role, tensor in kernel.program.buffers})
    return held["out0"]


def test_products_that_differ_in_sizes_call_one_function() -> None:
    kernels = [product(12, 96, 384), product(12, 96, 640), product(12, 96, 384, pitch=500)]
    names = [{routine.name for routine in kernel.routines} for kernel in kernels]
    assert names[0] and names[0] == names[2] and names[0] & names[1]
    for kernel in kernels:
        given = operands(kernel)
        want = expected(kernel, given)
        assert np.any(want)
        Runner(kernel, TARGET).run(given, splits=2)
        np.testing.assert_array_equal(given["out0"], want)


def test_functions_are_linked_from_modules_of_their_own() -> None:
    kernels = [product(9, 64, 300), product(9, 64, 450)]
    texts = dict.fromkeys(text for kernel in kernels for text in module_texts(kernel, TARGET.attributes))
    assert len(texts) < sum(1 + len(kernel.routines) for kernel in kernels)  # one serves both
    named = [kernel.by_content(f"k{k}") for k, kernel in enumerate(kernels)]
    texts = dict.fromkeys(text for kernel in named for text in module_texts(kernel, TARGET.attributes))
    library = linker().link(tuple(compile_objects(texts, TARGET, 1)), {kernel.name for kernel in named})
    for kernel in named:
        given = operands(kernel)
        want, runner = expected(kernel, given), Runner(kernel, TARGET)
        runner.function = FUNCTION(library[kernel.name])
        runner.run(given)
        np.testing.assert_array_equal(given["out0"], want)


SUMS = """kernel sums(x: in0 float32[64], y: out0 float32[{size}]) items=1
  registers acc: float32[16]
  parallel p in 1:
{body}
"""
OWN = """    for t in 4 outlined:
      for c in 16 vectorized:
        acc[c] = x[t * 16 + c]
      for c in 16 vectorized:
        y[t * 16 + c] = acc[c] * 2f"""
OUTSIDE = """    for c in 16 vectorized:
      acc[c] = 0f
    for t in 4 outlined:
      for c in 16 vectorized:
        acc[c] = acc[c] + x[t * 16 + c]
    for c in 16 vectorized:
      y[c] = acc[c]"""


def test_any_loop_may_be_outlined() -> None:
    program = parse(SUMS.format(size=64, body=OWN))
    assert str(parse(str(program))) == str(program) and "t in 4 outlined:" in str(program)
    kernel = lower_program(program, TARGET)
    assert len(kernel.routines) == 1
    given = operands(kernel)
    Runner(kernel, TARGET).run(given)
    np.testing.assert_array_equal(given["out0"], given["in0"] * 2)


def test_registers_do_not_pass_between_a_function_and_its_loops() -> None:
    with pytest.raises(relaylab.RelayError) as told:
        lower_program(parse(SUMS.format(size=16, body=OUTSIDE)), TARGET)
    assert told.value.code == "codegen.registers"


def test_a_library_shows_and_keeps_the_functions(tmp_path) -> None:
    rng = np.random.default_rng(1)
    x, weight = relay.var("x", relay.TensorType((9, 400))), rng.standard_normal((64, 400), "float32")
    mod = relaylab.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(weight))))
    lib = relay.build(mod, target=str(TARGET))
    shown = {form: lib.get_source(form) for form in ("ll", "asm")}
    assert (
        "define void @microkernel_" in shown["ll"]
        and "\nmicrokernel_" in shown["asm"]
        and "call void @microkernel_" in shown["ll"]
    )
    path = tmp_path / "lib.so"
    lib.export_library(str(path))
    data = rng.standard_normal((9, 400), "float32")
    for made in (lib, relaylab.runtime.load_module(str(path))):
        module = relaylab.runtime.graph_executor.GraphModule(made["default"](relaylab.runtime.cpu(0)))
        module.run(x=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), data @ weight.T, rtol=1e-4, atol=1e-4)
