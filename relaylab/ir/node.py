"""The base of everything in a program: frozen, slotted, compared by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

from relaylab.support.checked import fitting, stands_for
from relaylab.support.errors import RelayTypeError, kind_of, named

T = TypeVar("T")
set_field = object.__setattr__


class Node:
    """A frozen record of a program; `_fields` names what it consists of, in order."""

    __slots__ = ("__weakref__",)
    _fields: tuple[str, ...] = ()
    of_parts: ClassVar[Callable[..., Any]]
    """A node of values that are known to fit, in the order of the declared fields: none is looked at."""

    @fitting
    def __init__(self) -> None: ...

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RelayTypeError(
            f"{kind_of(self)} cannot be changed: `{name}` is fixed when the node is built",
            code="ir.frozen-node",
            help="build a new node; a pass returns a new program",
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def same_value(self, other: object) -> bool:
        """Whether both are equal as values of an attribute."""
        return self == other

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise RelayTypeError(
            "programs are saved as text, not by pickle",
            code="ir.no-pickle",
            help="use `mod.astext()` and `relaylab.parse`",
        )


def expect(value: object, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """`value` if it is of `kind`, else a `RelayTypeError` that names the argument."""
    if not isinstance(value, kind):
        made = stands_for(value)
        if isinstance(made, kind):
            return made
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise RelayTypeError(f"{what} must be {named(wanted)}, not {kind_of(value)}", code="ir.wrong-kind")
    return value


def expect_all(values: object, kind: type[T] | tuple[type[T], ...], what: str) -> tuple[T, ...]:
    """The tuple of `values`, each of `kind`."""
    if type(values) is list:
        values = tuple(cast("list[object]", values))
    elif type(values) is not tuple:  # the usual cases ask no abstract class
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise RelayTypeError(f"{what} must be a list, not {kind_of(values)}", code="ir.wrong-kind")
        try:
            values = tuple(cast(Iterable[object], values))
        except RelayTypeError:  # what one of them is cannot be there
            raise
        except TypeError:  # an array without axes says that it can be gone through
            raise RelayTypeError(f"{what} must be a list, not a number", code="ir.wrong-kind") from None
    for value in cast("tuple[object, ...]", values):
        if not isinstance(value, kind):
            return tuple(expect(v, kind, f"each of {what}") for v in cast("tuple[object, ...]", values))
    return cast("tuple[T, ...]", values)
