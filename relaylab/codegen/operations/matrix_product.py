"""Matrix products as contractions: dense, matmul and batch_matmul with all transposes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo, laid_out, merged_front, permuted, with_front
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.operations.contraction import Contraction, dense_result
from relaylab.codegen.templates import Epilogue, GemmSpec, gemm_kernels, pack_gemm, supports_gemm
from relaylab.codegen.templates.byte_products import FACTORS
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.ir import Call
from relaylab.support.errors import RelayError


class MatrixProductAttrs(Protocol):
    """The attributes that all operators of this kind have."""

    transpose_a: bool
    transpose_b: bool


@dataclass(frozen=True, slots=True)
class MatrixProductKernel:
    """dense, matmul and batch_matmul with all transposes."""

    call: Call
    transpose_a: bool
    transpose_b: bool
    minimal: bool = True
    packs: bool = False
    choices: Choices = ()
    args: tuple[int, int] = (0, 1)

    @property
    def data_order(self) -> tuple[int, ...]:
        return tuple(range(len(tensor_type(self.call.args[0]).shape)))

    @property
    def out_order(self) -> tuple[int, ...]:
        return tuple(range(len(tensor_type(self.call).shape)))

    @property
    def weight_axes(self) -> tuple[int, ...]:
        return (-1, -2) if self.transpose_b else (-2, -1)

    def halo(self) -> Halo:
        return ()

    def accepts(self, data: MemoryView) -> bool:
        found = _batched(_swapped(data, self.transpose_a))
        if found is None or data.dtype != FACTORS[0]:
            return found is not None
        return not supports_gemm(self.placed(data, None, dense_result(self.call)))

    def out_view(self, out: MemoryView) -> MemoryView:
        return _flat(out)

    def places(self, side: MemoryView) -> bool:
        return _batched(side) is not None

    @property
    def row_major(self) -> bool:
        return len(self.out_order) > 3

    def placed(self, data: MemoryView, weight: MemoryView | None, out: MemoryView) -> GemmSpec:
        """The spec with the operands where they lie; `weight` is None when it is packed."""
        a, o = _flat(_swapped(data, self.transpose_a)), _flat(out)
        if weight is None:
            shape = tensor_type(self.call.args[1]).concrete_shape
            weight = laid_out(shape, tensor_type(self.call.args[1]).dtype, range(len(shape)))
            b = _flat(_swapped(weight, self.transpose_b))
            return GemmSpec(a, b, o, packed=True, minimal=self.minimal, choices=self.choices)
        b = _flat(_swapped(weight, self.transpose_b))
        return GemmSpec(a, b, o, packed=False, minimal=self.minimal, choices=self.choices)

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return gemm_kernels(self.placed(data, weight, out), target, epilogue)

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        matrix = weight.swapaxes(-1, -2) if self.transpose_b else weight
        matrix = matrix if matrix.ndim == 3 else matrix[None]
        return pack_gemm(self.placed(data, None, out), target, matrix)

    def with_input(self) -> Contraction | None:
        return None

    def chosen(self, choices: Choices) -> Contraction:
        return replace(self, minimal=False, choices=choices)


def _swapped(view: MemoryView, transpose: bool) -> MemoryView:
    rank = len(view.shape)
    return permuted(view, (*range(rank - 2), rank - 1, rank - 2)) if transpose else view


def _batched(view: MemoryView) -> MemoryView | None:
    """The view with three axes: leading ones merged, or of extent 1 in front; None if they do not lie evenly."""
    while len(view.shape) < 3:
        view = with_front(view)
    return view if len(view.shape) == 3 else merged_front(view, 2)


def _flat(view: MemoryView) -> MemoryView:
    """`_batched` for a view that the planner has found to lie evenly."""
    found = _batched(view)
    if found is None:
        raise RelayError("a matrix product was given an operand with gaps", code="codegen.operand")
    return found


def matrix_product_of(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    """The contraction of a call of dense, matmul or batch_matmul; None where no template computes it."""
    left, right, out = (tensor_type(e) for e in (*call.args[:2], call))
    attrs = cast("MatrixProductAttrs", call.attrs)
    dtypes = (left.dtype, right.dtype, out.dtype)
    if (len(set(dtypes)) > 1 and dtypes != FACTORS) or len(left.shape) < 2:
        return None
    packs = dtypes == FACTORS
    product = MatrixProductKernel(call, bool(attrs.transpose_a), bool(attrs.transpose_b), minimal, packs)
    data, weight, result = (MemoryView.dense(t.concrete_shape, t.dtype) for t in (left, right, out))
    return None if supports_gemm(product.placed(data, None if packs else weight, result)) else product
