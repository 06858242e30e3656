"""Operators whose result depends on what is found in the data: argwhere, unique."""

from __future__ import annotations

import numpy as np

from relaylab.ir.expr import Expr, TupleWrapper
from relaylab.ir.types import AnyDim, TensorType, TupleType, Type
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import TypeSolver


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
        return np.argwhere(condition).astype("int32")

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(TensorType((3, 4), "bool")),
            sample(TensorType((6,), "int32")),
            sample(TensorType((2, 2, 2), "bool")),
        ]


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
    waivers = {"lower": "the place of an element depends on all elements before it"}

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

    @classmethod
    def build(cls, data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
        return wrap(cls.call(data, sorted=is_sorted, return_counts=return_counts), 5 if return_counts else 4)

    @classmethod
    def samples(cls) -> list[Sample]:
        data = np.array([4, 1, 4, 2, 1, 4], "int32")
        return [sample(data), sample(data, sorted=False, return_counts=True)]


def _padded(x: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([x, np.zeros(length - len(x), x.dtype)])
