"""Complex tensors as two real ones while a program is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import TABLE, Convert, converts
from relaylab.ir import Expr

OF_COMPLEX: dict[str, Convert] = {}
"""Converters that hold where an argument is complex, by the operator's name; the others are those of the parts."""


@dataclass(frozen=True)
class ComplexParts:
    """A complex tensor: its real and its imaginary part, of one shape and data type."""

    real: Expr
    imag: Expr


def of_complex(*names: str) -> Callable[[Convert], Convert]:
    """Register the decorated function for operators with complex arguments."""

    def enter(run: Convert) -> Convert:
        OF_COMPLEX.update((name if "." in name else f"{name}.default", run) for name in names)
        return run

    return enter


def of_any(*names: str) -> Callable[[Convert], Convert]:
    """Register the decorated function for operators whose arguments may be complex or not."""
    return lambda run: of_complex(*names)(converts(*names)(run))


def has_complex(value: object) -> bool:
    """Is an argument complex, or a list with something complex?"""
    return (
        any(map(has_complex, value)) if isinstance(value, (list, tuple)) else isinstance(value, (ComplexParts, complex))
    )


def complex_of(g: TorchGraph, value: object, dtype: str) -> ComplexParts:
    """A tensor or number as complex; what is real has the imaginary part 0."""
    if isinstance(value, ComplexParts):
        return value
    if isinstance(value, complex):
        return ComplexParts(g.const(value.real, dtype), g.const(value.imag, dtype))
    real = g.to(cast("Operand", value), dtype)
    return ComplexParts(real, op.zeros_like(real))


def part_of(value: object, name: str) -> object:
    """The part `real` or `imag` of an argument, in lists too; what is not complex is as it was."""
    if isinstance(value, (list, tuple)):
        return [part_of(v, name) for v in value]
    return getattr(value, name) if isinstance(value, (ComplexParts, complex)) else value


def by_parts(name: str) -> Convert:
    """The converter that treats the two parts alike: those of a result with several tensors too."""

    def convert(g: TorchGraph, node: AtenNode, *args: object, **more: object) -> object:
        real, imag = (
            TABLE[name](g, node, *(part_of(v, part) for v in args), **{k: part_of(v, part) for k, v in more.items()})
            for part in ("real", "imag")
        )
        return ComplexParts(real, imag) if isinstance(real, Expr) else [*map(ComplexParts, real, imag)]

    return convert
