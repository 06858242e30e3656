"""What the annotation of an attribute can be, and what it then takes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, SupportsInt, Union, cast, get_args, get_origin

from relaylab.ir.types import AnyDim, dtype_name
from relaylab.support.errors import RelayTypeError


@dataclass(frozen=True, slots=True)
class Converter:
    """What an attribute holds: its name, in words, and what a given value becomes.

    `take` raises `TypeError`, `ValueError` or `OverflowError` for what it does not take. An operator's class names it
    in the annotation of the attribute: `Annotated[tuple[int, ...], Converter("Ints", "a list of whole numbers", ...)]`.
    """

    name: str
    words: str
    take: Callable[[Any], object]


def _int(value: SupportsInt) -> int:
    whole = int(value)
    if isinstance(value, bool) or whole != value or not -(2**63) <= whole < 2**64:
        raise ValueError
    return whole


def _bool(value: object) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _tuple(of: Callable[[Any], object]) -> Callable[[object], object]:
    """A list of what `of` takes; one such value stands for a list of it."""
    return lambda value: tuple(map(of, cast(Sequence[object], value))) if isinstance(value, tuple) else (of(value),)


def _pair(value: object) -> object:
    if not isinstance(value, tuple) or len(cast(Sequence[object], value)) != 2:
        raise ValueError
    return tuple(map(_int, cast(Sequence[SupportsInt], value)))


def _pairs(value: Sequence[object]) -> object:
    if not isinstance(value, tuple):
        raise ValueError
    return tuple(map(_pair, cast(Sequence[object], value)))


def _dtype(value: object) -> str | None:
    return None if value in ("", "void", None) else dtype_name(cast(str, value))


def _dim(value: SupportsInt | AnyDim) -> object:
    return value if isinstance(value, AnyDim) else _int(value)


INTS = Converter("Ints", "a list of whole numbers", _tuple(_int))
FLOATS = Converter("Floats", "a list of numbers", _tuple(float))
PAIRS = Converter("Pairs", "a list of pairs of whole numbers", _pairs)
Ints = Annotated[tuple[int, ...], INTS]
Floats = Annotated[tuple[float, ...], FLOATS]
Pairs = Annotated[tuple[tuple[int, int], ...], PAIRS]
Dims = Annotated[tuple[int | AnyDim, ...], Converter("Dims", "a list of dimensions", _tuple(_dim))]
Dtype = Annotated[str | None, Converter("Dtype", "a data type", _dtype)]
"""A data type; None: not given."""
Value = Annotated[Any, Converter("Value", "a value", lambda value: value)]
"""Whatever the operator understands: a number, an expression, a name."""

CONVERTERS: dict[object, Converter] = {
    int: Converter("int", "a whole number", _int),
    float: Converter("float", "a number", float),
    bool: Converter("bool", "True or False", _bool),
    str: Converter("str", "a text", _str),
    tuple[int, ...]: INTS,
    tuple[float, ...]: FLOATS,
    tuple[tuple[int, int], ...]: PAIRS,
}
_KNOWN = "int, float, bool, str, Dtype, Ints, Floats, Pairs, Dims, Value"


@cache
def _code(annotation: str) -> CodeType:
    """Annotations are few and stand in hundreds of classes: each text is compiled once."""
    return compile(annotation, "<annotation>", "eval")


def own_annotations(cls: type) -> dict[str, object]:
    """The annotations in the body of a class as objects, also where the file writes them as text; no `ClassVar`s."""
    written: dict[str, object] = inspect.get_annotations(cls)
    module = sys.modules.get(cls.__module__)
    scope, inside = vars(module) if module else {}, dict(vars(cls))
    try:
        own = {
            n: eval(_code(hint), scope, inside) if isinstance(hint, str) else hint
            for n, hint in written.items()
            if not (isinstance(hint, str) and hint.startswith("ClassVar"))
        }
    except NameError as error:
        raise RelayTypeError(
            f"an annotation in the body of {cls.__qualname__} is not known: {error}",
            code="attrs.annotation",
            help="define or import it at the top of the file, before the class",
        ) from None
    return {n: hint for n, hint in own.items() if hint is not ClassVar and get_origin(hint) is not ClassVar}


@cache
def _meaning(hint: object) -> tuple[Converter, object, bool] | None:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    given = [p for p in parts if p not in (NoneType, None)]
    plain: Any = get_args(given[0])[0] if get_origin(given[0]) is Annotated else given[0]
    said = [e for e in getattr(given[0], "__metadata__", ()) if isinstance(e, Converter)] or [CONVERTERS.get(plain)]
    if len(given) != 1 or said[0] is None:
        return None
    optional = len(parts) > 1
    return said[0], plain | None if optional else plain, optional


def converter_of(name: str, hint: object) -> tuple[Converter, object, bool]:
    """How an attribute annotated with `hint` is converted, its Python type, and whether it may be None.

    `RelayTypeError` (`attrs.annotation`) if the annotation does not say it.
    """
    if (meaning := _meaning(hint)) is not None:
        return meaning
    raise RelayTypeError(
        f"the annotation of the attribute `{name}` does not say what it holds: {getattr(hint, '__name__', hint)}",
        code="attrs.annotation",
        help=f"it can be {_KNOWN} (of relaylab.op.base), each also with `| None`, or Annotated[type, Converter(...)]",
    )
