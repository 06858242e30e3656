"""Functions of TVM that have another name or place in relaylab, or came with its releases after 0.10."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np

from relaylab import op
from relaylab.ir import Call, Constant, Expr, IRModule, TensorType
from relaylab.support.errors import RelayValueError
from relaylab.transform import InferTypeLocal

Made = TypeVar("Made")

__all__ = ["astext", "memoize", "pretty_print", "scatter_elements"]


def astext(obj: Expr | IRModule, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None) -> str:
    """The text of a program with its version line, which `relay.parse` reads: `obj.astext(…)`."""
    return obj.astext(show_meta_data, annotate)


def pretty_print(obj: object) -> str:
    """The text of a program as it is shown, without the data of its constants: `str(obj)`."""
    return str(obj)


def scatter_elements(data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update") -> Call:
    """`data` with updates put along `axis`, as ONNX ScatterElements does it: the last of several for one place counts
    ("update"), or all are combined with what is there ("add", "mul", "min", "max").

    Programs of 0.10 say it with `scatter`, `scatter_add` and `scatter_nd`. For the last three reductions the shape of
    the indices must be known.
    """
    if reduction in ("update", "add"):
        return (op.scatter if reduction == "update" else op.scatter_add)(data, indices, updates, axis)
    if reduction not in ("mul", "min", "max"):
        text = f"scatter_elements: `reduction` cannot be {reduction!r}"
        raise RelayValueError(text, code="op.arguments", help="it is update, add, mul, min or max")
    found = InferTypeLocal(indices)
    if not isinstance(found, TensorType) or not all(isinstance(n, int) for n in found.shape):
        text = f"scatter_elements: with {reduction!r} the shape of the indices must be known"
        raise RelayValueError(text, code="op.arguments", help="annotate it, or use update or add")
    grid: list[Expr] = [Constant(places.astype(found.dtype)) for places in np.indices(found.concrete_shape)]
    grid[axis] = indices
    return op.scatter_nd(data, op.stack(grid, 0), updates, reduction)


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """A decorator for reference data of tests: the function is called once for each set of arguments.

    Nothing is written to files, so `key` and `save_at_exit` have no effect.
    """
    return cache
