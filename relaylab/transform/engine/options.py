"""The options of passes: declared with a type and a sentence, checked when a pass is made, written as literals.

A field `fold_qnn: Annotated[bool, "Also fold the quantized dialect."] = False` of a pass is one option.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from relaylab.ir import Expr, IRModule
from relaylab.support.errors import RelayTypeError, shown
from relaylab.support.table import did_you_mean

REQUIRED = inspect.Parameter.empty
"""The default of an option that must be given."""
_LITERALS = (bool, int, float, str, types.NoneType)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a pass: its name, its type as text, its default (`REQUIRED` if there is none), what it says."""

    name: str
    type: str
    default: object = REQUIRED
    doc: str = ""
    kind: object = object
    """The type, against which values are checked."""

    @property
    def default_text(self) -> str:
        """The default as it is written; empty if there is none."""
        return "" if self.default is REQUIRED else literal(self.default)

    @property
    def parameter(self) -> inspect.Parameter:
        """The option as a parameter of the function that makes the pass."""
        annotation = self.kind if isinstance(self.kind, type) else self.type
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(self.name, kind, default=self.default, annotation=annotation)


# ---- declarations


def declared(cls: type, classes: Sequence[type]) -> tuple[Option, ...]:
    """The options that a class declares: the annotated fields of itself and of these bases, `ClassVar`s apart."""
    try:  # from Python 3.14 on the names of types are looked up when annotations are asked for, the first time here
        names = [n for c in reversed(classes) for n in inspect.get_annotations(c)]
        if not names:
            return ()
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        text = f"the options of {cls.__name__} have types that are not known: {error}"
        raise RelayTypeError(text, code="pass.option-type", help="import the type at the top of the file") from None
    found = [n for n in dict.fromkeys(names) if hints[n] is not ClassVar and get_origin(hints[n]) is not ClassVar]
    return tuple(_declared(n, hints[n], getattr(cls, n, REQUIRED)) for n in found)


def _declared(name: str, hint: object, default: object) -> Option:
    kind, *docs = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    option = Option(name, type_text(kind), default, next((d for d in docs if isinstance(d, str)), ""), kind)
    return option if default is REQUIRED else Option(name, option.type, checked(option, default, ""), option.doc, kind)


def of_signature(function: Callable[..., object]) -> tuple[Option, ...]:
    """The options of a factory: its parameters, whose types are text and are not checked."""
    return tuple(
        Option(p.name, "" if p.annotation is REQUIRED else type_text(p.annotation), p.default)
        for p in inspect.signature(function).parameters.values()
    )


def arguments(signature: inspect.Signature, args: Sequence[object], given: Mapping[str, object]) -> dict[str, object]:
    """The value of every parameter in a call: what `**` took has its own names, what `*` took the name `*name`."""
    call = signature.bind(*args, **given)
    call.apply_defaults()
    found: dict[str, object] = {}
    for name, value in call.arguments.items():
        kind = signature.parameters[name].kind
        found |= value if kind is kind.VAR_KEYWORD else {f"*{name}" if kind is kind.VAR_POSITIONAL else name: value}
    return {n: v for n, v in found.items() if not (n.startswith("*") and not v)}


def type_text(kind: object) -> str:
    """A type as it is written."""
    if isinstance(kind, str):
        return kind
    if kind is types.NoneType:
        return "None"
    if get_origin(kind) is None and isinstance(kind, type):
        return kind.__name__
    if get_origin(kind) in (Union, types.UnionType):
        return " | ".join(map(type_text, get_args(kind)))
    text = str(kind)
    return text.replace("typing.", "").replace("collections.abc.", "").replace("relaylab.ir.expr.", "")


# ---- values


class _Unfit(Exception):
    """A value is not of the type of its option."""


def checked(option: Option, value: object, owner: str) -> object:
    """A value as the option holds it: numbers of numpy as Python's, lists as tuples, dictionaries read-only.

    Raises `RelayTypeError` for a value of another type.
    """
    try:
        return _converted(value, option.kind)
    except _Unfit:
        whose = f" of {owner}" if owner else ""
        found = f"{shown(value)} (of type {type(value).__name__})"
        text = f"`{option.name}`{whose} is {option.type}, not {found}"
        help = applied(owner) if isinstance(value, (IRModule, Expr)) else option.doc
        raise RelayTypeError(text, code="pass.option-type", help=help) from None


def applied(name: str) -> str:
    """How a pass is run on a program, for those who gave the program in place of options."""
    return f"a pass is made first, then it is called: {name}()(mod)"


def _converted(value: object, kind: object) -> object:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _converted(value, inner[0])
    if origin in (Union, types.UnionType):
        return _first(value, inner)
    if origin is Literal:
        return _if(value in inner, value)
    if kind in _SCALARS:
        return _SCALARS[cast(type, kind)](value)
    if origin is not None and isinstance(origin, type):
        return _container(value, origin, inner)
    if isinstance(kind, type) and kind is not object:
        return frozen(_if(isinstance(value, kind), value))
    return frozen(value)


def _first(value: object, kinds: Sequence[object]) -> object:
    """The value as the first of several types that takes it, its own type before others."""
    for kind in sorted(kinds, key=lambda k: k is not type(value)):
        try:
            return _converted(value, kind)
        except _Unfit:
            continue
    raise _Unfit


def _container(value: object, origin: type, inner: Sequence[object]) -> object:
    if issubclass(origin, Mapping):
        found = _if(isinstance(value, Mapping), value)
        key, item = inner
        return types.MappingProxyType(
            {_converted(k, key): _converted(v, item) for k, v in cast("Mapping[object, object]", found).items()}
        )
    if issubclass(origin, (Sequence, tuple, Iterable)):
        found = _if(isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)), value)
        given = found.reshape(-1) if isinstance(found, np.ndarray) else found
        return tuple(_converted(v, inner[0]) for v in cast("Iterable[object]", given))
    return _if(isinstance(value, origin), value)


def _if(fits: bool, value: object) -> object:
    if not fits:
        raise _Unfit
    return value


def _bool(value: object) -> bool:
    """True, False, and as in TVM the numbers 0 and 1."""
    return bool(_if(isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)), value))


def _int(value: object) -> int:
    whole = int(cast(int, _if(isinstance(value, (int, np.integer)) and not isinstance(value, bool), value)))
    _if(-(2**63) <= whole < 2**64, value)
    return whole


def _float(value: object) -> float:
    fits = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        return float(cast(float, _if(fits, value)))
    except OverflowError:  # a whole number that no float reaches
        raise _Unfit from None


def _none(value: object) -> None:
    _if(value is None, value)


_SCALARS: dict[object, Callable[[object], object]] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: lambda value: str(_if(isinstance(value, str), value)),
    types.NoneType: _none,
}


def frozen(value: object) -> object:
    """A value with its lists as tuples and its dictionaries read-only, copied; anything else as it is."""
    if isinstance(value, Mapping):
        return types.MappingProxyType({k: frozen(v) for k, v in value.items()})
    _if(not isinstance(value, int) or -(2**63) <= value < 2**64, value)
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def bound(name: str, options: Sequence[Option], args: Sequence[object], given: Mapping[str, object]) -> dict:
    """The value of every option, from what a pass is made with.

    Raises `RelayTypeError` for an option that there is not, one that is missing, one given twice, and a wrong type.
    """
    known = {o.name: o for o in options}
    if len(args) > len(options):
        text = f"{name} has {len(options)} options, not {len(args)}"
        if isinstance(args[0], (IRModule, Expr)):
            raise RelayTypeError(text, code="pass.options", help=applied(name))
        raise _misfit(name, options, text)
    values = {n: checked(known[n], v, name) for n, v in zip(known, args)}
    for key, value in given.items():
        if key not in known:
            meant = did_you_mean(key, known)
            text = f"{name} got an unexpected keyword argument '{key}'{f'; {meant}' if meant else ''}"
            raise _misfit(name, options, text)
        if key in values:
            raise _misfit(name, options, f"`{key}` of {name} is given twice")
        values[key] = checked(known[key], value, name)
    for option in options:
        if option.name not in values and option.default is REQUIRED:
            raise _misfit(name, options, f"`{option.name}` of {name} must be given")
    return {o.name: values.get(o.name, o.default) for o in options}


def _misfit(name: str, options: Sequence[Option], text: str) -> RelayTypeError:
    return RelayTypeError(text, code="pass.options", help=f"write {signature(name, options)}")


def signature(name: str, options: Sequence[Option]) -> str:
    """A pass with its options, as a function is written: `FoldConstant(fold_qnn: bool = False)`."""
    return f"{name}({', '.join(_signed(o) for o in options)})"


def _signed(option: Option) -> str:
    typed = f"{option.name}: {option.type}" if option.type else option.name
    return typed if option.default is REQUIRED else f"{typed} = {literal(option.default)}"


# ---- as text, and compared


def literal(value: object, name: Callable[[object], str] | None = None) -> str:
    """A value as Python reads it back; what no text stands for is its name in brackets, `<skip>`, or as `name` says."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{literal(k, name)}: {literal(v, name)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(literal(v, name) for v in value)}]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if type(value) in _LITERALS:
        return repr(value)
    return name(value) if name is not None else f"<{title(value)}>"


def title(value: object) -> str:
    """A name for an object: its own, or that of its class."""
    return getattr(value, "__name__", "") or type(value).__name__


class _Same:
    """An object that is equal only to itself, whatever it says."""

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def key(value: object) -> object:
    """What stands for a value where passes are compared: literals by type and text, other objects by identity."""
    if isinstance(value, Mapping):
        return frozenset((key(k), key(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(key, value))
    return (type(value), repr(value)) if type(value) in _LITERALS else _Same(value)


@dataclass(frozen=True, eq=False)
class PassRecord:
    """How a pass is written: its name, its options and their values.

    `by_value`: the values are all there is to know about it, so that passes with equal records are equal.
    """

    name: str
    options: tuple[Option, ...]
    values: Mapping[str, object]
    maker: types.FunctionType | type[object]
    """The class or the function that made it, as it is written."""
    by_value: bool = False

    @cached_property
    def key(self) -> object:
        """What is compared."""
        return key(self.values)

    @property
    def chosen(self) -> dict[str, object]:
        """The values that are not the defaults."""
        defaults = {o.name: o.default for o in self.options}
        return {n: v for n, v in self.values.items() if n not in defaults or key(v) != key(defaults[n])}

    @property
    def text(self) -> str:
        """The pass with the options that are not defaults: `FoldConstant(fold_qnn=True)`."""
        return self.written(literal)

    def written(self, text: Callable[[object], str]) -> str:
        """The pass as a call, each value as `text` gives it."""
        parts = (f"*{text(v)}" if n.startswith("*") else f"{n}={text(v)}" for n, v in self.chosen.items())
        return f"{self.name}({', '.join(parts)})"
