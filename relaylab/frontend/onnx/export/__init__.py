"""Relay programs as ONNX models: `to_onnx`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaylab.analysis import infer_module
from relaylab.frontend.onnx.export.rules import RULES
from relaylab.frontend.onnx.export.writer import Value, Writer, flat, tensors_of
from relaylab.frontend.onnx.model import load_onnx
from relaylab.ir import (
    Call,
    Constant,
    Expr,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    children,
    facets,
    parameter_names,
    rewrite,
    walk,
)
from relaylab.runtime.ndarray import as_numpy
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import did_you_mean
from relaylab.transform.normal_forms.first_order import first_order

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["RULES", "to_onnx"]


def to_onnx(mod: IRModule, params: Mapping[str, object] | None = None, *, name: str = "main") -> ModelProto:
    """The `main` of a module as an ONNX model (opset 18, IR version 8), which says the same.

        model = relay.frontend.to_onnx(mod, params)
        onnx.save(model, "net.onnx")

    `params` gives parameters of `main` by name, as arrays of their types: they are the model's initializers. The
    others are its inputs, in the order of `main`; where several have one name they are numbered as in the graph
    executor, `data`, `data1` … The outputs are the result, or the fields of the tuple that `main` returns (nested
    tuples are flat). `name` is the name of the graph.

    `main` must be a static graph of operators: shapes are known, functions and lets are resolved, and there is no
    control flow. Errors: RelayValueError names the operators that have no rule here, all at once (`export.operator`),
    an attribute whose value ONNX cannot say (`export.attribute`), a data type that ONNX's operator does not take
    (`export.dtype`), an expression that is no part of a static graph
    (`export.not-static`) and a parameter of another type than `main` says (`export.parameter`). RelayTypeError for a
    shape that is not known (`type.dynamic-shape`) and for what is no module. RelayError if the package onnx is not
    installed.

    Source: the operators of the ONNX specification, https://onnx.ai/onnx/operators.
    """
    load_onnx()
    if not isinstance(mod, IRModule):
        raise RelayTypeError(
            f"to_onnx takes an IRModule, not {kind_of(mod)}",
            code="export.module",
            help="relay.IRModule.from_expr(function)",
        )
    main = _plain(infer_module(first_order(mod)))["main"]
    _require_rules(main.body)
    writer = Writer(parameter_names(main.params))
    values: dict[Expr, Value] = {}
    for param, given in zip(main.params, parameter_names(main.params)):
        type_ = _tensor(param.checked_type, f"the parameter `{given}`")
        known = (params or {}).get(given)
        values[param] = writer.input(given, type_) if known is None else writer.parameter(given, as_numpy(known), type_)
        writer.typed(values[param], type_)
    for expr in walk((main.body,), _operands):
        if expr not in values:
            values[expr] = _value(writer, expr, values)
            writer.typed(values[expr], expr.checked_type)
    types = [_tensor(type_, "the result") for type_ in tensors_of(main.body.checked_type)]
    return writer.model(name, list(zip(flat(values[main.body]), types)))


def _plain(mod: IRModule) -> IRModule:
    """Quantized operators without a rule in the integer arithmetic that they stand for."""

    def plain(new: Expr, old: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or not isinstance(old.op, Op) or old.op.name in RULES:
            return new
        canonicalize = getattr(facets(new), "canonicalize", None)
        types = [arg.checked_type for arg in (*old.args, old)]
        made = canonicalize(list(new.args), types) if canonicalize else None
        return new if made is None else made

    main = rewrite(mod["main"], plain)
    return mod if main is mod["main"] else infer_module(IRModule.from_expr(main))


def _operands(expr: Expr) -> tuple[Expr, ...]:
    return tuple(expr.args) if isinstance(expr, Call) else tuple(children(expr))


def _require_rules(body: Expr) -> None:
    """An error that names all operators without a rule."""
    ops = {e.op.name: None for e in walk((body,), _operands) if isinstance(e, Call) and isinstance(e.op, Op)}
    missing = [name for name in ops if name not in RULES]
    if missing:
        known = [f"{name}: {hint}" for name in missing if (hint := did_you_mean(name, RULES))]
        raise RelayValueError(
            f"no ONNX form for the operator{'s' * (len(missing) > 1)} {', '.join(missing)}",
            code="export.operator",
            help="; ".join(known) or "passes such as relay.transform.SimplifyInference may write it with others",
        )


def _value(writer: Writer, expr: Expr, values: Mapping[Expr, Value]) -> Value:
    match expr:
        case Call(op=Op(name=operator)):
            names = [name for arg in expr.args for name in flat(values[arg])]
            return RULES[operator](writer, expr, names)
        case Tuple():
            return [values[f] for f in expr.fields]
        case TupleGetItem():
            fields = values[expr.tuple_value]
            assert isinstance(fields, list)
            return fields[expr.index]
        case Constant():
            return writer.constant(expr.data.numpy())
    raise RelayValueError(
        f"{type(expr).__name__} has no ONNX form here",
        code="export.not-static",
        help="static graphs of operators are written",
    )


def _tensor(type_: Type, what: str) -> TensorType:
    if not isinstance(type_, TensorType):
        raise RelayValueError(f"{what} is a {type_}, not a tensor", code="export.not-static")
    return type_
