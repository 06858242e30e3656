"""Small things of TVM's base that Relay programs use: registered functions, made nodes, converted values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylab.ir import OPERATORS, Attrs, types
from relaylab.ir.op import Op
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.table import Table, did_you_mean

FUNCTIONS: Table[Callable] = Table("global function")
VERSION = "0.10.0"
String = str


def register_func(func_name: str | Callable, f: Callable | None = None, override: bool = False) -> Callable:
    """Register a Python function under a global name; usable as a decorator."""
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    return FUNCTIONS.insert(func_name, f, replace=override)


def get_global_func(name: str, allow_missing: bool = False) -> Callable | None:
    """The function registered under a name."""
    if name not in FUNCTIONS and not allow_missing:
        raise RelayValueError(
            f"Cannot find global function {name}", code="registry.unknown", help=did_you_mean(name, FUNCTIONS)
        )
    return FUNCTIONS.get(name)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Register a fact about an operator; without `value` a decorator."""
    if value is None:
        return lambda function: register_op_attr(op_name, attr_key, function, level)
    Op.get(op_name).set_attr(attr_key, value, level)
    return value


def make_node(type_key: str, **fields: object) -> Attrs:
    """The attribute record with a type key such as `relay.attrs.PadAttrs`, with defaults filled in."""
    keys = {op.attrs_type_key: op.definition for op in OPERATORS.values() if op.definition.fields}
    if type_key not in keys:
        raise RelayError(
            f"there is no attribute record `{type_key}`", code="registry.unknown", help=did_you_mean(type_key, keys)
        )
    return keys[type_key](**fields)


def convert(value: object) -> object:
    """A Python value as programs hold it: lists as tuples, numbers and strings as they are."""
    if isinstance(value, (list, tuple)):
        return tuple(map(convert, value))
    if isinstance(value, Mapping):
        return {k: convert(v) for k, v in value.items()}
    return value


def IntImm(dtype: str, value: int) -> types.IntImm:
    """A constant dimension."""
    return types.IntImm(value)


__all__ = [
    "FUNCTIONS", "IntImm", "NDArray", "convert", "get_global_func", "make_node", "register_func", "register_op_attr",
]  # fmt: skip
