"""The values of evaluation: numpy arrays, Python tuples, constructed values, cells and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import Constant, Function
from relaylab.ir.types import AnyDim, TensorType, TupleType, Type, dtype_name
from relaylab.support.errors import RelayTypeError, shown
from relaylab.support.memory import as_array
from relaylab.support.words import counted

if TYPE_CHECKING:
    from relaylab.interp.machine import Frame

Value = Any  # an array, a tuple of values, a `ConstructorValue`, a `RefValue`, a function
Array = np.ndarray[Any, np.dtype[Any]]


class ConstructorValue:
    """A value of an algebraic data type: which constructor made it (`tag`, `constructor`), from which `fields`."""

    __slots__ = ("tag", "fields", "constructor")

    def __init__(self, tag: int, fields: Sequence[Value], constructor: Constructor | None = None):
        self.tag, self.fields, self.constructor = tag, tuple(fields), constructor

    def __iter__(self) -> Iterator[int | tuple[Value, ...]]:
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
        return f"<closure of {counted(len(self.function.params), 'parameter')}>"


def fields_of(value: Value) -> tuple[Value, ...] | None:
    """The values in a tuple; None if `value` is not one."""
    return cast("tuple[Value, ...]", value) if isinstance(value, tuple) else None


def text_of(value: Value, limit: int = 400) -> str:
    """A value in one line, cut where it gets long; never recurses."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack and sum(map(len, out)) < limit:
        item = stack.pop()
        if isinstance(item, ConstructorValue):
            name = item.constructor.name_hint if item.constructor is not None else f"#{item.tag}"
            stack.extend(_listed(name, item.fields) if item.fields else [_Text(name)])
        elif (parts := fields_of(item)) is not None:
            stack.extend(_listed("", parts))
        else:
            out.append(item.text if isinstance(item, _Text) else str(item))
    return "".join(out) + ("…" if stack else "")


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text


def _listed(name: str, parts: tuple[Value, ...]) -> list[Value]:
    shown: list[Any] = [_Text(f"{name}(")]
    for k, part in enumerate(parts):
        shown += [_Text(", "), part] if k else [part]
    return [*shown, _Text(")")][::-1]


def rebuilt(item: Value, fields: tuple[Value, ...]) -> Value:
    """A tuple or a constructed value with other fields."""
    return ConstructorValue(item.tag, fields, item.constructor) if isinstance(item, ConstructorValue) else fields


def plain(value: Value) -> Value:
    """A value as evaluation has it: arrays of a runtime as numpy's, tuples that have a tag as constructed values."""

    def made(item: Value, fields: tuple[Value, ...]) -> Value:
        tagged = getattr(item, "constructor", None) is not None or getattr(item, "tag", 0)
        return ConstructorValue(item.tag, fields, item.constructor) if tagged else fields

    return map_value(value, lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, made)


def map_arrays(
    value: Value, fn: Callable[[Array], object], pack: Callable[[Value, tuple[Value, ...]], Value] = rebuilt
) -> Value:
    """`value` with `fn` applied to every array in it; `pack(old, new fields)` makes tuples and constructed values."""
    return map_value(value, lambda leaf: fn(cast(Array, leaf)) if isinstance(leaf, np.ndarray) else leaf, pack)


def map_value(
    value: Value, leaf: Callable[[Value], object], pack: Callable[[Value, tuple[Value, ...]], Value]
) -> Value:
    """`value` with its leaves and what holds them made anew; data types of any depth, without recursion.

    What lies in several places is made once, so that as many turns are taken as there are objects.
    """
    done: list[Any] = []
    made: dict[int, Value] = {}
    stack: list[tuple[Value, bool]] = [(value, False)]
    while stack:
        item, ready = stack.pop()
        parts = item.fields if isinstance(item, ConstructorValue) else fields_of(item)
        if parts is None:
            done.append(leaf(item))
        elif not ready and id(item) in made:
            done.append(made[id(item)])
        elif not ready:
            stack.append((item, True))
            stack.extend((p, False) for p in reversed(parts))
        else:
            cut = len(done) - len(parts)
            made[id(item)] = pack(item, tuple(done[cut:]))
            done[cut:] = [made[id(item)]]
    return done[0]


def to_value(arg: Value, t: Type | None, what: str) -> Value:
    """An argument as a value of type `t`: arrays, constants, numbers, nested lists or tuples, anything with `.numpy()`.

    Raises `RelayTypeError` if its shape or data type is not that of `t` (a Python number takes the data type of `t`).
    """
    arg = arg.data if isinstance(arg, Constant) else arg
    if isinstance(t, TensorType):
        return _to_array(arg, t, what)
    if isinstance(arg, ConstructorValue) or getattr(arg, "constructor", None) is not None or getattr(arg, "tag", 0):
        return plain(arg)
    if isinstance(arg, (ConstructorValue, RefValue, Closure)) or callable(arg):
        return arg
    given = cast("Sequence[Value]", arg) if isinstance(arg, (list, tuple)) else None
    if isinstance(t, TupleType) or given is not None:
        fields = t.fields if isinstance(t, TupleType) else [None] * len(given or ())
        if given is None or len(given) != len(fields):
            raise RelayTypeError(f"{what} must be a tuple of {len(fields)} values", code="interp.wrong-argument")
        return tuple(to_value(a, f, f"field {k} of {what}") for k, (a, f) in enumerate(zip(given, fields)))
    return _to_array(arg, t, what)


def _to_array(arg: Value, t: Type | None, what: str) -> Array:
    try:
        own = arg.numpy() if hasattr(arg, "numpy") else arg
    except (TypeError, ValueError, RuntimeError) as error:  # a tensor of another library that it keeps to itself
        raise RelayTypeError(
            f"{what} cannot be made of this {type(arg).__name__}: {error}",
            code="interp.wrong-argument",
            help=f"the program asks for {t}" if t is not None else "give an array, a number or a list of numbers",
        ) from None
    typed = isinstance(own, (np.ndarray, np.generic))
    try:
        array: Array = as_array(np.asarray(own, dtype=None if typed or not isinstance(t, TensorType) else t.dtype))
        if not typed and isinstance(t, TensorType) and not _says(own, array):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise RelayTypeError(
            f"{what} cannot be {shown(cast(object, own))}",
            code="interp.wrong-argument",
            help=f"the program asks for {t}" if t is not None else "give an array, a number or a list of numbers",
        ) from None
    if isinstance(t, TensorType) and not fits(array, t):
        given = TensorType(array.shape, array.dtype) if array.dtype != object else "an object array"
        raise RelayTypeError(
            f"{what} is {given}, the program asks for {t}", code="interp.wrong-argument", help=_remedy(array, t)
        )
    return array


def _remedy(array: Array, t: TensorType) -> str:
    """What makes an array fit a type: another data type, or the first axis that has another size."""
    if t.dtype not in (array.dtype.name, dtype_name(array.dtype)):
        return f'convert it: x.astype("{t.dtype}")'
    if array.ndim != len(t.shape):
        return f"give an array of {counted(len(t.shape), 'dimension')}: this one has {array.ndim}"
    sizes = enumerate(zip(t.shape, array.shape))
    axis, wanted, given = next((k, d, n) for k, (d, n) in sizes if not isinstance(d, AnyDim) and int(d) != n)
    return f"axis {axis} has to be {wanted} long, not {given}"


def _says(given: object, array: Array) -> bool:
    """Whether an array has what was given: numpy makes numbers of None and of texts, and truth of everything."""
    plain: Array = np.asarray(given)
    if array.dtype.kind in "iub":
        return np.array_equal(plain, array)
    return plain.dtype.kind in "biufcV" or all(isinstance(x, Number) for x in plain.flat)


def fits(value: object, t: TensorType) -> bool:
    """Whether an array is of a tensor type."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast(Array, value)
    if array.ndim != len(t.shape) or (array.dtype.name != t.dtype and dtype_name(array.dtype) != t.dtype):
        return False
    return all(isinstance(d, AnyDim) or int(d) == n for d, n in zip(t.shape, array.shape))
