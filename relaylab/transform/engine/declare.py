"""How a pass is declared: a class whose fields are its options; and how the text of a pass is read.

@pass_(level=2)
class FoldConstant(FunctionPass):
    \"\"\"Evaluates calls of operators on constants, with the reference semantics.\"\"\"

    fold_qnn: Annotated[bool, "Also fold the quantized dialect."] = False

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr: ...
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import NoReturn, TypeVar, cast, dataclass_transform

from relaylab.support.errors import RelayAttributeError, RelayError, RelayTypeError, RelayValueError
from relaylab.transform.engine.info import NAMED, PassInfo
from relaylab.transform.engine.manager import PASSES, FunctionPass, ModulePass, Pass, PassEntry, Sequential, taking
from relaylab.transform.engine.options import Option, PassRecord, arguments, bound, declared, of_signature

C = TypeVar("C", bound=type)
_ENGINE = {*ModulePass.__mro__, *FunctionPass.__mro__, *Sequential.__mro__}
_RESERVED = {name for kind in _ENGINE for name in vars(kind)} | {"info"}


@dataclass_transform(frozen_default=True, eq_default=False)
def pass_(
    *,
    level: int = 0,
    name: str = "",
    requires: Sequence[str] = (),
    idempotent: bool = False,
    preserves: bool = True,
    effects: bool = True,
    example: Mapping[str, object] | None = None,
    replace: bool = False,
) -> Callable[[C], C]:
    """Make a class a pass: its annotated fields are the options, its `run` is what it does; and register it.

    The class is a `FunctionPass` with `run(self, func, mod, ctx)`, a `ModulePass` with `run(self, mod, ctx)`, or a
    `Sequential` with `passes`; one without a base gets the base that its `run` calls for. `level` is the optimization
    level from which a `Sequential` runs it, `name` what histories call it (default: the name of the class), `requires`
    the passes that must run before. `idempotent`: a second run changes nothing; `preserves`: the program computes what
    it computed before; `effects=False`: it does not keep the order of effects, and so refuses functions that have them
    (RelayValueError); `example`: options with which tests can try it. `__post_init__` may refuse options.
    A class that is defined again, by a cell run twice, replaces the first; else a name that is taken needs `replace`.
    """

    def make(cls: C) -> C:
        written, cls = cls, _with_base(cls)
        options = declared(cls, [c for c in cls.__mro__ if c not in _ENGINE])
        _check_names(cls, options)
        cls.info = PassInfo(level, name or cls.__name__, tuple(requires))
        cls.effects = effects
        for hook, does in (("__init__", _maker(written, options)), ("__setattr__", _refuse), ("__delattr__", _refuse)):
            setattr(cls, hook, does)
        cls.__signature__ = inspect.Signature([o.parameter for o in options])
        _insert(PassEntry(cls.__name__, cls, options, dict(example or {}), idempotent, preserves, effects), replace)
        return cls

    return make


def _with_base(cls: C) -> C:
    """The class as a `Pass`, with a `run` that takes what it is given."""
    if issubclass(cls, Sequential):
        return cls
    run = getattr(cls, "run", None)
    if run is None or run in (FunctionPass.run, ModulePass.run):
        raise RelayTypeError(
            f"the class {cls.__name__} needs a method `run`",
            code="pass.no-method",
            help="write def run(self, func, mod, ctx): or, for whole modules, def run(self, mod, ctx):",
        )
    if issubclass(cls, (FunctionPass, ModulePass)):
        taking(run, cls.__name__, "self", *cls.takes)
        return cls
    base = ModulePass if len(inspect.signature(run).parameters) == len(ModulePass.takes) + 1 else FunctionPass
    taking(run, cls.__name__, "self", *base.takes)
    about = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (cls, base), about)


def _check_names(cls: type, options: Sequence[Option]) -> None:
    for option in options:
        if option.name in _RESERVED:
            text = f"the option `{option.name}` of {cls.__name__} has the name of something that every pass has"
            raise RelayTypeError(text, code="pass.option-name", help="give it another name")


def _maker(cls: type, options: tuple[Option, ...]) -> Callable[..., None]:
    """The `__init__` of a pass that `cls` declares."""

    def __init__(self: Pass, *args: object, **given: object) -> None:
        values = bound(cls.__name__, options, args, given)
        self.__dict__.update(values, record=PassRecord(cls.__name__, options, values, cls, by_value=True))
        if refuse := getattr(self, "__post_init__", None):
            refuse()

    return __init__


def _refuse(self: Pass, name: str, value: object = None) -> NoReturn:
    text = f"a pass cannot be changed: `{name}` of {type(self).__name__} is fixed when it is made"
    raise RelayAttributeError(text, code="pass.frozen", help="make another one")


def _insert(entry: PassEntry, replace: bool) -> None:
    """Into the table; what the same lines of source defined before, in a cell that is run again, is replaced."""
    known = PASSES.get(entry.name)
    again = known is not None and _origin(known.factory) == _origin(entry.factory)
    PASSES.insert(entry.name, entry, replace=replace or again)
    NAMED.add(entry.name)


def _origin(factory: Callable[..., Pass]) -> tuple[str, str]:
    return factory.__module__, factory.__qualname__


def register_pass(
    *, idempotent: bool = False, preserves: bool = True, replace: bool = False, **example: object
) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """Put a factory of passes into the table under its own name; `example` are arguments with which to try it.

    What the factory is called with is the record of the pass that it makes. Such a pass is equal only to itself.
    """

    def register(factory: Callable[..., Pass]) -> Callable[..., Pass]:
        name, options, signature = factory.__name__, of_signature(factory), inspect.signature(factory)

        @functools.wraps(factory)
        def made(*args: object, **given: object) -> Pass:
            found = factory(*args, **given)
            if isinstance(found, Pass) and not (found.record and found.record.by_value):
                found.record = PassRecord(name, options, arguments(signature, args, given), cast(FunctionType, factory))
            return found

        _insert(PassEntry(name, made, options, example, idempotent, preserves), replace)
        return made

    return register


def parse_pass(text: str) -> Pass:
    """The registered pass that a text names, with options that are literals: `Name(1, key=[2])`.

    The inverse of `repr`. Nothing is evaluated. Raises `RelayValueError` for text that is not so, and what `create`
    raises for a pass or an option that there is not.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        name = _last_name(call.func)
        args = [ast.literal_eval(a) for a in call.args]
        named = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    except (SyntaxError, ValueError):
        raise RelayValueError(
            f"`{text}` is not a pass",
            code="pass.text",
            help="write Name or Name(option=value); a value is a number, a text in quotes, True, False, None, "
            "or a list of values",
        ) from None
    entry = PASSES.lookup(name)
    try:
        return entry.factory(*args, **named)
    except TypeError as error:
        if isinstance(error, RelayError):
            raise
        raise RelayValueError(f"{name}: {error}", code="pass.options", help=entry.signature) from None


def _last_name(node: ast.expr) -> str:
    """The last name of `relay.transform.Name`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("it has no name")
