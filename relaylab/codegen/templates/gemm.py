"""Matrix products: dense, matmul and batch_matmul with all transposes.

The left side is read as it lies, row by row, and broadcast; the right side is the vector side: prepacked when it is
a constant, read in place when its columns are contiguous, else gathered panel by panel into scratch. The whole
reduction stays in registers.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, MemoryView
from relaylab.codegen.templates.byte_products import FACTORS, WORD, in_words, uneven_words
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, WeightMatrix
from relaylab.codegen.templates.problem import DTYPES, Choices, OutputAxis, Problem, Tap, Weights, merge_axes
from relaylab.codegen.templates.product_family import contractions, pack_weights, packing_of, product_cycles
from relaylab.loop.scalar import NARROW
from relaylab.support.errors import RelayValueError

GATHERED_ROWS = 128  # rows that read a panel again; with 32 the copy costs 10 %, with 128 it gains 2 to 5 %
ADVANTAGE = 0.97  # laying a matrix out first takes memory and another kernel
GATHERED_BYTES = 1 << 20  # a matrix up to this size, read where it lies, is within 1 % of a packed one


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]; transposes are strides of the views.

    `a` is [B or 1, M, K], `b` is [B or 1, K, N], `out` is [B, M, N]. With `packed` the right side is a constant that
    `pack_gemm` lays out (the strides of `b` are then not looked at) and its role is "weight0", else "in1"; what is not
    `constant` a kernel lays out. `minimal` allows algorithms with fewer products, which round a little differently.
    Of bytes a right side that is not packed is given in words, [B or 1, K / 4, N] of int32, or, if its columns are
    contiguous, as it is; `left` and `right` are the roles of the sides. One side may be of floats of 16 bits beside one
    of float32.
    """

    a: MemoryView
    b: MemoryView
    out: MemoryView
    packed: bool = True
    constant: bool = True
    minimal: bool = False
    choices: Choices = ()
    left: str = "in0"
    right: str = "in1"

    @property
    def words(self) -> bool:
        """Is the right side given as bytes, or in words of these?"""
        return not self.packed and self.a.dtype == FACTORS[0] and self.b.dtype in ("int32", FACTORS[1])

    @property
    def roles(self) -> tuple[str, str, str]:
        """The kernel's operands before those of the epilogue."""
        return (self.left, "weight0" if self.packed else self.right, "out0")


def supports_gemm(spec: GemmSpec) -> str:
    """Why this template does not do the product; empty when it does."""
    bytes_ = spec.words or spec.packed and (spec.a.dtype, spec.b.dtype) == FACTORS[:2]
    narrow = spec.constant and {spec.a.dtype, spec.b.dtype} - {*NARROW} == {"float32"}
    if not bytes_ and not narrow and (spec.a.dtype != spec.b.dtype or spec.a.dtype not in DTYPES):
        return f"dtypes {spec.a.dtype} x {spec.b.dtype}"
    if 0 in (*spec.out.shape, spec.a.shape[2]):
        return "an empty extent"
    return uneven_words(gemm_problem(spec))


@lru_cache(maxsize=1024)
def gemm_problem(spec: GemmSpec) -> Problem:
    """The matrix product as a contraction."""
    batch, m, n = spec.out.shape
    rows = [OutputAxis(m, spec.a.strides[1], spec.out.strides[1], 0, (m,))]
    a_step = spec.a.strides[0] if spec.a.shape[0] > 1 else 0
    if spec.b.shape[0] == 1:
        member = OutputAxis(1, 0, 0)
        rows.insert(0, OutputAxis(batch, a_step, spec.out.strides[0], 0, (batch,)))
    else:
        member = OutputAxis(batch, a_step, spec.out.strides[0], spec.b.strides[0], (batch,))
    given, stored = (side.dtype if side.dtype in NARROW else "" for side in (spec.a, spec.b))
    weights = Weights(constant=spec.constant, stored=stored)
    if not spec.packed:
        _, k_step, n_step = spec.b.strides
        # A large matrix read in place takes a page for each row: from these sizes on, copying a panel first costs less.
        worth = m >= GATHERED_ROWS and spec.b.bytes > GATHERED_BYTES * spec.b.shape[0]
        kind = "rows" if n_step == 1 and not worth else "gathered"
        weights = Weights(kind, spec.b.offset, k_step, n_step, stored=stored)
        if spec.b.dtype == FACTORS[1]:
            weights = Weights("bytes", spec.b.offset, k_step * WORD, n_step)
    found = Problem(
        "float32" if given else spec.a.dtype,
        spec.out.dtype,
        member,
        merge_axes(rows),
        (Tap(spec.a.shape[2], spec.a.strides[2]),),
        n,
        x_start=spec.a.offset,
        out_start=spec.out.offset,
        out_column=spec.out.strides[2],
        weights=weights,
        given=given,
        choices=spec.choices,
        minimal=spec.minimal,
    )
    return in_words(found)


def gemm(spec: GemmSpec, target: CpuTarget, epilogue: Epilogue | None = None) -> Kernel:
    """The kernel of a matrix product. Raises RelayValueError for what `supports_gemm` declines."""
    if reason := supports_gemm(spec):
        raise RelayValueError(f"no matrix product kernel for {reason}", code="codegen.family")
    traffic = spec.a.bytes + spec.b.bytes + spec.out.bytes
    return contractions("gemm", (gemm_problem(spec),), target, epilogue or Epilogue(), spec.roles, traffic)


def gemm_kernels(spec: GemmSpec, target: CpuTarget, epilogue: Epilogue | None = None) -> KernelSequence:
    """The kernels of a matrix product: those before the last lay out a right side that is an input, where that pays."""
    found = laid_out_first(spec, target)
    if found is None:
        return KernelSequence((gemm(spec, target, epilogue),))
    before, work = packing_of(gemm_problem(found), target).kernels(spec.b, target)
    return KernelSequence((*before, gemm(found, target, epilogue)), work)


def laid_out_first(spec: GemmSpec, target: CpuTarget) -> GemmSpec | None:
    """The product with a right side that is laid out first; None where that costs more than it gains."""
    if spec.packed or spec.words or spec.a.dtype != spec.b.dtype or supports_gemm(spec):
        return None
    found = replace(spec, b=MemoryView.dense(spec.b.shape, spec.b.dtype), packed=True, constant=False)
    problem = gemm_problem(found)
    cycles = product_cycles(problem, target) + packing_of(problem, target).cycles(spec.b, target)
    return found if cycles < ADVANTAGE * product_cycles(gemm_problem(spec), target) else None


def pack_gemm(spec: GemmSpec, target: CpuTarget, matrix: np.ndarray) -> Packing:
    """The right side [B or 1, K, N] (any strides) as the kernel of this spec reads it."""
    problem = gemm_problem(spec)
    return pack_weights(problem, target, WeightMatrix.of(matrix, problem.stored if matrix.dtype.name in NARROW else ""))
