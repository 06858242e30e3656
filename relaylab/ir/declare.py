"""How kinds of nodes are declared: a class with typed fields under `@node`, and what each field takes.

    @node
    class TupleGetItem(ExprWithOp):
        tuple_value: Expr = field(converter=One(Expr, "the tuple of a projection"))
        index: int = field(converter=field_index)

The constructor's parameters are the fields in their order, then those that a base declares (so `span` is last).
`__slots__`, `_fields`, `__match_args__` and `__init__` follow from the declaration, and type checkers know them (PEP
681).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, dataclass_transform

from relaylab.ir.node import Node, expect, expect_all
from relaylab.support.checked import fitting

T = TypeVar("T")
N = TypeVar("N", bound=Node)
_REQUIRED = object()


class _Check(Generic[T]):
    """A converter that takes values of `kind`; errors name the field by `what`.

    `inline` is what the constructor evaluates in its place: a call costs more than the test that it makes.
    """

    __slots__ = ("kind", "what")
    inline = "{check}({value})"

    def __init__(self, kind: type[T] | tuple[type[T], ...], what: str):
        self.kind, self.what = kind, what


class One(_Check[T]):
    """One value of `kind`."""

    __slots__ = ()
    inline = "{value} if isinstance({value}, {kind}) else {check}({value})"

    def __call__(self, value: T) -> T:
        return expect(value, self.kind, self.what)


class Maybe(_Check[T]):
    """One value of `kind`, or None."""

    __slots__ = ()
    inline = "{value} if {value} is None else {check}({value})"

    def __call__(self, value: T | None) -> T | None:
        return None if value is None else expect(value, self.kind, self.what)


class Each(_Check[T]):
    """The values of a list (or of anything else that is iterable, except a text), kept as a tuple."""

    __slots__ = ()

    def __call__(self, values: Iterable[T]) -> tuple[T, ...]:
        return expect_all(values, self.kind, self.what)


class MaybeEach(_Check[T]):
    """As `Each`; None stands for no values."""

    __slots__ = ()
    inline = "() if {value} is None else {check}({value})"

    def __call__(self, values: Iterable[T] | None) -> tuple[T, ...]:
        return expect_all(() if values is None else values, self.kind, self.what)


@dataclass(slots=True)
class NodeField:
    """A declared field; its parameter has the name `alias` if that is given."""

    converter: Callable[[Any], object] | None
    default: object
    alias: str
    init: bool
    annotation: str = ""


def field(
    *,
    converter: Callable[[Any], object] | None = None,
    default: object = _REQUIRED,
    alias: str = "",
    init: bool = True,
    kw_only: bool = False,
) -> Any:
    """What a field takes, its default, the name of its parameter; without `init` it has none and starts as None.

    `kw_only` is for type checkers, which put the fields of a base first; the constructor takes them last, by place too.
    """
    return NodeField(converter, default, alias, init)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """The class with slots and a constructor for its declared fields; an `__init__` that it writes itself stays.

    `__post_init__`, if it has one, is called when the fields are set.
    """
    own = {name: _field(cls, name, kind) for name, kind in inspect.get_annotations(cls).items()}
    space = {k: v for k, v in vars(cls).items() if k not in own and k not in ("__dict__", "__weakref__")}
    base: dict[str, NodeField] = getattr(cls, "_declared", {})
    space["_declared"] = {**own, **base}
    space["__slots__"] = tuple(n for n in own if n not in base)
    space.setdefault("_fields", tuple(own))
    space.setdefault("__match_args__", tuple(own))
    # slots cannot be added to a class: it is made anew (as `dataclass(slots=True)` does)
    new = cast("type[N]", type(cls)(cls.__name__, cls.__bases__, space))
    new.__init__ = fitting(space.get("__init__") or _constructor(new, space["_declared"]))
    new.of_parts = staticmethod(_maker(new, space["_declared"]))
    return new


def _field(cls: type, name: str, annotation: str) -> NodeField:
    given = vars(cls).get(name, _REQUIRED)
    declared = given if isinstance(given, NodeField) else NodeField(None, given, "", True)
    declared.annotation = annotation
    return declared


def _maker(cls: type, fields: dict[str, NodeField]) -> Callable[..., Any]:
    """As the constructor, for values that are known to fit as they are, so that none is looked at."""
    scope: dict[str, Any] = {f"set_{name}": getattr(cls, name).__set__ for name in fields}
    scope |= {"new": object.__new__, "cls": cls}
    given = [name for name, declared in fields.items() if declared.init]
    lines = [f"set_{name}(made, {name if declared.init else None})" for name, declared in fields.items()]
    source = f"def of_parts({', '.join(given)}):\n made = new(cls)\n " + "\n ".join([*lines, "return made"])
    exec(compile(source, f"{__file__}: {cls.__name__}", "exec"), scope)
    return scope["of_parts"]


def _constructor(cls: type, fields: dict[str, NodeField]) -> Callable[..., None]:
    """`__init__`, written out once: a loop over the fields at every call would take several times as long."""
    scope: dict[str, Any] = {}
    parameters, lines = ["self"], list[str]()
    annotations: dict[str, str] = {}
    for name, declared in fields.items():
        value = declared.alias or name
        scope[f"set_{name}"] = getattr(cls, name).__set__  # what sets a slot that `__setattr__` keeps fixed
        if not declared.init:
            lines.append(f"set_{name}(self, None)")
            continue
        annotations[value] = declared.annotation
        if declared.default is not _REQUIRED:
            scope[f"{name}_default"] = declared.default
        parameters.append(value if declared.default is _REQUIRED else f"{value}={name}_default")
        made = value
        if declared.converter is not None:
            check, kind = f"{name}_check", f"{name}_kind"
            scope[check], scope[kind] = declared.converter, getattr(declared.converter, "kind", None)
            made = getattr(declared.converter, "inline", _Check.inline).format(value=value, check=check, kind=kind)
        lines.append(f"set_{name}(self, {made})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
    # a file name inside the package: `trail.default_span` skips this frame
    exec(compile(source, f"{__file__}: {cls.__name__}", "exec"), scope)
    made_init = scope["__init__"]
    made_init.__qualname__, made_init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made_init.__annotations__ = {**annotations, "return": "None"}
    return made_init
