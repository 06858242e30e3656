"""Operators of which the result's shape depends on the values of tensors: `dyn.*`.

Each has a static sister whose attribute it takes as a tensor; its meaning is the sister's with that value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import AnyDim, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Input, Ints, Operator, OpPattern, Sample, arg, at_run_time, attr, op, sample
from relaylab.op.builder import OperatorBuilder
from relaylab.op.helpers import TypeSolver
from relaylab.op.indexing import place
from relaylab.op.shapes import extent
from relaylab.op.tensor.broadcast import broadcast_to as static_broadcast_to
from relaylab.op.tensor.create import full as static_full
from relaylab.op.tensor.create import ones as static_ones
from relaylab.op.tensor.create import zeros as static_zeros
from relaylab.op.tensor.reorder import tile as static_tile
from relaylab.op.tensor.reshaping import expand_dims as static_expand_dims
from relaylab.op.tensor.reshaping import reshape as static_reshape
from relaylab.op.tensor.reshaping import squeeze as static_squeeze
from relaylab.op.tensor.select import one_hot as static_one_hot
from relaylab.op.tensor.sorting import topk as static_topk
from relaylab.op.tensor.sorting import topk_type
from relaylab.op.tensor.strided import strided_slice as static_strided_slice


@lru_cache(256)
def _sister(definition: type[Operator], attrs: tuple[tuple[str, object], ...]) -> Operator:
    """The static sister with these attributes: the same ones come again."""
    return definition(**dict(attrs))


class Dynamic(Operator):
    """An operator whose inputs named in `values` are attributes of its static sister."""

    data: Input = arg("the tensor that the static operator takes")

    static: ClassVar[OperatorBuilder[Any]]
    values: ClassVar[tuple[str, ...]]
    pattern = OpPattern.INJECTIVE
    waivers = {"lower": "the shape of the result is not known before run time"}

    def length(self, s: TypeSolver, t: TensorType, name: str) -> int:
        """How many values a vector holds, which must be known."""
        if len(t.shape) != 1 or not isinstance(t.shape[0], int):
            s.fail(f"`{name}` of {self.op_name} must be a vector of known length, not {type_text(t)}")
        rules.integers(s, t, name)
        return extent(t.shape[0])

    def reference(self, *arrays: Any) -> Any:
        given = dict(zip(self.inputs, arrays))
        attrs = {k: v for k, v in self.items() if k in self.static.definition.fields}
        attrs |= {name: self.value(name, given.pop(name)) for name in self.values}
        return at_run_time(_sister(self.static.definition, tuple(attrs.items())), *given.values())

    def value(self, name: str, array: np.ndarray) -> Any:
        """The attribute of the static sister from the tensor."""
        found = array.tolist()
        return tuple(map(tuple, found)) if array.ndim > 1 else tuple(found)


def number(s: TypeSolver, t: TensorType, name: str) -> None:
    """Refuses what is no integer scalar."""
    rules.integers(s, rules.scalar(s, t, name), name)


def unknown(rank: int) -> tuple[AnyDim, ...]:
    """A shape of that many unknown dimensions."""
    return (AnyDim(),) * rank


def vector(*values: int) -> np.ndarray:
    """An int64 vector."""
    return np.array(values, "int64")


class DynamicInit(Dynamic):
    """A tensor of a shape given as a tensor."""

    yields = "(?, ...) with one dimension for each value of shape, of `dtype`"

    shape: Dims | None = attr(doc="the extents of the result, as a vector of integers")
    dtype: Dtype = attr(None, "the data type of the result; None: that of fill_value, or float32")
    defaults = {"shape": None}
    values = ("shape",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        dtype = self.dtype or (types[0].dtype if len(types) > 1 else "float32")
        return TensorType(unknown(self.length(s, types[len(types) - 1], "shape")), dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        first = [()] if len(cls.inputs) > 1 else []
        return [sample(*first, vector(2, 3), dtype="float32"), sample(*first, vector(4), dtype="int8")]


@op("dyn.zeros", inputs=("shape",), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class zeros(DynamicInit):
    """Zeros in a shape that a tensor holds."""

    source = "numpy.zeros"

    static = static_zeros


@op("dyn.ones", inputs=("shape",), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class ones(DynamicInit):
    """Ones in a shape that a tensor holds."""

    source = "numpy.ones"

    static = static_ones


@op("dyn.full", inputs=("fill_value", "shape"), level=3, attrs_key="InitOp", pattern=OpPattern.ELEMWISE)
class full(DynamicInit):
    """A scalar repeated in a shape that a tensor holds."""

    fill_value: Input = arg("the number that is repeated", "() or ones")
    source = "numpy.full"

    static = static_full


@op("dyn.broadcast_to", inputs=("data", "shape"), level=4, attrs_key="InitOp", pattern=OpPattern.BROADCAST)
class broadcast_to(Dynamic):
    """`data` broadcast to a shape that a tensor holds."""

    yields = "(?, ...) with one dimension for each value of shape, of the dtype of data"
    source = "numpy.broadcast_to"

    shape: Dims | None = attr(doc="the extents of the result, as a vector of integers")
    dtype: Dtype = attr(None, "not used: the result keeps the data type of data")
    defaults = {"shape": None}
    static, values = static_broadcast_to, ("shape",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        return TensorType(unknown(self.length(s, types[1], "shape")), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 1), vector(2, 3, 4)), sample((), vector(2))]


@op("dyn.reshape", inputs=("data", "newshape"), level=3, attrs_key="Reshape", reshapes=True)
class reshape(Dynamic):
    """`data` reshaped by codes (see reshape) that a tensor holds."""

    yields = "(?, ...) with one dimension for each value of newshape, of the dtype of data"
    source = "TVM 0.10, relay.reshape; ONNX Reshape"

    newshape: Dims | None = attr(doc="the new extents with the codes of reshape, as a vector of integers")
    allowzero: bool = attr(False, "whether 0 is an extent, not a code")
    defaults = {"newshape": None}
    static, values = static_reshape, ("newshape",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        return TensorType(unknown(self.length(s, types[1], "newshape")), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 6), vector(3, -1)), sample((2, 6), vector(0, 2, 3))]


@op("dyn.expand_dims", level=3, attrs_key="DynExpandDims", meta_attrs=True)
class expand_dims(Dynamic):
    """`data` with `num_newaxis` dimensions of extent 1 inserted before an axis that a scalar tensor holds."""

    yields = "(?, ...) with `num_newaxis` dimensions more than data, of its dtype"
    source = "numpy.expand_dims"

    data: Input = arg("the tensor whose elements are taken in row-major order")
    axis: Input = arg(
        "where the new dimensions stand in the result; negative: from behind the last", "() or ones", "integers"
    )
    num_newaxis: int = attr(1, "how many dimensions are inserted")
    static, values = static_expand_dims, ("axis",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        number(s, types[1], "axis")
        return TensorType(unknown(len(types[0].shape) + self.num_newaxis), types[0].dtype)

    def value(self, name: str, array: np.ndarray) -> Any:
        return int(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), np.array(1, "int64")), sample((2, 3), np.array(-1, "int32"), num_newaxis=2)]


@op("dyn.squeeze", inputs=("data", "axis"), level=3, attrs_key="Squeeze", reshapes=True)
class squeeze(Dynamic):
    """`data` without the dimensions of extent 1 that a tensor names."""

    yields = "(?, ...) with as many dimensions fewer than data, of its dtype"
    source = "numpy.squeeze"

    axis: Ints | None = attr(None, "the dimensions that go, as a vector of integers")
    static, values = static_squeeze, ("axis",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        left = len(types[0].shape) - self.length(s, types[1], "axis")
        return TensorType(unknown(max(left, 0)), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((1, 3, 1), vector(0)), sample((1, 3, 1), vector(-1, 0))]


@op("dyn.tile", inputs=("data", "reps"), level=3, attrs_key="Tile")
class tile(Dynamic):
    """`data` repeated along each axis as often as a tensor says."""

    yields = "(?, ...) with the rank of data or as many dimensions as reps has values, of the dtype of data"
    source = "numpy.tile"

    reps: Dims | None = attr(doc="how often along each axis, counted from the last, as a vector of integers")
    defaults = {"reps": None}
    static, values = static_tile, ("reps",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        return TensorType(unknown(max(len(types[0].shape), self.length(s, types[1], "reps"))), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), vector(2, 1)), sample((3,), vector(2, 2))]


@op("dyn.strided_slice", inputs=("data", "begin", "end", "strides"), level=4, attrs_key="StridedSlice")
class strided_slice(Dynamic):
    """A slice (see strided_slice) whose limits are tensors."""

    yields = "data.shape with ? along the axes that are cut, of the dtype of data"
    source = "numpy's basic slicing; ONNX Slice"

    begin: Ints | None = attr(doc="the first position along each axis, as a vector of integers")
    end: Ints | None = attr(doc="the position before which a slice ends, or the extents, as a vector of integers")
    strides: Ints | None = attr(doc="the distances of the positions, as a vector of integers")
    slice_mode: str = attr("end", "what `end` means: end or size")
    axes: Ints | None = attr(doc="which axes are meant; None: the first ones")
    defaults = {"begin": None, "end": None, "strides": None, "axes": None}
    static, values = static_strided_slice, ("begin", "end", "strides")

    def reference(self, *arrays: np.ndarray) -> np.ndarray:
        data, limits = arrays[0], [x.tolist() for x in arrays[1:]]
        if self.slice_mode == "end" and self.axes is None and len({*map(len, limits)}) == 1 and 0 not in limits[-1]:
            return data[tuple(map(slice, *limits))]
        return super().reference(*arrays)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        data = types[0]
        count = max(self.length(s, t, name) for t, name in zip(types[1:], self.values))
        if count > len(data.shape):
            s.fail(f"dyn.strided_slice has limits for {count} axes of {type_text(data)}")
        cut = range(count) if self.axes is None else rules.axes(s, self.axes, data)
        return TensorType([AnyDim() if d in cut else n for d, n in enumerate(data.shape)], data.dtype)

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

    yields = "data.shape with ? along `axis`: values of the dtype of data, indices of `dtype`"
    source = "ONNX TopK"

    k: int | None = attr(doc="how many elements are given, all if below 1, as an integer scalar")
    axis: int = attr(-1, "the axis along which is ordered; negative: from the last")
    ret_type: str = attr("both", "what is given: both (a tuple), values or indices")
    is_ascend: bool = attr(False, "whether the smallest elements are given, not the largest")
    dtype: Dtype = attr(None, "the data type of the indices; None: int32")
    defaults = {"k": None}
    static, values = static_topk, ("k",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        data = types[0]
        number(s, types[1], "k")
        axis = rules.axis(s, self.axis, len(data.shape), "axis of topk")
        values = TensorType(place(data.shape, axis, AnyDim()), data.dtype)
        return topk_type(s, values, self.ret_type, self.dtype or "int32")

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

    indices: Input = arg("which position is on", "any", "integers")
    on_value: Input = arg("what stands at the index", "() or ones")
    off_value: Input = arg("what stands elsewhere", "() or ones")
    yields = "indices.shape with ? inserted at `axis`, of `dtype`"
    source = "ONNX OneHot; tf.one_hot"

    depth: int = attr(1, "the extent of the new axis, as an integer scalar")
    axis: int = attr(-1, "where the new axis stands in the result; negative: from behind the last")
    dtype: Dtype = attr(None, "the data type of the result; None: float32")
    static, values = static_one_hot, ("depth",)
    pattern = OpPattern.OUT_ELEMWISE_FUSABLE

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        rules.integers(s, types[0], "indices")
        number(s, types[3], "depth")
        axis = rules.axis(s, self.axis, len(types[0].shape) + 1, "axis of one_hot")
        shape = types[0].shape
        return TensorType((*shape[:axis], AnyDim(), *shape[axis:]), self.dtype or "float32")

    def value(self, name: str, array: np.ndarray) -> Any:
        return int(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(np.array([0, 2, 1], "int32"), (), (), np.array(4, "int64"), dtype="float32")]
