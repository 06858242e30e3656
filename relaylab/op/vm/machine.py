"""Operators that passes put into programs for the virtual machine: memory, lowered calls, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    dim,
    type_text,
)
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, Input, Opaque, Operator, Sample, Value, arg, attr, op, sample
from relaylab.op.helpers import TypeSolver
from relaylab.op.shapes import product, same_dim
from relaylab.op.tensor.create import shape_of as static_shape_of
from relaylab.op.vm.annotation import Annotation, OnDevice
from relaylab.support.errors import RelayError

STORAGE = TypeCall(GlobalTypeVar("Storage"), ())
RUN_TIME = {
    "reference": "it manages the memory of a running machine and has no value in numpy",
    "lower": "it manages the memory of a running machine and computes no elements",
    "samples": "its arguments exist only in a running machine",
}
EVALUATED = {k: v for k, v in RUN_TIME.items() if k != "reference"}


@op("vm.shape_of", attrs_key="ShapeOf", computes=False)
class shape_of(static_shape_of.definition):
    """The shape of a tensor, for the virtual machine."""

    tensor: Input = arg("the tensor whose shape is wanted")
    dtype: Dtype = attr(None, "the data type of the result; None: int32")
    yields = "(rank of tensor,), of `dtype`"
    source = "TVM 0.10, relay.op.vm.shape_of"

    defaults = {"dtype": "int64"}


@op("vm.reshape_tensor", attrs_key="ReshapeTensor", computes=False)
class reshape_tensor(Injective):
    """A view of a tensor in the shape that a vector holds; `newshape` is that shape as far as it is known."""

    data: Input = arg("the tensor that is looked at")
    shape: Input = arg("the extents of the view", "(rank of the view,)", "integers")
    newshape: Dims = attr(doc="the same extents in the type, as far as they are known")
    yields = "`newshape`, of the dtype of data"
    source = "TVM 0.10, relay.op.vm.reshape_tensor"
    pattern = Opaque.pattern
    waivers = {"lower": "it is a view: nothing is computed"}

    def relation(self, s: TypeSolver, data: Type, shape: Type) -> Type | None:
        found, to = rules.tensor(s, data), rules.tensor(s, shape, "shape")
        if to is not None:
            rules.integers(s, rules.shaped(s, to, (len(self.newshape),), "shape"), "shape")
        if found is not None and not same_dim(product(found.shape), product(map(dim, self.newshape))):
            s.fail(f"{type_text(found)} has not as many elements as the view {self.newshape}")
        return found and TensorType(self.newshape, found.dtype)

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        if data.size != np.prod(shape):
            raise RelayError(f"{data.shape} has not as many elements as {tuple(shape)}", code="op.reshape")
        return data.reshape(shape.tolist())

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 6), np.array([3, 4], "int64"), newshape=(3, 4))]


class LoweredCall(Opaque):
    """A call of a function, the first argument, whose further arguments are tuples; the empty tuple."""

    yields = "()"
    waivers = RUN_TIME

    def relation(self, s: TypeSolver, *types: Type) -> Type | None:
        for t, name in zip(types[1:], self.inputs[1:]):
            if not isinstance(t, (TupleType, IncompleteType)):
                s.fail(f"`{name}` of {self.op_name} must be a tuple, not {t}")
        return TupleType()


@op("vm.invoke_tvm_op", attrs_key="Dict", computes=False, stateful=True)
class invoke_tvm_op(LoweredCall):
    """A call of a primitive function that writes its results into given tensors; the empty tuple."""

    op: Input = arg("the primitive function")
    ins: Input = arg("its arguments: a tuple of tensors")
    outs: Input = arg("the tensors that its results are written into: a tuple")
    source = "TVM 0.10, relay.op.vm.invoke_tvm_op"
    waivers = RUN_TIME


@op("vm.shape_func", attrs_key="ShapeFunc", computes=False, stateful=True)
class shape_func(LoweredCall):
    """The shapes of what a primitive function gives, written into given vectors; the empty tuple."""

    func: Input = arg("the primitive function")
    ins: Input = arg("for each of its parameters the shape as a vector, or the tensor itself: a tuple")
    outs: Input = arg("the vectors that the shapes of its results are written into: a tuple")
    is_input: Value = attr((), "for each parameter whether `ins` has the tensor itself")
    source = "TVM 0.10, relay.op.vm.shape_func"
    waivers = RUN_TIME


@op("memory.alloc_storage", attrs_key="AllocStorage", computes=False, stateful=True)
class alloc_storage(Opaque):
    """A piece of memory of `size` bytes."""

    size: Input = arg("how many bytes", "()", "integers")
    alignment: Input = arg("what the address is a multiple of", "()", "integers")
    dtype: Dtype = attr("float32", "the data type of the tensor that the memory is made for")
    virtual_device: OnDevice = attr(doc="the device on which the memory is")
    yields = "a value of the type Storage"
    source = "TVM 0.10, relay.op.memory.alloc_storage"
    defaults = {"virtual_device": None}
    parameters = "size alignment virtual_device dtype"
    waivers = EVALUATED

    def relation(self, s: TypeSolver, size: Type, alignment: Type) -> Type | None:
        for t, name in ((size, "size"), (alignment, "alignment")):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.integers(s, rules.scalar(s, found, name), name)
        return STORAGE

    def reference(self, size: np.ndarray, alignment: np.ndarray) -> np.ndarray:
        return np.zeros(int(size), "uint8")


@op("memory.alloc_tensor", attrs_key="AllocTensor", computes=False, stateful=True)
class alloc_tensor(Opaque):
    """A tensor of a shape inside a piece of memory."""

    storage: Input = arg("the memory", "Storage", "none")
    offset: Input = arg("where in the memory the tensor begins, in bytes", "()", "integers")
    shape: Input = arg("the extents of the tensor", "(rank,)", "integers")
    dtype: Dtype = attr("float32", "the data type of the tensor")
    const_shape: Value = attr(doc="`shape` as a constant, where it is one: it gives the type")
    assert_shape: Dims | None = attr(doc="the shape of the type; None: that of `const_shape`")
    yields = "`assert_shape` or `const_shape`, of `dtype`"
    source = "TVM 0.10, relay.op.memory.alloc_tensor"
    defaults = {"const_shape": None, "assert_shape": None}
    parameters = "storage offset shape dtype assert_shape"
    waivers = EVALUATED

    def relation(self, s: TypeSolver, storage: Type, offset: Type, shape: Type) -> Type | None:
        s.unify(storage, STORAGE)
        known = self.assert_shape
        if known is None and self.const_shape is not None:
            known = tuple(int(n) for n in np.asarray(self.const_shape.data).reshape(-1))
        if known is None:
            s.fail("memory.alloc_tensor needs const_shape or assert_shape")
        return TensorType(known, self.dtype or "float32")

    def reference(self, storage: np.ndarray, offset: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return np.ndarray(shape.reshape(-1).tolist(), self.dtype or "float32", storage, int(offset))


@op("memory.kill", computes=False, stateful=True)
class kill(Opaque):
    """The end of a tensor's life; the empty tuple."""

    to_free: Input = arg("the tensor that is not used any more")
    yields = "()"
    source = "TVM 0.10, the pass ManifestLifetimes"
    waivers = EVALUATED

    def relation(self, s: TypeSolver, to_free: Type) -> Type | None:
        return TupleType()

    def reference(self, to_free: Any) -> Any:
        return ()


@op("call_lowered", attrs_key="CallLowered", computes=False)
class call_lowered(Opaque):
    """A call of a lowered function with a tuple of arguments."""

    func: Input = arg("the lowered function")
    call_args: Input = arg("its arguments: a tuple")
    metadata: Value = attr(None, "what is known of the call, as a dictionary")
    yields = "the result type of func"
    source = "TVM 0.10, the pass LowerTE"
    waivers = {**RUN_TIME, "reference": "the called function is not a value in numpy"}

    def relation(self, s: TypeSolver, func: Type, call_args: Type) -> Type | None:
        if isinstance(func, IncompleteType):
            return None
        if not isinstance(func, FuncType):
            s.fail(f"call_lowered calls functions, not {func}")
        s.unify(call_args, TupleType(func.arg_types))
        return func.ret_type


@op("annotation.with_funcid", attrs_key="WithFuncId", meta_attrs=True)
class with_funcid(Annotation):
    """A function with a number by which another dialect knows it."""

    func: Input = arg("the function")
    fid: Value = attr(-1, "its number")
    source = "TVM 0.10, the attributes WithFuncIdAttrs"
    level = Operator.level


@op("debug", level=1, attrs_key="Debug")
class debug(Annotation):
    """Its argument as it is; the interpreter and the virtual machine call `debug_func` with it.

    A program built for the graph executor calls nothing; a constant is looked at where it is folded.
    """

    program: Input = arg("the value that is looked at: a tensor or a tuple")
    debug_func: Value = attr(
        doc="a function that is called with the value: a numpy array or a tuple; else nothing is called"
    )
    source = "TVM 0.10, relay.op.debug"
    defaults = {"debug_func": None}

    def reference(self, program: Any) -> Any:
        if callable(self.debug_func):
            self.debug_func(program)
        return program

    @property
    def native(self) -> bool:
        return not callable(self.debug_func)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), debug_func=None)]
