"""From an operator class to its public builder: the function that users call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from relaylab.ir.op import OPERATORS
from relaylab.op.indexing import as_shape_expr, ints, is_dynamic
from relaylab.support.errors import RelayTypeError
from relaylab.support.table import did_you_mean

EMPTY: Any = inspect.Parameter.empty


def make_builder(cls: Any) -> Callable:
    """The builder of an operator class: its own `build`, or one made from its inputs and attributes."""
    own = getattr(cls, "build", None)
    signature = _bare(inspect.signature(own)) if own else _signature(cls)

    def build(*args: Any, **kwargs: Any) -> Any:
        bound = bind(cls.op_name, signature, args, kwargs)
        if own:
            return own(*bound.args, **bound.kwargs)
        inputs = [v for n, v in bound.arguments.items() if n in cls.inputs or n not in cls.fields]
        attrs = {n: v for n, v in bound.arguments.items() if n in cls.fields and n not in cls.inputs}
        return cls.returns(_call(cls, inputs, {**cls.defaults, **attrs}))

    build.__name__ = build.__qualname__ = cls.__name__
    build.__doc__ = cls.__doc__
    build.__module__ = cls.__module__
    build.__signature__ = signature  # type: ignore[attr-defined]
    build.op, build.definition = cls.op, cls  # type: ignore[attr-defined]
    return build


def bind(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a builder by parameter; `RelayTypeError` that names the operator if they do not fit."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        known = list(signature.parameters)
        wrong = next((k for k in kwargs if k not in known), None)
        help = (did_you_mean(wrong, known) if wrong is not None else "") or f"it takes {', '.join(known) or 'nothing'}"
        raise RelayTypeError(f"{name}: {error}", code="op.arguments", help=help) from None


def _call(cls: Any, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """A call of the operator, or of its `dyn.` form when a `dynamic` attribute is an expression and not a constant."""
    given = {n: attrs.get(n) if attrs.get(n) is not None else cls.defaults.get(n) for n in cls.dynamic}
    if is_dynamic(*given.values()):
        attrs = {n: v for n, v in attrs.items() if n not in given}
        exprs = [as_shape_expr(v) for v in given.values()]
        return OPERATORS.lookup(f"dyn.{cls.op_name}").definition.call(*inputs, *exprs, **attrs)
    static = {n: ints(attrs[n]) for n in cls.dynamic if n in attrs}
    return cls.call(*inputs, **cls.prepare({**attrs, **static}))


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """The signature without annotations."""
    return inspect.Signature([p.replace(annotation=EMPTY) for p in signature.parameters.values()])


def _signature(cls: Any) -> inspect.Signature:
    """The `parameters`, or the inputs and then the attributes in the order of their declaration, required ones
    first.
    """
    default = {n: EMPTY if f.required else f.default for n, f in cls.fields.items()} | cls.defaults
    default = {n: v for n, v in default.items() if n not in cls.inputs}
    names = cls.parameters.split() or [*cls.inputs, *sorted(cls.fields, key=lambda n: default.get(n) is not EMPTY)]
    names = list(dict.fromkeys(names))
    required = [n for n in names if default.get(n, EMPTY) is EMPTY]
    for n in names[: names.index(required[-1]) if required else 0]:
        default[n] = EMPTY
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(n, kind, default=default.get(n, EMPTY)) for n in names])
