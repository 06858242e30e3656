"""What the generated assembly must look like: no vector spills in the hot loops, fused products, full width."""

from __future__ import annotations

import re

import pytest
from kernel_runner import TARGETS, bias_relu_residual, framed

from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.isa.families import FAMILIES
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, module_text
from relaylab.codegen.llvm.jit import emit_assembly
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.schedule import max_rows, schedule_contraction
from relaylab.codegen.templates.product_family import contractions

ARM = "llvm -mtriple=aarch64-linux-gnu"
TARGETS = {**TARGETS, "neon": CpuTarget.parse(ARM)}
PRODUCT = {"avx512": r"vfmadd.*%zmm", "avx2": r"vfmadd.*%ymm", "generic": r"mulps\s.*%xmm", "neon": r"fmla\s"}
SPILL = re.compile(r"\(%rsp\).*%[xyz]mm|%[xyz]mm.*\(%rsp\)|\b[qdsv]\d+\b.*\[sp")
STORE = re.compile(r"v?mov[au]ps\s+%[xyz]mm\d+, -?\w*\((?!%rsp)|st[rp]\s.*\[x")
LABEL = re.compile(r"^(\.LBB\w+):")
BRANCH = re.compile(r"(?:j\w+|b|b\.\w+|cbn?z\s+\w+,|tbn?z\s.*,)\s+(\.LBB\w+)$")


def inner_loops(kernel, target) -> list[list[str]]:
    """The blocks that jump back to themselves, up to that jump."""
    blocks, label = {}, ""
    for line in emit_assembly(module_text([kernel], attributes=target.attributes), target).split("\n"):
        found = LABEL.match(line)
        label = found[1] if found else label
        blocks.setdefault(label, []).append(line.strip())
    found = []
    for name, lines in blocks.items():
        back = [k for k, x in enumerate(lines) if (jump := BRANCH.match(x)) and jump[1] == name]
        found += [lines[: back[-1] + 1]] if back else []
    return found


def hot_loops(kernel, target, product: str = "") -> list[list[str]]:
    """Those that multiply; not a transform, which stores tiles: it has more values than there are registers."""
    wanted = product or PRODUCT[target.isa]
    loops = [lines for lines in inner_loops(kernel, target) if any(re.search(wanted, x) for x in lines)]
    transforms = kernel.name.startswith("winograd")
    return [lines for lines in loops if not transforms or not any(STORE.match(x) for x in lines)]


def instructions(lines: list[str]) -> list[str]:
    """What is executed."""
    return [x for x in lines if x and x[0] not in ".#/" and not LABEL.match(x)]


def gemm_kernel(m: int, n: int, k: int, target, packed: bool = True):
    out = MemoryView.dense((1, m, n))
    b = MemoryView.dense((1, k, n)) if packed else MemoryView("float32", (1, k, n), (0, 1, k))
    return T.gemm(T.GemmSpec(MemoryView.dense((1, m, k)), b, out, packed), target, bias_relu_residual(out))


def conv_kernel(size: int, ic: int, oc: int, k: int, stride: int, target, groups: int = 1):
    out = MemoryView.dense((1, *((size - 1) // stride + 1,) * 2, oc))
    halo = ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0))
    spec = T.ConvSpec(framed((1, size, size, ic), halo), out, (k, k), (stride,) * 2, (1, 1), (k // 2,) * 2, groups)
    family = T.DEPTHWISE if groups == ic else T.DIRECT
    return family.build(spec, target, bias_relu_residual(out)).kernels[0]


def strassen_kernel(m: int, n: int, k: int, target):
    out = MemoryView.dense((1, m, n))
    spec = T.GemmSpec(MemoryView.dense((1, m, k)), MemoryView.dense((1, k, n)), out)
    return contractions("gemm", [gemm_problem(spec)], target, bias_relu_residual(out), spec.roles, 0, T.STRASSEN)


def winograd_kernel(m: int, target):
    out = MemoryView.dense((1, 14, 14, 48))
    rest = out, (3, 3), (1, 1), (1, 1), (1, 1)
    halo = T.MINIMAL[m, 3].reads(T.ConvSpec(MemoryView.dense((1, 14, 14, 48)), *rest))
    spec = T.ConvSpec(framed((1, 14, 14, 48), halo), *rest)
    return T.MINIMAL[m, 3].build(spec, target, bias_relu_residual(out)).kernels[0]


KERNELS = {
    "gemm 128x768x768": lambda t: gemm_kernel(128, 768, 768, t),
    "gemm 49x100x65": lambda t: gemm_kernel(49, 100, 65, t),
    "gemm 128x128x64 transposed": lambda t: gemm_kernel(128, 128, 64, t, packed=False),
    "gemv 1x1000x512": lambda t: gemm_kernel(1, 1000, 512, t),
    "conv 3x3 64 @56": lambda t: conv_kernel(56, 64, 64, 3, 1, t),
    "conv 7x7s2 3->64 @224": lambda t: conv_kernel(224, 3, 64, 7, 2, t),
    "conv 3x3 512 @7": lambda t: conv_kernel(7, 512, 512, 3, 1, t),
    "conv 1x1 256->64 @56": lambda t: conv_kernel(56, 256, 64, 1, 1, t),
    "conv 3x3 48 @14": lambda t: conv_kernel(14, 48, 48, 3, 1, t),
    "strassen 128x256x256": lambda t: strassen_kernel(128, 256, 256, t),
    "winograd 2": lambda t: winograd_kernel(2, t),
    "winograd 4": lambda t: winograd_kernel(4, t),
}


@pytest.mark.parametrize("isa", list(TARGETS))
@pytest.mark.parametrize("name", list(KERNELS))
def test_no_vector_spills_in_hot_loops(name, isa):
    if (name, isa) == ("strassen 128x256x256", "generic"):
        pytest.skip("two of the products of four steps wait in memory; SSE2 has no fused ones")
    loops = hot_loops(KERNELS[name](TARGETS[isa]), TARGETS[isa])
    assert loops, "no hot loop found"
    for lines in loops:
        assert not [line for line in lines if SPILL.search(line)]


@pytest.mark.parametrize("isa", ["avx512", "avx2", "neon"])
def test_depthwise_keeps_its_weights_in_registers(isa):
    kernel = conv_kernel(56, 64, 64, 3, 1, TARGETS[isa], groups=64)
    loops = hot_loops(kernel, TARGETS[isa])
    assert loops and not [line for lines in loops for line in lines if SPILL.search(line)]


@pytest.mark.parametrize("isa", list(TARGETS))
def test_register_tiles_fit(isa):
    target = TARGETS[isa]
    for vectors in range(1, 9):
        rows = max_rows(target, vectors)
        assert rows * vectors + vectors + 1 <= target.registers


def test_the_big_tile_uses_most_registers():
    spec = T.GemmSpec(
        MemoryView.dense((1, 1024, 1024)), MemoryView.dense((1, 1024, 1024)), MemoryView.dense((1, 1024, 1024))
    )
    for isa, least in (("avx512", 24), ("avx2", 12), ("generic", 8), ("neon", 20)):
        plan = schedule_contraction(gemm_problem(spec), TARGETS[isa])
        assert plan.vectors * plan.tile[0] * plan.tile[1] >= least


@pytest.mark.parametrize("name", list(KERNELS))
def test_neon_multiplies_by_an_element(name):
    """A factor of a row is an element of a register: `fmla` with it needs no copy in every lane."""
    for lines in hot_loops(KERNELS[name](TARGETS["neon"]), TARGETS["neon"]):
        products = [x for x in instructions(lines) if x.startswith("fmla")]
        by_element = [x for x in products if re.search(r"\.s\[0\]$", x)]
        assert len(products) <= 8 or len(products) > 0.5 * len(instructions(lines))
        assert 2 * len(by_element) >= len(products)


@pytest.mark.parametrize(
    ("cpu", "product"), [("generic", "smull"), ("neoverse-n1", r"\bsdot\s"), ("neoverse-v1", r"\busdot\s")]
)
def test_neon_multiplies_bytes(cpu, product):
    target = CpuTarget.parse(f"{ARM} -mcpu={cpu}")
    a, b, out = (MemoryView.dense(*v) for v in (((1, 12, 64), "uint8"), ((1, 64, 64), "int8"), ((1, 12, 64), "int32")))
    loops = hot_loops(T.gemm(T.GemmSpec(a, b, out), target), target, product)
    assert loops and not [x for lines in loops for x in lines if SPILL.search(x)]


PROGRAMS = {
    "softmax": ("nn.softmax(%x, axis=-1)", "float32", "fmla"),
    "layer_norm": ("nn.layer_norm(%x, %w, %w)", "float32", "f(add|mul|mla)"),
    "dense of halves": ("nn.dense(%x, %v)", "float16", "fcvtl"),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_neon_loops_of_other_kernels_keep_their_values(name):
    call, dtype, instruction = PROGRAMS[name]
    parameters = f"%x: Tensor[(16, 256), {dtype}], %w: Tensor[(256), {dtype}], %v: Tensor[(64, 256), {dtype}]"
    mod = relay.fromtext(f"fn ({parameters}) {{ {call} }}")
    lib = relay.build(mod, f"{ARM} -mcpu=neoverse-n1")
    kernels = [linked for name in lib.kernels() for linked in lib.linked(name)]
    loops = [lines for linked in kernels for lines in inner_loops(linked.kernel, linked.target)]
    assert any(re.match(instruction, x) for lines in loops for x in lines)
    assert not [x for lines in loops for x in lines if SPILL.search(x)]


def test_every_family_is_looked_at():
    assert {family.name for family in FAMILIES} == set(TARGETS)
