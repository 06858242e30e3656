"""TVM's base values under their names: lists, maps, numbers, functions, as `convert` makes them of Python's own.

Programs hold Python's tuples, mappings and numbers; `isinstance(call.args, Array)` and `isinstance(dim, PrimExpr)` hold
for them as they do in TVM.
"""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from relaylab.compat.target import Target
from relaylab.ir import Expr, IRModule
from relaylab.ir.node import Node
from relaylab.ir.types import AnyDim, IntImm, dtype_name
from relaylab.runtime.container import ADT, ShapeTuple, String
from relaylab.runtime.module import Module
from relaylab.runtime.ndarray import NDArray, array
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, shown

__all__ = [
    "Array", "BaseExpr", "DataType", "FloatImm", "Map", "Object", "ObjectGeneric", "PackedFunc", "PrimExpr", "Range",
    "StringImm",     "const", "convert", "convert_arguments", "convert_to_object",
]  # fmt: skip
V = TypeVar("V")
Converted = Any
"""A value as TVM holds it."""
_DATA_TYPE = re.compile(r"(int|uint|float|bfloat|bool|handle)(\d*)(?:x(\d+))?")


class Object(metaclass=ABCMeta):  # noqa: B024
    """What TVM's values and nodes have in common: nodes, modules, arrays and maps are such objects."""


class ObjectGeneric:
    """The base of Python classes that stand for an object: `asobject` gives it."""

    def asobject(self) -> object:
        """The object that the value stands for."""
        raise NotImplementedError(f"{type(self).__name__} does not say what object it stands for")


class BaseExpr(metaclass=ABCMeta):  # noqa: B024
    """Expressions: Relay's, and the numbers in shapes."""


class PrimExpr(BaseExpr):
    """Numbers in shapes and attributes: constants, symbolic sizes, unknown ones."""


class _ArrayKind(ABCMeta):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, tuple) and not isinstance(value, ShapeTuple)


class Array(tuple[V, ...], Generic[V], metaclass=_ArrayKind):
    """A list that does not change; tuples in programs are such lists."""

    type_key = "Array"

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other


@checked
class Map(Mapping[Any, V], Object):
    """A mapping that does not change, in the order in which it was given."""

    type_key = "Map"

    def __init__(self, items: Mapping[Any, V]):
        self._items = dict(items)

    def __getitem__(self, key: object) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[object]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def __repr__(self) -> str:
        return repr(self._items)


@checked
class FloatImm(float):
    """A constant float that also has `.value` and `.dtype`."""

    __slots__ = ("dtype",)

    def __new__(cls, dtype: str, value: float) -> FloatImm:
        try:
            new = super().__new__(cls, value)
        except OverflowError:
            raise RelayValueError(f"{shown(value)} is no float64", code="ir.python-number") from None
        new.dtype = dtype_name(dtype)
        if not new.dtype.startswith(("float", "bfloat")):
            raise RelayTypeError(f"{shown(dtype)} is no type of floats", code="compat.not-a-number")
        return new

    def __reduce__(self) -> tuple[type, tuple[str, float]]:
        return type(self), (self.dtype, float(self))

    @property
    def value(self) -> float:
        return float(self)


@checked
class StringImm(str):
    """A constant text that also has `.value`."""

    __slots__ = ()

    def __new__(cls, value: str) -> StringImm:
        return super().__new__(cls, value)

    @property
    def value(self) -> str:
        return str(self)


@checked
class Range:
    """The whole numbers from `min` on, `extent` of them: `Range(begin, end)`, or `Range(end)` from 0."""

    def __init__(self, begin: int, end: int | None = None):
        self.min, self.extent = (0, begin) if end is None else (begin, end - begin)

    @staticmethod
    def from_min_extent(min_value: int, extent: int) -> Range:
        """The range of a first number and a length."""
        return Range(min_value, min_value + extent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and (self.min, self.extent) == (other.min, other.extent)

    def __hash__(self) -> int:
        return hash((self.min, self.extent))

    def __repr__(self) -> str:
        return f"range(min={self.min}, ext={self.extent})"


@checked
class DataType(str):
    """The type of a number, or of several side by side: `float32`, `int8x4`, `bool`; its code, bits and lanes."""

    __slots__ = ()
    CODES: ClassVar = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4}

    def __new__(cls, type_str: str) -> DataType:
        if not _DATA_TYPE.fullmatch(str(type_str)):
            raise RelayValueError(f"{shown(str(type_str))} is no data type", code="type.unknown-dtype")
        return super().__new__(cls, str(type_str))

    def _parts(self) -> tuple[int, int, int]:
        found = _DATA_TYPE.fullmatch(self)
        assert found is not None
        kind, bits, lanes = found[1], found[2], found[3]
        default = 64 if kind == "handle" else 1 if kind == "bool" else 32
        return self.CODES["uint" if kind == "bool" else kind], int(bits or default), int(lanes or 1)

    @property
    def type_code(self) -> int:
        """0 for int, 1 for uint and bool, 2 for float, 3 for handle, 4 for bfloat."""
        return self._parts()[0]

    @property
    def bits(self) -> int:
        """The bits of one number."""
        return self._parts()[1]

    @property
    def lanes(self) -> int:
        """How many numbers stand side by side."""
        return self._parts()[2]

    @property
    def itemsize(self) -> int:
        """The bytes of all lanes."""
        return (self.bits * self.lanes + 7) // 8


@checked
class PackedFunc:
    """A function that takes and gives values: what is registered under a global name, or converted."""

    def __init__(self, function: Callable[..., object]):
        if not callable(function):
            raise RelayTypeError(f"a function is needed, not {shown(function)}", code="compat.not-a-function")
        self.__wrapped__ = function
        self.__name__, self.__doc__ = getattr(function, "__name__", "function"), function.__doc__

    def __call__(self, *args: object) -> object:
        return self.__wrapped__(*args)

    def __eq__(self, other: object) -> bool:
        return self.__wrapped__ == (other.__wrapped__ if isinstance(other, PackedFunc) else other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return f"<PackedFunc {self.__name__}>"


for _kind in (Node, IRModule, AnyDim, IntImm, FloatImm, StringImm, Target, ADT, String, ShapeTuple, tuple):
    Object.register(_kind)
for _kind in (IntImm, FloatImm, StringImm, AnyDim):
    PrimExpr.register(_kind)
BaseExpr.register(Expr)


def const(value: object, dtype: str | None = None, span: object = None) -> IntImm | FloatImm:
    """A number as a constant; without `dtype` an int32 (int64 if it is larger), a float32 or a bool.

    RelayTypeError for what is no number, RelayValueError for one that the type does not have.
    """
    if not isinstance(value, (bool, int, float, np.generic)):
        raise RelayTypeError(f"a constant is a number, not {shown(value)}", code="compat.not-a-number")
    plain = value.item() if isinstance(value, np.generic) else value
    kind = "bool" if isinstance(plain, bool) else "float32"
    if isinstance(plain, int) and not isinstance(plain, bool):
        kind = "int32" if -(2**31) <= plain < 2**31 else "int64"
    name = dtype_name(dtype or (value.dtype if isinstance(value, np.generic) else kind))
    if name.startswith(("float", "bfloat")):
        return FloatImm(name, plain)
    if isinstance(plain, float) and not plain.is_integer():
        raise RelayValueError(f"{plain} is no {name}", code="compat.not-a-number")
    return typed_int(int(plain), name)


class _TypedInt(IntImm):
    """A constant whole number of another type than int32."""

    def __new__(cls, value: int, dtype: str) -> _TypedInt:
        new = super().__new__(cls, value)
        new.dtype = dtype
        return new

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return type(self), (int(self), self.dtype)


def typed_int(value: int, dtype: str) -> IntImm:
    """A constant whole number of a data type; RelayValueError if it has none such."""
    kind = DataType(dtype)
    least = -(1 << kind.bits - 1) if kind.type_code == 0 else 0
    if kind.type_code > 1 or not least <= value < least + (1 << kind.bits):
        raise RelayValueError(f"{shown(value)} is no {dtype}", code="compat.not-a-number")
    return IntImm(value) if dtype == "int32" else _TypedInt(value, dtype)


def convert(value: object, span: object = None) -> Converted:
    """A Python value as TVM's: lists as `Array`, mappings as `Map`, numbers as constants, texts, functions; objects as
    they are. RelayTypeError (`compat.convert`) for anything else.
    """
    if value is None or isinstance(value, (Node, IRModule, NDArray, Module, Target, ADT, PackedFunc, AnyDim, Map)):
        return value
    if isinstance(value, (IntImm, FloatImm, StringImm, String, ShapeTuple)):
        return value
    if isinstance(value, ObjectGeneric):
        return value.asobject()
    if isinstance(value, str):
        return String(value)
    if isinstance(value, (bool, int, float, np.generic)):
        return const(value)
    if isinstance(value, (list, tuple)):
        return Array(map(convert, cast("Sequence[object]", value)))
    if isinstance(value, Mapping):
        keys = [k if isinstance(k, (str, Node)) else convert(k) for k in value]
        return Map(dict(zip(keys, map(convert, value.values()))))
    if hasattr(value, "astuple"):
        return cast(Any, value).astuple()
    if callable(value):
        return PackedFunc(value)
    raise RelayTypeError(f"{shown(value)} is nothing that a program holds", code="compat.convert")


convert_to_object = convert


def convert_arguments(args: Iterable[object]) -> list[object]:
    """Arguments of the virtual machine: arrays as NDArrays, lists and tuples as ADTs."""
    return [_argument(arg) for arg in args]


def _argument(arg: object) -> object:
    if isinstance(arg, (NDArray, ADT)):
        return arg
    if isinstance(arg, (list, tuple)):
        return ADT(0, [_argument(part) for part in cast("Sequence[object]", arg)])
    return array(np.asarray(cast(Any, arg).numpy() if hasattr(arg, "numpy") else arg))
