"""What a target makes of quantized products before they are written as integer arithmetic.

A CPU with vector products of bytes (x86 from SSE4.2 on, as TVM draws the line) wants unsigned data and a signed weight:
both are shifted by 128, and their zero points with them. Others get the ordinary operator on int16 less the zero
points. Without a target in scope nothing changes.
"""

from __future__ import annotations

from relaylab.ir.expr import Constant, Expr, ExprWithOp
from relaylab.ir.leaves import const
from relaylab.op.base import Operator, TensorType, call_operator
from relaylab.op.qnn.arithmetic import along_expr
from relaylab.support.hook import Hook

BYTES = ("int8", "uint8")


@Hook
def multiplies_bytes() -> bool | None:
    """Whether the target in scope has vector products of bytes; None without a target in scope, or for one that is no
    x86 CPU.
    """
    return None


def for_target(record: Operator, axis: int, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
    """The product that the target in scope prefers; None if it takes the one that is there. `axis`: along which the
    weight's zero points lie.
    """
    fast = multiplies_bytes()
    if fast is None or any(t.dtype not in BYTES for t in types[:2]):
        return None
    return _as_bytes(record, inputs, types) if fast else _as_words(record, axis, inputs, types)


def _as_words(record: Operator, axis: int, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr:
    """The ordinary operator on int16."""
    data, weight, zero, weight_zero = inputs[:4]
    x = data.astype("int16") - zero.astype("int16")
    zeros = along_expr(weight_zero.astype("int16"), axis, len(types[1].shape), types[3].shape)
    w = weight.astype("int16") - zeros
    return call_operator(record.op_name.replace("qnn.", "nn."), x, w, **dict(record.items()))


def _as_bytes(record: Operator, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
    """The quantized operator on uint8 data and an int8 weight."""
    data, weight, zero, weight_zero, *scales = inputs
    kinds = types[0].dtype, types[1].dtype
    if kinds == ("uint8", "int8"):
        return None
    if kinds[0] == "int8":
        data, zero = _shifted(data, zero, 128, "uint8")
    if kinds[1] == "uint8":
        weight, weight_zero = _shifted(weight, weight_zero, -128, "int8")
    return call_operator(record.op_name, data, weight, zero, weight_zero, *scales, **dict(record.items()))


def _shifted(data: ExprWithOp, zero: ExprWithOp, by: int, dtype: str) -> tuple[ExprWithOp, ExprWithOp]:
    """A tensor in another data type and its zero point, which stand for the same real numbers."""
    moved = (data.astype("int32") + const(by, "int32")).astype(dtype)
    if isinstance(zero, Constant):
        return moved, const(zero.data.numpy() + by, "int32")
    return moved, zero + const(by, "int32")
