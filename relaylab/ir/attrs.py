"""Attribute records of calls and attribute maps of functions: frozen, compared by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.node import Node, set_field
from relaylab.ir.types import Any as DimAny
from relaylab.ir.types import dtype_name
from relaylab.support.errors import RelayAttributeError, RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean


class Required:
    """The default of a field that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = Required()


class Field:
    """One declared attribute: its name, what it holds (the annotation's text), its default."""

    __slots__ = ("name", "kind", "default")

    def __init__(self, name: str, kind: str, default: object):
        self.name, self.kind, self.default = name, kind, default

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind} = {self.default!r}"


class Attrs(Node):
    """A record of named attributes; subclasses declare them as annotated class variables."""

    __slots__ = ("__dict__",)
    fields: ClassVar[dict[str, Field]] = {}
    attrs_key: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: object):
        super().__init_subclass__(**kwargs)
        fields = dict(cls.fields)
        for name, kind in cls.__dict__.get("__annotations__", {}).items():
            if "ClassVar" not in str(kind) and not name.startswith("_"):
                fields[name] = Field(name, str(kind), cls.__dict__.get(name, REQUIRED))
        cls.fields = fields

    def __init__(self, **values: object):
        own = self.__dict__
        for name, field in self.fields.items():
            value = values.pop(name, field.default)
            if value is REQUIRED:
                raise RelayTypeError(f"the attribute `{name}` of {self.type_key} is required", code="attrs.missing", help=f"it is: {field.kind}")
            own[name] = convert(value, field.kind, name, self)
        if values:
            name = next(iter(values))
            raise RelayAttributeError(f"{self.type_key} has no attribute `{name}`", code="attrs.unknown", help=did_you_mean(name, self.fields) or self._known())

    def _known(self) -> str:
        return "it has: " + ", ".join(self.fields) if self.fields else "it takes none"

    @property
    def type_key(self) -> str:
        """The name of the record in the text format."""
        return f"relay.attrs.{self.attrs_key or type(self).__name__}Attrs"

    def keys(self) -> list[str]:
        return list(self.fields)

    def items(self) -> Iterator[tuple[str, object]]:
        return ((k, self.__dict__[k]) for k in self.fields)

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise RelayAttributeError(f"{self.type_key} has no attribute `{name}`", code="attrs.unknown", help=did_you_mean(name, self.fields) or self._known())
        return self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def get(self, name: str, default: object = None) -> Any:
        return self.__dict__[name] if name in self.fields else default

    def get_int(self, name: str) -> int:
        return int(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        return tuple(int(v) for v in self[name])

    def get_str(self, name: str) -> str:
        return str(self[name])

    def list_field_info(self) -> list[Field]:
        """The declared fields with their kinds and defaults."""
        return list(self.fields.values())

    def replace(self, **changes: object) -> Attrs:
        """The record with some values changed."""
        return type(self)(**{**dict(self.items()), **changes})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Attrs) and self.type_key == other.type_key and same_value(dict(self.items()), dict(other.items()))

    def __hash__(self) -> int:
        return hash(value_label(self))

    def __repr__(self) -> str:
        return f"{self.type_key}({', '.join(f'{k}={v!r}' for k, v in self.items())})"


class DictAttrs(Node, Mapping):
    """The attributes of a function or a module: a frozen mapping from names to values."""

    __slots__ = _fields = ("_items",)

    def __init__(self, items: Mapping[str, object] | None = None):
        set_field(self, "_items", {str(k): freeze(v) for k, v in (items or {}).items()})

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get_str(self, name: str) -> str:
        return str(self[name])

    def __eq__(self, other: object) -> bool:
        return same_value(self._items, other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(value_label(self))

    def __repr__(self) -> str:
        return f"DictAttrs({self._items!r})"


def freeze(value: Any) -> Any:
    """`value` with lists made tuples and numpy scalars made Python's; attribute values are immutable."""
    if isinstance(value, (str, bool, int, float, type(None), Node)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return DictAttrs(value)
    if isinstance(value, (np.dtype, type)):
        return np.dtype(value).name
    if isinstance(value, set):
        raise RelayValueError("a set is not an attribute value: its order is not fixed", code="attrs.bad-value")
    return value


def _int(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    return int(value)


def _bool(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _tuple(of: Any) -> Any:
    return lambda value: tuple(map(of, value)) if isinstance(value, (tuple, list)) else (of(value),)


def _dtype(value: Any) -> str | None:
    return None if value in ("", "void", None) else dtype_name(value)


def _dim(value: Any) -> Any:
    return value if isinstance(value, DimAny) else _int(value)


# What an annotation in the class body of an operator accepts; other annotations take anything.
CONVERTERS: dict[str, Any] = {
    "int": _int,
    "float": float,
    "bool": _bool,
    "str": _str,
    "Dtype": _dtype,
    "Dims": _tuple(_dim),
    "Ints": _tuple(_int),
    "Floats": _tuple(float),
}


def convert(value: Any, kind: str, name: str, record: Attrs) -> Any:
    """`value` as a field of `kind` holds it; `RelayTypeError` if it cannot be one."""
    value, base = freeze(value), kind.removesuffix(" | None")
    if value is None and (base != kind or base == "Dtype"):
        return None
    if base not in CONVERTERS:
        return value
    try:
        return CONVERTERS[base](value)
    except (TypeError, ValueError, OverflowError):
        raise RelayTypeError(f"the attribute `{name}` of {record.type_key} cannot be {value!r}", code="attrs.bad-value", help=f"it is: {kind}") from None


def same_value(a: Any, b: Any) -> bool:
    """Whether two attribute values are equal: 1, 1.0 and True differ, floats agree to 1e-9, NaN is unequal to NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) < 1e-9
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_value(v, b[k]) for k, v in a.items())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    return all(isinstance(a, k) == isinstance(b, k) for k in (bool, float)) and bool(a == b)


def value_label(value: Any) -> str:
    """A text that is the same for equal attribute values (floats, which agree within a tolerance, are left out)."""
    match value:
        case float():
            return "float"
        case tuple() | list():
            return f"({','.join(map(value_label, value))})"
        case Attrs():
            return f"{value.type_key}{value_label(dict(value.items()))}"
        case Mapping():
            return ",".join(f"{k}={value_label(value[k])}" for k in sorted(value))
        case np.ndarray():
            return f"{value.dtype}{value.shape}"
        case str() | bool() | int() | DimAny() | None:
            return repr(value)
        case _:
            return type(value).__name__
