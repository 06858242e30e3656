"""The reference page of an operator, from what its class declares: what `help(relay.nn.conv2d)` shows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relaylab.op.base import Operator

WIDTH = 100


def page(cls: type[Operator], signature: inspect.Signature) -> str:
    """Signature, summary, parameters, result, errors and source of an operator."""
    parts = {
        "Parameters": "\n".join(_entry(n, _parameter(cls, n, p)) for n, p in signature.parameters.items()),
        "Result": fill(cls.yields, WIDTH, initial_indent="    ", subsequent_indent="    "),
        "Errors": "\n".join(_entry(code, why) for code, why in errors(cls).items()),
        "Source": fill(cls.source, WIDTH, initial_indent="    ", subsequent_indent="    "),
    }
    sections = [f"{title}\n{text}" for title, text in parts.items() if text]
    return "\n\n".join([_call(cls, signature), inspect.cleandoc(cls.__doc__ or ""), *sections])


def errors(cls: type[Operator]) -> dict[str, str]:
    """The codes of the errors that a call of the operator can raise, each with the reason."""
    given = {"op.arguments": "an argument is missing, unknown or given twice"}
    given |= {"ir.wrong-kind, ir.python-number": "an input is no expression"} if cls.inputs else {}
    given |= {"attrs.bad-value": "an attribute cannot have this value"} if cls.fields else {}
    return given | cls.errors | {"type.operator": "the types of the arguments do not fit (found by type inference)"}


def undocumented(cls: type[Operator], signature: inspect.Signature) -> Iterator[str]:
    """What the page of an operator does not say."""
    for name in signature.parameters:
        if not description(cls, name):
            yield f"parameter {name}"
    for part in ("yields", "source"):
        if not getattr(cls, part):
            yield part


def description(cls: type[Operator], name: str) -> str:
    """What a parameter of the builder means; an input also has a shape and a data type."""
    if name in cls.extra:
        return cls.extra[name]
    given = cls.described.get(input_of(cls, name))
    if given is not None and given.doc:
        return f"{given.doc}; shape {given.shape}; dtype {given.dtype}"
    return cls.fields[name].doc if name in cls.fields else ""


def input_of(cls: type[Operator], name: str) -> str:
    """The input that a parameter is; `parameters` may give inputs other names, in the same order."""
    names = cls.parameters.split()[: len(cls.inputs)]
    renamed = name in names and name not in cls.fields and not hasattr(cls, "build")
    return name if name in cls.inputs else cls.inputs[names.index(name)] if renamed else ""


def _parameter(cls: type[Operator], name: str, p: inspect.Parameter) -> str:
    kind = "expression" if input_of(cls, name) else cls.fields[name].words if name in cls.fields else ""
    default = "" if p.default is inspect.Parameter.empty else f"default {p.default!r}"
    return ": ".join(filter(None, (", ".join(filter(None, (kind, default))), description(cls, name))))


def _entry(name: str, text: str) -> str:
    return fill(f"{name} - {text}" if text else name, WIDTH, initial_indent="    ", subsequent_indent="        ")


def _call(cls: type[Operator], signature: inspect.Signature) -> str:
    names = [n if p.default is p.empty else f"{n}={p.default!r}" for n, p in signature.parameters.items()]
    return fill(f"{cls.op_name}({', '.join(names)})", WIDTH, subsequent_indent="    ", break_long_words=False)
