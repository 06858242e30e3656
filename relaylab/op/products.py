"""What operators that sum products share: exact factors for the reference, storing the sums, and counting."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import numpy as np

from relaylab.ir.expr import Call, Expr
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.types import Dim, TensorType, Type
from relaylab.loop.scalar import NARROW
from relaylab.op.base import Operator, call_operator
from relaylab.op.shapes import product


def exact(out: str, *factors: np.ndarray) -> list[np.ndarray]:
    """The factors in a type in which sums of their products are exact enough to be the oracle of a result of type
    `out`: float64, or int64 for wide integers.
    """
    wide = "float64" if "float" in out or all(x.dtype.itemsize <= 2 for x in factors) else "int64"
    return [x.astype(wide) for x in factors]


def stored(x: np.ndarray, dtype: str) -> np.ndarray:
    """A sum of products as `dtype`: integers wrap."""
    return x.astype("int64").astype(dtype) if "int" in dtype else x.astype(dtype)


def in_float32(
    record: Operator, inputs: Sequence[Expr], types: Sequence[TensorType], keep: Container[int] = ()
) -> Expr | None:
    """A sum of products of floats of 16 bits as one of float32 numbers, rounded once; None for other data types.

    The inputs of the numbers in `keep` stay as they are.
    """
    dtypes = [t.dtype for t in types]
    narrow = [d in NARROW and k not in keep for k, d in enumerate(dtypes)]
    if dtypes[-1] not in (*NARROW, "float32") or not set(NARROW) & set(dtypes[:-1]) or not any(narrow):
        return None
    wide = [_widened(x) if here else x for x, here in zip(inputs, narrow)]
    found = call_operator(record.op_name, *wide, **{**dict(record.items()), "out_dtype": "float32"})
    return found if dtypes[-1] == "float32" else call_operator("cast", found, dtype=dtypes[-1])


def _widened(x: Expr) -> Expr:
    """`x` in float32. What is transposed is so before: products read a transposed side where it lies."""
    if isinstance(x, Call) and is_call_to(x, "transpose"):
        return call_operator("transpose", call_operator("cast", x.args[0], dtype="float32"), **dict(facets(x).items()))
    return call_operator("cast", x, dtype="float32")


def dims(t: Type | None) -> tuple[Dim, ...]:
    """The dimensions of a tensor type; none of another type."""
    return t.shape if isinstance(t, TensorType) else ()


def elements(t: Type) -> int:
    """The number of elements of a tensor type; 0 if it is not known."""
    return math.prod(t.concrete_shape) if isinstance(t, TensorType) and not t.is_dynamic else 0


def products(out: Type, terms: Sequence[Dim | int]) -> int:
    """The products of a result whose elements are sums over a box of these extents; 0 if something is not known."""
    count = product(terms)
    return elements(out) * int(count) if isinstance(count, int) else 0
