"""Sizes that a model computes with floats on the way, as `ceil(n / 2)`: they are exact as ratios of integers.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from relaylab.ir.dims import AnyDim, SymbolicDim, UndecidedSize

Number = Any
"""An integer, a size, a float, or a ratio: what a followed value consists of."""
MOST = 1 << 16
"""What a divisor may be: floats that are no simple fractions, as 1/3, are not exact."""


@dataclass(frozen=True, slots=True)
class SizeRatio:
    """A float that is an expression of sizes, divided by a number."""

    over: Number
    under: int

    def __add__(self, other: object) -> SizeRatio | float:
        if isinstance(other, SizeRatio):
            return made(self.over * other.under + other.over * self.under, self.under * other.under)
        c = fraction(other)
        return made(self.over * c.denominator + c.numerator * self.under, self.under * c.denominator)

    def __mul__(self, other: object) -> SizeRatio | float:
        if isinstance(other, SizeRatio):
            return made(self.over * other.over, self.under * other.under)
        c = fraction(other)
        return made(self.over * c.numerator, self.under * c.denominator)

    def __truediv__(self, other: object) -> SizeRatio | float:
        if not (c := fraction(other)):
            raise UndecidedSize("a quotient by zero", code="type.symbolic")
        return self * Fraction(c.denominator, c.numerator)

    def __neg__(self) -> SizeRatio | float:
        return made(-self.over, self.under)

    def __sub__(self, other: object) -> SizeRatio | float:
        return self + (-other if isinstance(other, SizeRatio) else -fraction(other))

    def __rsub__(self, other: object) -> SizeRatio | float:
        return -(self - other)

    __radd__, __rmul__ = __add__, __mul__


def fraction(value: object) -> Fraction:
    """A number as a simple fraction. Raises `UndecidedSize` for one that is none."""
    found = Fraction(value) if isinstance(value, (int, float, Fraction)) else None
    if found is None or found.denominator > MOST:
        raise UndecidedSize("a factor that is no simple fraction", code="type.symbolic")
    return found


def made(over: Number, under: int) -> SizeRatio | float:
    """A quotient of a size and a number: what has no size is a float."""
    if under > MOST or type(over) is AnyDim:
        raise UndecidedSize("a quotient that is not known", code="type.symbolic")
    return SizeRatio(over, under) if isinstance(over, SymbolicDim) else over / under


def is_float(value: object) -> bool:
    """Whether a value is one of floats."""
    return isinstance(value, (SizeRatio, float))
