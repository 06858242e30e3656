"""Operators that keep the elements and their order: only the shape changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.ir.types import AnyDim, Dim, IntImm, TensorType, Type, type_text
from relaylab.op.base import Dims, Injective, Input, Ints, OpPattern, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ravel, unravel
from relaylab.op.shapes import extent, normalize_axis, product
from relaylab.op.tensor.newshape import new_shape, reverse_new_shape
from relaylab.support.errors import RelayValueError


class SameOrder(Injective):
    """The elements of `data` in a new shape; subclasses say which."""

    data: Input = arg("the tensor whose elements are taken in row-major order")

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The new shape; `RelayValueError` if there is none."""
        raise RelayValueError(f"{self.op_name} gives {shape} no new shape", code="op.no-facet")

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        try:
            return TensorType(self.result(data.shape), data.dtype)
        except RelayValueError as error:
            return s.fail(error.message, help=error.help)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.reshape([extent(d) for d in self.result(tuple(map(IntImm, data.shape)))])

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return data(*unravel(b, b.index(ravel(i, out.shape)), data.shape))


@op("reshape", level=3, attrs_key="Reshape", reshapes=True)
class reshape(SameOrder):
    """The elements in a new shape. Codes in `newshape`: 0 copies a dimension (unless `allowzero`), -1 is what is
    left, -2 copies all remaining ones, -3 merges the next two, -4 splits one into the two factors that follow (one
    may be -1).
    """

    yields = "`newshape` with its codes replaced, of the dtype of data"
    source = "TVM 0.10, relay.reshape; numpy.reshape"

    dynamic = ("newshape",)

    newshape: Dims = attr(doc="the new extents, with codes; or an expression that gives them at run time")
    allowzero: bool = attr(False, "whether 0 is an extent, not a code")

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        return new_shape(shape, self.newshape, self.allowzero)

    @classmethod
    def samples(cls) -> list[Sample]:
        news = [(4, 3, 2), (-1,), (0, -1), (6, 1, -1), (-2, 1), (-3, -2), (-4, 1, 2, -2), (-4, -1, 1, 0, 4)]
        return [sample((2, 3, 4), newshape=n) for n in news] + [
            sample((1, 1), newshape=()),
            sample((0, 3), newshape=(3, 0), allowzero=True),
            sample(TensorType((6,), "int8"), newshape=(3, 2)),
        ]


@op("contrib_reverse_reshape", level=10, attrs_key="Reshape", reshapes=True)
class contrib_reverse_reshape(SameOrder):
    """Reshape with the codes of `newshape` read from the right."""

    yields = "`newshape` with its codes replaced, of the dtype of data"
    source = "MXNet reshape with reverse=True"

    newshape: Dims = attr(doc="the new extents, with codes that are read from the right")
    allowzero: bool = attr(False, "whether 0 is an extent, not a code")

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        return reverse_new_shape(shape, self.newshape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((10, 5, 4), newshape=n) for n in [(-1, 0), (-1, 0, 0), (-2, 4), (0, -3), (50, 0)]]


@op("reshape_like", level=3, attrs_key="ReshapeLike")
class reshape_like(SameOrder):
    """`data` with its dimensions lhs_begin .. lhs_end replaced by those rhs_begin .. rhs_end of `shape_like`."""

    yields = (
        "(*data.shape[:lhs_begin], *shape_like.shape[rhs_begin:rhs_end], *data.shape[lhs_end:]), of the dtype of data"
    )
    source = "MXNet reshape_like"

    data: Input = arg("the tensor whose elements are taken in row-major order")
    shape_like: Input = arg("the tensor whose extents are taken")
    lhs_begin: int = attr(0, "the first dimension of data that is replaced; negative: from the last")
    lhs_end: int | None = attr(None, "the dimension of data before which it ends; None: all that follow")
    rhs_begin: int = attr(0, "the first dimension of shape_like that is taken; negative: from the last")
    rhs_end: int | None = attr(None, "the dimension of shape_like before which it ends; None: all that follow")

    def shape(self, data: Sequence[Dim], like: Sequence[Dim]) -> tuple[Dim, ...]:
        """The new shape."""
        first, last, _ = slice(self.lhs_begin, self.lhs_end).indices(len(data))
        return (*data[:first], *like[self.rhs_begin : self.rhs_end], *data[last:])

    def result_type(self, s: TypeSolver, data: TensorType, shape_like: TensorType) -> Type | None:
        shape = self.shape(data.shape, shape_like.shape)
        before, after = product(data.shape), product(shape)
        if isinstance(before, int) and isinstance(after, int) and before != after:
            s.fail(f"{type_text(data)} cannot be reshaped like {type_text(shape_like)}: {before} and {after} elements")
        return TensorType(shape, data.dtype)

    def reference(self, data: np.ndarray, shape_like: np.ndarray) -> np.ndarray:
        return data.reshape([extent(n) for n in self.shape(data.shape, shape_like.shape)])

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, shape_like: Readable) -> Element:
        return super().lower(b, out, i, data)

    @classmethod
    def samples(cls) -> list[Sample]:
        part = {"lhs_begin": 1, "lhs_end": 3, "rhs_begin": 1, "rhs_end": 2}
        return [sample((2, 6), (3, 4)), sample((12,), (3, 2, 2)), sample((5, 2, 3, 4), (9, 6, 7), **part)]


@op("expand_dims", level=1, attrs_key="ExpandDims", reshapes=True)
class expand_dims(SameOrder):
    """`num_newaxis` dimensions of extent 1 inserted before position `axis` (negative: counted from behind the last)."""

    yields = "(*data.shape[:axis], 1, ..., *data.shape[axis:]), of the dtype of data"
    source = "numpy.expand_dims"

    dynamic = ("axis",)

    axis: int = attr(doc="where the new dimensions stand in the result; negative: from behind the last")
    num_newaxis: int = attr(1, "how many dimensions are inserted")
    pattern = OpPattern.BROADCAST

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        rank = len(shape)
        if not -rank - 1 <= self.axis <= rank or self.num_newaxis < 0:
            raise RelayValueError(
                f"axis {self.axis} of expand_dims is out of range for {rank} dimensions",
                code="type.relation",
                help=f"it can be {-rank - 1} .. {rank}",
            )
        at = self.axis if self.axis >= 0 else self.axis + rank + 1
        return (*shape[:at], *[IntImm(1)] * self.num_newaxis, *shape[at:])

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), axis=a, num_newaxis=n) for a, n in [(0, 1), (1, 2), (-1, 1), (-3, 2), (2, 1)]]


@op("squeeze", level=3, attrs_key="Squeeze", reshapes=True)
class squeeze(SameOrder):
    """`data` without dimensions of extent 1: those of `axis`, or all of them."""

    yields = "data.shape without those dimensions, of the dtype of data"
    source = "numpy.squeeze"

    dynamic = ("axis",)

    axis: Ints | None = attr(None, "the dimensions that go, each of extent 1; None: all of that extent")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.squeeze(self.axis)

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        gone = range(len(shape)) if self.axis is None else [self._axis(a, shape) for a in self.axis]
        if len(set(gone)) < len(gone):
            raise RelayValueError(f"squeeze names an axis twice: {self.axis}", code="type.relation")
        if self.axis is None and any(isinstance(d, AnyDim) for d in shape):
            raise RelayValueError("squeeze needs `axis` when a dimension is unknown", code="type.relation")
        return tuple(n for d, n in enumerate(shape) if d not in gone or (self.axis is None and n != 1))

    @staticmethod
    def _axis(axis: int, shape: Sequence[Dim]) -> int:
        found = normalize_axis(axis, len(shape))
        if found is None or (isinstance(shape[found], int) and shape[found] != 1):
            message = f"axis {axis} of ({', '.join(map(str, shape))}) cannot be squeezed"
            raise RelayValueError(message, code="type.relation", help="an axis of extent 1 can")
        return found

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 3, 1)),
            sample((1, 3, 1), axis=(-1,)),
            sample((1, 3, 1, 2), axis=(0, 2)),
            sample((1, 1)),
            sample((2, 3)),
        ]


@op("nn.batch_flatten", level=2, reshapes=True)
class batch_flatten(SameOrder):
    """All dimensions but the first merged into one: (batch, features)."""

    yields = "(data.shape[0], product of data.shape[1:]), of the dtype of data"
    source = "TVM 0.10, relay.nn.batch_flatten; ONNX Flatten"

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        if not shape:
            raise RelayValueError("nn.batch_flatten needs at least one dimension", code="type.relation")
        return (shape[0], product(shape[1:]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4)), sample((5,)), sample((1, 2, 3, 2)), sample(TensorType((2, 2), "int32"))]
