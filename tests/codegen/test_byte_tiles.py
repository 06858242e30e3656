"""Products by tiles of bytes (AMX): exact, by the instructions that the manual describes (`tile_machine.py`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernel_runner import Runner, aligned, runnable_targets
from tile_machine import TileMachine, tile_machine

from relaylab import relay
from relaylab.codegen.inspection.control_flow import flows, outline
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates import BYTE_TILES, TILES as ORDINARY, Epilogue, GemmSpec
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.pack import WeightMatrix
from relaylab.codegen.templates.product_family import contraction_program, product_of
from relaylab.loop.matrix import matrix_product
from relaylab.loop.parse import parse
from relaylab.loop.program import For, LoopProgram, statements
from relaylab.loop.run import run as run_program
from relaylab.loop.schedule import Schedule
from relaylab.loop.verify import unproven
from relaylab.runtime import cpu, graph_executor, native
from relaylab.support.errors import RelayError

TILES = CpuTarget.parse("llvm -mcpu=x86-64-v4 -mattr=+amx-tile,+amx-int8")
RANDOM = np.random.default_rng(7)
pytestmark = pytest.mark.skipif("avx512" not in runnable_targets(), reason="what is around tiles is AVX-512")
SHAPES = [(1, 32, 16), (13, 64, 40), (16, 64, 64), (33, 128, 100), (40, 36, 32), (49, 192, 160), (100, 60, 17)]


def spec_of(m: int, k: int, n: int) -> GemmSpec:
    return GemmSpec(
        *(MemoryView.dense((1, *s), d) for s, d in (((m, k), "uint8"), ((k, n), "int8"), ((m, n), "int32")))
    )


def numbers(m: int, k: int, n: int, extreme: bool) -> tuple[np.ndarray, np.ndarray]:
    if extreme:
        return np.full((m, k), 255, "uint8"), RANDOM.choice([-128, 127, -128], (k, n)).astype("int8")
    return RANDOM.integers(0, 256, (m, k)).astype("uint8"), RANDOM.integers(-128, 128, (k, n)).astype("int8")


def memory(spec: GemmSpec, x: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
    packing = BYTE_TILES.pack(gemm_problem(spec), TILES, WeightMatrix.of(w[None]))
    found = {"in0": aligned(x.size, "uint8"), "weight0": aligned(packing.size, "int32")}
    found["out0"] = aligned(math.prod(spec.out.shape), "int32")
    found["in0"][:] = x.ravel()
    packing.write(found["weight0"])
    return found


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_is_exact(shape: tuple[int, int, int], extreme: bool) -> None:
    spec = spec_of(*shape)
    x, w = numbers(*shape, extreme)
    buffers = memory(spec, x, w)
    kernel = lower_program(program_of(spec), TILES, True)
    with tile_machine() as machine:
        Runner(kernel, TILES, check=False).run(buffers, splits=min(2, kernel.items))
    want = x.astype("int64") @ w.astype("int64")
    np.testing.assert_array_equal(buffers["out0"].reshape(want.shape), want)
    balanced(machine)


def test_where_tiles_are_taken() -> None:
    """Not for a single row, nor where a step would leave most of a tile empty, nor without tiles."""
    chosen = lambda shape, target: product_of(gemm_problem(spec_of(*shape)), target)
    assert chosen((64, 256, 64), TILES) is chosen((196, 1024, 512), TILES) is BYTE_TILES
    assert chosen((1, 256, 64), TILES) is chosen((64, 28, 64), TILES) is ORDINARY
    assert chosen((64, 256, 64), CpuTarget.parse("llvm -mcpu=x86-64-v4")) is ORDINARY


def balanced(machine: TileMachine) -> None:
    done = machine.done
    assert done["tdpbusd"] and done["ldtilecfg"] == done["tilerelease"] > 0
    assert not any(tiles.ready for tiles in machine.threads.values()), "tiles are given back"


def program_of(spec: GemmSpec) -> LoopProgram:
    return contraction_program("product", (gemm_problem(spec),), TILES, Epilogue(), spec.roles, BYTE_TILES)


@pytest.mark.parametrize("shape", [(3, 32, 16), (17, 64, 20)])
def test_the_program_says_what_tiles_do(shape: tuple[int, int, int]) -> None:
    """The loop evaluator agrees, accesses are proven, and its text gives the same program."""
    spec = spec_of(*shape)
    x, w = numbers(*shape, False)
    program, buffers = program_of(spec), memory(spec, x, w)
    assert unproven(program) is None
    assert str(parse(str(program))) == str(program) and " matrix:" in str(program)
    run_program(program, {tensor: buffers[role].view("int32") for role, tensor in program.buffers})
    want = x.astype("int64") @ w.astype("int64")
    np.testing.assert_array_equal(buffers["out0"].reshape(want.shape), want)


def products(kernel: Kernel) -> int:
    return kernel.text.count("@llvm.x86.tdpbusd")


def test_what_was_emitted_is_told_by_name() -> None:
    found = outline(flows(lower_program(program_of(spec_of(13, 256, 48)), TILES, True).text)[0])
    assert "3 tile load, 1 tile release, 1 tile set-up, 3 tile store" in found, found
    assert "4 turns\n" in found and "4 tile load, 3 tile product" in found, found


def test_without_tiles_the_same_text_runs_by_other_instructions() -> None:
    spec = spec_of(13, 64, 40)
    x, w = numbers(13, 64, 40, False)
    plain, buffers = CpuTarget.parse("llvm -mcpu=x86-64-v4"), memory(spec, x, w)
    kernel = lower_program(program_of(spec), plain, True)
    assert products(kernel) == 0 < products(lower_program(program_of(spec), TILES, True))
    Runner(kernel, plain).run(buffers)
    want = x.astype("int64") @ w.astype("int64")
    np.testing.assert_array_equal(buffers["out0"].reshape(want.shape), want)


CONVOLUTIONS = {
    "3x3": ((1, 64, 9, 7), (40, 64, 3, 3), {"padding": 1}),
    "strided": ((2, 32, 10, 9), (48, 32, 3, 3), {"padding": 1, "stride": 2}),
    "dilated": ((1, 32, 11, 10), (16, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "groups": ((1, 64, 6, 6), (32, 32, 3, 3), {"groups": 2, "padding": 1}),
    "1x1": ((1, 128, 7, 7), (96, 128, 1, 1), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_and_its_epilogue(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole program on two threads, as relay.build makes it for such a processor."""
    torch = pytest.importorskip("torch")
    shape, weight_shape, how = CONVOLUTIONS[name]
    x = RANDOM.integers(0, 256, shape).astype("uint8")
    w = RANDOM.integers(-128, 128, weight_shape).astype("int8")
    want = torch.nn.functional.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double(), **how)
    pad, step, far = (how.get(k, d) for k, d in (("padding", 0), ("stride", 1), ("dilation", 1)))
    body = relay.nn.conv2d(
        relay.var("x", shape=shape, dtype="uint8"), relay.const(w), channels=w.shape[0], kernel_size=w.shape[2:],
        strides=(step,) * 2, padding=(pad,) * 2, dilation=(far,) * 2, groups=how.get("groups", 1), out_dtype="int32",
    )  # fmt: skip
    body = relay.nn.relu(body)
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm -mcpu=sapphirerapids")
    have = {**native.host_features(), "amx-tile": True, "amx-int8": True}
    monkeypatch.setattr(native, "host_features", lambda: have)
    with tile_machine() as machine:
        module = graph_executor.GraphModule(lib.instantiate(cpu(0), num_threads=2))
        module.run(x=x)
        got = module.get_output(0).numpy()
    np.testing.assert_array_equal(got, np.maximum(want.numpy(), 0).astype("int32"))
    balanced(machine)


def test_the_step_of_a_schedule() -> None:
    """`matrix` marks a product of bytes, `serial` takes it back; another loop is refused with what it wants."""
    marked = parse(PRODUCT)
    plain = Schedule.parse("serial r").apply(marked)
    assert str(plain) == PRODUCT.replace(" matrix", "") and str(Schedule.parse("matrix r").apply(plain)) == PRODUCT
    with pytest.raises(RelayError, match="no product of bytes") as caught:
        Schedule.parse("matrix c").apply(plain)
    assert caught.value.code == "schedule.illegal" and "dot4" in caught.value.help
    with pytest.raises(RelayError, match="is matrix already"):
        Schedule.parse("vectorize r").apply(marked)


PRODUCT = """kernel k(x: x int32[256], w: w int32[999], s: s int32[999]) items=1
  parallel p in 1:
    for r in 4 matrix:
      for c in 16:
        for u in 8:
          s[r * 16 + c] = dot4(s[r * 16 + c], x[r * 16 + u], w[u * 16 + c])"""


def test_what_is_no_product_of_bytes_is_a_loop() -> None:
    text = """kernel k(a: a int32[64], b: b int32[64], out: out int32[64]) items=1
  parallel p in 1:
    for r in 4 matrix:
      for c in 16:
        out[r * 16 + c] = a[r * 16 + c] + b[c]
"""
    program = parse(text)
    (loop,) = (s for s in statements(program.loops) if isinstance(s, For) and s.kind == "matrix")
    assert matrix_product(loop) is None and products(lower_program(program, TILES)) == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s[r * 16 + c] = dot4", "s[r * 16 + c + u] = dot4"),  # a sum that moves with the words
        ("w[u * 16 + c]", "w[u + c * 16]"),  # columns that are apart
        ("x[r * 16 + u]", "x[r * 16 + u * 2]"),  # words that are apart
        ("x[r * 16 + u]", "x[r % 2 * 16 + u]"),  # rows that are not evenly apart
        ("w[u * 16 + c]", "w[u * 16 + c + r]"),  # weights of their own for a row
    ],
)
def test_products_of_another_form_are_loops(old: str, new: str) -> None:
    assert products(lower_program(parse(PRODUCT), TILES)) == 1
    changed = PRODUCT.replace(old, new)
    if "+ u]" in new and old[0] == "s":
        changed = changed.replace("dot4(s[r * 16 + c]", "dot4(s[r * 16 + c + u]")
    assert changed != PRODUCT and products(lower_program(parse(changed), TILES)) == 0


def test_tiles_are_refused_where_the_system_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    native.host_features.cache_clear()
    lists = {**native.linker().llvm.get_host_cpu_features(), "amx-tile": True, "amx-int8": True}
    monkeypatch.setattr(native.linker().llvm, "get_host_cpu_features", lambda: lists)
    for granted in (False, True):
        monkeypatch.setattr(native, "_tiles_granted", lambda granted=granted: granted)
        native.host_features.cache_clear()
        assert native.host_features()["amx-int8"] is granted
    native.host_features.cache_clear()
