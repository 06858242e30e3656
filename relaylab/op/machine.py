"""Operators that passes put into programs for the virtual machine: memory, lowered calls, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import FuncType, GlobalTypeVar, IncompleteType, TensorType, TupleType, Type, TypeCall
from relaylab.op import rules
from relaylab.op.annotation import Annotation
from relaylab.op.base import Dims, Dtype, Injective, Opaque, Operator, Sample, op, sample
from relaylab.op.create import shape_of as static_shape_of

STORAGE = TypeCall(GlobalTypeVar("Storage"), ())
RUN_TIME = {
    "reference": "it manages the memory of a running machine and has no value in numpy",
    "lower": "it manages the memory of a running machine and computes no elements",
    "samples": "its arguments exist only in a running machine",
}


@op("vm.shape_of", inputs=("tensor",), attrs_key="ShapeOf", computes=False)
class shape_of(static_shape_of.definition):
    """The shape of a tensor, for the virtual machine."""

    defaults = {"dtype": "int64"}


@op("vm.reshape_tensor", inputs=("data", "shape"), attrs_key="ReshapeTensor", computes=False)
class reshape_tensor(Injective):
    """A view of a tensor in the shape that a vector holds; `newshape` is that shape as far as it is known."""

    newshape: Dims
    pattern = Opaque.pattern
    waivers = {"lower": "it is a view: nothing is computed"}

    def relation(self, s: Any, data: Type, shape: Type) -> Type | None:
        found, to = rules.tensor(s, data), rules.tensor(s, shape, "shape")
        if to is not None:
            rules.integers(s, rules.rank(s, to, 1, "shape"), "shape")
        return found and TensorType(self.newshape, found.dtype)

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return data.reshape(shape.tolist())

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 6), np.array([3, 4], "int64"), newshape=(3, 4))]


@op("vm.invoke_tvm_op", inputs=("op", "ins", "outs"), attrs_key="Dict", computes=False, stateful=True)
class invoke_tvm_op(Opaque):
    """A call of a primitive function that writes its results into given tensors; the empty tuple."""

    waivers = RUN_TIME

    def relation(self, s: Any, *types: Type) -> Type | None:
        for t, name in zip(types[1:], self.inputs[1:]):
            if not isinstance(t, (TupleType, IncompleteType)):
                s.fail(f"`{name}` of vm.invoke_tvm_op must be a tuple, not {t}")
        return TupleType()


@op("memory.alloc_storage", inputs=("size", "alignment"), attrs_key="AllocStorage", computes=False)
class alloc_storage(Opaque):
    """A piece of memory of `size` bytes."""

    dtype: Dtype = "float32"
    virtual_device: Any
    defaults = {"virtual_device": None}
    parameters = "size alignment virtual_device dtype"
    waivers = RUN_TIME

    def relation(self, s: Any, size: Type, alignment: Type) -> Type | None:
        for t, name in ((size, "size"), (alignment, "alignment")):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.integers(s, rules.scalar(s, found, name), name)
        return STORAGE


@op("memory.alloc_tensor", inputs=("storage", "offset", "shape"), attrs_key="AllocTensor", computes=False)
class alloc_tensor(Opaque):
    """A tensor of a shape inside a piece of memory."""

    dtype: Dtype = "float32"
    const_shape: Any
    assert_shape: Dims | None
    defaults = {"const_shape": None, "assert_shape": None}
    parameters = "storage offset shape dtype assert_shape"
    waivers = RUN_TIME

    def relation(self, s: Any, storage: Type, offset: Type, shape: Type) -> Type | None:
        s.unify(storage, STORAGE)
        known = self.assert_shape
        if known is None and self.const_shape is not None:
            known = tuple(int(n) for n in np.asarray(self.const_shape.data).reshape(-1))
        if known is None:
            s.fail("memory.alloc_tensor needs const_shape or assert_shape")
        return TensorType(known, self.dtype or "float32")


@op("memory.kill", inputs=("to_free",), computes=False, stateful=True)
class kill(Opaque):
    """The end of a tensor's life; the empty tuple."""

    waivers = {k: v for k, v in RUN_TIME.items() if k != "reference"}

    def relation(self, s: Any, to_free: Type) -> Type | None:
        return TupleType()

    def reference(self, to_free: Any) -> Any:
        return ()


@op("call_lowered", inputs=("func", "call_args"), attrs_key="CallLowered", computes=False)
class call_lowered(Opaque):
    """A call of a lowered function with a tuple of arguments."""

    metadata: Any = None
    waivers = {**RUN_TIME, "reference": "the called function is not a value in numpy"}

    def relation(self, s: Any, func: Type, call_args: Type) -> Type | None:
        if isinstance(func, IncompleteType):
            return None
        if not isinstance(func, FuncType):
            s.fail(f"call_lowered calls functions, not {func}")
        s.unify(call_args, TupleType(func.arg_types))  # type: ignore[attr-defined]
        return func.ret_type  # type: ignore[attr-defined]


@op("annotation.with_funcid", inputs=("func",), attrs_key="WithFuncId", meta_attrs=True)
class with_funcid(Annotation):
    """A function with a number by which another dialect knows it."""

    fid: Any = -1
    level = Operator.level


@op("debug", inputs=("program",), level=1, attrs_key="Debug")
class debug(Annotation):
    """Its argument as it is; the interpreter calls `debug_func` with it."""

    debug_func: Any
    defaults = {"debug_func": None}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), debug_func=None)]
