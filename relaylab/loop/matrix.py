"""Loops marked `matrix`: a product of matrices of bytes, four products in each word.

    for r in 13 matrix:
      for c in 32:
        for k in 9:
          for u in 16:
            sum[r * 32 + c] = dot4(sum[r * 32 + c], x[...], w[...])

It means what the loops mean. Sums of integers may be added in any order, so that a machine with tiles of bytes may
hold the sums in them while all `k` pass.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.loop.expr import Apply, Axis, Load, ScalarExpr, Tensor
from relaylab.loop.listing import axes_of
from relaylab.loop.program import For, Statement, Store
from relaylab.loop.simplify import Simplifier

FORM = (
    "`for r in 8 matrix:`, in it loops of columns, steps and words around one `s[...] = dot4(s[...], x[...], w[...])`"
)


@dataclass(frozen=True, slots=True)
class Side:
    """A buffer of words, an address in it, and how far a row of it is (of weights: a word)."""

    buffer: Tensor
    address: ScalarExpr
    step: int


@dataclass(frozen=True, slots=True)
class ByteProduct:
    """What the loops compute: `sums[r, c] += dot4(x[r, k, u], w[k, u, c])` for all `around`, the axes of k."""

    rows: Axis
    columns: Axis
    around: tuple[Axis, ...]
    words: Axis
    sums: Side
    x: Side
    w: Side

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All its axes, from the outermost in."""
        return (self.rows, self.columns, *self.around, self.words)


def matrix_product(loop: For) -> ByteProduct | None:
    """The product that a loop is: words of x and columns of sums and weights lie side by side; None for any other."""
    axes, statement = [loop.axis], _alone(loop)
    while isinstance(statement, For) and statement.kind == "serial":
        axes.append(statement.axis)
        statement = _alone(statement)
    match statement:
        case Store(sums, cell, Apply("dot4", (Load(held, (same,)), Load(x, (x_at,)), Load(w, (w_at,))))):
            if len(axes) < 3 or held is not sums or same != cell or sums in (x, w):
                return None
        case _:
            return None
    rows, columns, *around, words = axes
    steps = [_steps(address, axes) for address in (cell, x_at, w_at)]
    s, a, b = ({} if found is None else found for found in steps)
    # What has one turn has no step; sums have none but along rows and columns.
    fits = s.keys() <= {rows, columns} and columns not in a and rows not in b
    beside = s.get(columns) == b.get(columns) == a.get(words) == 1
    if None in steps or not fits or not beside:
        return None
    sides = Side(sums, cell, s.get(rows, 0)), Side(x, x_at, a.get(rows, 0)), Side(w, w_at, b.get(words, 0))
    return ByteProduct(rows, columns, tuple(around), words, *sides)


def _alone(loop: For) -> Statement | None:
    """The only statement of a loop of a static extent."""
    plain = loop.stop is loop.axis.size is None
    return loop.body[0] if plain and len(loop.body) == 1 else None


def _steps(address: ScalarExpr, axes: list[Axis]) -> dict[ScalarExpr, int] | None:
    """How far a step of each axis is, where an address is a sum of them and of what they do not move."""
    simplify = Simplifier()
    terms = simplify.linear(simplify(address)).terms
    if any(atom not in axes and not set(axes).isdisjoint(axes_of(atom)) for atom in terms):
        return None
    return {axis: step for axis, step in terms.items() if axis in axes}
