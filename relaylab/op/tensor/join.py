"""Operators that join tensors along an axis, or take one apart: concatenate, stack, split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Any

import numpy as np

from relaylab.ir.converters import CONVERTERS, INTS, Converter
from relaylab.ir.expr import Call, TupleWrapper
from relaylab.ir.op import facets
from relaylab.ir.types import Dim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length, place
from relaylab.op.shapes import better_known, derive, product, same_dim, total
from relaylab.support.errors import RelayValueError


def common(s: TypeSolver, fields: Sequence[TensorType], free: int = -1) -> list[Dim]:
    """The shape that all tensors share but for axis `free`; known dimensions win over unknown ones."""
    rules.same_dtype(s, *fields)
    shape = list(fields[0].shape)
    for t in fields[1:]:
        fits = len(t.shape) == len(shape)
        if not fits or not all(d == free or same_dim(x, y) for d, (x, y) in enumerate(zip(shape, t.shape))):
            s.fail(f"{type_text(fields[0])} and {type_text(t)} cannot be joined: their other dimensions differ")
        shape = list(map(better_known, shape, t.shape))
    return shape


class OfSeveral(Injective):
    """An operator of a list of tensors: one at least, which is said where the program is written, as TVM does."""

    @classmethod
    def call(cls, *args: object, **attrs: object) -> Call:
        if args and isinstance(args[0], (list, tuple)) and not args[0]:
            raise RelayValueError(
                f"{cls.op_name} requires data to be non-empty", code="op.no-tensors", help="give one tensor at least"
            )
        return super().call(*args, **attrs)


@op("concatenate", level=1, attrs_key="Concatenate", required="axis")
class concatenate(OfSeveral):
    """Tensors joined end to end along an existing axis; the other dimensions must agree."""

    yields = "the common shape with the sum of the extents along `axis`, of the dtype of data"
    source = "numpy.concatenate"

    data: Input = arg("the tensors, as a tuple or list", "one for all, but for the extent of `axis`", "one for all")
    axis: int = attr(0, "the axis along which they stand end to end; negative: from the last")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        fields = rules.tensors(s, data)
        if fields is None:
            return None
        axis = rules.axis(s, self.axis, len(fields[0].shape), "axis of concatenate")
        shape = common(s, fields, axis)
        shape[axis] = total(t.shape[axis] for t in fields)
        return TensorType(shape, fields[0].dtype)

    def reference(self, data: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.concatenate(data, axis=self.axis)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: tuple[Readable, ...]) -> Element:
        axis = self.axis % len(i)
        starts = list(accumulate((length(x.shape[axis]) for x in data), initial=0))
        value = b.const(0, out.dtype)
        for x, (low, high) in reversed(list(zip(data, pairwise(starts)))):
            at = place(i, axis, i[axis] - low)
            value = b.guard(b.all_of(i[axis] >= low, i[axis] < high), lambda x=x, at=at: x(*at), value)
        return value

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample([(2, 3), (4, 3)]),
            sample([(2, 3, 1), (2, 1, 1), (2, 2, 1)], axis=1),
            sample([(2, 3), (2, 1)], axis=-1),
            sample([TensorType((3,), "int8")]),
            sample([(2, 0), (2, 3)], axis=1),
        ]


@op("stack", level=3, attrs_key="Stack", required="axis")
class stack(OfSeveral):
    """Tensors of one shape joined along a new axis."""

    yields = "the shape of one tensor with their number inserted at `axis`, of the dtype of data"
    source = "numpy.stack"

    data: Input = arg("the tensors, as a tuple or list", "one for all", "one for all")
    axis: int = attr(0, "where the new axis stands in the result; negative: from behind the last")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        fields = rules.tensors(s, data)
        if fields is None:
            return None
        shape = common(s, fields)
        axis = rules.axis(s, self.axis, len(shape) + 1, "axis of stack")
        return TensorType((*shape[:axis], len(fields), *shape[axis:]), fields[0].dtype)

    def reference(self, data: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.stack(data, axis=self.axis)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: tuple[Readable, ...]) -> Element:
        axis = self.axis % len(i)
        inner = (*i[:axis], *i[axis + 1 :])
        value = data[-1](*inner)
        for k in reversed(range(len(data) - 1)):
            value = b.select(b.eq(i[axis], k), data[k](*inner), value)
        return value

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample([(2, 3), (2, 3)]),
            sample([(2, 3)] * 3, axis=-1),
            sample([(), ()]),
            sample([(2, 3), (2, 3)], axis=1),
        ]


def _cuts(value: object) -> object:
    given = value.tolist() if isinstance(value, np.ndarray) else value
    return INTS.take(tuple(given)) if isinstance(given, (tuple, list)) else CONVERTERS[int].take(given)


Cuts = Annotated[Any, Converter("int | Ints", "a whole number or a list of them", _cuts)]


@op("split", level=3, attrs_key="Split")
class split(Injective):
    """A tensor cut along an axis, into equal sections (an int) or at given indices (a tuple); gives a tuple."""

    yields = "a tuple of tensors: the shape of data but for the extents along `axis`, of the dtype of data"
    source = "numpy.split"

    data: Input = arg("the tensor that is cut")
    indices_or_sections: Cuts = attr(doc="into how many equal sections, or the indices at which a new section begins")
    axis: int = attr(0, "the axis along which the tensor is cut; negative: from the last")

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        cuts = self.indices_or_sections
        return int(cuts) if isinstance(cuts, int) else len(cuts) + 1

    def bounds(self, extent: Dim) -> list[tuple[Dim, Dim]]:
        """(begin, end) of each piece along the axis."""
        cuts = self.indices_or_sections
        if isinstance(cuts, int):
            size = derive(lambda n: n // cuts, extent)
            return list(pairwise(product((size, IntImm(k))) for k in range(cuts + 1)))
        return list(pairwise([IntImm(0), *map(IntImm, cuts), extent]))

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        axis = rules.axis(s, self.axis, len(data.shape), "axis of split")
        self._check(s, data.shape[axis], data)
        lengths = [derive(lambda low, high: high - low, *bound) for bound in self.bounds(data.shape[axis])]
        return TupleType([TensorType(place(data.shape, axis, n), data.dtype) for n in lengths])

    def _check(self, s: TypeSolver, extent: Dim, t: TensorType) -> None:
        cuts = self.indices_or_sections
        if isinstance(cuts, int):
            if cuts < 1 or (isinstance(extent, int) and extent % cuts):
                s.fail(
                    f"{extent} elements along axis {self.axis} of {type_text(t)} do not split into {cuts} equal parts"
                )
        else:
            ends = [0, *cuts, *([int(extent)] if isinstance(extent, int) else [])]
            if any(a > c for a, c in pairwise(ends)):
                s.fail(f"split indices {list(cuts)} must rise from 0 to {extent}")

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        cuts = self.indices_or_sections
        return tuple(np.split(data, cuts if isinstance(cuts, int) else list(cuts), axis=self.axis))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        axis = self.axis % len(i)
        cuts, k = self.indices_or_sections, out.field
        begin = k * length(out.shape[axis]) if isinstance(cuts, int) else (0, *cuts)[k]
        return data(*place(i, axis, i[axis] + begin))

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, facets(call).pieces)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((6, 2), indices_or_sections=3),
            sample((2, 5), indices_or_sections=(1, 3), axis=-1),
            sample((4,), indices_or_sections=(4,)),
            sample(TensorType((2, 4), "int32"), indices_or_sections=1, axis=1),
        ]
