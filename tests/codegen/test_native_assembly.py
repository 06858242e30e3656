"""What the generated assembly must look like: no vector spills in the hot loops, fused products, full width."""

from __future__ import annotations

import re

import pytest
from kernel_runner import TARGETS, bias_relu_residual

from relaylab.codegen import templates as T
from relaylab.codegen.llvm.jit import emit_assembly
from relaylab.codegen.kernels.kernel import MemoryView, module_text
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.schedule import max_rows, schedule_contraction

PRODUCT = {"avx512": r"vfmadd.*%zmm", "avx2": r"vfmadd.*%ymm", "generic": r"mulps\s.*%xmm"}
SPILL = re.compile(r"\(%rsp\).*%[xyz]mm|%[xyz]mm.*\(%rsp\)")


def hot_loops(kernel, target) -> list[list[str]]:
    """The basic blocks that jump back to themselves and multiply."""
    blocks, label = {}, ""
    for line in emit_assembly(module_text([kernel], attributes=target.attributes), target).split("\n"):
        found = re.match(r"^(\.LBB\w+):", line)
        if found:
            label = found[1]
        blocks.setdefault(label, []).append(line.strip())
    own = {
        name: lines for name, lines in blocks.items() if any(re.match(rf"j\w+\s+{re.escape(name)}$", x) for x in lines)
    }
    return [lines for lines in own.values() if any(re.search(PRODUCT[target.isa], x) for x in lines)]


def gemm_kernel(m: int, n: int, k: int, target, packed: bool = True):
    out = MemoryView.dense((1, m, n))
    b = MemoryView.dense((1, k, n)) if packed else MemoryView("float32", (1, k, n), (0, 1, k))
    return T.gemm(T.GemmSpec(MemoryView.dense((1, m, k)), b, out, packed), target, bias_relu_residual(out))


def conv_kernel(size: int, ic: int, oc: int, k: int, stride: int, target, groups: int = 1):
    out = MemoryView.dense((1, *((size - 1) // stride + 1,) * 2, oc))
    halo = ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0))
    spec = T.ConvSpec(
        MemoryView.padded((1, size, size, ic), halo), out, (k, k), (stride,) * 2, (1, 1), (k // 2,) * 2, groups
    )
    make = T.depthwise if groups == ic else T.conv
    return make(spec, target, bias_relu_residual(out))


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
}


@pytest.mark.parametrize("isa", list(TARGETS))
@pytest.mark.parametrize("name", list(KERNELS))
def test_no_vector_spills_in_hot_loops(name, isa):
    loops = hot_loops(KERNELS[name](TARGETS[isa]), TARGETS[isa])
    assert loops, "no hot loop found"
    for lines in loops:
        assert not [line for line in lines if SPILL.search(line)]


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
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
    for isa, least in (("avx512", 24), ("avx2", 12), ("generic", 8)):
        plan = schedule_contraction(gemm_problem(spec), TARGETS[isa])
        assert plan.vectors * plan.tile[0] * plan.tile[1] >= least
