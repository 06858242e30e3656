"""Values that are not arrays: `ADT` (tuples and tagged data), `ConstructorValue`, `RefValue`, `String`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from relaylab.support.checked import checked
from relaylab.support.errors import RelayIndexError, RelayTypeError, is_a, kind_of

__all__ = ["ADT", "ConstructorValue", "RefValue", "ShapeTuple", "String", "getitem_helper", "tuple_object"]

T = TypeVar("T")
Item = Any
"""A number or a slice, or what stands there."""


SHOWN = 1000
"""How many constructed values and tuples within each other are written out as text."""


class ADT(tuple[Any, ...]):
    """A tag and fields: what programs return where a result is no array. A tuple has tag 0; it is one in Python, too.

    `constructor` is what made it, where that is known.
    """

    tag: int
    constructor: object

    def __new__(cls, tag: int, fields: Iterable[Any] = (), constructor: object = None) -> ADT:
        several = type(fields) in (list, tuple) or (is_a(fields, Iterable) and getattr(fields, "ndim", 1) > 0)
        if not several or not is_a(tag, int):
            raise RelayTypeError("an ADT has a number and a list of fields", code="runtime.adt")
        made = super().__new__(cls, fields)
        made.tag, made.constructor = int(tag), constructor
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """The values in it."""
        return tuple(self)

    def __getitem__(self, index: Item) -> Item:
        return getitem_helper(self, super().__getitem__, len(self), index)

    @property
    def name(self) -> str:
        """What stands before the fields as text: the constructor, or the tag of what has none."""
        return getattr(self.constructor, "name_hint", "" if self.tag == 0 else f"#{self.tag}")

    def __repr__(self) -> str:
        out: list[str] = []
        stack: list[ADT | str] = [self]
        shown = 0
        while stack and shown < SHOWN:  # lists are as deep as they are long, and trees may share their branches
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
                continue
            shown += 1
            parts = [part if isinstance(part, ADT) else repr(part) for part in item.fields]
            out.append(f"{item.name}(")
            stack.append(",)" if len(parts) == 1 else ")")
            for k, part in enumerate(reversed(parts), 1 - len(parts)):
                stack += [part, ", "] if k else [part]
        return "".join(out) + ("…" if stack else "")


def tuple_object(fields: Iterable[Any] | None = None) -> ADT:
    """A tuple value with `fields`."""
    return ADT(0, fields or ())


@overload
def getitem_helper(obj: object, elem_getter: Callable[[int], T], length: int, index: int) -> T: ...


@overload
def getitem_helper(obj: object, elem_getter: Callable[[int], T], length: int, index: slice) -> list[T]: ...


def getitem_helper(obj: object, elem_getter: Callable[[int], T], length: int, index: int | slice) -> T | list[T]:
    """Element or list of elements of `obj` for an index as Python lists take it; RelayIndexError outside."""
    if isinstance(index, slice):
        return [elem_getter(i) for i in range(*index.indices(length))]
    if not -length <= index < length:
        raise RelayIndexError(f"index {index} is outside {kind_of(obj)} of {length} fields", code="runtime.index")
    return elem_getter(index % length)


@checked
@dataclass(frozen=True, slots=True, eq=False)
class ConstructorValue:
    """A value of an algebraic data type: the constructor's tag, the field values, the constructor if known."""

    tag: int
    fields: tuple[Any, ...] = ()
    constructor: object = field(default=None, repr=False)

    def __init__(self, tag: int, fields: Iterable[Any] = (), constructor: object = None):
        object.__setattr__(self, "tag", int(tag))
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "constructor", constructor)


@dataclass(slots=True, eq=False)
class RefValue:
    """A mutable cell with one `value`."""

    value: Any


@checked
class String(str):
    """A string as a runtime value; a Python string in every respect."""

    __slots__ = ()

    def __new__(cls, content: str = "") -> String:
        if not is_a(content, str):
            raise RelayTypeError(f"a String holds text, not {type(content).__name__}", code="runtime.string")
        return super().__new__(cls, content)


@checked
class ShapeTuple(tuple[int, ...]):
    """A shape as a runtime value: whole numbers that do not change."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int] = ()) -> ShapeTuple:
        sizes = tuple(shape)
        if not all(is_a(n, int) or hasattr(n, "__index__") for n in sizes):
            raise RelayTypeError("a ShapeTuple holds whole numbers", code="runtime.shape-tuple")
        return super().__new__(cls, map(int, sizes))
