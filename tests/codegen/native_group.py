"""Helpers of the generic-lowering tests: compile a group for a target and run it next to the evaluators."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from kernel_runner import FUNCTION, aligned
from support.verifier import verify

from relaylab.codegen.operations.generic import lower_group
from relaylab.codegen.llvm.jit import emit_object
from relaylab.codegen.kernels.kernel import Kernel, MemoryView, module_text
from relaylab.codegen.isa.target import CpuTarget
from relaylab.loop import OutSpec
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.runtime.native import Library, linker

TARGETS = {"avx512": "llvm", "avx2": "llvm -mattr=+avx2,+fma", "generic": "llvm -mcpu=x86-64"}
_linked: dict[tuple[str, str], Library] = {}


def execute(
    kernel: Kernel,
    target: CpuTarget,
    arrays: Sequence[np.ndarray],
    shares: Sequence[float] = (0, 1),
    items: int | None = None,
    scratch: int | None = None,
) -> None:
    """Run all items of a kernel on flat arrays, in pieces cut at `shares`, each by another thread number.

    `items` and bytes of `scratch` are given where sizes decide them.
    """
    key = (kernel.text, target.key)
    if key not in _linked:
        text = module_text([kernel], attributes=target.attributes)
        verify(text, target)
        _linked[key] = linker().link((emit_object(text, target),), {kernel.name})
    function = FUNCTION(_linked[key][kernel.name])
    held = list(arrays)
    scratch = kernel.scratch if scratch is None else scratch
    if scratch:
        held.append(aligned(scratch * (len(shares) - 1), "uint8"))
    table = (ctypes.c_void_p * max(len(held), 1))(*(a.ctypes.data for a in held))
    cuts = [round(s * (kernel.items if items is None else items)) for s in shares]
    for thread, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        function(table, begin, end, thread)


def single(
    out: OutSpec, lower: Callable, inputs: Sequence[np.ndarray], views: Sequence[MemoryView] | None = None
) -> ProgramBuilder:
    """The group of one operator."""
    group = ProgramBuilder("test")
    views = views or [MemoryView.dense(x.shape, x.dtype.name) for x in inputs]
    readables = [group.read(f"in{k}", view) for k, view in enumerate(views)]
    value = group.compute(out, lower, readables)
    group.write("out0", value, MemoryView.dense(out.shape, out.dtype))
    return group


def run_native(group: ProgramBuilder, inputs: Sequence[np.ndarray], out: OutSpec, target: CpuTarget) -> np.ndarray:
    """The output of a group with one output; inputs are dense arrays."""
    kernel = lower_group(group, target)
    arrays = []
    for x in inputs:
        flat = aligned(x.size, x.dtype.name)
        flat[:] = np.ascontiguousarray(x).ravel()
        arrays.append(flat)
    result = aligned(int(np.prod(out.shape)), out.dtype)
    execute(kernel, target, [*arrays, result], (0, 0.3, 0.35, 1))
    return result.reshape(out.shape).copy()
