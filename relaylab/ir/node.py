"""The base of everything in a program: frozen, slotted, compared by identity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from relaylab.support.errors import RelayTypeError

T = TypeVar("T")
set_field = object.__setattr__


class Node:
    """A frozen record of a program; `_fields` names what it consists of, in order."""

    __slots__ = ("__weakref__",)
    _fields: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RelayTypeError(
            f"a {type(self).__name__} cannot be changed: `{name}` is fixed when the node is built",
            code="ir.frozen-node",
            help="build a new node; a pass returns a new program",
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self) -> NoReturn:
        raise RelayTypeError("programs are saved as text, not by pickle", code="ir.no-pickle", help="use `mod.astext()` and `relaylab.parse`")


def expect(value: object, kind: type[T] | tuple[type, ...], what: str) -> T:
    """`value` if it is of `kind`, else a `RelayTypeError` that names the argument."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise RelayTypeError(f"{what} must be a {wanted}, not a {type(value).__name__}", code="ir.wrong-kind")
    return value  # type: ignore[return-value]


def expect_all(values: Iterable[object], kind: type[T] | tuple[type, ...], what: str) -> tuple[T, ...]:
    """The tuple of `values`, each of `kind`."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise RelayTypeError(f"{what} must be a list, not a {type(values).__name__}", code="ir.wrong-kind")
    out = tuple(values)
    for value in out:
        if not isinstance(value, kind):
            expect(value, kind, f"each of {what}")
    return out  # type: ignore[return-value]
