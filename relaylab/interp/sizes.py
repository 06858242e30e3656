"""Sizes with names while a program runs: arguments give them their values, attributes of operators ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from relaylab.ir.attrs import Attrs
from relaylab.ir.dims import IntImm, SizeVar, SymbolicDim
from relaylab.ir.expr import Function
from relaylab.ir.free import with_sizes
from relaylab.ir.types import TensorType

Record = TypeVar("Record", bound=Attrs)
Sizes = Mapping[SizeVar, int]
NO_SIZES: Sizes = {}


def named_sizes(func: Function) -> list[tuple[int, int, SizeVar]]:
    """Which parameter has which size along which axis, for sizes that are no expressions."""
    types = [p.inferred or p.type_annotation for p in func.params]
    return [
        (k, axis, size)
        for k, t in enumerate(types)
        if isinstance(t, TensorType)
        for axis, size in enumerate(t.shape)
        if isinstance(size, SizeVar)
    ]


def with_known_sizes(record: Record, sizes: Sizes) -> Record:
    """An operator's record with numbers in place of sizes; the same one if no attribute has a size with a name."""
    changed: dict[str, object] = {}
    for name, value in record.items():
        if not isinstance(value, (tuple, SymbolicDim)):
            continue
        parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if any(isinstance(p, SymbolicDim) for p in parts):
            values = {size: IntImm(n) for size, n in sizes.items()}
            new = tuple(with_sizes(p, values) if isinstance(p, SymbolicDim) else p for p in parts)
            changed[name] = new if isinstance(value, tuple) else new[0]
    return type(record)(**{**dict(record.items()), **changed}) if changed else record
