"""Direction vectors: in which turns of some loops two accesses may meet, as a sign for each loop.

A sign says whether the second access is made in a later turn (1), the same (0) or an earlier one (-1). The difference
of two addresses is a sum of whole numbers times steps; a vector is possible if the sum may be 0 under its signs, by the
bounds of the numbers and the common divisor of the steps. Quotients and remainders of a loop's turns, as `fuse` leaves
them, are numbers of their own. What is not refuted is taken to be possible.

Source: Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 3 (Banerjee's inequality, GCD test).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from relaylab.loop.affine import UNBOUNDED, Linear
from relaylab.loop.expr import Apply, Axis, Const, Load, ScalarExpr, post_order
from relaylab.loop.listing import MOST_LISTED, axes_of, listed
from relaylab.loop.program import Accumulate, Define, For, Statement, statements
from relaylab.loop.rewriting import rewrite
from relaylab.loop.scalar import Array
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
        self.turning = self.loops = {*moving, *(s.axis for s in inner if isinstance(s, For))}
        self._known: dict[ScalarExpr, Linear] = {}
        self._plain: dict[ScalarExpr, Linear] = {}  # before loops have parts
        self.parts: dict[Axis, tuple[Axis, ...]] = {}

    def look(self, addresses: Sequence[ScalarExpr]) -> None:
        """Take in the addresses that will be asked for."""
        found = {a: self.simplify(self._resolved(a)) for a in addresses}
        self._plain |= {a: self.simplify.linear(e) for a, e in found.items()}
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

    def seen(self, one: ScalarExpr, other: ScalarExpr, order: Sequence[Axis]) -> list[dict[Axis, int]] | None:
        """What `directions` gives, by the addresses of all turns; None if those are too many or depend on data."""
        sums = [self._plain[e] for e in (one, other)]
        same = {a: f for a, f in sums[0].terms.items() if sums[1].terms.get(a) == f and self._stays(a, self.loops)}
        found = [self.simplify.index(s - Linear(same)) for s in sums]
        used = axes_of(*found)
        outside = [a for a in used if a not in self.loops]
        moved = [a for a in order if a in used]
        runs: list[list[Array]] = []
        for e in found:
            inner = [a for a in axes_of(e) if a in self.loops and a not in moved]
            values = listed([e, *outside, *moved], [*outside, *moved, *inner])
            if values is None:
                return None
            runs.append(values)
        codes = _meeting(runs, [a.extent for a in outside])
        return (
            None
            if codes is None
            else [dict(zip(order, signs)) for code in codes for signs in _signs(code, order, moved)]
        )

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
            if self._stays(atom, self.turning):
                found += [_Number(second - first, low, high)]
            else:
                found += [_Number(-first, low, high), _Number(second, low, high)]
        return [n for n in found if n.step], c.const - a.const

    def _stays(self, atom: ScalarExpr, turning: Collection[ScalarExpr]) -> bool:
        """Whether an atom is the same in all turns."""
        return not any(isinstance(n, Load) or n in turning or n in self.own for n in post_order(atom))


def _meeting(runs: Sequence[Sequence[Array]], outside: Sequence[int]) -> list[list[int]] | None:
    """For the places where two accesses meet, all different pairs of signs that the difference of each moving loop's
    turns is at least and at most. A run is the address, the turns of loops outside and those of moving loops."""
    if not all(run[0].size for run in runs):
        return []
    low, high = min(int(run[0].min()) for run in runs), max(int(run[0].max()) for run in runs)
    size, moving = (high - low + 1) * math.prod(outside), len(runs[0]) - 1 - len(outside)
    if size > MOST_LISTED or 9**moving > FAR:
        return None
    keys: list[Array] = []
    for run in runs:
        around = np.ravel_multi_index(tuple(run[1 : 1 + len(outside)]), tuple(outside)) if outside else 0
        keys.append(around * (high - low + 1) + run[0] - low)
    meet = np.logical_and(*(np.bincount(key, minlength=size) > 0 for key in keys))
    codes = np.zeros(np.count_nonzero(meet), "int64")  # rows would take seconds to sort
    for one, other in zip(*(run[1 + len(outside) :] for run in runs)):
        ends = [[_by_place(f, k, v, size)[meet] for f in (np.minimum, np.maximum)] for k, v in zip(keys, (one, other))]
        for difference in (ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]):
            codes = codes * 3 + np.sign(difference) + 1
    return [[int(code) // 3**k % 3 - 1 for k in reversed(range(2 * moving))] for code in np.unique(codes)]


def _by_place(least: np.ufunc, keys: Array, turns: Array, size: int) -> Array:
    """The least (or largest) of the turns that reach each place."""
    found = np.full(size, FAR if least is np.minimum else -FAR)
    least.at(found, keys, turns)
    return found


def _signs(code: Sequence[int], order: Sequence[Axis], moved: Sequence[Axis]) -> Iterator[Signs]:
    """The signs that loops may have: those that do not move an address may be anywhere."""
    may = {a: range(code[2 * k], code[2 * k + 1] + 1) for k, a in enumerate(moved)}
    return product(*(may.get(a, range(-1, 2) if a.extent > 1 else range(1)) for a in order))


def _division(found: Iterable[ScalarExpr], parts: Sequence[Axis]) -> tuple[Axis, int] | None:
    """An axis that is divided somewhere, and by what."""
    for e in found:
        for n in post_order(e):
            match n:
                case Apply("floordiv" | "floormod", (Axis() as axis, Const(size))) if axis in parts and size > 0:
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
    const += sum(n.step * n.low for n in numbers if n.low == n.high)
    numbers = [n for n in numbers if n.low < n.high]
    if const % math.gcd(*(n.step for n in numbers)) if numbers else const:
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
