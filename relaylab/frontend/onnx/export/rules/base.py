"""What rules are written with: the table, and what they ask of a call.

A rule gets the names of the call's operands (the fields of tuples in a row) and gives the name of the result. What
ONNX would compute otherwise than Relay is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Attrs, Call, Constant, Expr, Op, TensorType, TupleType
from relaylab.support.errors import RelayValueError
from relaylab.support.table import registered

Rule = Callable[[Writer, Call, list[str]], Value]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""
    return registered(RULES, names)


def alike(table: Mapping[str, str]) -> None:
    """Operators that ONNX has under another name, operands and meaning alike."""
    RULES.update({name: _node(op_type) for name, op_type in table.items()})


def _node(op_type: str) -> Rule:
    return lambda w, call, ins: w.emit(op_type, ins)


# ---- what a call says


def attributes(call: Call) -> Attrs:
    """The attributes of a call of an operator that has some."""
    assert isinstance(call.attrs, Attrs)
    return call.attrs


def operator(call: Call) -> str:
    """The name of the operator that is called."""
    assert isinstance(call.op, Op)
    return call.op.name


def type_of(expr: Expr) -> TensorType:
    """The type of a tensor."""
    assert isinstance(expr.checked_type, TensorType)
    return expr.checked_type


def dtype_of(expr: Expr) -> str:
    """The data type of a tensor."""
    return type_of(expr).dtype


def is_float(expr: Expr) -> bool:
    """Whether a tensor holds floats."""
    return "float" in dtype_of(expr)


def shape_of(expr: Expr) -> tuple[int, ...]:
    """The static shape of a tensor."""
    return type_of(expr).concrete_shape


def fields_of(expr: Expr) -> list[TensorType]:
    """The types of a tuple of tensors."""
    assert isinstance(expr.checked_type, TupleType)
    return [f for f in expr.checked_type.fields if isinstance(f, TensorType)]


def known(expr: Expr) -> np.ndarray | None:
    """The value of a constant."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def ints(value: int | Sequence[int], count: int = 2) -> list[int]:
    """`count` integers from one number or a sequence of them."""
    values = [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]
    return values * count if len(values) == 1 else values


def pads(padding: int | Sequence[int], count: int = 2) -> list[int]:
    """ONNX's pads (all in front, then all behind) of `count` axes from one number, one for each axis, or all."""
    values = ints(padding, count)
    return values * 2 if len(values) == count else values


def refused(call: Call, what: str, help: str) -> RelayValueError:
    """The error for a call that ONNX cannot say."""
    return RelayValueError(f"{operator(call)} with {what} has no ONNX form here", code="export.attribute", help=help)


def only(call: Call, **wanted: object) -> None:
    """Refuse other values of attributes."""
    for name, value in wanted.items():
        found = attributes(call)[name]
        if found != value and not (name == "out_layout" and not found):
            raise refused(call, f"{name}={found!r}", f"it is written for {name}={value!r}")


def one_dtype(call: Call) -> None:
    """ONNX's products have the data type of their operands."""
    dtypes = {dtype_of(arg) for arg in call.args} | {dtype_of(call)}
    if len(dtypes) > 1:
        raise refused(call, f"the data types {', '.join(sorted(dtypes))}", "operands and result have one data type")
