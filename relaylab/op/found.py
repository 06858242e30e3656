"""Operators whose result depends on what is found in the data: argwhere, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import Any as Unknown
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.op import rules
from relaylab.op.base import Opaque, Sample, op, sample, wrap


@op("argwhere", inputs=("condition",), level=10)
class argwhere(Opaque):
    """The int32 coordinates (count, rank) of the elements that are not 0, in row-major order."""

    waivers = {"lower": "the number of rows depends on the data"}

    def relation(self, s: Any, condition: Type) -> Type | None:
        found = rules.tensor(s, condition, "condition")
        return found and TensorType((Unknown(), len(found.shape)), "int32")

    def reference(self, condition: np.ndarray) -> np.ndarray:
        return np.argwhere(condition).astype("int32")

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(TensorType((3, 4), "bool")),
            sample(TensorType((6,), "int32")),
            sample(TensorType((2, 2, 2), "bool")),
        ]


@op("unique", inputs=("data",), level=3, attrs_key="Unique", meta_attrs=True)
class unique(Opaque):
    """The different elements of a vector: a tuple of them, the index of the first of each, for each element which
    one it is, their number, and (if asked) how often each occurs. All but the number have the length of `data`;
    what lies behind the number of different elements is 0. Sorted, or in the order of first occurrence.
    """

    sorted: bool = True
    return_counts: bool = False
    waivers = {"lower": "the place of an element depends on all elements before it"}

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rules.rank(s, found, 1)
        index = TensorType(found.shape, "int32")
        fields = [found, index, index, TensorType((1,), "int32")]
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
    def build(cls, data: Any, is_sorted: bool = True, return_counts: bool = False) -> Any:
        return wrap(cls.call(data, sorted=is_sorted, return_counts=return_counts), 5 if return_counts else 4)

    @classmethod
    def samples(cls) -> list[Sample]:
        data = np.array([4, 1, 4, 2, 1, 4], "int32")
        return [sample(data), sample(data, sorted=False, return_counts=True)]


def _padded(x: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([x, np.zeros(length - len(x), x.dtype)])
