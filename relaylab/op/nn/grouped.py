"""Products of groups of rows with a matrix for each group: what the experts of a mixture do with their tokens.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, op, sample
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.products import dims, elements

if TYPE_CHECKING:
    from relaylab.loop.expr import Tensor
    from relaylab.loop.procedure import Procedure

ROWS = 6
"""How many rows share a vector of the weight, two vectors wide: what 16 registers hold."""
PANEL = 64
"""How many columns an item has: its part of a matrix stays in a second-level cache while rows go by."""
FEW = 4
"""How many vectors are side by side for a single row."""


@op("nn.grouped_matmul", level=10, attrs_key="GroupedMatmul")
class grouped_matmul(Opaque):
    """The rows of a matrix in groups, each times a matrix of its own: group g ends before row `ends[g]` and begins
    where the one before it ends. Rows behind the last group are 0.

    No matrix is copied, and none of a group without rows is read.
    """

    data: Input = arg("the rows, those of a group side by side", "(m, k)", "floats")
    weight: Input = arg("a matrix for each group", "(groups, k, n)", "that of data")
    ends: Input = arg("how many rows the groups up to each one have, ascending", "(groups,)", "int32 or int64")
    yields = "(m, n), of the dtype of data"
    source = "torch.nn.functional.grouped_mm; Gale et al., MegaBlocks, 2022"

    def result_type(self, s: TypeSolver, data: TensorType, weight: TensorType, ends: TensorType) -> Type | None:
        rules.floats(s, rules.rank(s, data, 2, "data"), "data")
        rules.same_dtype(s, data, weight)
        rules.shaped(s, weight, (None, data.shape[1], None), "weight")
        rules.shaped(s, rules.integers(s, ends, "ends"), weight.shape[:1], "ends")
        return TensorType((data.shape[0], weight.shape[2]), data.dtype)

    def reference(self, data: np.ndarray, weight: np.ndarray, ends: np.ndarray) -> np.ndarray:
        out = np.zeros((len(data), weight.shape[2]), data.dtype)
        start = 0
        for matrix, end in zip(weight, ends.tolist()):
            out[start:end] = data[start:end].astype("float64") @ matrix.astype("float64")
            start = end
        return out

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, weight: Tensor, ends: Tensor) -> None:
        b, rows, groups, columns = p.b, data.shape[0], weight.shape[0], weight.shape[2]
        p.each(out, lambda *i: b.const(0, out.dtype))
        whole, rest = divmod(columns, PANEL)
        for first, panels, width in ((0, whole, PANEL), (whole * PANEL, min(rest, 1), rest)):
            if not panels:
                continue
            with p.parallel(groups * panels) as item:
                group, column = item // panels, item % panels * PANEL + first
                end = p.let(_limited(p, ends, group, rows), "end")
                before = b.select(group > 0, _limited(p, ends, b.max(group - 1, b.index(0)), rows), b.index(0))
                start = p.let(before, "start")
                many = p.let(b.max(end - start, b.index(0)) // ROWS, "many")
                with p.loop(rows // ROWS, stop=many) as tile:
                    _tile(p, (out, data, weight), (group, start + tile * ROWS, column), ROWS, width)
                last = p.let(start + many * ROWS, "last")
                with p.loop(ROWS - 1, stop=end - last) as row:
                    _tile(p, (out, data, weight), (group, last + row, column), 1, width)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        inner = dims(types[0])[-1]
        return elements(out) * int(inner) if isinstance(inner, int) else 0

    @classmethod
    def samples(cls) -> list[Sample]:
        narrow = [TensorType(shape, "bfloat16") for shape in ((5, 3), (2, 3, 4))]
        return [
            sample((9, 5), (3, 5, 4), np.array([7, 7, 9], "int64")),
            sample((20, 3), (4, 3, 70), np.array([0, 13, 14, 18], "int32")),
            sample(*(TensorType(shape, "float64") for shape in ((2, 3), (2, 3, 1))), np.array([1, 2], "int32")),
            sample(*narrow, np.array([2, 5], "int32")),
        ]


def _limited(p: Procedure, ends: Tensor, group: Element, rows: int) -> Element:
    """Where a group ends."""
    b = p.b
    return b.max(b.min(b.load_index(ends(group)), b.index(rows)), b.index(0))


def _tile(p: Procedure, operands: Sequence[Tensor], at: Sequence[Element], count: int, width: int) -> None:
    """Some rows and columns of the result; `at` is their matrix, the first row and the first column."""
    b, (out, data, weight), (group, row, column) = p.b, operands, at
    dtype = compute_dtype(out.dtype)
    with p.loop(width, kind="vectorized", unroll=FEW if count == 1 else 2) as c:
        sums = [p.let(b.const(0, dtype), "sum") for _ in range(count)]
        with p.loop(data.shape[1]) as k:
            x = p.let(b.cast(weight(group, k, column + c), dtype))
            for r, total in enumerate(sums):
                p.add(total, x * b.cast(data(row + r, k), dtype))
        for r, total in enumerate(sums):
            p.store(out, (row + r, column + c), b.cast(total, out.dtype))
