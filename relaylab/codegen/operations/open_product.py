"""Products with constant weights whose number of rows is known when they run, as contractions.

Data, result and side inputs are row-major; all their axes but the last are walked as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView, dense_strides
from relaylab.codegen.network.network import Operation, tensor_type
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.operations.matrix_product import MatrixProductAttrs, RowMajorProduct
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.open_rows import MOST_ROWS, OpenRows, open_rows, pack_open_rows, supports_open_rows
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import DTYPES, Choices
from relaylab.ir import Call, Op, is_dynamic
from relaylab.loop.expr import Const, ScalarExpr, as_index
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayError


@dataclass(frozen=True, slots=True)
class OpenProduct(RowMajorProduct):
    """dense or matmul of open rows and a matrix."""

    spec: OpenRows
    packs: bool = True

    def accepts(self, data: MemoryView) -> bool:
        found = self.merged(data)
        return found is not None and (found.strides, found.offset) == ((self.spec.depth, 1), 0)

    def merged(self, view: MemoryView) -> MemoryView | None:
        return _as_rows(view)

    @property
    def row_major(self) -> bool:
        return True

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return KernelSequence((open_rows(self.spec, target, epilogue),))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        return pack_open_rows(self.spec, target, weight.T if self.transpose_b else weight)

    def chosen(self, choices: Choices) -> Contraction:
        raise RelayError("a product of open rows has no choices", code="schedule.illegal")


def open_product_of(call: Call, operation: Operation, target: CpuTarget) -> Contraction | None:
    """The product that a call is, if only the number of its rows is open; None for any other call."""
    if not isinstance(call.op, Op) or call.op.name not in ("nn.dense", "nn.matmul") or operation.sizes is None:
        return None
    left, right, out = (tensor_type(e) for e in (*call.args[:2], call))
    attrs = cast("MatrixProductAttrs", call.attrs)
    if attrs.transpose_a or len({left.dtype, right.dtype, out.dtype}) > 1 or left.dtype not in DTYPES:
        return None
    if len(right.shape) != 2 or is_dynamic(right) or len(left.shape) < 2 or len(out.shape) != len(left.shape):
        return None
    rows = cast("Sequence[int]", operation.shape(out)[:-1])
    total = math.prod(rows)
    columns, depth = right.concrete_shape if attrs.transpose_b else right.concrete_shape[::-1]
    if not isinstance(total, ScalarExpr):
        return None
    spec = OpenRows(Simplifier()(total), depth, columns, left.dtype)
    return OpenProduct(call, bool(attrs.transpose_b), spec) if supports_open_rows(spec, target) else None


def _as_rows(view: MemoryView) -> MemoryView | None:
    """The view with its last axis and all others as one; None if they do not lie evenly."""
    simple = Simplifier()
    plain = lambda n: simple(as_index(n))
    known = [x.value if isinstance(x := plain(n), Const) else None for n in (view.strides[-1], view.offset)]
    last, offset = (int(x) if x is not None else None for x in known)
    columns, dense = view.shape[-1], dense_strides(view.shape)
    moving = [k for k, n in enumerate(view.shape[:-1]) if plain(n) is not plain(1)]
    if last is None or offset is None or isinstance(columns, ScalarExpr):
        return None
    if all(plain(view.strides[k]) is plain(dense[k]) for k in moving):
        return MemoryView(view.dtype, (MOST_ROWS, columns), (columns, last), offset) if last == 1 else None
    if any(plain(view.strides[k]) is not plain(0) for k in moving):
        return None
    return MemoryView(view.dtype, (MOST_ROWS, columns), (0, last), offset)
