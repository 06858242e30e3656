"""Attribute records of calls and attribute maps of functions: frozen, compared by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from relaylab.ir.converters import converter_of, own_annotations
from relaylab.ir.node import Node, expect, set_field
from relaylab.ir.types import AnyDim, IntImm
from relaylab.support.errors import RelayAttributeError, RelayTypeError, RelayValueError, shown
from relaylab.support.table import did_you_mean

T = TypeVar("T")


class Required:
    """The default of a field that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = Required()


@dataclass(frozen=True, slots=True)
class Described:
    """A default of an attribute with a description of it; see `attr`."""

    default: object
    doc: str


def attr(default: T = REQUIRED, doc: str = "") -> T:
    """The default of an attribute (none: it is required) and what it means, for the class body of an operator."""
    return cast(T, Described(default, doc))


class Field:
    """One declared attribute: its name, what it holds, its default as it is stored, and what it means."""

    __slots__ = ("name", "converter", "type", "optional", "default", "doc")

    def __init__(self, name: str, hint: object, default: object = REQUIRED, doc: str = ""):
        self.name = name
        self.converter, self.type, self.optional = converter_of(name, hint)
        self.default, self.doc = default, doc

    def with_default(self, default: object) -> Field:
        """The field with another default, and with another description if one is given with it."""
        new = Field.__new__(Field)
        new.name, new.converter, new.type, new.optional = self.name, self.converter, self.type, self.optional
        new.doc = self.doc
        if isinstance(default, Described):
            default, new.doc = default.default, default.doc or self.doc
        new.default = default if default is REQUIRED else self.convert(default)
        return new

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def kind(self) -> str:
        """What it holds, as an annotation writes it."""
        return self.converter.name + " | None" * self.optional

    type_info = kind
    """TVM's name of it."""

    @property
    def description(self) -> str:
        """TVM's name of `doc`."""
        return self.doc

    @property
    def words(self) -> str:
        """What it holds, in words."""
        return self.converter.words + " or None" * self.optional

    def convert(self, value: object, of: str = "") -> object:
        """`value` as the field holds it; `RelayTypeError` that names the record `of` if it cannot be one."""
        value = freeze(value)
        if value is None and self.optional:
            return None
        try:
            return self.converter.take(value)
        except (TypeError, ValueError, OverflowError):
            raise RelayTypeError(
                f"the attribute `{self.name}`{f' of {of}' * bool(of)} cannot be {shown(value)}",
                code="attrs.bad-value",
                help=f"it is {self.words}",
            ) from None

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind} = {self.default!r}"


class Attrs(Node):
    """A record of named attributes; subclasses declare them as annotated class variables.

    A plain assignment in the body of a subclass gives an inherited attribute another default.
    """

    __slots__ = ("__dict__", "known_label")
    fields: ClassVar[dict[str, Field]] = {}
    attrs_key: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: object):
        super().__init_subclass__(**kwargs)
        records = [base for base in reversed(cls.__bases__) if issubclass(base, Attrs)]
        cls.fields = {name: field for base in records for name, field in base.fields.items()}
        hints = own_annotations(cls)
        for name in [n for n in cls.fields if n in cls.__dict__ and n not in hints]:
            cls.fields[name] = cls.fields[name].with_default(cls.__dict__[name])
            _unwrap(cls, name)
        cls.declare({n: h for n, h in hints.items() if n[0] != "_"})

    @classmethod
    def declare(cls, hints: dict[str, object]) -> None:
        """Make attributes of the annotations in the body of the class."""
        for name, hint in hints.items():
            old = cls.fields.pop(name, None)  # declared anew, it takes its place among those of this class
            cls.fields[name] = Field(name, hint, doc=old.doc if old else "").with_default(
                cls.__dict__.get(name, REQUIRED)
            )
            _unwrap(cls, name)

    def __init__(self, **values: object):
        own = self.__dict__
        for name, field in self.fields.items():
            if name in values:
                value = values.pop(name)
                own[name] = value if value is field.default else field.convert(value, self.type_key)
            elif field.default is REQUIRED:
                raise RelayTypeError(
                    f"the attribute `{name}` of {self.type_key} is required",
                    code="attrs.missing",
                    help=f"it is {field.words}",
                )
            else:
                own[name] = field.default
        if values:
            raise self._unknown(next(iter(values)))

    def _unknown(self, name: str) -> RelayAttributeError:
        known = "it has: " + ", ".join(self.fields) if self.fields else "it takes none"
        return RelayAttributeError(
            f"{self.type_key} has no attribute `{name}`",
            code="attrs.unknown",
            help=did_you_mean(name, self.fields) or known,
        )

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
            raise self._unknown(name)
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
        return (
            isinstance(other, Attrs)
            and self.type_key == other.type_key
            and same_value(dict(self.items()), dict(other.items()))
        )

    def __hash__(self) -> int:
        return hash(fields_label(self))

    def __repr__(self) -> str:
        return f"{self.type_key}({', '.join(f'{k}={v!r}' for k, v in self.items())})"


class DictAttrs(Node, Mapping[str, Any]):
    """The attributes of a function or a module: a frozen mapping from names to values."""

    __slots__ = _fields = ("_items",)
    _items: dict[str, object]

    def __init__(self, items: Mapping[str, object] | None = None):
        given: Mapping[object, object] = {} if items is None else cast(Any, items)
        expect(given, Mapping, "the attributes of a function or module")
        set_field(self, "_items", {str(k): freeze(v) for k, v in given.items()})

    def __getitem__(self, name: str) -> Any:
        value = self._items[name]
        return IntImm(value) if type(value) is int else value

    def __getattr__(self, name: str) -> object:
        if name[0] == "_" or name not in self._items:
            raise AttributeError(f"these attributes have no `{name}`")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get_str(self, name: str) -> str:
        return str(self[name])

    def __eq__(self, other: object) -> bool:
        return same_value(self._items, cast(object, other)) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(value_label(self))

    def __repr__(self) -> str:
        return f"DictAttrs({self._items!r})"


def freeze(value: Any) -> Any:
    """`value` with lists made tuples and numpy scalars made Python's; attribute values are immutable."""
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise RelayValueError(
                "a whole number among attributes has 64 bits", code="attrs.bad-value", help="keep it in a constant"
            )
        return value
    if isinstance(value, np.generic):  # some are Python's floats and texts, too
        return cast("np.generic[Any]", value).item()
    if isinstance(value, (str, float, NoneType, Node)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, cast(Sequence[object], value)))
    if isinstance(value, Mapping):
        return DictAttrs(cast(Mapping[str, object], value))
    if isinstance(value, np.dtype):
        return cast("np.dtype[Any]", value).name
    if isinstance(value, type):
        return np.dtype(value).name
    if isinstance(value, set):
        raise RelayValueError("a set is not an attribute value: its order is not fixed", code="attrs.bad-value")
    return value


def _unwrap(cls: type[Attrs], name: str) -> None:
    """Leave the plain default in the class where it was given with a description."""
    if isinstance(given := cls.__dict__.get(name), Described):
        if given.default is REQUIRED:
            delattr(cls, name)
        else:
            setattr(cls, name, given.default)


def same_value(a: object, b: object) -> bool:
    """Whether two attribute values are equal: 1, 1.0 and True differ, floats agree to 1e-9, NaN equals NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) < 1e-9 or (a != a and b != b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        left, right = cast(Sequence[object], a), cast(Sequence[object], b)
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        one, two = cast(Mapping[str, object], a), cast(Mapping[str, object], b)
        return one.keys() == two.keys() and all(same_value(v, two[k]) for k, v in one.items())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        left, right = cast("np.ndarray[Any, Any]", a), cast("np.ndarray[Any, Any]", b)
        return type(left) is type(right) and left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(a, Node):
        return a.same_value(b)
    return all(isinstance(a, k) == isinstance(b, k) for k in (bool, float)) and bool(cast(object, a) == b)


def value_label(value: object) -> str:
    """A text that is the same for equal attribute values (floats, which agree within a tolerance, are left out)."""
    if type(value) in _WRITTEN:  # nearly all
        return repr(value)
    match value:
        case None | str() | bool() | int() | AnyDim():
            return repr(value)
        case float():
            return "float"
        case tuple() | list():
            return f"({','.join(map(value_label, cast(Sequence[object], value)))})"
        case Attrs():
            return f"{value.type_key}{fields_label(value)}"
        case Mapping():
            items = cast(Mapping[str, object], value)
            return ",".join(f"{k}={value_label(items[k])}" for k in sorted(items))
        case np.ndarray():
            array = cast("np.ndarray[Any, Any]", value)
            return f"{array.dtype}{array.shape}"
        case _:
            return type(value).__name__


_WRITTEN = frozenset((NoneType, str, bool, int, IntImm))


def fields_label(attrs: Attrs | DictAttrs | None) -> str:
    """A text that is the same for equal values under equal names, whatever kind of record holds them."""
    if isinstance(attrs, Attrs):
        try:
            return attrs.known_label
        except AttributeError:  # found once: kernels share their records, and are hashed again and again
            own = attrs.__dict__
            set_field(attrs, "known_label", ",".join([f"{k}={value_label(own[k])}" for k in sorted(attrs.fields)]))
            return attrs.known_label
    return value_label(attrs or {})
