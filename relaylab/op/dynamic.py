"""Operators of which the result's shape depends on the values of tensors: `dyn.*`.

Each has a static sister whose attribute it takes as a tensor; its meaning is the sister's with that value.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import Any as Unknown
from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Ints, Operator, OpPattern, Sample, op, sample
from relaylab.op.create import full as static_full
from relaylab.op.create import ones as static_ones
from relaylab.op.create import zeros as static_zeros
from relaylab.op.indexing import place
from relaylab.op.reorder import tile as static_tile
from relaylab.op.reshaping import expand_dims as static_expand_dims
from relaylab.op.reshaping import reshape as static_reshape
from relaylab.op.reshaping import squeeze as static_squeeze
from relaylab.op.select import one_hot as static_one_hot
from relaylab.op.sorting import topk as static_topk
from relaylab.op.spread import broadcast_to as static_broadcast_to
from relaylab.op.strided import strided_slice as static_strided_slice


class Dynamic(Operator):
    """An operator whose inputs named in `values` are attributes of its static sister."""

    static: ClassVar[Any]
    values: ClassVar[tuple[str, ...]]
    pattern = OpPattern.INJECTIVE
    waivers = {"lower": "the shape of the result is not known before run time"}

    def relation(self, s: Any, *types: Type) -> Type | None:
        found = [rules.tensor(s, t, name) for t, name in zip(types, self.inputs)]
        return None if None in found else self.result(s, *found)  # type: ignore[arg-type]

    def result(self, s: Any, *types: TensorType) -> Type:
        """The type of the result; its dimensions that depend on values are unknown."""
        return types[0]

    def length(self, s: Any, t: TensorType, name: str) -> int:
        """How many values a vector holds, which must be known."""
        if len(t.shape) != 1 or not isinstance(t.shape[0], int):
            s.fail(f"`{name}` of {self.op_name} must be a vector of known length, not {type_text(t)}")
        rules.integers(s, t, name)
        return int(t.shape[0])  # type: ignore[arg-type]

    def reference(self, *arrays: Any) -> Any:
        given = dict(zip(self.inputs, arrays))
        attrs = {k: v for k, v in self.items() if k in self.static.definition.fields}
        attrs |= {name: self.value(name, given.pop(name)) for name in self.values}
        return self.static.definition(**attrs).reference(*given.values())

    def value(self, name: str, array: np.ndarray) -> Any:
        """The attribute of the static sister from the tensor."""
        return array.tolist()


def unknown(rank: int) -> tuple[Unknown, ...]:
    """A shape of that many unknown dimensions."""
    return (Unknown(),) * rank


def vector(*values: int) -> np.ndarray:
    """An int64 vector."""
    return np.array(values, "int64")


class DynamicInit(Dynamic):
    """A tensor of a shape given as a tensor."""

    shape: Dims | None
    dtype: Dtype = None
    defaults = {"shape": None}
    values = ("shape",)

    def result(self, s: Any, *types: TensorType) -> Type:
        dtype = self.dtype or (types[0].dtype if len(types) > 1 else "float32")
        return TensorType(unknown(self.length(s, types[-1], "shape")), dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        first = [()] if len(cls.inputs) > 1 else []
        return [sample(*first, vector(2, 3), dtype="float32"), sample(*first, vector(4), dtype="int8")]


@op("dyn.zeros", inputs=("shape",), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class zeros(DynamicInit):
    """Zeros in a shape that a tensor holds."""

    static = static_zeros


@op("dyn.ones", inputs=("shape",), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class ones(DynamicInit):
    """Ones in a shape that a tensor holds."""

    static = static_ones


@op("dyn.full", inputs=("fill_value", "shape"), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class full(DynamicInit):
    """A scalar repeated in a shape that a tensor holds."""

    static = static_full


@op("dyn.broadcast_to", inputs=("data", "shape"), level=4, attrs_key="InitOp", pattern=OpPattern.BROADCAST)
class broadcast_to(Dynamic):
    """`data` broadcast to a shape that a tensor holds."""

    shape: Dims | None
    dtype: Dtype = None
    defaults = {"shape": None}
    static, values = static_broadcast_to, ("shape",)

    def result(self, s: Any, *types: TensorType) -> Type:
        return TensorType(unknown(self.length(s, types[1], "shape")), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 1), vector(2, 3, 4)), sample((), vector(2))]


@op("dyn.reshape", inputs=("data", "newshape"), level=3, attrs_key="Reshape", reshapes=True)
class reshape(Dynamic):
    """`data` reshaped by codes (see reshape) that a tensor holds."""

    newshape: Dims | None
    allowzero: bool = False
    defaults = {"newshape": None}
    static, values = static_reshape, ("newshape",)

    def result(self, s: Any, *types: TensorType) -> Type:
        return TensorType(unknown(self.length(s, types[1], "newshape")), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 6), vector(3, -1)), sample((2, 6), vector(0, 2, 3))]


@op("dyn.expand_dims", inputs=("data", "axis"), level=3, attrs_key="DynExpandDims", meta_attrs=True)
class expand_dims(Dynamic):
    """`data` with `num_newaxis` dimensions of extent 1 inserted before an axis that a scalar tensor holds."""

    num_newaxis: int = 1
    static, values = static_expand_dims, ("axis",)

    def result(self, s: Any, *types: TensorType) -> Type:
        rules.integers(s, rules.scalar(s, types[1], "axis"), "axis")
        return TensorType(unknown(len(types[0].shape) + self.num_newaxis), types[0].dtype)

    def value(self, name: str, array: np.ndarray) -> Any:
        return int(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), np.array(1, "int64")), sample((2, 3), np.array(-1, "int32"), num_newaxis=2)]


@op("dyn.squeeze", inputs=("data", "axis"), level=3, attrs_key="Squeeze", reshapes=True)
class squeeze(Dynamic):
    """`data` without the dimensions of extent 1 that a tensor names."""

    axis: Ints | None = None
    static, values = static_squeeze, ("axis",)

    def result(self, s: Any, *types: TensorType) -> Type:
        left = len(types[0].shape) - self.length(s, types[1], "axis")
        return TensorType(unknown(max(left, 0)), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((1, 3, 1), vector(0)), sample((1, 3, 1), vector(-1, 0))]


@op("dyn.tile", inputs=("data", "reps"), level=3, attrs_key="Tile")
class tile(Dynamic):
    """`data` repeated along each axis as often as a tensor says."""

    reps: Dims | None
    defaults = {"reps": None}
    static, values = static_tile, ("reps",)

    def result(self, s: Any, *types: TensorType) -> Type:
        return TensorType(unknown(max(len(types[0].shape), self.length(s, types[1], "reps"))), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), vector(2, 1)), sample((3,), vector(2, 2))]


@op("dyn.strided_slice", inputs=("data", "begin", "end", "strides"), level=4, attrs_key="StridedSlice")
class strided_slice(Dynamic):
    """A slice (see strided_slice) whose limits are tensors."""

    begin: Ints | None
    end: Ints | None
    strides: Ints | None
    slice_mode: str = "end"
    axes: Ints | None
    defaults = {"begin": None, "end": None, "strides": None, "axes": None}
    static, values = static_strided_slice, ("begin", "end", "strides")

    def result(self, s: Any, *types: TensorType) -> Type:
        data = types[0]
        count = max(self.length(s, t, name) for t, name in zip(types[1:], self.values))
        if count > len(data.shape):
            s.fail(f"dyn.strided_slice has limits for {count} axes of {type_text(data)}")
        cut = range(count) if self.axes is None else [a % len(data.shape) for a in self.axes]
        return TensorType([Unknown() if d in cut else n for d, n in enumerate(data.shape)], data.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        size = {"slice_mode": "size"}
        return [
            sample((4, 5), vector(1, 0), vector(3, -1), vector(1, 2)),
            sample((4, 5), vector(3), vector(-5), vector(-1)),
            sample((4, 5), vector(1, 2), vector(2, -1), vector(1, 1), **size),
        ]


@op("dyn.topk", inputs=("data", "k"), level=6, attrs_key="Topk", pattern=OpPattern.OPAQUE)
class topk(Dynamic):
    """The first elements in order (see topk), as many as a scalar tensor says."""

    k: int | None
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: Dtype = None
    defaults = {"k": None}
    static, values = static_topk, ("k",)

    def result(self, s: Any, *types: TensorType) -> Type:
        data = types[0]
        axis = rules.axis(s, self.axis, len(data.shape), "axis of topk")
        values = TensorType(place(data.shape, axis, Unknown()), data.dtype)
        return static_topk.definition.result(self, s, values)

    def value(self, name: str, array: np.ndarray) -> Any:
        return int(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 6), np.array(2, "int64")),
            sample((3, 6), np.array([2], "int32"), ret_type="indices", axis=0),
        ]


@op("dyn.one_hot", inputs=("indices", "on_value", "off_value", "depth"), level=10, attrs_key="OneHot")
class one_hot(Dynamic):
    """One-hot vectors (see one_hot) of a depth that a scalar tensor holds."""

    depth: int = 1
    axis: int = -1
    dtype: Dtype = None
    static, values = static_one_hot, ("depth",)
    pattern = OpPattern.OUT_ELEMWISE_FUSABLE

    def result(self, s: Any, *types: TensorType) -> Type:
        rules.integers(s, types[0], "indices")
        axis = rules.axis(s, self.axis, len(types[0].shape) + 1, "axis of one_hot")
        shape = types[0].shape
        return TensorType((*shape[:axis], Unknown(), *shape[axis:]), self.dtype or "float32")

    def value(self, name: str, array: np.ndarray) -> Any:
        return int(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(np.array([0, 2, 1], "int32"), (), (), np.array(4, "int64"), dtype="float32")]
