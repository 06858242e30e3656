"""Sorting along an axis: sort, argsort, topk, searchsorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.expr import Call, Expr, TupleWrapper
from relaylab.ir.op import facets
from relaylab.ir.types import IntImm, TensorType, TupleType, Type, type_text
from relaylab.loop.expr import MOST_SIZE, Tensor, as_index
from relaylab.loop.scalar import is_float
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Position, Readable, TypeSolver
from relaylab.op.indexing import insert, place, unravel
from relaylab.op.ordering import first_in_order
from relaylab.op.shapes import derive, extent

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


def order(data: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """The indices that sort along an axis; equal elements keep their order both ways."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    back = (slice(None),) * (axis % data.ndim) + (slice(None, None, -1),)
    return data.shape[axis] - 1 - np.argsort(data[back], axis=axis, kind="stable")[back]


@contextmanager
def lines(p: Procedure, shape: Sequence[int], axis: int) -> Iterator[Callable[[Position], tuple[Position, ...]]]:
    """The lines along an axis, in parallel: the index of an element of a line from its place."""
    others = (*shape[:axis], *shape[axis + 1 :])
    with p.parallel(math.prod(others)) as line:
        at = unravel(p.b, line, others)
        yield lambda k: insert(at, axis, k)


def _side_by_side(
    p: Procedure, count: int, read: Callable[[Element], Element], data: Tensor, axis: int
) -> Callable[[Element], Element]:
    """What reads a line more than once: elements that lie apart are brought together before."""
    if math.prod(data.shape[axis + 1 :]) == 1:
        return read
    line = p.scratch(count, data.dtype)
    with p.loop(count, kind="vectorized") as k:
        p.store(line, k, read(k))
    return lambda k: line(k)


class Sorting(Opaque):
    """An operator that orders elements along `axis`."""

    data: Input = arg("the tensor whose elements are ordered")
    axis: int = attr(-1, "the axis along which is sorted; negative: from the last")
    is_ascend: bool = attr(True, "whether the smallest element comes first, not the largest")
    dtype: Dtype = attr(None, "the data type of the result, for indices")

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.axis(s, self.axis, len(data.shape), f"axis of {self.op_name}")
        return TensorType(data.shape, self.result_dtype(data.dtype))

    def result_dtype(self, data: str) -> str:
        """The data type of the result."""
        return data

    def procedure(self, p: Procedure, out: Tensor, data: Tensor) -> None:
        axis = self.axis % len(data.shape)
        count = data.shape[axis]
        with lines(p, data.shape, axis) as at:
            write = lambda k, key, number: p.store(out, at(k), self.element(p.b, key, number))
            first_in_order(p, count, count, lambda k: data(*at(k)), data.dtype, self.is_ascend, write)

    def element(self, b: ElementBuilder, key: Element, number: Element) -> Element:
        """The element of the result that stands for a key and its number."""
        return key

    @classmethod
    def samples(cls) -> list[Sample]:
        ties = np.array([[3, 1, 2, 1, 3], [0, 0, -1, 5, 5]], "int32")
        return [sample((2, 5)), sample(ties, is_ascend=False), sample((3, 4), axis=0), sample(ties, axis=1)]


@op("sort", level=6, attrs_key="Argsort", parameters="data axis is_ascend")
class sort(Sorting):
    """The elements in order along an axis."""

    yields = "the shape of data, and its dtype"
    source = "numpy.sort"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.take_along_axis(data, order(data, self.axis, self.is_ascend), self.axis)


@op("argsort", level=6, attrs_key="Argsort", defaults={"dtype": "int32"})
class argsort(Sorting):
    """The indices that put the elements in order along an axis; equal ones keep their order."""

    yields = "the shape of data, of `dtype`"
    source = "numpy.argsort, kind='stable'"

    def result_dtype(self, data: str) -> str:
        return self.dtype or "int32"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return order(data, self.axis, self.is_ascend).astype(self.dtype or "int32")

    def element(self, b: ElementBuilder, key: Element, number: Element) -> Element:
        return b.cast(number, self.dtype or "int32")


def topk_type(s: TypeSolver, values: TensorType, ret_type: str, dtype: str) -> Type:
    """The type of what topk gives, for values of that type and indices of `dtype`."""
    indices = TensorType(values.shape, dtype)
    kinds = {"values": values, "indices": indices, "both": TupleType([values, indices])}
    if ret_type not in kinds:
        s.fail(f'ret_type of topk must be "values", "indices" or "both", not "{ret_type}"')
    return kinds[ret_type]


@op("topk", level=6, attrs_key="Topk")
class topk(Opaque):
    """The k first elements in order along an axis (all if k < 1) and their indices; `ret_type` "values", "indices" or
    "both" (a tuple). The largest come first unless `is_ascend`.
    """

    yields = "data.shape with `k` along `axis`: values of the dtype of data, indices of `dtype`"
    source = "ONNX TopK"

    data: Input = arg("the tensor whose elements are ordered")
    k: int | None = attr(doc="how many elements are given, all if below 1; or an expression that gives it at run time")
    axis: int = attr(-1, "the axis along which is ordered; negative: from the last")
    ret_type: str = attr("both", "what is given: both (a tuple), values or indices")
    is_ascend: bool = attr(False, "whether the smallest elements are given, not the largest")
    dtype: Dtype = attr(None, "the data type of the indices")
    defaults = {"k": 1, "dtype": "int32"}
    dynamic = ("k",)

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        axis = rules.axis(s, self.axis, len(data.shape), "axis of topk")
        count = derive(lambda n: self.k if self.k and 0 < self.k <= n else n, data.shape[axis])
        if self.k and self.k > 0:
            count = IntImm(self.k)
            if isinstance(data.shape[axis], int) and self.k > extent(data.shape[axis]):
                s.fail(f"k = {self.k} elements are more than {type_text(data)} has along axis {axis}")
        values = TensorType(place(data.shape, axis, count), data.dtype)
        return topk_type(s, values, self.ret_type, self.dtype or "int32")

    def reference(self, data: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        return self.first(data, self.k or 0)

    def first(self, data: np.ndarray, k: int) -> np.ndarray | tuple[np.ndarray, ...]:
        """The k first elements."""
        at = order(data, self.axis, self.is_ascend)
        count = data.shape[self.axis]
        at = at[(slice(None),) * (self.axis % data.ndim) + (slice(min(k, count) if k > 0 else count),)]
        values = data[at] if data.ndim == 1 else np.take_along_axis(data, at, self.axis)
        indices = at.astype(self.dtype or "int32")
        return {"values": values, "indices": indices, "both": (values, indices)}[self.ret_type]

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        *outs, data = tensors
        axis = self.axis % len(data.shape)
        count = outs[0].shape[axis]
        with lines(p, data.shape, axis) as at:

            def write(k: Element, key: Element, number: Element) -> None:
                found = {"values": (key,), "indices": (number,), "both": (key, number)}[self.ret_type]
                for out, x in zip(outs, found, strict=True):
                    p.store(out, at(k), p.b.cast(x, out.dtype))

            read = _side_by_side(p, data.shape[axis], lambda k: data(*at(k)), data, axis)
            first_in_order(p, data.shape[axis], count, read, data.dtype, self.is_ascend, write)

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        return wrap(call, 2) if facets(call).ret_type == "both" else call

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 6), k=2),
            sample((3, 6), k=4, axis=1, ret_type="values", is_ascend=True),
            sample((3, 6), k=0, axis=0, ret_type="indices", dtype="int64"),
            sample(TensorType((8,), "int32"), k=3),
        ]


@op("searchsorted", level=6, attrs_key="SearchSorted")
class searchsorted(Opaque):
    """Where each value would be inserted into a sorted sequence (one for all, or one per row), before equal
    elements or, with `right`, behind them.
    """

    yields = "the shape of values, of `dtype`"
    source = "numpy.searchsorted"

    sorted_sequence: Input = arg("the sorted elements", "(n,), or (*values.shape[:-1], n)", "that of values")
    values: Input = arg("what is looked for")
    right: bool = attr(False, "whether the place behind equal elements is meant, not before them")
    dtype: Dtype = attr("int32", "the data type of the result")

    def result_type(self, s: TypeSolver, sorted_sequence: TensorType, values: TensorType) -> Type | None:
        rules.same_dtype(s, sorted_sequence, values)
        rank = len(sorted_sequence.shape)
        if rank == 0 or (rank > 1 and sorted_sequence.shape[:-1] != values.shape[:-1]):
            s.fail(f"{type_text(sorted_sequence)} must have rank 1, or the same rows as {type_text(values)}")
        return TensorType(values.shape, self.dtype or "int32")

    def reference(self, sorted_sequence: np.ndarray, values: np.ndarray) -> np.ndarray:
        side = "right" if self.right else "left"
        if sorted_sequence.ndim == 1:
            return np.searchsorted(sorted_sequence, values, side).astype(self.dtype or "int32")
        out = np.zeros(values.shape, self.dtype or "int32")
        for at in np.ndindex(*values.shape[:-1]):
            out[at] = np.searchsorted(sorted_sequence[at], values[at], side)
        return out

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, sorted_sequence: Readable, values: Readable) -> Element:
        value, row = values(*i), i[:-1] if len(sorted_sequence.shape) > 1 else ()

        def before(k: Element) -> Element:
            x = sorted_sequence(*row, k)
            found = x <= value if self.right else x < value
            if is_float(value.dtype):  # NaN stands behind all numbers
                found = b.select(b.isnan(value), b.const(True, "bool") if self.right else b.lnot(b.isnan(x)), found)
            return found

        n = sorted_sequence.shape[len(sorted_sequence.shape) - 1]
        if n == 0:
            return b.const(0, out.dtype)
        most = n if isinstance(n, int) else MOST_SIZE
        place: Element = as_index(0)  # so many elements are before the value, or more
        for step in (1 << k for k in reversed(range(most.bit_length()))):
            beyond = place + step
            fits = b.all_of(beyond <= n, before(b.min(beyond - 1, n - 1)))
            place = b.select(fits, beyond, place)
        found = lambda: b.cast(place, out.dtype)
        return found() if isinstance(n, int) else b.guard(n > 0, found, b.const(0, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        row = np.array([1, 2, 2, 4, 7], "float32")
        values = np.array([[0, 2, 3], [7, 8, 4]], "float32")
        rows = np.array([[1, 2, 3, 3], [0, 4, 4, 9]], "float32")
        return [sample(row, values), sample(row, values, right=True, dtype="int64"), sample(rows, values)]
