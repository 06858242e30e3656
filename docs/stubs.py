"""What a language server reads of the operators' builders: stubs beside the modules that offer them, made from the
declarations. `python docs/generate.py reference` writes them; types are those of `relaylab/op/accepted.pyi`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

from relaylab import op
from relaylab.ir import Expr, TupleWrapper
from relaylab.op.base import Operator
from relaylab.op.builder import OperatorBuilder
from relaylab.op.reference import description, input_of

HEAD = '''"""{doc}"""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
'''
SHOWN = {
    "op": """from relaylab.op import dyn as dyn, image as image, nn as nn, qnn as qnn, random as random
from relaylab.op import vision as vision, vm as vm
from relaylab.op.vm import annotation as annotation, memory as memory
""",
    "qnn": """from relaylab.op import qnn as _qnn
from relaylab.op.qnn.scale import RequantizeConfig

op = _qnn
""",  # programs write `relay.qnn.op`
}
"""Modules among the names of a module."""


def _type(cls: type[Operator], name: str, given: inspect.Parameter) -> str:
    """What a parameter of a builder takes."""
    field = cls.fields.get(name)
    if isinstance(given.annotation, str) and given.annotation not in ("object", "Any", "Expr"):
        return given.annotation
    if given.annotation in (Expr, "Expr") or input_of(cls, name):
        return {"NoneType": "Arg | None", "int": "Arg | float", "float": "Arg | float"}.get(
            type(given.default).__name__, "Arg"
        )
    if field is None or hasattr(cls, "build") or field.kind.startswith("Value"):
        return "Any"
    return " | ".join([field.converter.name, *["Expr"] * (name in cls.dynamic), *["None"] * field.optional])


def _default(given: inspect.Parameter) -> str:
    if given.default is given.empty:
        return ""
    plain = repr(given.default)
    return (
        f" = {plain if plain.isascii() and 'inf' not in plain and 'nan' not in plain and '<' not in plain else '...'}"
    )


def _parameter(given: inspect.Parameter, kind: str) -> str:
    star = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
    if given.default is None and "None" not in kind and kind not in ("Any", "object", "Dtype"):
        kind = f"{kind} | None"  # as TVM writes it, for what the operator then fills in
    return f"{star}{given.name}: {kind}{_default(given)}"


def _result(annotation: object) -> str:
    """A call; `Any` where it depends on the arguments whether it is a call or its tuple."""
    return "Any" if annotation in ("Expr | TupleWrapper", Expr | TupleWrapper) else str(annotation)


def _function(name: str, parameters: list[str], result: str, doc: str) -> str:
    text = doc.replace("\\", "\\\\").strip()
    lines = [line if not line else f"    {line}" for line in f'"""{text}'.split("\n")]
    end = "\n    " * (len(lines) > 1) + '"""'
    return f"def {name}({', '.join(parameters)}) -> {result}:\n" + "\n".join(lines) + end + "\n"


def _builder(name: str, builder: OperatorBuilder) -> str:
    cls = builder.definition
    build = getattr(cls, "build", None)
    signature = inspect.signature(build) if build else builder.signature
    given = signature.parameters.values()
    result = (
        _result(signature.return_annotation) if build else _result(inspect.signature(cls.returns).return_annotation)
    )
    if not build and cls.returns.__func__ is Operator.returns.__func__:
        result = "Call"
    said = [f"{p.name}: {described}" for p in given if (described := description(cls, p.name))]
    doc = "\n".join([*inspect.cleandoc(cls.__doc__ or "").split("\n"), "", *said, f"Result: {cls.yields}"])
    return _function(name, [_parameter(p, _type(cls, p.name, p)) for p in given], result, doc)


def _plain(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    kinds = {
        p.name: {"Expr": "Arg", "object": "Any"}.get(p.annotation, p.annotation) for p in signature.parameters.values()
    }
    parameters = [_parameter(p, str(kinds[p.name])) for p in signature.parameters.values()]
    return _function(name, parameters, _result(signature.return_annotation), inspect.cleandoc(function.__doc__ or ""))


def stub(module: ModuleType) -> str:
    """The text of the stub of a module of operators."""
    key = module.__name__.rpartition(".")[2]
    parts = [HEAD.format(doc=(module.__doc__ or "").strip()), SHOWN.get(key, "")]
    for name in sorted(module.__all__):
        value = getattr(module, name)
        parts.append(_builder(name, value) if isinstance(value, OperatorBuilder) else _plain(name, value))
    return "".join(parts)


MODULES = (op, op.dyn, op.image, op.nn, op.qnn, op.random, op.vision, op.vm)
STUBS = {Path(str(m.__file__)).with_suffix(".pyi"): partial(stub, m) for m in MODULES}
"""Each stub with what makes its text."""
