"""Choosing among boxes: valid counts and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.expr import Expr, TupleWrapper, as_expr
from relaylab.ir.leaves import const
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.loop.builder import most
from relaylab.loop.expr import Local, Tensor
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, Value, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.ordering import SortedRow
from relaylab.op.shapes import product
from relaylab.op.vision.suppression import ChosenBoxes, KeptBoxes, number, suppress

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


def scalar_or(value: Any, dtype: str) -> Any:
    """A constant for a Python number, an expression as it is."""
    return const(value, dtype) if isinstance(value, (int, float)) else as_expr(value)


def columns(s: TypeSolver, data: TensorType, *named: int) -> TensorType:
    """`data`, which must be (batch, rows, columns) of floats, with the columns that the attributes name."""
    found = rules.rank(s, rules.floats(s, data), 3).shape[2]
    for column in named:
        if column < 0 or isinstance(found, int) and found <= column:
            s.fail(f"the rows of {type_text(data)} have no column {column}")
    return data


@op("vision.get_valid_counts", inputs=("data", "score_threshold"), level=5, attrs_key="GetValidCounts", meta_attrs=True)
class get_valid_counts(Opaque):
    """Of (B, N, K) rows those with a score above the threshold (and, if `id_index` >= 0, a class >= 0), moved to
    the front: a tuple of their count, the rows (the rest -1), and their former indices (the rest -1).
    """

    data: Input = arg("rows with a score and perhaps a class", "(B, N, K)", "floats")
    score_threshold: Value = attr(None, "the score that valid rows exceed: a number, or an expression of shape ()")
    id_index: int = attr(0, "the column of the class; below 0: rows have none")
    score_index: int = attr(1, "the column of the score")
    yields = (
        "a tuple: (B,) of int32, the counts; (B, N, K) of the dtype of data, the rows; (B, N) of int32, the indices"
    )
    source = "TVM 0.10, relay.vision.get_valid_counts"

    def relation(self, s: TypeSolver, data: Type, score_threshold: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        if (least := rules.tensor(s, score_threshold, "score_threshold")) is not None:
            rules.scalar(s, least, "score_threshold")
        batch, count, _ = columns(s, found, self.score_index, max(self.id_index, 0)).shape
        return TupleType([TensorType((batch,), "int32"), found, TensorType((batch, count), "int32")])

    def reference(self, data: np.ndarray, score_threshold: np.ndarray) -> tuple[np.ndarray, ...]:
        valid = data[..., self.score_index] > score_threshold.reshape(())
        if self.id_index >= 0:
            valid &= data[..., self.id_index] >= 0
        rows, at = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
        for n, kept in enumerate(valid):
            chosen = np.flatnonzero(kept)
            rows[n, : len(chosen)], at[n, : len(chosen)] = data[n, chosen], chosen
        return valid.sum(axis=1).astype("int32"), rows, at

    def procedure(
        self, p: Procedure, counts: Tensor, rows: Tensor, at: Tensor, data: Tensor, score_threshold: Tensor
    ) -> None:
        b, (batch, count, columns) = p.b, data.shape
        p.each(rows, lambda *i: b.const(-1, rows.dtype))
        p.each(at, lambda *i: b.const(-1, at.dtype))
        with p.parallel(batch) as n:
            found, least = p.let(0), p.let(b.cast(number(score_threshold), "float64"))
            with p.loop(count) as k:
                valid = b.cast(data(n, k, self.score_index), "float64") > least
                with p.when(b.all_of(valid, *([data(n, k, self.id_index) >= 0] if self.id_index >= 0 else []))):
                    with p.loop(columns, kind="vectorized") as c:
                        p.store(rows, (n, found, c), data(n, k, c))
                    p.store(at, (n, found), b.cast(k, at.dtype))
                    p.add(found, 1)
            p.store(counts, n, b.cast(found, counts.dtype))

    @classmethod
    def build(cls, data: Expr, score_threshold: object, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
        call = cls.call(data, scalar_or(score_threshold, "float32"), id_index=id_index, score_index=score_index)
        return wrap(call, 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 5, 6), np.float32(0.3), low=-1, high=1),
            sample((1, 4, 5), np.float32(0.0), id_index=-1, score_index=0),
        ]


@op("vision.non_max_suppression", level=5, attrs_key="NonMaximumSuppression", meta_attrs=True)
class non_max_suppression(Opaque):
    """Of (B, N, K) rows the best that do not overlap a better one (of the same class, unless `force_suppress`).
    Gives the former indices and their count, or (without `return_indices`) the rows, of which removed ones are -1.
    """

    data: Input = arg("rows with a score, two corners and perhaps a class", "(B, N, K)", "floats")
    valid_count: Input = arg("how many rows at the front of each batch count", "(B,)", "integers")
    indices: Input = arg("the indices that the rows had before, which are given back", "(B, N)", "integers")
    max_output_size: Input = arg("how many rows each batch keeps at most; below 1: any number", "()", "integers")
    iou_threshold: Input = arg("the intersection over union from which on a box removes another", "()", "floats")
    force_suppress: bool = attr(False, "whether boxes also remove those of other classes")
    top_k: int = attr(-1, "how many of the best rows are looked at; below 1: all")
    coord_start: int = attr(2, "the first of the four columns with the corners")
    score_index: int = attr(1, "the column of the score")
    id_index: int = attr(0, "the column of the class; below 0: rows have none")
    return_indices: bool = attr(True, "whether indices and their count are given, or else rows")
    invalid_to_bottom: bool = attr(False, "whether rows that stay move to the front (without `return_indices`)")
    yields = (
        "a tuple of (B, N) and (B, 1) of int32: the indices, the rest -1, and their count; "
        "without `return_indices` (B, N, K), of the dtype of data"
    )
    source = "Girshick et al., Rich feature hierarchies for accurate object detection, 2014"

    def relation(self, s: TypeSolver, data: Type, *others: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        first = self.coord_start
        batch, count, _ = columns(s, found, self.score_index, max(self.id_index, 0), first, first + 3).shape
        for t, name, shape in zip(others, self.inputs[1:], ((batch,), (batch, count), None, None)):
            if (given := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, given, name) if shape is None else rules.shaped(s, given, shape, name)
                rules.floats(s, given, name) if name == "iou_threshold" else rules.integers(s, given, name)
        if not self.return_indices:
            return found
        return TupleType([TensorType((batch, count), "int32"), TensorType((batch, 1), "int32")])

    def reference(
        self, data: np.ndarray, valid_count: np.ndarray, indices: np.ndarray, most: np.ndarray, threshold: np.ndarray
    ) -> Any:
        rows, at = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
        counts = np.zeros((len(data), 1), "int32")
        for n in range(len(data)):
            rows_of = data[n, : max(0, int(valid_count[n]))]
            order, kept = self._select(rows_of, int(most.reshape(-1)[0]), float(threshold.reshape(-1)[0]))
            counts[n] = len(kept)
            at[n, : len(kept)] = indices[n, order[kept]]
            places = range(len(kept)) if self.invalid_to_bottom else kept
            rows[n, list(places)] = data[n, order[kept]]
        return (at, counts) if self.return_indices else rows

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        *outs, data, valid_count, indices, most, threshold = tensors
        b, (batch, count, _) = p.b, data.shape
        for out in outs[:1]:
            p.each(out, lambda *i, out=out: b.const(-1, out.dtype))
        with p.parallel(batch) as n:
            found = p.let(b.max(b.min(b.load_index(valid_count(n)), count), 0))
            row = SortedRow(p, count, data.dtype)
            with p.loop(count, kind="vectorized") as k:
                row.put(k, -data(n, k, self.score_index), k)
            row.sort(found)
            looked = p.let(b.min(found, self.top_k) if self.top_k > 0 else found)
            limit = p.let(b.load_index(number(most)))
            limit = p.let(b.select(limit > 0, limit, b.index(count)))
            by_class = not self.force_suppress and self.id_index >= 0
            kept = KeptBoxes(p, count, data.dtype, number(threshold), by_class)
            with p.loop(count, stop=looked) as k, p.when(kept.count < limit):
                at = p.let(row.number(k))
                corners = [data(n, at, self.coord_start + c) for c in range(4)]
                with kept.add(corners, data(n, at, self.id_index) if by_class else None) as place:
                    self._keep(p, outs, n, place if self.return_indices or self.invalid_to_bottom else k, at, tensors)
            if self.return_indices:
                p.store(outs[1], (n, 0), b.cast(kept.count, "int32"))

    def _keep(
        self, p: Procedure, outs: list[Tensor], n: Element, place: Element, at: Element, tensors: Sequence[Tensor]
    ) -> None:
        """Write a row that stays, or its index."""
        data, indices = tensors[len(outs)], tensors[len(outs) + 2]
        if self.return_indices:
            p.store(outs[0], (n, place), p.b.cast(indices(n, at), "int32"))
            return
        with p.loop(data.shape[2], kind="vectorized") as c:
            p.store(outs[0], (n, place, c), data(n, at, c))

    def _select(self, rows: np.ndarray, most: int, threshold: float) -> tuple[np.ndarray, list[int]]:
        """The rows by falling score, and which places of that order stay."""
        order = np.argsort(-rows[:, self.score_index], kind="stable")
        order = order[: self.top_k] if self.top_k > 0 else order
        boxes = rows[order][:, self.coord_start : self.coord_start + 4]
        same = None
        if not self.force_suppress and self.id_index >= 0:
            classes = rows[order][:, self.id_index]
            same = classes[:, None] == classes[None]
        return order, suppress(boxes, threshold, most if most > 0 else -1, same)

    @classmethod
    def build(
        cls,
        data: Expr,
        valid_count: object,
        indices: object,
        max_output_size: object = -1,
        iou_threshold: object = 0.5,
        force_suppress: bool = False,
        top_k: int = -1,
        coord_start: int = 2,
        score_index: int = 1,
        id_index: int = 0,
        return_indices: bool = True,
        invalid_to_bottom: bool = False,
    ) -> Expr | TupleWrapper:
        attrs = {k: v for k, v in locals().items() if k in cls.fields}
        call = cls.call(
            data,
            valid_count,
            indices,
            scalar_or(max_output_size, "int32"),
            scalar_or(iou_threshold, "float32"),
            **attrs,
        )
        return wrap(call, 2) if return_indices else call

    @classmethod
    def samples(cls) -> list[Sample]:
        box = [
            [0, 0.8, 1, 20, 25, 45],
            [1, 0.7, 30, 60, 50, 80],
            [0, 0.4, 4, 21, 19, 40],
            [2, 0.9, 35, 61, 52, 79],
            [1, 0.5, 100, 60, 70, 110],
        ]
        data = np.array([box, box[::-1]], "float32")
        rest = (np.array([5, 4], "int32"), np.tile(np.arange(5, dtype="int32"), (2, 1)), np.int32(-1), np.float32(0.45))
        return [
            sample(data, *rest),
            sample(data, *rest, force_suppress=True, top_k=3),
            sample(data, *rest, return_indices=False, invalid_to_bottom=True, force_suppress=True),
        ]


@op("vision.all_class_non_max_suppression", level=5, attrs_key="AllClassNonMaximumSuppression", meta_attrs=True)
class all_class_non_max_suppression(Opaque):
    """Non-maximum suppression per class, for boxes (B, N, 4) and scores (B, C, N). "onnx": a tuple of (batch,
    class, box) rows, the rest 0, and their number. "tensorflow": per batch (class, box) rows and scores by falling
    score, and numbers.
    """

    boxes: Input = arg("two corners of each box, in any order", "(B, N, 4)", "floats")
    scores: Input = arg("the score of each box in each class", "(B, C, N)", "floats")
    max_output_boxes_per_class: Input = arg("how many boxes a class keeps at most; below 1: any", "()", "integers")
    iou_threshold: Input = arg("the intersection over union from which on a box removes another", "()", "floats")
    score_threshold: Input = arg("the score that boxes must exceed", "()", "floats")
    output_format: str = attr("onnx", "onnx or tensorflow")
    yields = (
        "onnx: a tuple of (B * C * N, 3) and (1,) of int64; "
        "tensorflow: a tuple of (B, C * N, 2) of int64, (B, C * N) of float32 and (B,) of int64"
    )
    source = "ONNX NonMaxSuppression; tf.image.combined_non_max_suppression"

    def relation(self, s: TypeSolver, boxes: Type, scores: Type, *others: Type) -> Type | None:
        b, found = rules.tensor(s, boxes, "boxes"), rules.tensor(s, scores, "scores")
        if b is None or found is None:
            return None
        rules.shaped(s, rules.floats(s, found, "scores"), (b.shape[0], None, b.shape[1]), "scores")
        rules.shaped(s, rules.floats(s, b, "boxes"), (None, None, 4), "boxes")
        for t, name in zip(others, self.inputs[2:]):
            if (given := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, given, name)
                if name == "max_output_boxes_per_class":
                    rules.integers(s, given, name)
        if self.output_format not in ("onnx", "tensorflow"):
            s.fail(f'output_format must be "onnx" or "tensorflow", not "{self.output_format}"')
        if self.output_format == "onnx":
            return TupleType([TensorType((product(found.shape), 3), "int64"), TensorType((1,), "int64")])
        batch, each = found.shape[0], product(found.shape[1:])
        kinds = ((batch, each, 2), "int64"), ((batch, each), "float32"), ((batch,), "int64")
        return TupleType([TensorType(*k) for k in kinds])

    def reference(
        self, boxes: np.ndarray, scores: np.ndarray, most: np.ndarray, iou: np.ndarray, score: np.ndarray
    ) -> Any:
        limits = (int(most.reshape(-1)[0]), float(iou.reshape(-1)[0]), float(score.reshape(-1)[0]))
        chosen = [
            (n, c, k) for n, c in np.ndindex(*scores.shape[:2]) for k in self._select(boxes[n], scores[n, c], *limits)
        ]
        if self.output_format == "onnx":
            rows = np.zeros((scores.size, 3), "int64")
            rows[: len(chosen)] = np.array(chosen).reshape(-1, 3)
            return rows, np.array([len(chosen)], "int64")
        return self._by_batch(scores, chosen)

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        *outs, boxes, scores, _, _, _ = tensors
        (_, classes, count), ins = scores.shape, tensors[len(outs) :]
        for out in outs[:-1]:
            p.each(out, lambda *i, out=out: p.b.const(0, out.dtype))
        if self.output_format == "onnx":
            return self._rows(p, outs[0], outs[1], *ins)
        with p.parallel(boxes.shape[0]) as n:
            found, total = SortedRow(p, classes * count, scores.dtype), p.let(0)
            chosen = ChosenBoxes(p, *ins)
            with p.loop(classes) as c, chosen.of_class(n, c) as (k, _):
                found.put(total, -scores(n, c, k), c * count + k)
                p.add(total, 1)
            found.sort(total)
            with p.loop(classes * count, stop=total) as place:
                which = p.let(found.number(place))
                c, k = which // most(count, 1), which % most(count, 1)
                p.store(outs[0], (n, place, 0), c)
                p.store(outs[0], (n, place, 1), k)
                p.store(outs[1], (n, place), p.b.cast(scores(n, c, k), outs[1].dtype))
            p.store(outs[2], n, total)

    def _rows(self, p: Procedure, rows: Tensor, number_of_rows: Tensor, *ins: Tensor) -> None:
        """All classes at the same time, each where it ends up if all boxes before it stay; then they are moved
        together. Until then the first row of a class begins with their number.
        """
        batch, classes, count = ins[1].shape
        with p.parallel(batch * classes) as each:
            chosen = ChosenBoxes(p, *ins)
            with chosen.of_class(each // most(classes, 1), each % most(classes, 1)) as (k, place):
                p.store(rows, (each * count + place, 2), k)
            p.store(rows, (each * count, 0), chosen.kept.count)
        with p.parallel(1):
            total = p.let(0)
            for some in p.sides(count > 0):
                if some:
                    self._move(p, rows, ins[1], total)
            p.store(number_of_rows, 0, total)

    @staticmethod
    def _move(p: Procedure, rows: Tensor, scores: Tensor, total: Local) -> None:
        """The rows of all classes, one after another; `total` counts them."""
        batch, classes, count = scores.shape
        with p.loop(batch * classes) as each:
            many = p.let(rows(each * count, 0))
            p.store(rows, (each * count, 0), 0)
            with p.loop(count, stop=many) as place:
                k = p.let(rows(each * count + place, 2))
                p.store(rows, (each * count + place, 2), 0)
                for column, value in enumerate((each // most(classes, 1), each % most(classes, 1), k)):
                    p.store(rows, (total, column), value)
                p.add(total, 1)

    @staticmethod
    def _select(boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float) -> list[int]:
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > least]
        return [int(order[k]) for k in suppress(boxes[order], iou, most if most > 0 else -1)]

    @staticmethod
    def _by_batch(scores: np.ndarray, chosen: list[tuple[int, int, int]]) -> tuple[np.ndarray, ...]:
        batch, each = scores.shape[0], scores.shape[1] * scores.shape[2]
        rows, found = np.zeros((batch, each, 2), "int64"), np.zeros((batch, each), "float32")
        numbers = np.zeros(batch, "int64")
        for n in range(batch):
            mine = sorted((x for x in chosen if x[0] == n), key=lambda x: -scores[x])
            numbers[n] = len(mine)
            rows[n, : len(mine)] = np.array([x[1:] for x in mine]).reshape(-1, 2)
            found[n, : len(mine)] = [scores[x] for x in mine]
        return rows, found, numbers

    @classmethod
    def build(
        cls,
        boxes: object,
        scores: object,
        max_output_boxes_per_class: object = -1,
        iou_threshold: object = -1.0,
        score_threshold: object = -1.0,
        output_format: str = "onnx",
    ) -> TupleWrapper:
        limits = (scalar_or(iou_threshold, "float32"), scalar_or(score_threshold, "float32"))
        call = cls.call(
            boxes, scores, scalar_or(max_output_boxes_per_class, "int32"), *limits, output_format=output_format
        )
        return wrap(call, 2 if output_format == "onnx" else 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]], "float32")
        scores = np.array([[[0.9, 0.75, 0.6, 0.95], [0.2, 0.3, 0.8, 0.1]]], "float32")
        limits = (np.int32(2), np.float32(0.5), np.float32(0.15))
        return [sample(boxes, scores, *limits, output_format=f) for f in ("onnx", "tensorflow")]
