"""Small things of TVM's base that Relay programs use: registered functions, made nodes, converted values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from relaylab.compat.values import PackedFunc, convert, typed_int
from relaylab.ir import OPERATORS, Attrs, DictAttrs, types
from relaylab.ir.op import Op
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError, warn
from relaylab.support.table import Table, did_you_mean

FUNCTIONS: Table[Callable] = Table("global function")
VERSION = "0.10.0"
Kept = Any
"""A class, or the decorator that takes it."""
OBJECTS: Table[type] = Table("kind of objects")


_EXTERNAL = "relay.ext."  # TVM's names of code generators


def register_func(func_name: str | Callable, f: Callable | None = None, override: bool = False) -> Callable:
    """Register a Python function under a global name; usable as a decorator."""
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    if func_name.startswith(_EXTERNAL):
        compiler = func_name.removeprefix(_EXTERNAL)
        warn(f"`{func_name}` will not be called: relaylab compiles what is partitioned for `{compiler}` itself")
    return FUNCTIONS.insert(func_name, f, replace=override)


def lookup(name: str) -> PackedFunc:
    """The function registered under a name; RelayValueError (`registry.unknown`) if there is none."""
    if name not in FUNCTIONS:
        raise RelayValueError(
            f"Cannot find global function {name}", code="registry.unknown", help=did_you_mean(name, FUNCTIONS)
        )
    return PackedFunc(FUNCTIONS[name])


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function registered under a name; None or a RelayValueError if there is none."""
    return None if allow_missing and name not in FUNCTIONS else lookup(name)


def list_global_func_names() -> list[str]:
    """The names of all registered functions."""
    return sorted(FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Forget a registered function."""
    FUNCTIONS.remove(name)


def register_object(type_key: str | type | None = None) -> Kept:
    """Keep a class under a key of types, by default its name; a decorator."""
    if isinstance(type_key, type):
        return OBJECTS.insert(type_key.__name__, type_key, replace=True)
    return lambda cls: OBJECTS.insert(type_key or cls.__name__, cls, replace=True)


@checked
class EnvFunc:
    """A function known by its global name; `EnvFunc.get(name)` is the same object each time it is written down."""

    def __init__(self, name: str):
        self.name, self.func = name, lookup(name)

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function registered under `name`; RelayValueError if there is none."""
        return EnvFunc(name)

    def __call__(self, *args: object) -> object:
        return self.func(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvFunc) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Register a fact about an operator; without `value` a decorator."""
    if value is None:
        return lambda function: register_op_attr(op_name, attr_key, function, level)
    Op.get(op_name).set_attr(attr_key, value, level)
    return value


def make_node(type_key: str, **fields: object) -> Attrs | DictAttrs | types.IntImm:
    """The attribute record with a type key such as `relay.attrs.PadAttrs`, with defaults filled in, or an `IntImm`."""
    if type_key == "DictAttrs":
        return DictAttrs(fields)
    if type_key == "IntImm":
        return IntImm(**cast(Any, fields))
    keys = {op.attrs_type_key: op.definition for op in OPERATORS.values() if op.definition.fields}
    if type_key not in keys:
        raise RelayError(
            f"there is no attribute record `{type_key}`", code="registry.unknown", help=did_you_mean(type_key, keys)
        )
    return keys[type_key](**fields)


def IntImm(dtype: str, value: int, span: object = None) -> types.IntImm:
    """A constant whole number."""
    return typed_int(int(value), dtype)


__all__ = [
    "FUNCTIONS", "EnvFunc", "IntImm", "NDArray", "convert", "get_global_func", "list_global_func_names", "make_node",
    "register_func", "register_object", "register_op_attr", "remove_global_func",
]  # fmt: skip
