"""Runs one kernel on numpy buffers: compiles it, binds base pointers by role, splits the items as told."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
from support.verifier import verify

from relaylab.codegen.llvm.jit import compile_objects
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, MemoryView, module_text
from relaylab.codegen.kernels.views import Halo, laid_out
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.convolution_family import ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.loop.expr import INDEX, Axis, Const, Local, ScalarExpr, apply, cast, const
from relaylab.runtime.native import linker

PAGE = mmap.PAGESIZE
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
TARGETS = {
    "avx512": CpuTarget.parse("llvm -mcpu=x86-64-v4"),
    "avx2": CpuTarget.parse("llvm -mattr=+avx2,+fma"),
    "generic": CpuTarget.parse("llvm -mcpu=x86-64"),
}


def runnable_targets() -> list[str]:
    """The kernel families this machine can execute."""
    order = ["generic", "avx2", "avx512"]
    host = CpuTarget.host().isa
    return order[: order.index(host) + 1]


def aligned(count: int, dtype: str = "float32") -> np.ndarray:
    """A flat 64-byte aligned buffer of zeros in the last cache lines before memory that nobody may read.

    A kernel that reads or writes further than the line in which its operand ends ends the process (SIGSEGV).
    """
    size = count * np.dtype(dtype).itemsize
    whole = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + PAGE)
    base = np.frombuffer(memory, np.uint8)
    if os.name == "posix":
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        assert protect(ctypes.c_void_p(base.ctypes.data + whole), ctypes.c_size_t(PAGE), 0) == 0
    start = (whole - size) // 64 * 64
    return base[start : start + size].view(dtype)


def framed(shape: tuple[int, ...], halo: Halo, dtype: str = "float32") -> MemoryView:
    """The interior of a row-major buffer that has `halo` zero elements around each axis."""
    return laid_out(shape, dtype, range(len(shape)), halo)


def extent(view: MemoryView) -> int:
    """Elements of a buffer that holds the view with its halo."""
    last = sum((n - 1 + view.halo_of(a)[1]) * s for a, (n, s) in enumerate(zip(view.shape, view.strides)) if n)
    return view.offset + last + 1


def window(buffer: np.ndarray, view: MemoryView) -> np.ndarray:
    """The logical elements of a view as a numpy array on the buffer."""
    steps = tuple(s * buffer.itemsize for s in view.strides)
    return np.lib.stride_tricks.as_strided(buffer[view.offset :], view.shape, steps)


def place(view: MemoryView, data: np.ndarray | None = None, fill: float = 0) -> np.ndarray:
    """A buffer for a view, holding `data` there and `fill` elsewhere."""
    buffer = aligned(extent(view), view.dtype)
    buffer[:] = fill
    if data is not None:
        window(buffer, view)[...] = data
    return buffer


class Runner:
    """A compiled kernel; `run(buffers)` fills the output buffers."""

    def __init__(self, kernel: Kernel, target: CpuTarget, check: bool = True):
        text = module_text([kernel], attributes=target.attributes)
        if check:
            verify(text, target)
        self.kernel = kernel
        self.library = linker().link(tuple(compile_objects([text], target, 1)), {kernel.name})
        self.function = FUNCTION(self.library[kernel.name])

    def run(self, buffers: dict[str, np.ndarray], splits: int = 1) -> None:
        """Do all items in `splits` calls, as if that many threads did."""
        scratch = aligned(max(1, splits * self.kernel.scratch), "uint8")
        pointers = {**{role: data.ctypes.data for role, data in buffers.items()}, "scratch": scratch.ctypes.data}
        args = (ctypes.c_void_p * len(self.kernel.operands))(*(pointers[role] for role in self.kernel.operands))
        items = self.kernel.items
        for t in range(splits):
            self.function(args, items * t // splits, items * (t + 1) // splits, t)


def bias_relu_residual(view: MemoryView, rolled: bool = False) -> Epilogue:
    """A usual epilogue: bias "b0" as start, residual "r0" laid out like `view`, ReLU."""

    x, r = Local("x", "float32"), Local("r", "float32")
    total = x + r
    value = apply("select", total < 0.0, Const(0.0, "float32"), total)
    return Epilogue(value, x, ((r, "r0", view),), (), ("b0", "r0"), "b0", rolled)


def index_scale(rank: int) -> Epilogue:
    """An epilogue that multiplies by 1 + the sum of the output coordinates."""

    x = Local("x", "float32")
    axes = tuple(Axis(f"i{d}", 1 << 20) for d in range(rank))
    total: ScalarExpr = const(1, INDEX)
    for axis in axes:
        total = total + axis
    return Epilogue(x * cast(total, "float32"), x, (), axes)


def convolved(
    family: ConvolutionFamily, spec: ConvSpec, target: CpuTarget, x: np.ndarray, w: np.ndarray,
    epilogue: Epilogue | None = None, splits: int = 1, residual: np.ndarray | None = None,
    bias: np.ndarray | None = None, in_place: bool = False,
) -> tuple[np.ndarray, KernelSequence]:  # fmt: skip
    """What the kernels of a family make of data and constant weights, and the kernels; nothing else is written.

    `residual` and `bias` are the epilogue's "r0" and "b0"; `in_place` the result lies where the residual did.
    """
    made, packed = family.build(spec, target, epilogue), family.pack(spec, target, w).array()
    result = place(spec.out, residual if in_place else None, fill=77)
    buffers = {"in0": place(spec.data, x), "weight0": place(MemoryView.dense(packed.shape, packed.dtype.name), packed)}
    buffers |= {role: aligned(size // 4) for role, size in made.workspaces} | {"out0": result}
    if residual is not None:
        buffers["r0"] = result if in_place else place(spec.out, residual)
    if bias is not None:
        buffers["b0"] = place(MemoryView.dense(bias.shape, bias.dtype.name), bias)
    for kernel in made.kernels:
        Runner(kernel, target).run(buffers, splits)
    assert (result == 77).sum() >= result.size - spec.out.size, "wrote outside the view"
    return window(result, spec.out).copy(), made
