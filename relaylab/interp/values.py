"""The values of evaluation: numpy arrays, Python tuples, constructed values, cells and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import Function
from relaylab.ir.types import Any as AnyDim
from relaylab.ir.types import TensorType, TupleType, Type, dtype_name
from relaylab.support.errors import RelayTypeError

if TYPE_CHECKING:
    from relaylab.interp.machine import Frame

Value = Any


class ConstructorValue:
    """A value of an algebraic data type: which constructor made it (`tag`, `constructor`), from which `fields`."""

    __slots__ = ("tag", "fields", "constructor")

    def __init__(self, tag: int, fields: tuple | list, constructor: Constructor | None = None):
        self.tag, self.fields, self.constructor = tag, tuple(fields), constructor

    def __iter__(self):
        return iter((self.tag, self.fields))

    def __repr__(self) -> str:
        return text_of(self)


class RefValue:
    """A mutable cell."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value

    def __repr__(self) -> str:
        return "ref(…)"


class Closure:
    """A function with the activation in which it was made."""

    __slots__ = ("function", "frame")

    def __init__(self, function: Function, frame: Frame):
        self.function, self.frame = function, frame

    def __repr__(self) -> str:
        return f"<closure of {len(self.function.params)} parameters>"


def text_of(value: Value, limit: int = 400) -> str:
    """A value in one line, cut where it gets long; never recurses."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack and sum(map(len, out)) < limit:
        item = stack.pop()
        if isinstance(item, ConstructorValue):
            name = item.constructor.name_hint if item.constructor is not None else f"#{item.tag}"
            stack.extend(_listed(name, item.fields) if item.fields else [_Text(name)])
        elif isinstance(item, tuple):
            stack.extend(_listed("", item))
        else:
            out.append(item.text if isinstance(item, _Text) else str(item))
    return "".join(out) + ("…" if stack else "")


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text


def _listed(name: str, parts: tuple) -> list[Any]:
    shown: list[Any] = [_Text(f"{name}(")]
    for k, part in enumerate(parts):
        shown += [_Text(", "), part] if k else [part]
    return [*shown, _Text(")")][::-1]


def map_arrays(value: Value, fn: Callable[[np.ndarray], Any]) -> Value:
    """`value` with `fn` applied to every array in it; data types of any depth, without recursion."""
    done: list[Any] = []
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, ready = stack.pop()
        parts = item.fields if isinstance(item, ConstructorValue) else item if isinstance(item, tuple) else None
        if parts is None:
            done.append(fn(item) if isinstance(item, np.ndarray) else item)
        elif not ready:
            stack.append((item, True))
            stack.extend((p, False) for p in reversed(parts))
        else:
            cut = len(done) - len(parts)
            new = tuple(done[cut:])
            done[cut:] = [ConstructorValue(item.tag, new, item.constructor) if isinstance(item, ConstructorValue) else new]
    return done[0]


def to_value(arg: Any, t: Type | None, what: str) -> Value:
    """An argument as a value of type `t`: arrays, numbers, nested lists or tuples, anything with `.numpy()`.

    Raises `RelayTypeError` if its shape or data type is not that of `t` (a Python number takes the data type of `t`).
    """
    if isinstance(arg, (ConstructorValue, RefValue, Closure)) or callable(arg):
        return arg
    if isinstance(t, TupleType) or (isinstance(arg, (list, tuple)) and not isinstance(t, TensorType)):
        fields = t.fields if isinstance(t, TupleType) else [None] * len(arg)
        if not isinstance(arg, (list, tuple)) or len(arg) != len(fields):
            raise RelayTypeError(f"{what} must be a tuple of {len(fields)} values", code="interp.wrong-argument")
        return tuple(to_value(a, f, f"field {k} of {what}") for k, (a, f) in enumerate(zip(arg, fields)))
    return _to_array(arg, t, what)


def _to_array(arg: Any, t: Type | None, what: str) -> np.ndarray:
    own = arg.numpy() if hasattr(arg, "numpy") else arg
    typed = isinstance(own, (np.ndarray, np.generic))
    array = np.asarray(own) if typed or not isinstance(t, TensorType) else np.asarray(own, dtype=t.dtype)
    if isinstance(t, TensorType) and not fits(array, t):
        given = TensorType(array.shape, array.dtype) if array.dtype != object else "an object array"
        raise RelayTypeError(f"{what} is {given}, the program asks for {t}", code="interp.wrong-argument", help="convert it: numpy.asarray(x, dtype)")
    return array


def fits(value: np.ndarray, t: TensorType) -> bool:
    """Whether an array is of a tensor type."""
    if not isinstance(value, np.ndarray) or value.ndim != len(t.shape) or (value.dtype.name != t.dtype and dtype_name(value.dtype) != t.dtype):
        return False
    return all(isinstance(d, AnyDim) or int(d) == n for d, n in zip(t.shape, value.shape))
