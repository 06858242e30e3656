"""Operators whose result depends on what is found in the data: argwhere, unique."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from relaylab.ir.expr import Expr, TupleWrapper
from relaylab.ir.types import AnyDim, IntImm, TensorType, TupleType, Type
from relaylab.loop.expr import Tensor
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, call_operator, op, sample, wrap
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.ordering import SortedRow
from relaylab.op.shapes import product

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

MOST_SEARCHED = 1 << 12
"""How many elements a kernel searches, which has room for as many places: numpy finds more in less time."""


@op("argwhere", level=10)
class argwhere(Opaque):
    """The int32 coordinates (count, rank) of the elements that are not 0, in row-major order."""

    yields = "(number of elements that are not 0, rank of condition), int32"
    source = "numpy.argwhere"

    condition: Input = arg("the tensor that is searched")

    waivers = {"lower": "the number of rows depends on the data"}

    def relation(self, s: TypeSolver, condition: Type) -> Type | None:
        found = rules.tensor(s, condition, "condition")
        return found and TensorType((AnyDim(), len(found.shape)), "int32")

    def reference(self, condition: np.ndarray) -> np.ndarray:
        truth = condition if condition.dtype.kind == "b" else condition != 0  # numpy finds these several times as fast
        found = truth.ravel().nonzero()[0]
        found = found.astype("int32") if condition.size < 1 << 31 else found
        places = np.empty((condition.ndim, found.size), "int32")
        for axis in range(condition.ndim - 1, 0, -1):
            before = found // condition.shape[axis]
            np.subtract(found, before * condition.shape[axis], out=places[axis], casting="unsafe")
            found = before
        places[:1] = found
        return places.T

    def with_room(self, args: Sequence[Expr]) -> Expr | None:
        searched = cast(TensorType, args[0].checked_type)
        fits = not searched.is_dynamic and math.prod(searched.concrete_shape) <= MOST_SEARCHED
        return call_operator("padded_argwhere", *args) if fits else None

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(TensorType((3, 4), "bool")),
            sample(TensorType((6,), "int32")),
            sample(TensorType((2, 2, 2), "bool")),
        ]


@op("padded_argwhere", level=10)
class padded_argwhere(Opaque):
    """The coordinates of the elements that are not 0, in row-major order, and how many there are: as argwhere, but as
    many rows as there are elements; those behind the number are 0. What a size that data decides is taken from.
    """

    yields = "a tuple: coordinates (number of elements, rank of condition) and their number (1,), both int32"
    source = "jax.numpy.argwhere with size"

    condition: Input = arg("the tensor that is searched")

    def result_type(self, s: TypeSolver, condition: TensorType) -> Type | None:
        places = TensorType((product(condition.shape), IntImm(len(condition.shape))), "int32")
        return TupleType([places, TensorType((1,), "int32")])

    def reference(self, condition: np.ndarray) -> tuple[np.ndarray, ...]:
        found = argwhere.definition().reference(condition)
        places = np.zeros((condition.size, condition.ndim), "int32")
        places[: len(found)] = found
        return places, np.array([len(found)], "int32")

    def procedure(self, p: Procedure, places: Tensor, number: Tensor, condition: Tensor) -> None:
        """One pass in order; what lies behind is told then."""
        b, zero = p.b, p.b.const(0, condition.dtype)
        with p.parallel(1):
            found = p.let(0)
            with p.loops(condition.shape) as at:
                with p.when(b.ne(condition(*at), zero)):
                    for axis, k in enumerate(at):
                        p.store(places, (found, axis), b.cast(k, "int32"))
                    p.add(found, 1)
            p.store(number, 0, b.cast(found, "int32"))
            with p.loop(places.shape[0], places.shape[0] - found) as k:
                for axis in range(len(condition.shape)):
                    p.store(places, (found + k, axis), 0)

    @classmethod
    def samples(cls) -> list[Sample]:
        return argwhere.definition.samples()


@op("unique", level=3, attrs_key="Unique", meta_attrs=True)
class unique(Opaque):
    """The different elements of a vector: a tuple of them, the index of the first of each, for each element which
    one it is, their number, and (if asked) how often each occurs. All but the number have the length of `data`;
    what lies behind the number of different elements is 0. Sorted, or in the order of first occurrence.
    """

    extra = {"is_sorted": "whether the different elements are sorted, or in the order in which they first occur"}
    yields = (
        "a tuple: elements (n,) of the dtype of data, first places (n,), classes (n,), number (1,), counts "
        "(n,), all int32"
    )
    source = "numpy.unique"

    data: Input = arg("the elements", "(n,)")
    sorted: bool = attr(True, "whether the different elements are sorted, or in the order in which they first occur")
    return_counts: bool = attr(False, "whether how often each element occurs is a field more")

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.rank(s, data, 1)
        index = TensorType(data.shape, "int32")
        fields = [data, index, index, TensorType((1,), "int32")]
        return TupleType([*fields, index] if self.return_counts else fields)

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        values, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
        order = np.arange(len(values)) if self.sorted else np.argsort(first, kind="stable")
        place = np.argsort(order)
        fields = [_padded(x[order], len(data)) for x in (values, first.astype("int32"), counts.astype("int32"))]
        number = np.array([len(values)], "int32")
        out = (fields[0], fields[1], place[inverse].astype("int32"), number)
        return (*out, fields[2]) if self.return_counts else out

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        """Equal elements are neighbours in the sorted row; a second pass writes the fields."""
        (values, firsts, classes, number, *counts), data = tensors[:-1], tensors[-1]
        b, count = p.b, data.shape[0]
        for out in (values, firsts, *counts):
            p.each(out, lambda i, out=out: b.const(0, out.dtype))
        with p.parallel(1):
            group, start, place = (p.scratch(count, "int64") for _ in range(3))
            groups, found = self._groups(p, data, group, start), p.let(0)
            with p.loop(count) as k:
                mine = p.let(group(k))
                with p.when(b.eq(start(mine), k)):
                    to = p.let(mine if self.sorted else found)
                    p.store(place, mine, to)
                    p.store(values, to, data(k))
                    p.store(firsts, to, b.cast(k, "int32"))
                    p.add(found, 1)
                to = p.let(place(mine))
                p.store(classes, k, b.cast(to, "int32"))
                for out in counts:
                    p.store(out, to, out(to) + 1)
            p.store(number, 0, b.cast(groups, "int32"))

    @staticmethod
    def _groups(p: Procedure, data: Tensor, group: Tensor, start: Tensor) -> Element:
        """The number of different elements: `group` says which of them each element is, `start` where each is first."""
        b, count = p.b, data.shape[0]
        row, groups = SortedRow(p, count, data.dtype), p.let(0)
        with p.loop(count, kind="vectorized") as k:
            row.put(k, data(k), k)
        row.sort(count)
        with p.loop(count) as k:
            at = p.let(row.number(k))
            with p.when(b.lor(b.eq(k, 0), row.keys(b.max(k - 1, 0)) < row.keys(k))):
                p.store(start, groups, at)
                p.add(groups, 1)
            p.store(group, at, groups - 1)
        return groups

    @classmethod
    def build(cls, data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
        return wrap(cls.call(data, sorted=is_sorted, return_counts=return_counts), 5 if return_counts else 4)

    @classmethod
    def samples(cls) -> list[Sample]:
        data = np.array([4, 1, 4, 2, 1, 4], "int32")
        return [sample(data), sample(data, sorted=False, return_counts=True)]


def _padded(x: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([x, np.zeros(length - len(x), x.dtype)])
