"""`relay.op.vm`: operators of the virtual machine."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def invoke_tvm_op(op: Arg, ins: Arg, outs: Arg) -> Call:
    """A call of a primitive function that writes its results into given tensors; the empty tuple.

    op: the primitive function; shape any; dtype any
    ins: its arguments: a tuple of tensors; shape any; dtype any
    outs: the tensors that its results are written into: a tuple; shape any; dtype any
    Result: ()
    """
def reshape_tensor(data: Arg, shape: Arg, newshape: Dims) -> Call:
    """A view of a tensor in the shape that a vector holds; `newshape` is that shape as far as it is known.

    data: the tensor that is looked at; shape any; dtype any
    shape: the extents of the view; shape (rank of the view,); dtype integers
    newshape: the same extents in the type, as far as they are known
    Result: `newshape`, of the dtype of data
    """
def shape_of(tensor: Arg, dtype: Dtype = 'int64') -> Call:
    """The shape of a tensor, for the virtual machine.

    tensor: the tensor whose shape is wanted; shape any; dtype any
    dtype: the data type of the result; None: int32
    Result: (rank of tensor,), of `dtype`
    """
