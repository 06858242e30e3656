"""Matrix products as contractions: dense, matmul and batch_matmul with all transposes.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import merged_front, permuted, with_front
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.operations.contraction import Contraction, dense_view
from relaylab.codegen.templates import DOTS, Epilogue, GemmSpec, gemm, gemm_kernels, pack_gemm, supports_gemm
from relaylab.codegen.templates.byte_products import FACTORS, WORD, words_in_place, words_kernel
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.codegen.templates.product_family import product_cycles, product_of
from relaylab.ir import Call
from relaylab.loop.scalar import NARROW
from relaylab.support.errors import RelayError

ONE_TILE = 4
"""Rows up to which a word of the right side is made of its bytes where it is needed: no other tile needs it again."""


class MatrixProductAttrs(Protocol):
    """The attributes that all operators of this kind have."""

    transpose_a: bool
    transpose_b: bool


@dataclass(frozen=True, slots=True)
class RowMajorProduct(Contraction):
    """A contraction whose operands are row-major, with leading axes that are walked as one."""

    call: Call
    transpose_b: bool

    @property
    def weight_axes(self) -> tuple[int, ...]:
        return (-1, -2) if self.transpose_b else (-2, -1)

    def merged(self, view: MemoryView) -> MemoryView | None:
        """The view as the template walks it; None if its leading axes do not lie evenly."""
        raise NotImplementedError

    def out_view(self, out: MemoryView) -> MemoryView:
        found = self.merged(out)
        if found is None:  # the planner has found before that it lies evenly
            raise RelayError("a matrix product was given an operand with gaps", code="codegen.operand")
        return found

    def places(self, side: MemoryView) -> bool:
        return self.merged(side) is not None


@dataclass(frozen=True, slots=True)
class MatrixProductKernel(RowMajorProduct):
    """dense, matmul and batch_matmul with all transposes."""

    transpose_a: bool
    minimal: bool
    packs: bool
    target: CpuTarget
    choices: Choices = ()
    turned: bool = False
    """Is the right side's transpose multiplied with the left one's?"""

    def merged(self, view: MemoryView) -> MemoryView | None:
        """Three axes: leading ones as one, or of extent 1 in front."""
        while len(view.shape) < 3:
            view = with_front(view)
        return view if len(view.shape) == 3 else merged_front(view, 2)

    def out_view(self, out: MemoryView) -> MemoryView:
        found = RowMajorProduct.out_view(self, out)
        return permuted(found, (0, 2, 1)) if self.turned else found

    def lying(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, sides: Sequence[MemoryView]
    ) -> Contraction:
        """Turned where few rows meet a right side whose columns have no gaps: lanes run along these."""
        if weight is None or self.packs or self.choices or None in map(self.merged, (data, weight, out)):
            return self
        spec, new = self.placed(data, weight, out), replace(self, turned=True)
        few = new.placed(data, weight, out)
        if few.b.shape[0] != few.out.shape[0] or supports_gemm(few):
            return self
        ours, theirs = (gemm_problem(found) for found in (spec, few))
        cycles = [product_cycles(found, self.target) for found in (theirs, ours)]
        return new if product_of(theirs, self.target) is DOTS and cycles[0] < cycles[1] else self

    def accepts(self, data: MemoryView) -> bool:
        found = self.merged(_swapped(data, self.transpose_a))
        if found is None or data.dtype != FACTORS[0]:
            return found is not None
        return not supports_gemm(self.placed(data, None, dense_view(self.call)))

    @property
    def row_major(self) -> bool:
        return len(self.out_order) > 3

    def placed(self, data: MemoryView, weight: MemoryView | None, out: MemoryView) -> GemmSpec:
        """The spec with the operands where they lie; `weight` is None when it is packed."""
        right = _swapped(dense_view(self.call.args[1]) if weight is None else weight, self.transpose_b)
        if weight is None and right.dtype == "float16" and not self.target.converts_halves:
            right = replace(right, dtype=data.dtype)
        left = _swapped(data, self.transpose_a)
        a, b, o = (RowMajorProduct.out_view(self, view) for view in (left, right, out))
        if self.turned:
            turn = lambda view: permuted(view, (0, 2, 1))
            return GemmSpec(turn(b), turn(a), turn(o), packed=False, choices=self.choices, left="in1", right="in0")
        if weight is not None and b.dtype == FACTORS[1]:
            right, role = words_in_place(b), "in1"
            if right is None and b.strides[2] == 1 and o.shape[1] * (o.shape[0] if b.shape[0] == 1 else 1) <= ONE_TILE:
                right = b
            elif right is None:
                batch, depth, columns = b.shape
                right, role = MemoryView.dense((batch, depth // WORD, columns), "int32"), "rows0"
            return GemmSpec(a, right, o, packed=False, choices=self.choices, right=role)
        return GemmSpec(a, b, o, packed=weight is None, minimal=self.minimal, choices=self.choices)

    def with_input(self) -> Contraction | None:
        data, weight, out = map(dense_view, (*self.call.args[:2], self.call))
        return None if supports_gemm(self.placed(data, weight, out)) else self

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        spec = self.placed(data, weight, out)
        if weight is None or spec.right != "rows0":
            return gemm_kernels(spec, target, epilogue)
        first = words_kernel(RowMajorProduct.out_view(self, _swapped(weight, self.transpose_b)), spec.b, target)
        return KernelSequence((first, gemm(spec, target, epilogue)), (("rows0", spec.b.bytes),))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        matrix = weight.swapaxes(-1, -2) if self.transpose_b else weight
        matrix = matrix if matrix.ndim == 3 else matrix[None]
        return pack_gemm(self.placed(data, None, out), target, matrix)

    def chosen(self, choices: Choices) -> Contraction:
        return replace(self, minimal=False, choices=choices)


def _swapped(view: MemoryView, transpose: bool) -> MemoryView:
    rank = len(view.shape)
    return permuted(view, (*range(rank - 2), rank - 1, rank - 2)) if transpose else view


def matrix_product_of(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    """The contraction of a call of dense, matmul or batch_matmul; None where no template computes it."""
    left, right, out = (tensor_type(e) for e in (*call.args[:2], call))
    attrs = cast("MatrixProductAttrs", call.attrs)
    dtypes = (left.dtype, right.dtype, out.dtype)
    narrow = left.dtype == out.dtype == "float32" and right.dtype in NARROW
    if (len(set(dtypes)) > 1 and dtypes != FACTORS and not narrow) or len(left.shape) < 2:
        return None
    packs = dtypes == FACTORS
    product = MatrixProductKernel(call, bool(attrs.transpose_b), bool(attrs.transpose_a), minimal, packs, target)
    data, weight, result = map(dense_view, (*call.args[:2], call))
    return None if supports_gemm(product.placed(data, None if packs else weight, result)) else product
