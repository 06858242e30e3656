"""Direction vectors: in which turns of some loops two accesses may meet, as a sign for each loop.

A sign says whether the second access is made in a later turn (1), the same (0) or an earlier one (-1). The difference
of two addresses is a sum of whole numbers times steps; a vector is possible if the sum may be 0 under its signs, by the
bounds of the numbers and the common divisor of the steps. Quotients and remainders of a loop's turns, as `fuse` leaves
them, are numbers of their own. What is not refuted is taken to be possible.

Source: Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 3 (Banerjee's inequality, GCD test).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relaylab.loop.affine import UNBOUNDED, Linear
from relaylab.loop.expr import Apply, Axis, Const, Load, ScalarExpr, post_order
from relaylab.loop.program import Accumulate, Define, For, Statement, statements
from relaylab.loop.rewriting import rewrite
from relaylab.loop.simplify import Simplifier

Signs = tuple[int, ...]
DIVISIONS = 6  # of one loop that are looked through
FAR = 1 << 62


@dataclass(slots=True)
class _Number:
    """A whole number in an interval, and the step that it is multiplied with."""

    step: int
    low: int
    high: int


class Turns:
    """What the turns of `moving` loops, outermost first, do to the addresses of a body."""

    def __init__(self, body: Sequence[Statement], moving: Sequence[Axis]):
        self.simplify = Simplifier()
        inner = list(statements(tuple(body)))
        self.own = {s.local for s in inner if isinstance(s, (Define, Accumulate))}
        changed = {s.local for s in inner if isinstance(s, Accumulate)}
        self.meaning: dict[ScalarExpr, ScalarExpr] = {}
        for s in inner:
            if isinstance(s, Define) and s.local not in changed:
                value = self._resolved(s.value)
                if not any(isinstance(n, Load) or n in self.own for n in post_order(value)):
                    self.meaning[s.local] = value
        self.turning = {*moving, *(s.axis for s in inner if isinstance(s, For))}
        self._known: dict[ScalarExpr, Linear] = {}
        self.parts: dict[Axis, tuple[Axis, ...]] = {}

    def look(self, addresses: Sequence[ScalarExpr]) -> None:
        """Take in the addresses that will be asked for."""
        found = {a: self.simplify(self._resolved(a)) for a in addresses}
        for axis in self.turning:
            parts = [axis]
            for _ in range(DIVISIONS):
                divided = _division(found.values(), parts)
                if divided is None:
                    break
                old, size = divided
                high, low = Axis(old.name, -(-old.extent // size)), Axis(f"{old.name}_", size)
                whole = self.simplify(high * size + low)
                found = {a: self.simplify(e, {old: whole}) for a, e in found.items()}
                parts[parts.index(old) : parts.index(old) + 1] = [high, low]
            self.parts[axis] = tuple(parts)
        self.turning = {part for parts in self.parts.values() for part in parts}
        self._known |= {a: self.simplify.linear(e) for a, e in found.items()}

    def directions(self, one: ScalarExpr, other: ScalarExpr, order: Sequence[Axis]) -> Iterator[dict[Axis, int]]:
        """The signs that `order`'s loops may have where the addresses are equal; loops beside them may be anywhere."""
        parts = [part for axis in order for part in self.parts[axis]]
        stack: list[Signs] = [()]
        while stack:
            signs = stack.pop()
            if not _possible(*self._difference(one, other, dict(zip(parts, signs)))):
                continue
            if len(signs) == len(parts):
                by_part = dict(zip(parts, signs))
                yield {a: next((s for p in self.parts[a] if (s := by_part[p])), 0) for a in order}
            else:
                stack += [(*signs, sign) for sign in ((1, -1, 0) if parts[len(signs)].extent > 1 else (0,))]

    def _resolved(self, e: ScalarExpr) -> ScalarExpr:
        return rewrite(e, lambda n: self.meaning.get(n, n)) if self.meaning else e

    def _difference(self, one: ScalarExpr, other: ScalarExpr, signs: dict[Axis, int]) -> tuple[list[_Number], int]:
        """The second address less the first."""
        a, c = self._known[one], self._known[other]
        found: list[_Number] = []
        for atom in dict.fromkeys((*a.terms, *c.terms)):
            first, second = a.terms.get(atom, 0), c.terms.get(atom, 0)
            if isinstance(atom, Axis) and atom in self.turning:
                found += _turned(first, second, atom.extent - 1, signs.get(atom))
                continue
            low, high = self.simplify.bounds(atom)
            if (low, high) == UNBOUNDED:
                low, high = -FAR, FAR
            if self._stays(atom):
                found += [_Number(second - first, low, high)]
            else:
                found += [_Number(-first, low, high), _Number(second, low, high)]
        return [n for n in found if n.step], c.const - a.const

    def _stays(self, atom: ScalarExpr) -> bool:
        """Whether an atom is the same in all turns."""
        return not any(isinstance(n, Load) or n in self.turning or n in self.own for n in post_order(atom))


def _division(found: Iterable[ScalarExpr], parts: Sequence[Axis]) -> tuple[Axis, int] | None:
    """An axis that is divided somewhere, and by what."""
    for e in found:
        for n in post_order(e):
            match n:
                case Apply("floordiv" | "floormod", (Axis() as axis, Const(size))) if axis in parts:
                    return axis, int(size)
                case _:
                    pass
    return None


def _turned(first: int, second: int, last: int, sign: int | None) -> list[_Number]:
    """What a loop adds to the difference: `second` times its later turn less `first` times its earlier one."""
    if first == second:
        low, high = {None: (-last, last), 0: (0, 0), 1: (1, last), -1: (-last, -1)}[sign]
        return [_Number(second, low, high)] if (low, high) != (0, 0) else []
    if sign is None:
        return [_Number(-first, 0, last), _Number(second, 0, last)]
    if sign == 0:
        return [_Number(second - first, 0, last)]
    corners = [(0, 1), (0, last), (last - 1, last)] if sign > 0 else [(1, 0), (last, 0), (last, last - 1)]
    ends = [second * y - first * x for x, y in corners]
    step = math.gcd(first, second)
    return [_Number(step, min(ends) // step, max(ends) // step)]


def _possible(numbers: Sequence[_Number], const: int) -> bool:
    """Whether a sum of numbers times steps, and a constant, may be 0."""
    if any(n.low > n.high for n in numbers):
        return False
    if not numbers:
        return const == 0
    if const % math.gcd(*(n.step for n in numbers)):
        return False
    for _ in range(4 * len(numbers)):
        ends = [sorted((n.step * n.low, n.step * n.high)) for n in numbers]
        low, high = (const + sum(e[k] for e in ends) for k in (0, 1))
        if low > 0 or high < 0:
            return False
        closer = False
        for n, (own_low, own_high) in zip(numbers, ends):
            # The others reach from low - own_low to high - own_high: this one makes up for them.
            least, most = own_high - high, own_low - low
            first, last = (
                (-(-least // n.step), most // n.step) if n.step > 0 else (-(most // -n.step), -least // -n.step)
            )
            if first > n.low or last < n.high:
                n.low, n.high, closer = max(n.low, first), min(n.high, last), True
                if n.low > n.high:
                    return False
                break
        if not closer:
            break
    return True
