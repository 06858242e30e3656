"""What PartialEvaluate knows while it runs: what variables are bound to, what cells hold, how large known data is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from relaylab import ir
from relaylab.ir.adt import pattern_vars


class KnownValues:
    """What variables are bound to, as far as that is known, and how much of it is data."""

    def __init__(self) -> None:
        self.values: dict[ir.Expr, ir.Expr] = {}
        self.sizes: dict[ir.Expr, int] = {}

    def bind(self, var: ir.Var, value: ir.Expr) -> None:
        """`var` is bound to `value`, whose parts are variables."""
        self.values[var] = value
        if isinstance(value, ir.Constant):
            size = _number(value)
        elif isinstance(value, ir.Function):
            size = 0
        else:  # each part was bound before: the size of a list of a thousand elements takes one addition
            size = isinstance(value, ir.Call) + sum(self.sizes.get(c, 0) for c in ir.children(value))
        if size:
            self.sizes[var] = size

    def value(self, expr: ir.Expr) -> ir.Expr:
        """What an atom is bound to, or the atom."""
        return self.values.get(expr, expr)

    def size(self, expr: ir.Expr) -> float:
        """How much of an atom is known data; infinity if nothing is."""
        return self.sizes.get(expr, math.inf)

    def fits(self, pattern: ir.Pattern, data: ir.Expr, binds: dict[ir.Expr, ir.Expr]) -> bool | None:
        """Whether a pattern fits; None if that is not known. `binds` gets what its variables stand for."""
        if isinstance(pattern, ir.PatternWildcard):
            return True
        if isinstance(pattern, ir.PatternVar):
            binds[pattern.var] = data
            return True
        value = self.value(data)
        if isinstance(pattern, ir.PatternTuple) and isinstance(value, ir.Tuple):
            return self._all(pattern.patterns, value.fields, binds)
        if (
            isinstance(pattern, ir.PatternConstructor)
            and isinstance(value, ir.Call)
            and isinstance(value.op, ir.Constructor)
        ):
            if value.op.name_hint != pattern.constructor.name_hint:
                return False
            return self._all(pattern.patterns, value.args, binds)
        return None

    def _all(
        self, patterns: Sequence[ir.Pattern], parts: Sequence[ir.Expr], binds: dict[ir.Expr, ir.Expr]
    ) -> bool | None:
        for pattern, part in zip(patterns, parts):
            fits = self.fits(pattern, part, binds)
            if not fits:
                return fits
        return True


COUNTED = 256
"""The largest number that counts as data: a recursion that counts down from more stays a call."""


def _number(const: ir.Constant) -> int:
    """How far a number is from below zero; 0 for what is no counter."""
    data = const.data.numpy()
    if data.ndim or data.dtype.kind not in "iuf" or not 0 <= data <= COUNTED:
        return 0
    return int(data) + 1


Written = dict[ir.Expr, ir.Expr | None]
"""What the cells hold that some code wrote to; None where that is not known."""


class Cells:
    """What cells hold, as far as it is known: only those that the program was seen to make, which are different cells.

    A write is logged, so that what a branch wrote can be taken back, and compared with what the others wrote.
    """

    def __init__(self) -> None:
        self.held: dict[ir.Expr, ir.Expr] = {}
        self.log: list[tuple[ir.Expr | None, ir.Expr | None, dict[ir.Expr, ir.Expr]]] = []

    def put(self, cell: ir.Expr, value: ir.Expr | None) -> None:
        """A cell holds `value` from now on; None: what it holds is not known."""
        self.log.append((cell, self.held.get(cell), self.held))
        if value is None:
            self.held.pop(cell, None)
        else:
            self.held[cell] = value

    def forget(self) -> None:
        """Any cell may hold anything: code that is not known has run."""
        self.log.append((None, None, self.held))
        self.held = {}

    def back(self, mark: int) -> Written | None:
        """Take back what was logged since `mark`; what the cells written to held then, None if all was forgotten."""
        forgotten = any(cell is None for cell, _, _ in self.log[mark:])
        wrote = {cell: self.held.get(cell) for cell, _, _ in self.log[mark:] if cell is not None}
        while len(self.log) > mark:
            cell, before, held = self.log.pop()
            self.held = held
            if cell is not None and before is None:
                held.pop(cell, None)
            elif cell is not None and before is not None:
                held[cell] = before
        return None if forgotten else wrote

    def join(self, ends: Sequence[Written | None]) -> None:
        """One of several branches has run: what is the same at all their ends is known."""
        if any(end is None for end in ends):
            self.forget()
            return
        written = [end for end in ends if end is not None]
        for cell in dict.fromkeys(c for end in written for c in end):
            before = self.held.get(cell)
            values = {end.get(cell, before) for end in written}
            # what several branches agree on was bound before them; a single one may have bound it itself
            agreed = len(values) == 1 and (len(written) > 1 or before in values)
            self.put(cell, values.pop() if agreed else None)


def deciding(func: ir.Function) -> frozenset[int]:
    """The numbers of the parameters on which a branch or a match in a function depends."""
    source: dict[ir.Expr, ir.Expr] = {}
    asked: list[ir.Expr] = []
    for node in ir.walk((func.body,)):
        if isinstance(node, ir.Let):
            source[node.var] = node.value
        elif isinstance(node, ir.Match):
            source.update((v, node.data) for c in node.clauses for v in pattern_vars(c.lhs))
            asked.append(node.data)
        elif isinstance(node, ir.If):
            asked.append(node.cond)

    def below(node: ir.Expr) -> Iterable[ir.Expr]:
        return (source[node],) if node in source else ir.children(node)

    reached = set(ir.walk(asked, below))
    return frozenset(k for k, p in enumerate(func.params) if p in reached)
