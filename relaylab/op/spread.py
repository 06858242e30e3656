"""Broadcasting to a shape, and its inverse: summing back to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.ir.types import Dim, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, OpPattern, Sample, element, op, sample
from relaylab.op.indexing import as_shape_expr, ints
from relaylab.op.shapes import broadcast_shapes


class Broadcasting(Injective):
    """`data` broadcast to a larger shape."""

    pattern = OpPattern.BROADCAST

    def spread(self, s: Any, data: TensorType, shape: Sequence[Dim]) -> TensorType:
        """The type of `data` broadcast to `shape`."""
        out = broadcast_shapes(data.shape, shape)
        if (
            len(data.shape) > len(shape)
            or out is None
            or any(isinstance(d, int) and d != o for d, o in zip(shape, out))
        ):
            s.fail(f"{type_text(data)} cannot be broadcast to ({', '.join(map(str, shape))})")
        return TensorType(shape, data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, *like: Any) -> Any:
        return element(data, i)


@op("broadcast_to", inputs=("data",), level=4, attrs_key="InitOp", meta_attrs=True)
class broadcast_to(Broadcasting):
    """`data` repeated along its dimensions of extent 1, and new ones in front, to have `shape`."""

    dynamic = ("shape",)

    shape: Dims | None
    dtype: Dtype = None

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and self.spread(s, found, TensorType(self.shape or ()).shape)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.broadcast_to(data, self.shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 1), shape=(2, 3, 4)), sample((), shape=(2, 2)), sample(TensorType((3,), "int8"), shape=(3,))]


@op("broadcast_to_like", inputs=("data", "broadcast_type"), level=10)
class broadcast_to_like(Broadcasting):
    """`data` broadcast to the shape of the second tensor."""

    def relation(self, s: Any, data: Type, broadcast_type: Type) -> Type | None:
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

    def collapse(self, s: Any, data: TensorType, shape: Sequence[Dim]) -> TensorType:
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

    def lower(self, b: Any, out: Any, i: tuple, data: Any, *like: Any) -> Any:
        lead = len(data.shape) - len(i)
        summed = [d for d, n in enumerate(data.shape) if d < lead or (out.shape[d - lead] == 1 and n != 1)]

        def read(*k: Any) -> Any:
            inner = dict(zip(summed, k))
            return data(*(inner[d] if d in inner else i[d - lead] for d in range(len(data.shape))))

        return b.sum([int(data.shape[d]) for d in summed], read) if summed else data(*i)


@op("collapse_sum_like", inputs=("data", "collapse_type"), level=10)
class collapse_sum_like(Collapsing):
    """`data` summed to the shape of the second tensor, from which it could have been broadcast."""

    def relation(self, s: Any, data: Type, collapse_type: Type) -> Type | None:
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

    shape: Dims | None
    dtype: Dtype = None

    def relation(self, s: Any, data: Type, shape: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and self.collapse(s, found, TensorType(self.shape or ()).shape)

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return self.total(data, tuple(int(n) for n in self.shape or ()))

    @classmethod
    def build(cls, data: Any, shape: Any) -> Any:
        return cls.call(data, as_shape_expr(shape), shape=ints(shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), np.array(s, "int32"), shape=s) for s in [(3, 1), (1, 3, 4)]]
