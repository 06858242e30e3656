"""What users write most: `relay.var` and `relay.const`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relaylab.ir.expr import Constant, Expr, Var
from relaylab.ir.types import TensorType, Type, dtype_name
from relaylab.support.errors import RelayTypeError, RelayValueError, shown
from relaylab.support.memory import as_array


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Iterable[object] | None = None,
    dtype: object = "float32",
) -> Var:
    """A variable. With `shape` its type is a tensor of `dtype`; a string annotation is a scalar's data type; with
    neither it is untyped.
    """
    if type_annotation is not None and shape is not None:
        raise RelayValueError("give a type annotation or a shape, not both", code="ir.var-annotation")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation)


_NARROW = {"int64": "int32", "float64": "float32"}


def const(value: object, dtype: object = None) -> Constant:
    """A constant from a number, a list or an array; without `dtype` 64-bit numbers become 32-bit ones, as in Relay.

    RelayValueError (`ir.bad-constant`) for whole numbers that do not fit, and for what is no number.
    """
    if isinstance(value, Expr):
        raise RelayTypeError("relay.const takes a Python number or an array, not an expression", code="ir.wrong-kind")
    try:
        array = as_array(value)
    except ValueError:  # rows of several lengths
        array = np.empty((), object)
    if array.dtype.kind in "OSU":  # objects, bytes and text
        raise RelayValueError("relay.const takes numbers, and all rows of one length", code="ir.bad-constant")
    made = array.astype(_NARROW.get(array.dtype.name, array.dtype) if dtype is None else dtype_name(dtype))
    if array.dtype.kind in "iu" and made.dtype.kind in "iu" and not np.array_equal(array, made):
        raise RelayValueError(
            f"{shown(value)} does not fit into {made.dtype}",
            code="ir.bad-constant",
            help='name a wider one: relay.const(value, "int64")',
        )
    return Constant(made)
