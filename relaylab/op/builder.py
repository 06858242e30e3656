"""From an operator class to its public builder: the function that users call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from relaylab.ir.converters import Converter
from relaylab.ir.expr import Call, Expr, as_expr
from relaylab.ir.op import OPERATORS
from relaylab.op.indexing import as_shape_expr, ints, is_dynamic
from relaylab.op.reference import page
from relaylab.support.checked import Gate
from relaylab.support.errors import RelayTypeError
from relaylab.support.table import did_you_mean

if TYPE_CHECKING:
    from relaylab.op.base import Operator

EMPTY = inspect.Parameter.empty
ARGUMENT = Annotated[Expr, Converter("Expr", "an expression", as_expr)]
"""What a builder takes for an input: an expression, or a list of them for a tuple."""
D = TypeVar("D", bound="Operator")


class OperatorBuilder(Generic[D]):
    # What `help` shows of a builder is the page of its operator, so the class itself has no docstring: it is the public
    # function of an operator, whose class is `definition`. Signature and page are made when they are first asked for.

    def __init__(self, definition: type[D]):
        self.definition, self.op = definition, definition.op
        self.__name__ = self.__qualname__ = definition.__name__
        self.__module__ = definition.__module__
        self.__wrapped__ = definition  # so that `inspect.getsource` and `??` find the class

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters with their types and defaults."""
        own = getattr(self.definition, "build", None)
        return inspect.signature(own, eval_str=True) if own else _signature(self.definition)

    @cached_property
    def gate(self) -> Gate:
        """What checks the arguments of a `build` of the operator's own; other arguments are inputs and attributes."""
        parameters = [
            p.replace(annotation=ARGUMENT) if p.annotation is Expr else p for p in self.signature.parameters.values()
        ]
        return Gate(self, self.definition.op_name, self.signature.replace(parameters=parameters))

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return page(self.definition, self.signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        cls = self.definition
        if own := getattr(cls, "build", None):
            self.gate(args, kwargs)
            return own(*args, **kwargs)
        bound = bind(cls.op_name, self.signature, args, kwargs)
        inputs = [v for n, v in bound.arguments.items() if n in cls.inputs or n not in cls.fields]
        attrs = {n: v for n, v in bound.arguments.items() if n in cls.fields and n not in cls.inputs}
        return cls.returns(_call(cls, inputs, {**cls.defaults, **attrs}))

    def __repr__(self) -> str:
        return f"<operator {self.definition.op_name}>"

    def __reduce__(self) -> str:
        return self.__qualname__


def offered(names: Mapping[str, object]) -> list[str]:
    """What a module of operators offers: the builders and functions among its names."""
    return sorted(n for n, value in names.items() if n[0] != "_" and isinstance(value, (OperatorBuilder, FunctionType)))


def bind(
    name: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> inspect.BoundArguments:
    """The arguments of a builder by parameter; `RelayTypeError` that names the operator if they do not fit."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        known = list(signature.parameters)
        wrong = next((k for k in kwargs if k not in known), None)
        help = (did_you_mean(wrong, known) if wrong is not None else "") or f"it takes {', '.join(known) or 'nothing'}"
        raise RelayTypeError(f"{name}: {error}", code="op.arguments", help=help) from None


def _call(cls: type[Operator], inputs: list[object], attrs: dict[str, Any]) -> Call:
    """A call of the operator, or of its `dyn.` form when a `dynamic` attribute is an expression and not a constant."""
    given = {n: attrs.get(n) if attrs.get(n) is not None else cls.defaults.get(n) for n in cls.dynamic}
    if is_dynamic(*given.values()):
        attrs = {n: v for n, v in attrs.items() if n not in given}
        exprs = [as_shape_expr(v) for v in given.values()]
        return OPERATORS.lookup(f"dyn.{cls.op_name}").definition.call(*inputs, *exprs, **attrs)
    static = {n: ints(attrs[n]) for n in cls.dynamic if n in attrs}
    return cls.call(*inputs, **cls.prepare({**attrs, **static}))


def _signature(cls: type[Operator]) -> inspect.Signature:
    """The `parameters`, or the inputs and then the attributes in the order of their declaration, required ones
    first.
    """
    default = {n: EMPTY if f.required else f.default for n, f in cls.fields.items()} | cls.defaults
    default = {n: v for n, v in default.items() if n not in cls.inputs}
    names = cls.parameters.split() or [*cls.inputs, *sorted(cls.fields, key=lambda n: default.get(n) is not EMPTY)]
    names = list(dict.fromkeys(names))
    default |= dict.fromkeys(cls.required.split(), EMPTY)
    required = [n for n in names if default.get(n, EMPTY) is EMPTY]
    for n in names[: names.index(required[-1]) if required else 0]:
        default[n] = EMPTY
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    types = {n: f.type for n, f in cls.fields.items()} | dict.fromkeys(cls.inputs, Expr)
    return inspect.Signature(
        [inspect.Parameter(n, kind, default=default.get(n, EMPTY), annotation=types.get(n, EMPTY)) for n in names]
    )
