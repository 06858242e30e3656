"""Index arithmetic for loop-level forms, and arguments of builders that may be constants or expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from relaylab.ir.expr import Constant, Expr
from relaylab.ir.types import IntImm
from relaylab.loop.expr import ScalarExpr
from relaylab.op.helpers import Element, ElementBuilder
from relaylab.support.errors import RelayTypeError, shown


def length(n: ScalarExpr | int) -> int:
    """A dimension as an int; a size that is known when a kernel runs stands where a number stands."""
    return cast(int, n) if isinstance(n, ScalarExpr) else int(n)


def ravel(i: Sequence[Any], shape: Sequence[int]) -> Any:
    """The position of index `i` in the row-major order of `shape`."""
    flat: Any = 0
    for k, n in zip(i, shape):
        flat = flat * length(n) + k if not isinstance(flat, int) or flat else k
    return flat


def unravel(b: ElementBuilder, flat: Element, shape: Sequence[int]) -> tuple[Any, ...]:
    """The index at a row-major position; inverse of `ravel`."""
    out, dims = [], [length(n) for n in shape]
    for d, n in enumerate(dims):
        below = math.prod(dims[d + 1 :])
        position = flat // below if isinstance(below, ScalarExpr) or below > 1 else flat
        out.append(b.index(0) if n == 1 else position if d == 0 else position % n)
    return tuple(out)


def place(i: Sequence[Any], axis: int, k: Any) -> tuple[Any, ...]:
    """`i` with its entry at `axis` replaced by `k`."""
    return (*i[:axis], k, *i[axis + 1 :])


def insert(i: Sequence[Any], axis: int, k: Any) -> tuple[Any, ...]:
    """`i` with `k` inserted before position `axis`."""
    return (*i[:axis], k, *i[axis:])


def found_inside(b: ElementBuilder, i: Sequence[Element], shape: Sequence[int]) -> Element:
    """Whether an index that data says lies in a tensor: one comparison for each axis, as a negative number is a huge
    one without its sign. (Of an index that loops say both ends are compared, which proofs understand.)
    """
    return b.all_of(*(b.number(n, "uint64") > b.cast(k, "uint64") for k, n in zip(i, shape)))


def is_dynamic(*values: Any) -> bool:
    """Whether a builder's arguments hold an expression that is not a constant."""
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
    return any(isinstance(v, Expr) and not isinstance(v, Constant) for v in flat)


def ints(value: Any) -> Any:
    """Python ints from what a builder accepts as integers: an int, a list, a constant; None stays None."""
    if isinstance(value, Constant):
        return value.data.numpy().tolist()
    if isinstance(value, (list, tuple)):
        return tuple(map(ints, value))
    if isinstance(value, IntImm) or value is None:
        return value
    if isinstance(value, Expr):
        raise RelayTypeError("expected integers known now, not an expression", code="op.static-argument")
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def as_numbers(value: object) -> np.ndarray:
    """An array of int64 or floats from a number, a list or an array of them; RelayTypeError for anything else."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # lists of unequal lengths, what numpy cannot ask
        array = np.empty((), object)
    if array.dtype.kind not in "iufb" or (array.dtype.kind == "u" and array.size and array.max() >= 1 << 63):
        raise RelayTypeError(
            f"expected numbers or an expression, not {shown(value)}",
            code="op.static-argument",
            help="whole numbers have 64 bits; an expression of them is read at run time",
        )
    return array


def as_shape_expr(value: Any) -> Expr:
    """An expression for numbers (int64, or float32 if there are fractions); an expression as it is."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(v, Expr) for v in value):
        raise RelayTypeError(
            "a list cannot mix numbers and expressions",
            code="op.mixed-list",
            help="join the parts: relay.concatenate([...], 0) of vectors",
        )
    array = as_numbers(value)
    return Constant(array.astype("float32" if array.dtype.kind == "f" else "int64"))
