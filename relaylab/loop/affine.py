"""Sums of index atoms times constants: the normal form of index arithmetic, with division rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from relaylab.loop.expr import ScalarExpr

UNBOUNDED = (-(2**63), 2**63 - 1)
Rect = tuple[int, int]


@dataclass(slots=True)
class Linear:
    """`const + sum(atom * factor)`; atoms are interned index expressions, their order is that of first use."""

    terms: dict[ScalarExpr, int]
    const: int = 0

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return Linear({a: f for a, f in terms.items() if f}, self.const + other.const)

    def __mul__(self, factor: int) -> Linear:
        if factor == 0:
            return Linear({})
        return Linear({a: f * factor for a, f in self.terms.items()}, self.const * factor)

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    @property
    def atom(self) -> ScalarExpr | None:
        """The single atom that this sum is, if it is one."""
        if self.const == 0 and len(self.terms) == 1:
            ((atom, factor),) = self.terms.items()
            return atom if factor == 1 else None
        return None


def add_intervals(a: Rect, b: Rect) -> Rect:
    """The interval of a sum."""
    return clip_interval((a[0] + b[0], a[1] + b[1]))


def scale_interval(a: Rect, factor: int) -> Rect:
    """The interval of a product with a constant."""
    return clip_interval((min(a[0] * factor, a[1] * factor), max(a[0] * factor, a[1] * factor)))


def clip_interval(a: Rect) -> Rect:
    """`a`, or everything if it does not fit an int64."""
    return a if UNBOUNDED[0] < a[0] and a[1] < UNBOUNDED[1] else UNBOUNDED


def join_intervals(a: Rect, b: Rect) -> Rect:
    """The interval that holds both."""
    return min(a[0], b[0]), max(a[1], b[1])


def meet_intervals(a: Rect, b: Rect) -> Rect:
    """What lies in both."""
    return max(a[0], b[0]), min(a[1], b[1])


def total_interval(value: Linear, bounds: Callable[[ScalarExpr], Rect]) -> Rect:
    """The interval of a sum by those of its atoms."""
    low = high = value.const
    for atom, factor in value.terms.items():
        least, most = bounds(atom)
        if least == UNBOUNDED[0] or most == UNBOUNDED[1]:
            return UNBOUNDED
        low += min(least * factor, most * factor)
        high += max(least * factor, most * factor)
    return low, high


def _min_interval(a: Rect, b: Rect) -> Rect:
    return min(a[0], b[0]), min(a[1], b[1])


def _max_interval(a: Rect, b: Rect) -> Rect:
    return max(a[0], b[0]), max(a[1], b[1])


def _product_interval(a: Rect, b: Rect) -> Rect:
    corners = [x * y for x in a for y in b]
    return clip_interval((min(corners), max(corners)))


def _quotient_interval(a: Rect, b: Rect) -> Rect:
    if b[0] <= 0 or a == UNBOUNDED:
        return UNBOUNDED
    corners = [x // y for x in a for y in b]
    return min(*corners, 0), max(*corners, 0)


def _remainder_interval(a: Rect, b: Rect) -> Rect:
    if b[0] <= 0:
        return UNBOUNDED
    return (0, b[1] - 1) if a[0] < 0 else (0, min(a[1], b[1] - 1))


def _difference_interval(a: Rect, b: Rect) -> Rect:
    return add_intervals(a, scale_interval(b, -1))


def _negated_interval(a: Rect) -> Rect:
    return scale_interval(a, -1)


def _masked_interval(a: Rect, b: Rect) -> Rect:
    masks = [high for low, high in (a, b) if low >= 0]  # no bit is set that such a number has not
    return (0, min(masks)) if masks else UNBOUNDED


INTERVAL_RULES: dict[str, Callable[..., Rect]] = {
    "min": _min_interval, "max": _max_interval, "mul": _product_interval, "floordiv": _quotient_interval,
    "floormod": _remainder_interval, "add": add_intervals, "sub": _difference_interval, "neg": _negated_interval,
    "band": _masked_interval,
}  # fmt: skip
"""The interval of a function's results, by the intervals of its arguments."""


def split_multiples(value: Linear, divisor: int) -> tuple[Linear, Linear]:
    """`value` as multiple * divisor + rest, every factor of the rest smaller than the divisor."""
    whole: dict[ScalarExpr, int] = {}
    rest: dict[ScalarExpr, int] = {}
    for atom, factor in value.terms.items():
        quotient = factor // divisor if factor > 0 else -(-factor // divisor)  # towards zero: small rests stay small
        if quotient:
            whole[atom] = quotient
        if factor - quotient * divisor:
            rest[atom] = factor - quotient * divisor
    return Linear(whole, value.const // divisor), Linear(rest, value.const % divisor)


def block_sizes(value: Linear, divisor: int) -> list[int]:
    """The common divisors (above 1) of a divisor and single factors of a sum, largest first."""
    return sorted({math.gcd(divisor, f) for f in value.terms.values()} - {1}, reverse=True)


def split_block(value: Linear, size: int) -> tuple[Linear, Linear]:
    """`value` as high * size + low, `low` with the terms that the size does not divide."""
    high = {a: f // size for a, f in value.terms.items() if f % size == 0}
    low = {a: f for a, f in value.terms.items() if f % size}
    return Linear(high), Linear(low, value.const)


def verdicts(op: str, low: int, high: int) -> tuple[tuple[bool, bool], ...]:
    """For `difference op 0` with bounds: (is it decided, the answer), for both answers."""
    return {
        "lt": ((high < 0, True), (low >= 0, False)),
        "le": ((high <= 0, True), (low > 0, False)),
        "gt": ((low > 0, True), (high <= 0, False)),
        "ge": ((low >= 0, True), (high < 0, False)),
        "eq": ((low == high == 0, True), (low > 0 or high < 0, False)),
        "ne": ((low > 0 or high < 0, True), (low == high == 0, False)),
    }[op]


def inequalities(op: str, difference: Linear, holds: bool) -> Iterator[Linear]:
    """What is at least 0 if `difference op 0` holds, or does not."""
    if not holds:
        op = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}.get(op, op)
    if op in ("gt", "ge", "eq"):
        yield difference + Linear({}, -1 if op == "gt" else 0)
    if op in ("lt", "le", "eq"):
        yield difference * -1 + Linear({}, -1 if op == "lt" else 0)


def divided_interval(op: str, inside: Rect, divisor: int) -> Rect:
    """The interval of a quotient or a remainder."""
    first, last = inside[0] // divisor, inside[1] // divisor
    if op == "floordiv":
        return first, last
    return (inside[0] % divisor, inside[1] % divisor) if first == last else (0, divisor - 1)
