"""The gate of the Python API: arguments are checked by the annotations of the parameters, here and nowhere else.

    @checked
    def var(name_hint: str, shape: Sequence[int] | None = None) -> Var: ...

A call with a wrong argument raises `RelayTypeError` that names the function, the parameter, what it takes and what it
was given. What cannot be told from an annotation (`object`, a type variable) passes, and is checked where it is used.
`compat/face.py` puts the gate before every function of the public modules, so that calls within the house do not pay
for it; builders of operators ask it (`op/builder.py`), and classes wear it.
"""

from __future__ import annotations

import collections.abc as abc
import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import FunctionType, MethodType, NoneType, TracebackType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from relaylab.support.errors import RelayTypeError, named, shown
from relaylab.support.table import did_you_mean

T = TypeVar("T")
Test = Callable[[object], bool]
"""Whether a value is what an annotation says."""
_EMPTY = inspect.Parameter.empty
_SPECIAL = ("__init__", "__new__", "__contains__", "__getitem__", "__setitem__")
CHECKED: list[FunctionType] = []
"""Every function behind the gate, as it was written."""
KINDS: dict[str, Any] = {}
"""The classes that wear the gate, by name."""


def checked(made: T) -> T:
    """The function, or the class with its constructor and public methods, behind the gate.

    Nodes keep their constructor, whose fields have converters (`ir/declare.py`).
    """
    if isinstance(made, type):
        KINDS[made.__name__] = made
        for name, value in list(vars(made).items()):
            if name[0] != "_" or (name in _SPECIAL and not (name == "__init__" and hasattr(made, "_declared"))):
                _gate_member(made, name, value)
        return cast(T, made)
    return cast(T, _behind(made)) if isinstance(made, FunctionType) else made


def _gate_member(cls: type, name: str, value: object) -> None:
    inner, kind = value, None
    if isinstance(value, (classmethod, staticmethod)):
        kind, member = cast("type[Any]", type(cast(object, value))), cast(Any, value)
        inner = member.__func__
    own = kind is not staticmethod  # `self` or `cls`: a method of nothing else has nothing to check
    if isinstance(inner, FunctionType):
        gate = _behind if _parameters(inner) > own else _fitted
        setattr(cls, name, kind(gate(inner)) if kind else gate(inner))


def _parameters(function: FunctionType) -> int:
    """How many parameters there are; a signature would say it too, and is what an import would spend its time on."""
    code = inspect.unwrap(function).__code__
    many = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + many


@cache
def _behind(function: FunctionType) -> FunctionType:
    if getattr(function, "__wrapped__", None) in CHECKED:
        return function
    CHECKED.append(function)
    gate: list[Gate] = []  # made at the first call: annotations may name what is defined later

    @wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        if not gate:
            gate.append(Gate(function))
        try:
            gate[0](args, kwargs)
        except RelayTypeError:
            pass  # what still does not fit is told outside of this, or Python would tell it twice
        else:
            return function(*args, **kwargs)
        own = next(iter(gate[0].signature.parameters), "") in ("self", "cls")  # not made yet in a constructor
        args = (*args[:own], *map(stands_for, args[own:]))
        kwargs = {name: stands_for(value) for name, value in kwargs.items()}
        gate[0](args, kwargs)
        return function(*args, **kwargs)

    return cast(FunctionType, run)


def fitting(made: T) -> T:
    """The function, or the class with its constructor and public methods: a call with a wrong number of arguments or a
    wrong name raises `RelayTypeError`.

    For what is called too often for the gate: nothing is looked at until Python has refused the call.
    """
    if isinstance(made, type):
        for name, value in list(vars(made).items()):
            if isinstance(value, FunctionType) and (name[0] != "_" or name == "__init__"):
                setattr(made, name, _fitted(value))
        return cast(T, made)
    return cast(T, _fitted(made)) if isinstance(made, FunctionType) else made


def _fitted(function: FunctionType) -> FunctionType:
    if hasattr(function, "__wrapped__"):  # behind the gate already
        return function
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if cast(TracebackType, error.__traceback__).tb_next is not None:  # from within
                raise
        misfit(name, inspect.signature(function), args, kwargs)

    return cast(FunctionType, run)


def stands_for(value: object) -> object:
    """The expression that a call with several results stands for, which Python sees as a sequence; else `value`."""
    made = getattr(value, "astuple", None)
    return made() if callable(made) and not isinstance(value, type) else value


class Gate:
    """What the parameters of one function take; called with arguments it raises `RelayTypeError` if they do not fit."""

    __slots__ = ("name", "signature", "tests", "rest", "looks", "by_name", "required", "unbounded", "open")

    def __init__(self, function: Callable[..., object], name: str = "", signature: inspect.Signature | None = None):
        self.name = name or function.__qualname__.removesuffix(".__init__")
        self.signature = _signature(function) if signature is None else signature
        parameters = list(self.signature.parameters.values())
        by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.tests = [(p.name, *meaning(p.annotation)) for p in by_place]
        self.rest = next((meaning(p.annotation) for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self.looks = self.rest is not None and self.rest[0] is not _always  # at each of the others
        self.by_name = {
            p.name: meaning(p.annotation)
            for p in parameters
            if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        self.open = next((meaning(p.annotation) for p in parameters if p.kind is p.VAR_KEYWORD), None)
        self.required = [p.name for p in by_place if p.default is _EMPTY]
        self.unbounded = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is _EMPTY]

    def __call__(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        given = len(args)
        if given > len(self.tests) and self.rest is None:
            self.misfit(args, kwargs)
        for name in self.required[given:]:
            if name not in kwargs:
                self.misfit(args, kwargs)
        for (name, test, words), value in zip(self.tests, args):
            if not test(value):
                self.refuse(name, words, value)
        if self.looks and self.rest is not None:
            for value in args[len(self.tests) :]:
                if not self.rest[0](value):
                    self.refuse("each argument", self.rest[1], value)
        if kwargs or self.unbounded:
            self.named(given, args, kwargs)

    def named(self, given: int, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        for name in self.unbounded:
            if name not in kwargs:
                self.misfit(args, kwargs)
        taken = {name for name, _, _ in self.tests[:given]}
        for name, value in kwargs.items():
            found = self.by_name.get(name, self.open)
            if found is None or name in taken:
                self.misfit(args, kwargs)
            elif not found[0](value):
                self.refuse(name, found[1], value)

    def refuse(self, parameter: str, words: str, value: object) -> None:
        raise RelayTypeError(
            f"{self.name}: `{parameter}` must be {words}, not {shown(value)}",
            code="call.wrong-kind",
            help=f"it is called as {self.name.rpartition('.')[2]}{self.text()}",
        )

    def misfit(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NoReturn:
        """Raises what is wrong with the number or the names of arguments."""
        misfit(self.name, self.signature, args, kwargs)

    def text(self) -> str:
        """The parameters as a call writes them."""
        names = [n for n in self.signature.parameters if n not in ("self", "cls")]
        return f"({', '.join(names)})"


def misfit(name: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> NoReturn:
    """Raises what is wrong with the number or the names of the arguments of a call."""
    known = list(signature.parameters)
    wrong = next((k for k in kwargs if k not in known), None)
    taken = ", ".join(n for n in known if n not in ("self", "cls"))
    help = (did_you_mean(wrong, known) if wrong is not None else "") or f"it takes {taken or 'nothing'}"
    try:
        signature.bind(*args, **kwargs)
        said = "these arguments do not fit"
    except TypeError as error:
        said = str(error)
    raise RelayTypeError(f"{name}: {said}", code="call.arguments", help=help)


def _signature(function: Callable[..., object]) -> inspect.Signature:
    """The parameters with annotations as objects; those imported for type checkers only are found among `KINDS`."""
    own = cast("dict[str, Any]", getattr(inspect.unwrap(function), "__globals__", {}))
    found = inspect.signature(function)

    def asked() -> None: ...  # holds the annotations of the parameters alone

    asked.__annotations__ = {n: p.annotation for n, p in found.parameters.items() if p.annotation is not _EMPTY}
    meant = inspect.get_annotations(asked, globals=own, locals=ChainMap(own, KINDS), eval_str=True)
    parameters = [p.replace(annotation=meant.get(n, _EMPTY)) for n, p in found.parameters.items()]
    return found.replace(parameters=parameters, return_annotation=_EMPTY)


# ---- what annotations mean


def _always(value: object) -> bool:
    return True


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _truth(value: object) -> bool:
    return isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1))


_PLAIN: dict[object, tuple[Test, str]] = {
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    bool: (_truth, "True or False"),
    str: (lambda value: isinstance(value, str), "a text"),
    bytes: (lambda value: isinstance(value, bytes), "bytes"),
    NoneType: (lambda value: value is None, "None"),
    None: (lambda value: value is None, "None"),
    object: (_always, "anything"),
    Any: (_always, "anything"),
    _EMPTY: (_always, "anything"),
}


def meaning(hint: object) -> tuple[Test, str]:
    """How a value of an annotation is told, and what it is in words."""
    try:
        if hint in _PLAIN:
            return _PLAIN[hint]
    except TypeError:  # not hashable: a Callable of a list
        pass
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        said = [part for part in parts[1:] if isinstance(getattr(part, "words", None), str)]
        return (_taken_by(said[0]), said[0].words) if said else meaning(parts[0])
    if origin in (Union, UnionType):
        return _either([meaning(part) for part in parts])
    if origin is Literal:
        return (lambda value: any(value == part and type(value) is type(part) for part in parts)), " or ".join(
            map(repr, parts)
        )
    if origin is not None:
        return _generic(origin, parts)
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return _instance(hint)
    return _always, "anything"


def _taken_by(converter: object) -> Test:
    take = cast("Callable[[object], object]", getattr(converter, "take"))  # noqa: B009

    def test(value: object) -> bool:
        try:
            take(_frozen(value))
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    return test


def _frozen(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, cast("Sequence[object]", value)))
    return cast("np.generic[Any]", value).item() if isinstance(value, np.generic) else value


def _either(found: list[tuple[Test, str]]) -> tuple[Test, str]:
    tests = [test for test, _ in found]
    if _always in tests:
        return _always, "anything"
    return (lambda value: any(test(value) for test in tests)), " or ".join(dict.fromkeys(words for _, words in found))


def _instance(kind: type) -> tuple[Test, str]:
    words = {"Expr": "an expression", "IRModule": "a module"}.get(kind.__name__) or named(kind.__name__)
    return (lambda value: isinstance(value, kind)), words


def _generic(origin: type, parts: tuple[Any, ...]) -> tuple[Test, str]:
    if issubclass(origin, cast("type[Any]", abc.Callable)):
        return _called(parts[0] if parts else ...)
    if origin is type:
        return (lambda value: isinstance(value, type)), "a class"
    if issubclass(origin, Mapping):
        return _mapping(*(parts or (object, object)))
    if issubclass(origin, tuple) and parts and parts[-1] is not Ellipsis:
        return _record([meaning(part) for part in parts])
    if issubclass(origin, Iterable) and len([p for p in parts if p is not Ellipsis]) == 1:
        return _items(cast("type[Any]", origin), *meaning(parts[0]))
    return _instance(cast("type[Any]", origin))


def _called(given: object) -> tuple[Test, str]:
    """A function that can be called with so many arguments, where the annotation says how many."""
    if not isinstance(given, list):
        return callable, "a function"
    arguments = cast("list[object]", given)

    def test(value: object) -> bool:
        if not callable(value):
            return False
        plain = isinstance(value, (FunctionType, MethodType, type))
        try:  # an object may say how it is made, not how it is called
            called = cast("Callable[..., object]", value if plain else type(value).__call__)
            inspect.signature(called).bind(*((value,) * (not plain)), *arguments)
        except ValueError:  # one of Python's own, which does not say; its classes convert one thing
            return not isinstance(value, type) or len(arguments) == 1
        except TypeError:
            return False
        return True

    return test, f"a function of {len(arguments)} argument{'s' * (len(arguments) != 1)}"


def _mapping(key: object, value: object) -> tuple[Test, str]:
    (fits_key, keys), (fits, values) = meaning(key), meaning(value)

    def test(given: object) -> bool:
        return isinstance(given, Mapping) and all(
            fits_key(k) and fits(v) for k, v in cast("Mapping[object, object]", given).items()
        )

    return test, f"a dict from {_several(keys)} to {_several(values)}"


def _several(words: str) -> str:
    """`words` of one thing, said of many."""
    article, _, noun = words.partition(" ")
    simple = article in ("a", "an") and not {"or", "of", "from"} & set(noun.split())
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        noun = f"{noun[:-1]}ie"
    return f"{noun}{'es' if noun.endswith('s') else 's'}" if simple else words


def _record(found: list[tuple[Test, str]]) -> tuple[Test, str]:
    def test(given: object) -> bool:
        if not isinstance(given, (tuple, list)):
            return False
        values = cast("Sequence[object]", given)
        return len(values) == len(found) and all(fits(v) for (fits, _), v in zip(found, values))

    return test, f"a tuple of {len(found)}: {', '.join(words for _, words in found)}"


def _items(origin: type, fits: Test, words: str) -> tuple[Test, str]:
    """A list; what is in an iterator is not looked at, since that would use it up."""
    wide = (tuple, list, np.ndarray, range) if issubclass(origin, (Sequence, tuple)) else (Iterable,)

    def test(given: object) -> bool:
        if isinstance(given, (str, bytes)) or not isinstance(given, (*wide, abc.Sequence)):
            return False
        if isinstance(given, np.ndarray) and not (given.ndim and given.size):  # of an empty one, what it would hold
            return bool(given.ndim) and fits(np.zeros((), cast("np.ndarray[Any, Any]", given).dtype)[()])
        again = isinstance(given, (abc.Sized, np.ndarray))
        return not again or fits is _always or all(map(fits, cast("Iterable[object]", given)))

    several = _several(words)
    return test, f"a list, each item {words}" if several == words and fits is not _always else f"a list of {several}"
