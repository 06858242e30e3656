"""Functions that are computed in float64, whatever is asked for: numbers, polynomials, Chebyshev series."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.ir import Expr


class Doubles:
    """Expressions of float64 numbers."""

    def __init__(self, g: TorchGraph) -> None:
        self.g = g

    def number(self, value: float) -> Expr:
        """A number."""
        return self.g.const(value, "float64")

    def times(self, x: Expr, by: float) -> Expr:
        """A multiple."""
        return op.multiply(x, self.number(by))

    def plus(self, x: Expr, more: float) -> Expr:
        """A sum with a number."""
        return op.add(x, self.number(more))

    def over(self, by: float, x: Expr) -> Expr:
        """A number divided by an expression."""
        return op.divide(self.number(by), x)

    def horner(self, z: Expr, coefficients: Sequence[float]) -> Expr:
        """A polynomial, its highest power first."""
        out: Expr = self.number(coefficients[0])
        for c in coefficients[1:]:
            out = self.plus(op.multiply(out, z), c)
        return out

    def clenshaw(self, t: Expr, coefficients: Sequence[float]) -> Expr:
        """A Chebyshev series of 2 t - 1, for t between 0 and 1."""
        twice = self.plus(self.times(t, 4), -2)
        last: Expr = self.number(0)
        before: Expr = self.number(0)
        for c in coefficients[:0:-1]:
            last, before = self.plus(op.subtract(op.multiply(twice, last), before), c), last
        return self.plus(op.subtract(op.multiply(self.times(twice, 0.5), last), before), coefficients[0])


def in_doubles(build: Callable[[TorchGraph, Expr], Expr]) -> Callable[[TorchGraph, AtenNode, Expr], Expr]:
    """A converter that computes in float64 what `build` says, and rounds to the data type of the result."""

    def convert(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
        return g.to(build(g, g.to(g.to(x, node.dtype), "float64")), node.dtype)

    return convert
