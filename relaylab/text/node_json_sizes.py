"""Dimensions as nodes of JSON: unknown ones, sizes with names, and the operations of their expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylab.ir.dims import OPERATIONS, AnyDim, Dim, SizeExpr, SizeVar, apply_operation

LEAVES = ("tir.SizeVar", "tir.Var", "tir.Any")
SIZES = (*LEAVES, *OPERATIONS)


def size_entry(value: AnyDim, at: Callable[[object], int]) -> dict[str, Any]:
    """The node of a dimension that is no number; `at` gives the numbers of the nodes of its operands."""
    attrs = {"dtype": "int32", "span": "0"}
    if isinstance(value, SizeExpr):
        key, left, right = value.operation
        return {"type_key": key, "attrs": {"a": str(at(left)), "b": str(at(right)), **attrs}}
    if isinstance(value, SizeVar):
        return {"type_key": "tir.SizeVar", "attrs": {**attrs, "name": value.name, "type_annotation": "0"}}
    return {"type_key": "tir.Any", "attrs": attrs}


def size_of(key: str, attrs: Mapping[str, str], part: Callable[[str], Any]) -> Dim | int:
    """The dimension of a node; `part` gives its operand of a name."""
    if key in OPERATIONS:
        return apply_operation(key, part("a"), part("b"))
    return AnyDim() if key == "tir.Any" else SizeVar(attrs["name"])
