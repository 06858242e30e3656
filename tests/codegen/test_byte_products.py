"""Products of bytes on every instruction set: exact at the extremes, where instructions that saturate would not be."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernel_runner import Runner, aligned, runnable_targets

from relaylab import relay
from relaylab.codegen.build import BASELINE
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, module_text
from relaylab.codegen.llvm.jit import emit_assembly
from relaylab.codegen.templates import Epilogue, GemmSpec, gemm
from relaylab.codegen.templates.product_family import contraction_program
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.loop.expr import Local, apply
from relaylab.loop.run import run as run_program
from relaylab.loop.scalar import SCALAR_OPS
from relaylab.loop.verify import unproven
from relaylab.op.tensor.composite import round_even
from relaylab.runtime import cpu, graph_executor
from relaylab.support.errors import RelayTypeError

ALL = ("llvm", "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", BASELINE)
TARGETS = [t for t in ALL if CpuTarget.parse(t).isa in runnable_targets()]
RANDOM = np.random.default_rng(5)


def built(body: relay.Expr, target: str, level: int = 3):
    with relay.transform.PassContext(opt_level=level):
        return relay.build(relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)), target)


def run(body: relay.Expr, target: str, x: np.ndarray) -> np.ndarray:
    module = graph_executor.GraphModule(built(body, target)["default"](cpu(0)))
    module.run(x=x)
    return module.get_output(0).numpy()


def unsigned(shape: tuple[int, ...], extreme: bool) -> np.ndarray:
    return np.full(shape, 255, "uint8") if extreme else RANDOM.integers(0, 256, shape).astype("uint8")


def signed(shape: tuple[int, ...], extreme: bool) -> np.ndarray:
    return (
        RANDOM.choice([-128, 127, -128], shape).astype("int8") if extreme else RANDOM.integers(-128, 128, shape, "int8")
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("shape", [(1, 8, 5), (7, 132, 37), (3, 4, 1), (30, 64, 100)])
def test_dense_is_exact(target: str, extreme: bool, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, w = unsigned((m, k), extreme), signed((n, k), extreme)
    body = relay.nn.dense(relay.var("x", shape=(m, k), dtype="uint8"), relay.const(w), units=n, out_dtype="int32")
    np.testing.assert_array_equal(run(body, target, x), x.astype("int64") @ w.T.astype("int64"))


CONVOLUTIONS = {
    "3x3": ((1, 8, 9, 7), (19, 8, 3, 3), {"padding": 1}),
    "strided": ((2, 12, 10, 9), (16, 12, 3, 3), {"padding": 1, "stride": 2}),
    "dilated": ((1, 4, 11, 10), (5, 4, 3, 3), {"padding": 2, "dilation": 2}),
    "groups": ((1, 16, 6, 6), (8, 8, 3, 3), {"groups": 2, "padding": 1}),
    "1x1": ((1, 64, 5, 5), (33, 64, 1, 1), {}),
    "three channels": ((1, 3, 9, 9), (8, 3, 3, 3), {"padding": 1}),
    "depthwise": ((1, 8, 9, 9), (8, 1, 3, 3), {"padding": 1, "groups": 8}),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtypes", ["uint8 int8", "uint8 uint8", "int8 int8", "int8 uint8"])
@pytest.mark.parametrize("zeros", ["none", "known", "given"])
@pytest.mark.parametrize("shape", [(5, 8, 37), (1, 15, 5), (30, 64, 100), (2, 3, 9, 33)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_weights_may_be_inputs(target: str, dtypes: str, zeros: str, shape: tuple[int, ...], turned: bool) -> None:
    *rows, k, n = shape
    kinds = dtypes.split()
    ends = [np.iinfo(kind) for kind in kinds]
    x, w = (
        RANDOM.integers(e.min, e.max + 1, s).astype(kind)
        for e, s, kind in zip(ends, ((*rows, k), (k, n) if turned else (n, k)), kinds)
    )
    x.reshape(-1)[:3], w.reshape(-1)[:3] = ends[0].max, ends[1].min
    taken = [0, 0] if zeros == "none" else [e.min + 5 if kind == "int8" else 201 for e, kind in zip(ends, kinds)]
    names, given = ("x", "w"), {"x": x, "w": w}
    sides = []
    for name, value, zero, kind in zip(names, (x, w), taken, kinds):
        wide = relay.cast(relay.var(name, shape=value.shape, dtype=kind), "int32")
        if zeros == "given":
            given[name + "0"] = np.array([zero], kind)
            wide = wide - relay.cast(relay.var(name + "0", shape=(1,), dtype=kind), "int32")
        elif zeros == "known":
            wide = wide - relay.const(zero, "int32")
        sides.append(wide)
    weight = relay.transpose(sides[1], axes=(1, 0)) if turned else sides[1]
    body = relay.nn.relu(relay.nn.dense(sides[0], weight, out_dtype="int32"))
    lib = built(body, target)
    want = (x.astype("int64") - taken[0]) @ ((w if turned else w.T).astype("int64") - taken[1])
    np.testing.assert_array_equal(lib.run(**given), np.maximum(want, 0))
    assert "dot4" in "".join(lib.inspect("loop", kernel) for kernel in lib.kernels())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtypes", ["uint8 int8", "int8 uint8"])
@pytest.mark.parametrize("zeros", [(0, 0), (7, -3)])
@pytest.mark.parametrize("shape", [(3, 5, 8, 33), (1, 9, 15, 4), (4, 1, 64, 20)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("one", [False, True])
def test_batches_of_bytes(target, dtypes, zeros, shape, turned, one) -> None:
    batch, m, k, n = shape
    kinds = dtypes.split()
    shapes = (batch, m, k), (1 if one else batch, *((n, k) if turned else (k, n)))
    ends = [np.iinfo(kind) for kind in kinds]
    x, w = (RANDOM.integers(e.min, e.max + 1, s).astype(kind) for e, s, kind in zip(ends, shapes, kinds))
    wide = [
        relay.cast(relay.var(name, shape=s, dtype=kind), "int32") - relay.const(zero, "int32")
        for name, s, kind, zero in zip("xw", shapes, kinds, zeros)
    ]
    lib = built(relay.nn.batch_matmul(*wide, out_dtype="int32", transpose_b=turned), target)
    right = w.swapaxes(1, 2) if turned else w
    want = (x.astype("int64") - zeros[0]) @ (right.astype("int64") - zeros[1])
    np.testing.assert_array_equal(lib.run(x=x, w=w), want)
    assert "dot4" in "".join(lib.inspect("loop", kernel) for kernel in lib.kernels())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_exact(target: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    shape, weight_shape, how = CONVOLUTIONS[name]
    x, w = unsigned(shape, False), signed(weight_shape, True)
    want = torch.nn.functional.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double(), **how)
    pad, step, far = (how.get(k, d) for k, d in (("padding", 0), ("stride", 1), ("dilation", 1)))
    body = relay.nn.conv2d(
        relay.var("x", shape=shape, dtype="uint8"), relay.const(w), channels=w.shape[0], kernel_size=w.shape[2:],
        strides=(step,) * 2, padding=(pad,) * 2, dilation=(far,) * 2, groups=how.get("groups", 1), out_dtype="int32",
    )  # fmt: skip
    np.testing.assert_array_equal(run(body, target, x), want.numpy().astype("int32"))


@pytest.mark.parametrize("target", TARGETS)
def test_sums_that_stay_bytes_are_no_products_of_bytes(target: str) -> None:
    torch = pytest.importorskip("torch")
    x, w = unsigned((3, 8, 8), False), unsigned((16, 8, 3), False)
    body = relay.nn.conv1d(
        relay.var("x", shape=x.shape, dtype="uint8"), relay.const(w), padding=(1, 1), channels=16, kernel_size=(3,)
    )
    want = torch.nn.functional.conv1d(torch.from_numpy(x).double(), torch.from_numpy(w).double(), padding=1)
    np.testing.assert_array_equal(run(body, target, x), want.numpy().astype("int64").astype("uint8"))


@pytest.mark.parametrize("target", TARGETS)
def test_wide_sums_are_stored_as_what_becomes_of_them(target: str) -> None:
    torch = pytest.importorskip("torch")
    x, w = unsigned((1, 12, 6, 7), False), signed((5, 12, 3, 3), False)
    data = relay.var("x", shape=x.shape, dtype="uint8")
    sums = relay.nn.conv2d(data, relay.const(w), channels=5, kernel_size=(3, 3), out_dtype="int32")
    want = torch.nn.functional.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double())
    np.testing.assert_array_equal(run(relay.cast(sums, "float32"), target, x), want.numpy().astype("float32"))


@pytest.mark.parametrize("zero", [2**31 - 1, -(2**31)])
def test_a_zero_point_at_the_end_of_its_type_wraps_as_sums_do(zero: int) -> None:
    x, w = signed((3, 8), False), signed((5, 8), False)
    data = relay.cast(relay.var("x", shape=x.shape, dtype="int8"), "int32") - relay.const(zero, "int32")
    body = relay.nn.dense(data, relay.const(w.astype("int32")), units=5, out_dtype="int32")
    want = (x.astype("int64") - zero) @ w.T.astype("int64")
    np.testing.assert_array_equal(run(body, "llvm", x), want.astype("int32"))


UNSIGNED = {
    "dense": ((5, 21), (7, 21), {}),
    "1x1": ((1, 64, 5, 5), (33, 64, 1, 1), {"strides": (2, 2)}),
    "3x3": ((2, 8, 9, 7), (19, 8, 3, 3), {"padding": (1, 0, 2, 1)}),
    "three channels": ((1, 3, 9, 9), (8, 3, 3, 3), {"padding": (1, 1), "dilation": (2, 1)}),
    "channels last": ((1, 6, 7, 8), (3, 3, 8, 5), {"padding": (1, 1), "data_layout": "NHWC", "kernel_layout": "HWIO"}),
    "groups": ((1, 16, 6, 6), (8, 8, 3, 3), {"padding": (1, 1), "groups": 2}),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("centre", [0, 37, 128, 255])
def test_zero_points_that_are_inputs_and_unsigned_weights(target: str, name: str, dtype: str, centre: int) -> None:
    """What quantizing a tensor when it comes makes, beside weights around any zero point."""
    shape, weight_shape, how = UNSIGNED[name]
    w = RANDOM.integers(0, 256, weight_shape).astype("int32") - centre
    limits = np.iinfo(dtype)
    x, zero = relay.var("x", shape=shape, dtype=dtype), relay.var("zero", shape=(1,), dtype=dtype)
    data = relay.cast(x, "int32") - relay.reshape(relay.cast(zero, "int32"), ())
    if name == "dense":
        body = relay.nn.dense(data, relay.const(w), units=w.shape[0], out_dtype="int32")
    else:
        last = "kernel_layout" in how
        body = relay.nn.conv2d(
            data, relay.const(w), channels=w.shape[3 if last else 0], kernel_size=w.shape[:2] if last else w.shape[2:],
            out_dtype="int32", **how,
        )  # fmt: skip
    mod = relay.IRModule.from_expr(relay.Function([x, zero], body))
    lib, text = relay.build(mod, target), relay.optimize(mod, target)[0].astext(show_meta_data=False)
    if name != "groups" or centre == 128:
        assert re.search(r"uint8\], %p\d+: Tensor\[[^]]*\), int8\]", text), "the product of bytes is missing"
    for start in (limits.min, int(RANDOM.integers(limits.min, limits.max)), limits.max):
        values = RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)
        module = graph_executor.GraphModule(lib["default"](cpu(0)))
        module.run(x=values, zero=np.array([start], dtype))
        want = sums_by_definition(values.astype("int64") - start, w.astype("int64"), name, how)
        np.testing.assert_array_equal(module.get_output(0).numpy(), want)


def sums_by_definition(x: np.ndarray, w: np.ndarray, name: str, how: dict) -> np.ndarray:
    """The product in float64, which is exact here, by PyTorch's definition of it."""
    torch = pytest.importorskip("torch")
    if name == "dense":
        return x @ w.T
    last = "kernel_layout" in how
    x, w = (x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)) if last else (x, w)
    top, left, bottom, right = (*how.get("padding", (0, 0)), *how.get("padding", (0, 0)))[:4]
    out = torch.nn.functional.conv2d(
        torch.nn.functional.pad(torch.tensor(x).double(), (left, right, top, bottom)), torch.tensor(w).double(),
        stride=how.get("strides", 1), dilation=how.get("dilation", 1), groups=how.get("groups", 1),
    ).numpy()  # fmt: skip
    return out.transpose(0, 2, 3, 1) if last else out


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("llvm -mcpu=x86-64-v4 -mattr=+avx512vnni", r"vpdpbusd.*%zmm"),
        ("llvm -mcpu=x86-64-v3 -mattr=+avxvnni", r"vpdpbusd.*%ymm"),
        ("llvm -mcpu=x86-64-v4", r"vpmaddwd.*%zmm"),
        ("llvm -mcpu=x86-64-v3", r"vpmaddwd.*%ymm"),
        (BASELINE, r"pmaddwd.*%xmm"),
    ],
)
def test_the_instruction_of_the_machine_is_used(target: str, instruction: str) -> None:
    a, b = MemoryView.dense((1, 12, 64), "uint8"), MemoryView.dense((1, 64, 64), "int8")
    machine = CpuTarget.parse(target)
    kernel = gemm(GemmSpec(a, b, MemoryView.dense((1, 12, 64), "int32")), machine)
    text = emit_assembly(module_text([kernel], attributes=machine.attributes), machine)
    assert re.search(instruction, text) and "pmaddubsw" not in text and "pmulld" not in text
    if machine.byte_products.whole:
        assert not re.search(r"\(%rsp\).*%[xyz]mm|%[xyz]mm.*\(%rsp\)", text), "vectors are spilled"


def operands_of(program, extreme):
    """Bytes in the words of input and weights, and no result yet."""
    found = {}
    for role, tensor in program.buffers:
        found[role] = aligned(tensor.shape[0], tensor.dtype)
        kind = {"in0": unsigned, "weight0": signed}.get(role)
        found[role].view("uint8")[:] = 0 if kind is None else kind((tensor.shape[0] * 4,), extreme).view("uint8")
    return found


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("isa", TARGETS)
def test_the_loops_of_products_of_bytes_are_evaluated_proven_and_compiled(isa: str, extreme: bool) -> None:
    """Law 8: the loop evaluator and machine code give the same words, whatever instructions there are."""
    target = CpuTarget.parse(isa)
    for m, k, n in ((7, 20, 37), (1, 8, 3), (30, 64, 100)):
        shapes = dict(a=((1, m, k), "uint8"), b=((1, k, n), "int8"), out=((1, m, n), "int32"))
        spec = GemmSpec(**{name: MemoryView.dense(*shape) for name, shape in shapes.items()})
        program = contraction_program("bytes", [gemm_problem(spec)], target, Epilogue(), spec.roles)
        assert "dot4(" in str(program) and unproven(program) is None
        operands = operands_of(program, extreme)
        memory = {t: operands[role].copy() for role, t in program.buffers}
        run_program(program, memory)
        want = memory[dict(program.buffers)["out0"]]
        kernel = gemm(spec, target)
        assert str(kernel.program).split("(", 1)[1] == str(program).split("(", 1)[1]
        Runner(kernel, target).run(operands, splits=2)
        np.testing.assert_array_equal(operands["out0"], want)
        assert np.any(want)


@pytest.mark.parametrize("isa", TARGETS)
def test_few_rows_make_words_of_bytes_as_they_go(isa: str) -> None:
    """A matrix that is an input was written in words first: it was walked over three times for one row."""
    target = CpuTarget.parse(isa)
    for batch, m, k, n in ((1, 1, 64, 100), (2, 3, 20, 37), (1, 4, 8, 16)):
        x, w = unsigned((batch, m, k), True), signed((batch, k, n), True)
        right = MemoryView.dense((batch, k, n), "int8")
        spec = GemmSpec(
            MemoryView.dense((batch, m, k), "uint8"), right, MemoryView.dense((batch, m, n), "int32"), False
        )
        program = contraction_program("bytes", [gemm_problem(spec)], target, Epilogue(), spec.roles)
        assert unproven(program) is None and dict(program.buffers)["in1"].dtype == "int8"
        operands = {role: aligned(t.shape[0], t.dtype) for role, t in program.buffers}
        operands["in0"].view("uint8")[:], operands["in1"][:], operands["out0"][:] = x.ravel(), w.ravel(), 0
        memory = {t: operands[role].copy() for role, t in program.buffers}
        run_program(program, memory)
        Runner(gemm(spec, target), target).run(operands, splits=2)
        want = np.matmul(x.astype("int32"), w.astype("int32"))
        np.testing.assert_array_equal(operands["out0"].reshape(want.shape), want)
        np.testing.assert_array_equal(memory[dict(program.buffers)["out0"]], want.ravel())


def test_one_row_by_bytes_is_one_kernel() -> None:
    data, right = relay.var("x", shape=(1, 64), dtype="uint8"), relay.var("w", shape=(64, 48), dtype="int8")
    lib = built(relay.nn.matmul(data, right, out_dtype="int32"), "llvm")
    assert len(lib.kernels()) == 1 and "int8[3072]" in lib.inspect("loop")


def test_dot4_wraps_as_its_instruction_does() -> None:
    """Hand-made words: 255 * -128 four times, and a sum beyond the largest int32."""
    meaning = SCALAR_OPS["dot4"].meaning
    word = lambda *bytes_: np.array(bytes_, "uint8").view("int32")
    total = np.array([0], "int32")
    assert meaning(total, word(255, 255, 255, 255), word(128, 128, 128, 128)).tolist() == [4 * 255 * -128]
    assert meaning(total, word(1, 2, 3, 4), word(1, 255, 2, 254)).tolist() == [1 - 2 + 6 - 8]
    assert meaning(total + (2**31 - 1), word(1, 0, 0, 0), word(1, 0, 0, 0)).tolist() == [-(2**31)]
    with pytest.raises(RelayTypeError, match="`dot4` needs an int32, not float32"):
        apply("dot4", *[Local("x", "float32")] * 3)


def test_halves_to_even_are_one_function() -> None:
    """What importers and quantizers write with six operators: numpy's `rint`, at ties, at zeros and beyond."""
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 3.4999, 8388607.5, 0.0, -0.0, 1e30, np.inf, -np.inf, np.nan], "float32")
    body = round_even(relay.var("x", shape=x.shape), "float32")
    assert "roundeven" in built(body, "llvm").inspect("loop")
    for target in TARGETS:
        found = run(body, target, x)
        np.testing.assert_array_equal(found, np.rint(x))
        np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(np.rint(x[:-1])))
