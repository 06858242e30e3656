"""Data from files, read as declared types: what does not fit is refused before anything uses it.

A type is a dataclass (its fields, and no others), a `TypedDict` (those keys, perhaps others), `dict[str, X]`,
`list[X]`, `tuple[X, ...]`, a tuple of fixed length, `X | None`, or a plain one; `Annotated[X, limit]` bounds it.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Read = Callable[[object], object]
Limit = Callable[..., bool]
"""What a value of a type must be besides; its text says so."""


class Unfit(ValueError):
    """Data that is not of its declared type; `path` says where, outermost last."""

    def __init__(self, why: str):
        super().__init__(why)
        self.path: list[str] = []

    def __str__(self) -> str:
        place = ".".join(reversed(self.path))
        return f"`{place}` {self.args[0]}" if place else f"it {self.args[0]}"


@dataclass(frozen=True, slots=True)
class Within:
    """Numbers from `least` to `most`, both inclusive."""

    least: int
    most: int

    def __call__(self, value: float) -> bool:
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"from {self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some texts."""

    values: tuple[str, ...]

    def __call__(self, value: str) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return f"one of {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """So many items, or characters."""

    count: int

    def __call__(self, value: typing.Sized) -> bool:
        return len(value) <= self.count

    def __str__(self) -> str:
        return f"of at most {self.count} parts"


@dataclass(frozen=True, slots=True)
class Printable:
    """Texts without control characters."""

    def __call__(self, value: str) -> bool:
        return value.isprintable()

    def __str__(self) -> str:
        return "printable"


def read_json(text: str | bytes) -> object:
    """The data in a JSON text; ValueError in words for what is none, and for lists in lists without end."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None


def read(kind: type[T], data: object) -> T:
    """`data` as a value of a declared type; `Unfit` says what does not fit and where."""
    return cast(T, _reader(kind)(data))


@cache
def _reader(kind: object) -> Read:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _limited(_reader(inner[0]), inner[1:])
    if origin is tuple:
        return _items(_reader(inner[0])) if inner[-1] is Ellipsis else _row([_reader(k) for k in inner])
    if origin is list:
        items = _items(_reader(inner[0]))
        return lambda data: list(cast("tuple[object, ...]", items(data)))
    if origin is dict:
        return _table(_reader(inner[1]))
    if origin in (UnionType, typing.Union):
        return _perhaps(_reader(next(k for k in inner if k is not NoneType)))
    if is_dataclass(kind):
        return _record(cast("type[object]", kind))
    if typing.is_typeddict(kind):
        return _keys(cast("type[object]", kind))
    return (lambda data: data) if kind is object else _plain(cast("type[object]", kind))


def _plain(kind: type[object]) -> Read:
    def plain(data: object) -> object:
        if type(data) is kind or (kind is float and type(data) is int):  # JSON's true is no number
            return data if type(data) is not str else _text(data)
        raise _misfit(data, _WORDS.get(kind, kind.__name__))

    return plain


_WORDS: dict[type[object], str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _text(data: str) -> str:
    if not data.isascii():
        try:
            data.encode()
        except UnicodeEncodeError:
            raise Unfit("has half of a character") from None
    return data


def _limited(inner: Read, limits: tuple[object, ...]) -> Read:
    bounds = [cast(Limit, limit) for limit in limits if callable(limit)]

    def limited(data: object) -> object:
        value = inner(data)
        for limit in bounds:
            if not limit(value):
                raise Unfit(f"is {value!r:.60}, which is not {limit}")
        return value

    return limited


def _perhaps(inner: Read) -> Read:
    return lambda data: None if data is None else inner(data)


def _items(inner: Read) -> Read:
    def items(data: object) -> tuple[object, ...]:
        if not isinstance(data, list):
            raise _misfit(data, "a list")
        found: list[object] = []
        for item in cast("list[object]", data):
            found.append(_at(str(len(found)), inner, item))
        return tuple(found)

    return items


def _row(inner: list[Read]) -> Read:
    def row(data: object) -> tuple[object, ...]:
        if not isinstance(data, list):
            raise _misfit(data, "a list")
        given = cast("list[object]", data)
        if len(given) != len(inner):
            raise Unfit(f"has {len(given)} entries instead of {len(inner)}")
        return tuple(_at(str(k), read, item) for k, (read, item) in enumerate(zip(inner, given)))

    return row


def _table(inner: Read) -> Read:
    return lambda data: {_text(name): _at(name, inner, value) for name, value in _object(data).items()}


def _keys(kind: type[object]) -> Read:
    inner = {name: _reader(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())

    def keys(data: object) -> dict[str, object]:
        found = _object(data)
        _complete(required, found)
        return found | {name: _at(name, read, found[name]) for name, read in inner.items() if name in found}

    return keys


def _record(kind: type[object]) -> Read:
    hints = get_type_hints(kind, include_extras=True)
    declared = fields(kind) if is_dataclass(kind) else ()
    inner = {f.name: _reader(hints[f.name]) for f in declared}
    required = frozenset(f.name for f in declared if f.default is MISSING and f.default_factory is MISSING)

    def record(data: object) -> object:
        found = _object(data)
        _complete(required, found)
        if not found.keys() <= inner.keys():
            raise Unfit(f"has the unknown entry `{next(n for n in found if n not in inner)!s:.60}`")
        return kind(**{name: _at(name, inner[name], value) for name, value in found.items()})

    return record


def _object(data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        raise _misfit(data, "a table of entries")
    return cast("dict[str, object]", data)


def _complete(required: frozenset[str], found: dict[str, object]) -> None:
    if not required <= found.keys():
        raise Unfit(f"lacks the entry `{min(required - found.keys())}`")


def _at(place: str, inner: Read, data: object) -> object:
    try:
        return inner(data)
    except Unfit as error:
        error.path.append(place)
        raise


def _misfit(data: object, what: str) -> Unfit:
    return Unfit(f"is {data!r:.60}, not {what}")
