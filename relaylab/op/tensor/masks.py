"""Parts of tensors kept, replaced or reversed: trilu, matrix_set_diag, reverse_sequence, sequence_mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.leaves import const
from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.loop.scalar import is_integer
from relaylab.op import rules
from relaylab.op.base import Injective, Input, OpPattern, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length, place
from relaylab.op.shapes import derive


@op("trilu", level=3, attrs_key="Trilu", meta_attrs=True)
class trilu(Injective):
    """The upper (or lower) triangle of matrices, from the k-th diagonal on; zeros elsewhere."""

    yields = "the shape of data, and its dtype"
    source = "numpy.triu, numpy.tril; ONNX Trilu"

    data: Input = arg("the matrices", "(..., rows, columns)")
    k: Input = arg("the diagonal at which the triangle ends; 0 is the main one", "() or ones", "integers")
    upper: bool = attr(True, "whether the upper triangle is kept, or the lower one")
    pattern = OpPattern.ELEMWISE

    @classmethod
    def build(cls, data: Expr, k: object, upper: bool = True) -> Expr:
        return cls.call(data, const(k, "int32") if isinstance(k, int) else k, upper=upper)

    def relation(self, s: TypeSolver, data: Type, k: Type) -> Type | None:
        found, diagonal = rules.tensor(s, data), rules.tensor(s, k, "k")
        if diagonal is not None:
            rules.integers(s, rules.scalar(s, diagonal, "k"), "k")
        if found is not None and len(found.shape) < 2:
            s.fail(f"trilu needs at least two dimensions, not {type_text(found)}")
        return found

    def reference(self, data: np.ndarray, k: np.ndarray) -> np.ndarray:
        return (np.triu if self.upper else np.tril)(data, int(k.reshape(())))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, k: Readable) -> Element:
        offset, diagonal = i[-1] - i[-2], b.load_index(k(*[0] * len(k.shape)))
        kept = offset >= diagonal if self.upper else offset <= diagonal
        return b.select(kept, data(*i), b.const(0, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        at = lambda k: np.array(k, "int32")
        return [sample((3, 4), at(0)), sample((2, 3, 3), at(-1), upper=False), sample((4, 3), at(1))]


@op("matrix_set_diag", level=10, attrs_key="MatrixSetDiag")
class matrix_set_diag(Injective):
    """Matrices with their diagonals k1 .. k2 replaced; shorter diagonals lie right or left in their row of
    `diagonal`.
    """

    extra = {
        "data": "the matrices; shape (..., rows, columns); dtype any",
        "k": "the diagonal that is set, or the lowest and the highest of several",
        "align": "where shorter diagonals above the main one lie in their row, then those below, as RIGHT_LEFT",
    }
    yields = "the shape of data, and its dtype"
    source = "tf.linalg.set_diag"

    input: Input = arg("the matrices", "(..., rows, columns)")
    diagonal: Input = arg(
        "the new diagonals, from k2 down to k1", "(..., longest), or (..., k2 - k1 + 1, longest)", "that of data"
    )
    k1: int = attr(0, "the lowest diagonal that is set; negative ones lie below the main one")
    k2: int = attr(0, "the highest diagonal that is set")
    super_diag_right_align: bool = attr(True, "whether shorter diagonals above the main one lie at the right")
    sub_diag_right_align: bool = attr(False, "whether shorter diagonals below the main one lie at the right")

    def relation(self, s: TypeSolver, into: Type, diagonals: Type) -> Type | None:
        data, diagonal = rules.tensor(s, into), rules.tensor(s, diagonals, "diagonal")
        if data is None or diagonal is None:
            return None
        rules.same_dtype(s, data, diagonal)
        ends = [n for n, k in zip(data.shape[-2:], (-self.k1, self.k2)) if isinstance(n, int) and not k < n]
        if len(data.shape) < 2 or self.k1 > self.k2 or ends:
            s.fail(f"{type_text(data)} has no diagonals {self.k1} .. {self.k2}")
        rules.rank(s, diagonal, len(data.shape) - (self.k1 == self.k2), "diagonal")
        if self.k1 < self.k2:
            between = IntImm(self.k2 - self.k1 + 1)
            rules.equal_dims(s, diagonal.shape[-2], between, f"the diagonals of {type_text(diagonal)}")
        longest = derive(lambda r, c: max(self._length(r, c, k) for k in range(self.k1, self.k2 + 1)), *data.shape[-2:])
        for n, m in zip(data.shape[:-2], diagonal.shape):
            rules.equal_dims(s, n, m, f"the batches of {type_text(data)} and {type_text(diagonal)}")
        rules.equal_dims(
            s, diagonal.shape[-1], longest, f"the last dimension of {type_text(diagonal)} must be the longest diagonal"
        )
        return data

    @staticmethod
    def _length(rows: int, columns: int, k: int) -> int:
        return min(rows + min(k, 0), columns - max(k, 0))

    def _shift(self, length: int, k: int, width: int) -> int:
        """Where diagonal `k` of this length begins in its row of `diagonal`."""
        right = self.super_diag_right_align if k >= 0 else self.sub_diag_right_align
        return width - length if right else 0

    def reference(self, data: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        out, (rows, columns) = data.copy(), data.shape[-2:]
        for k in range(self.k1, self.k2 + 1):
            row = diagonal if self.k1 == self.k2 else diagonal[..., self.k2 - k, :]
            first = self._shift(self._length(rows, columns, k), k, diagonal.shape[-1])
            for n in range(self._length(rows, columns, k)):
                out[..., n - min(k, 0), n + max(k, 0)] = row[..., first + n]
        return out

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, diagonal: Readable) -> Element:
        rows, columns, width = (*data.shape[-2:], diagonal.shape[-1])
        value = data(*i)
        known = isinstance(rows, int) and isinstance(columns, int)
        for k in range(self.k1, self.k2 + 1):
            least = min if known else lambda m, n: cast(int, b.min(m, n))
            length = least(rows + min(k, 0), columns - max(k, 0))
            at = i[-1] - max(k, 0) + self._shift(length, k, width)
            where = (*i[:-2], at) if self.k1 == self.k2 else (*i[:-2], self.k2 - k, at)
            value = b.guard(b.eq(i[-1] - i[-2], k), lambda where=where: diagonal(*where), value)
        return value

    @classmethod
    def build(cls, data: Expr, diagonal: Expr, k: int | Sequence[int] = 0, align: str = "RIGHT_LEFT") -> Expr:
        k1, k2 = (k, k) if isinstance(k, int) else (k[0], k[-1])
        above, below = align.startswith("RIGHT"), align.endswith("RIGHT")
        return cls.call(data, diagonal, k1=k1, k2=k2, super_diag_right_align=above, sub_diag_right_align=below)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 4), (2, 3)),
            sample((3, 4), (3,), k1=1, k2=1),
            sample((2, 4, 3), (2, 4, 3), k1=-2, k2=1),
            sample((3, 5), (2, 3), k1=-1, k2=0, sub_diag_right_align=True),
        ]


@op("reverse_sequence", level=3, attrs_key="ReverseSequence")
class reverse_sequence(Injective):
    """The first seq_lengths[b] elements along `seq_axis` reversed, for each b along `batch_axis`; lengths are limited
    to 0 .. the extent of `seq_axis`.
    """

    yields = "the shape of data, and its dtype"
    source = "ONNX ReverseSequence; tf.reverse_sequence"

    data: Input = arg("the sequences")
    seq_lengths: Input = arg("how many elements of each sequence are reversed", "(extent of `batch_axis`,)", "integers")
    seq_axis: int = attr(1, "the axis along which a sequence runs")
    batch_axis: int = attr(0, "the axis that counts the sequences, another one")

    def result_type(self, s: TypeSolver, data: TensorType, seq_lengths: TensorType) -> Type | None:
        along = rules.axis(s, self.seq_axis, len(data.shape), "seq_axis")
        batch = rules.axis(s, self.batch_axis, len(data.shape), "batch_axis")
        if along == batch:
            s.fail(f"seq_axis {self.seq_axis} and batch_axis {self.batch_axis} of {type_text(data)} are the same axis")
        rules.integers(s, rules.rank(s, seq_lengths, 1, "seq_lengths"), "seq_lengths")
        rules.equal_dims(s, seq_lengths.shape[0], data.shape[batch], "seq_lengths and the batch axis")
        return data

    def reference(self, data: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
        out = np.moveaxis(data, (self.batch_axis, self.seq_axis), (0, 1)).copy()
        for row, n in zip(out, seq_lengths.tolist()):
            row[: max(n, 0)] = row[: max(n, 0)][::-1].copy()
        return np.moveaxis(out, (0, 1), (self.batch_axis, self.seq_axis))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, seq_lengths: Readable) -> Element:
        axis = self.seq_axis % len(i)
        count = b.load_index(seq_lengths(i[self.batch_axis % len(i)]))
        at = b.select(i[axis] < count, b.min(count, length(data.shape[axis])) - 1 - i[axis], i[axis])
        return data(*place(i, axis, at))

    @classmethod
    def samples(cls) -> list[Sample]:
        lengths = np.array([2, 5, 0], "int32")
        return [sample((3, 5, 2), lengths), sample((4, 3), np.array([-2, 4, 9], "int64"), seq_axis=0, batch_axis=-1)]


@op("sequence_mask", level=10, attrs_key="SequenceMask")
class sequence_mask(Injective):
    """`data` (length, batch, ...) (or batch first, with axis 1) with what lies behind valid_length[b] masked."""

    yields = "the shape of data, and its dtype"
    source = "TVM 0.10, relay.sequence_mask"

    data: Input = arg("the sequences", "(length, batch, ...), or (batch, length, ...) with axis 1")
    valid_length: Input = arg("how many elements of each sequence stay", "(batch,)")
    mask_value: float = attr(0.0, "what takes the place of the others")
    axis: int = attr(0, "the axis along which a sequence runs, 0 or 1")

    def result_type(self, s: TypeSolver, data: TensorType, valid_length: TensorType) -> Type | None:
        if self.axis not in (0, 1) or len(data.shape) < 2:
            s.fail(
                f"sequence_mask needs axis 0 or 1 of at least two dimensions, not axis {self.axis} of {type_text(data)}"
            )
        rules.equal_dims(
            s,
            rules.rank(s, valid_length, 1, "valid_length").shape[0],
            data.shape[1 - self.axis],
            "valid_length and the batch axis",
        )
        rules.held(s, self.mask_value, data.dtype, "mask_value")
        return data

    def reference(self, data: np.ndarray, valid_length: np.ndarray) -> np.ndarray:
        kept = np.arange(data.shape[self.axis]) < valid_length[:, None]
        kept = (kept if self.axis else kept.T).reshape(data.shape[:2] + (1,) * (data.ndim - 2))
        return np.where(kept, data, np.full((), self.mask_value, data.dtype))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, valid_length: Readable) -> Element:
        length, place = valid_length(i[1 - self.axis]), b.index(i[self.axis])
        if is_integer(length.dtype):  # a narrow type may not have all places
            kept = place < b.load_index(length)
        else:
            kept = b.cast(place, "float64") < b.cast(length, "float64")
        return b.select(kept, data(*i), b.const(self.mask_value, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((4, 3, 2), np.array([1, 4, 0], "int32")),
            sample((2, 5), np.array([2, 3], "float32"), axis=1, mask_value=-1.5),
        ]
