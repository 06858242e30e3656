"""Functions that a program registers with operators to choose layouts: `FTVMAlterOpLayout`, `FTVMConvertOpLayout`.

Such a function gets the attributes of a call, its arguments as they lie, their types as the program was written, and
the type of the result (ConvertLayout: the layouts asked for). It returns a call, whose attributes say the layouts in
which it takes its arguments and gives its result, or None to leave the call as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, overload

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Tuple
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.visit import rebuild
from relaylab.support.errors import RelayTypeError, kind_of
from relaylab.transform.engine.infer_type import type_of

Registered = Callable[[Any, Any, Any, Any], Expr | None]
Asked = Callable[[Sequence[Expr]], Call | None]
"""What is registered with the operator of a call, given its arguments (tuples flattened)."""
Layouts = tuple[tuple[str | None, ...], str]
"""The layouts of the arguments of a call, None where attributes do not say one, and of its result."""


def _register(name: str, function: Registered | None, level: int, attr: str) -> object:
    def register(function: Registered) -> Registered:
        Op.get(name).set_attr(attr, function, level)
        return function

    return register(function) if function is not None else register


@overload
def register_alter_op_layout(op_name: str, alter_layout: Registered, level: int = 10) -> Registered: ...
@overload
def register_alter_op_layout(
    op_name: str, alter_layout: None = None, level: int = 10
) -> Callable[[Registered], Registered]: ...
def register_alter_op_layout(op_name: str, alter_layout: Registered | None = None, level: int = 10) -> object:
    """Register `alter_layout(attrs, inputs, types, out_type) -> Call or None`, which AlterOpLayout asks for calls of an
    operator; usable as a decorator.
    """
    return _register(op_name, alter_layout, level, "FTVMAlterOpLayout")


@overload
def register_convert_op_layout(op_name: str, convert_layout: Registered, level: int = 10) -> Registered: ...
@overload
def register_convert_op_layout(
    op_name: str, convert_layout: None = None, level: int = 10
) -> Callable[[Registered], Registered]: ...
def register_convert_op_layout(op_name: str, convert_layout: Registered | None = None, level: int = 10) -> object:
    """Register `convert_layout(attrs, inputs, types, desired_layouts) -> Call or None`, which ConvertLayout asks for
    calls of an operator for which layouts are wanted; usable as a decorator.
    """
    return _register(op_name, convert_layout, level, "FTVMConvertOpLayout")


def asked(call: Call, attr: str, last: object) -> Asked | None:
    """The function that is registered under `attr` with the operator of a call, ready to be given arguments; None if
    there is none. Calling it raises `RelayTypeError` if it returns something else than a call or None.
    """
    function = call.op.get_attr(attr) if isinstance(call.op, Op) else None
    if function is None:
        return None

    def ask(inputs: Sequence[Expr]) -> Call | None:
        types = [type_of(arg) for arg in call.args]
        after = cast(Registered, function)(facets(call), regrouped(call, inputs), types, last)
        if after is not None and not isinstance(after, Call):
            text = f"the function for the layouts of {op_name(call)} returned {kind_of(after)}, not a call"
            help = "return a Call, or None to leave the operator alone"
            raise RelayTypeError(text, code="layout.not-a-call", help=help)
        return after

    return ask


def flat(args: Sequence[Expr]) -> list[Expr]:
    """Arguments, with the fields of tuples in their places."""
    return [f for a in args for f in (a.fields if isinstance(a, Tuple) else (a,))]


def regrouped(call: Call, inputs: Sequence[Expr]) -> list[Expr]:
    """The inverse of `flat`, for the arguments of a call."""
    rest = iter(inputs)
    return [rebuild(a, [next(rest) for _ in a.fields]) if isinstance(a, Tuple) else next(rest) for a in call.args]


def named_layouts(call: Call) -> Layouts | None:
    """The layouts that the attributes of a call say; None if they say none."""
    if not isinstance(call.op, Op):
        return None
    attrs = facets(call)
    rest = (None,) * len(call.args)
    if op_name(call) == "nn.dense":
        names: tuple[str | None, ...] = ("NC", "NC")
    elif "kernel_layout" in attrs.fields:
        names = (attrs.data_layout, attrs.kernel_layout)
    elif "weight_layout" in attrs.fields:
        names = ("NC", attrs.weight_layout)
    elif "layout" in attrs.fields and attrs.layout:
        names = (attrs.layout,)
    else:
        return None
    out = getattr(attrs, "out_layout", "") or names[0]
    return (*names, *rest)[: len(call.args)], cast(str, out)
