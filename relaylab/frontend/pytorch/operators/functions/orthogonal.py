"""Orthogonal polynomials of a known degree, by recurrences: NIST Digital Library of Mathematical Functions, 18.9."""

from __future__ import annotations

from collections.abc import Callable

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.functions.doubles import Doubles
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr

MOST = 256
"""The largest degree: each is two kinds of operations in the program."""
Step = Callable[[int], tuple[float, float, float]]
RECURRENCES: dict[str, tuple[tuple[float, float], Step]] = {
    "chebyshev_polynomial_t": ((1, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_u": ((2, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_v": ((2, -1), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_w": ((2, 1), lambda k: (2, 0, 1)),
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}
"""P_1 = a x + b, and P_(k+1) = (a x + b) P_k - c P_(k-1); P_0 is 1."""


def polynomial(g: TorchGraph, name: str, n: int, x: Expr) -> Expr:
    """The polynomial of degree n at x, a float64; 0 below degree 0."""
    d = Doubles(g)
    first, step = RECURRENCES[name]
    line = lambda a, b: d.plus(d.times(x, a), b) if b else d.times(x, a)
    before: Expr = op.ones_like(x)
    if n < 1:
        return before if n == 0 else op.zeros_like(x)
    last = line(*first)
    for k in range(1, n):
        a, b, c = step(k)
        last, before = op.subtract(op.multiply(line(a, b), last), d.times(before, c)), last
    return last


def _enter(name: str, shifted: bool) -> None:
    whole = f"special_{'shifted_' * shifted}{name}"

    @converts(whole, f"{whole}.n_scalar")
    def convert(g: TorchGraph, node: AtenNode, x: Expr, n: Operand) -> Expr:
        value = g.value(n) if isinstance(n, Expr) else n
        if value is None or getattr(value, "size", 1) != 1 or int(value) > MOST:
            raise node.error(
                f"a polynomial of a degree that is computed, differs or exceeds {MOST} is not imported",
                "import.option", "give the degree as a number",
            )  # fmt: skip
        wide = g.to(g.to(x, node.dtype), "float64")
        d = Doubles(g)
        out = polynomial(g, name, int(value), d.plus(d.times(wide, 2), -1) if shifted else wide)
        return g.to(out, node.dtype)


for _name in RECURRENCES:
    _enter(_name, False)
    if _name.startswith("chebyshev"):
        _enter(_name, True)
