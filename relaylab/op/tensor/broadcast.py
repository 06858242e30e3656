"""Broadcasting to a shape, and its inverse: summing back to one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import Dim, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, Input, OpPattern, Sample, arg, attr, element, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import as_shape_expr, ints, length
from relaylab.op.shapes import broadcast_shapes, extent


class Broadcasting(Injective):
    """`data` broadcast to a larger shape."""

    pattern = OpPattern.BROADCAST

    def spread(self, s: TypeSolver, data: TensorType, shape: Sequence[Dim]) -> TensorType:
        """The type of `data` broadcast to `shape`."""
        out = broadcast_shapes(data.shape, shape)
        if (
            len(data.shape) > len(shape)
            or out is None
            or any(isinstance(d, int) and d != o for d, o in zip(shape, out))
        ):
            s.fail(f"{type_text(data)} cannot be broadcast to ({', '.join(map(str, shape))})")
        return TensorType(shape, data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, *like: Readable) -> Element:
        return element(data, i)


@op("broadcast_to", level=4, attrs_key="InitOp", meta_attrs=True)
class broadcast_to(Broadcasting):
    """`data` repeated along its dimensions of extent 1, and new ones in front, to have `shape`."""

    yields = "`shape`, of the dtype of data"
    source = "numpy.broadcast_to"

    dynamic = ("shape",)

    data: Input = arg("the tensor that is repeated", "any that broadcasts to `shape`")
    shape: Dims | None = attr(doc="the shape of the result, or an expression that gives it at run time")
    dtype: Dtype = attr(None, "not used: the result keeps the data type of data")
    parameters = "data shape"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and self.spread(s, found, TensorType(self.shape or ()).shape)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.broadcast_to(data, tuple(map(extent, self.shape or ())))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 1), shape=(2, 3, 4)), sample((), shape=(2, 2)), sample(TensorType((3,), "int8"), shape=(3,))]


@op("broadcast_to_like", level=10)
class broadcast_to_like(Broadcasting):
    """`data` broadcast to the shape of the second tensor."""

    yields = "the shape of broadcast_type, the dtype of data"
    source = "numpy.broadcast_to"

    data: Input = arg("the tensor that is repeated", "any that broadcasts to that of broadcast_type")
    broadcast_type: Input = arg("the tensor whose shape is taken")

    def relation(self, s: TypeSolver, data: Type, broadcast_type: Type) -> Type | None:
        found, like = rules.tensor(s, data), rules.tensor(s, broadcast_type, "broadcast_type")
        return found and like and self.spread(s, found, like.shape)

    def reference(self, data: np.ndarray, broadcast_type: np.ndarray) -> np.ndarray:
        return np.broadcast_to(data, broadcast_type.shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 1), (2, 3, 4)), sample(TensorType((1,), "int32"), (5,))]


class Collapsing(Injective):
    """The sum of `data` over all dimensions that broadcasting would have added: the inverse of broadcasting."""

    pattern = OpPattern.COMM_REDUCE

    def collapse(self, s: TypeSolver, data: TensorType, shape: Sequence[Dim]) -> TensorType:
        """The type of `data` summed to `shape`."""
        if len(shape) > len(data.shape) or broadcast_shapes(shape, data.shape) != data.shape:
            s.fail(f"{type_text(data)} cannot be summed to ({', '.join(map(str, shape))})")
        return TensorType(shape, data.dtype)

    def total(self, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The sum, in the type of `data`."""
        lead = data.ndim - len(shape)
        axes = (*range(lead), *(lead + d for d, n in enumerate(shape) if n == 1))
        return (
            np.sum(data, axis=axes, keepdims=True, dtype="float64" if data.dtype.kind == "f" else None)
            .astype(data.dtype)
            .reshape(shape)
        )

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, *like: Readable) -> Element:
        lead = len(data.shape) - len(i)
        summed = [d for d, n in enumerate(data.shape) if d < lead or (out.shape[d - lead] == 1 and n != 1)]

        def read(*k: Element) -> Element:
            inner = dict(zip(summed, k))
            return data(*(inner[d] if d in inner else i[d - lead] for d in range(len(data.shape))))

        return b.sum([length(data.shape[d]) for d in summed], read) if summed else data(*i)


@op("collapse_sum_like", level=10)
class collapse_sum_like(Collapsing):
    """`data` summed to the shape of the second tensor, from which it could have been broadcast."""

    yields = "the shape of collapse_type, the dtype of data"
    source = "TVM 0.10, relay.collapse_sum_like; numpy.sum"

    data: Input = arg("the tensor that is summed")
    collapse_type: Input = arg("the tensor whose shape is taken", "one that broadcasts to that of data")

    def relation(self, s: TypeSolver, data: Type, collapse_type: Type) -> Type | None:
        found, like = rules.tensor(s, data), rules.tensor(s, collapse_type, "collapse_type")
        return found and like and self.collapse(s, found, like.shape)

    def reference(self, data: np.ndarray, collapse_type: np.ndarray) -> np.ndarray:
        return self.total(data, collapse_type.shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), s) for s in [(3, 1), (4,), (1, 1, 1), (2, 3, 4), ()]]


@op("collapse_sum_to", inputs=("data", "shape"), level=4, attrs_key="InitOp", meta_attrs=True)
class collapse_sum_to(Collapsing):
    """`data` summed to `shape`, from which it could have been broadcast; the shape is also given as a tensor."""

    data: Input = arg("the tensor that is summed")
    yields = "`shape`, of the dtype of data"
    source = "TVM 0.10, relay.collapse_sum_to; numpy.sum"

    shape: Dims | None = attr(doc="the shape of the result, which broadcasts to that of data")
    dtype: Dtype = attr(None, "not used: the result keeps the data type of data")

    def relation(self, s: TypeSolver, data: Type, shape: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and self.collapse(s, found, TensorType(self.shape or ()).shape)

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return self.total(data, tuple(map(extent, self.shape or ())))

    @classmethod
    def build(cls, data: Expr, shape: object) -> Expr:
        return cls.call(data, as_shape_expr(shape), shape=ints(shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), np.array(s, "int32"), shape=s) for s in [(3, 1), (1, 3, 4)]]
