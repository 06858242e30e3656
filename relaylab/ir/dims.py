"""The dimensions of shapes: numbers, unknown ones, and sizes with names and the arithmetic on them.

A `SizeVar` is a number that is not negative and is known at run time. Sums, products, floor divisions by numbers and
the larger of two are again dimensions, kept in one normal form: a polynomial with whole coefficients over sizes, floor
divisions, whose numerators are reduced by the divisor, and what is 0 if it is less. Equal normal forms are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import numpy as np

from relaylab.ir.node import expect
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of


class IntImm(int):
    """A constant dimension or index: an int that also has `.value` and `.dtype`."""

    __slots__ = ()
    dtype = "int32"

    @property
    def value(self) -> int:
        return int(self)


class AnyDim:
    """A dimension that is known only at run time, written `?`."""

    __slots__ = ()

    def __eq__(self, other: object, /) -> bool:
        return type(other) is AnyDim

    def __hash__(self) -> int:
        return 0x3F

    def __repr__(self) -> str:
        return "?"


Dim = IntImm | AnyDim

MOST_TERMS, DEEPEST_DIVISION = 64, 32
"""How large expressions may grow, in terms and in divisions within divisions."""
MOST_BRANCHES = 4
"""How many sizes that are 0 if they are less are looked at in both ways."""


class UndecidedSize(RelayTypeError):
    """What is asked of a dimension is known only at run time, or is not kept as an expression."""


def _undecided(what: str) -> NoReturn:
    raise UndecidedSize(f"{what} is known only at run time", code="type.symbolic", help="give the size as a number")


class SymbolicDim(AnyDim):
    """A size with a name, or an expression of such: sums, products and floor divisions by a number stay exact; what is
    not one of these raises `UndecidedSize`.
    """

    __slots__ = ()
    dtype = "int32"

    @property
    def terms(self) -> Mapping[Monomial, int]:
        """The coefficients of the products of sizes; `()` is the product of none."""
        raise NotImplementedError

    def __add__(self, other: object) -> Dim:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dim:
        return _sum(self, other, -1)

    def __rsub__(self, other: object) -> Dim:
        return -self + other

    def __neg__(self) -> SymbolicDim:
        return cast(SymbolicDim, _made({m: -c for m, c in self.terms.items()}))

    def __mul__(self, other: object) -> Dim:
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Dim:
        return _quotient(self, other)

    def __mod__(self, other: object) -> Dim:
        return _sum(self, _product_of(self // other, other), -1)

    def __rmod__(self, other: object) -> NoReturn:
        _undecided(f"{other} % {self}")

    def __rfloordiv__(self, other: object) -> NoReturn:
        _undecided(f"{other} // {self}")

    def __truediv__(self, other: object) -> NoReturn:
        _undecided(f"{self} / {other}")

    def __lt__(self, other: object) -> bool:
        return _positive(self, other, -1, 0)

    def __gt__(self, other: object) -> bool:
        return _positive(self, other, 1, 0)

    def __le__(self, other: object) -> bool:
        return _positive(self, other, -1, 1)

    def __ge__(self, other: object) -> bool:
        return _positive(self, other, 1, 1)

    def __round__(self, ndigits: int | None = None) -> SymbolicDim:
        return self

    def __int__(self) -> NoReturn:
        _undecided(f"the size `{self}`")


class SizeVar(SymbolicDim):
    """A dimension known only at run time that has a name; equal only to itself."""

    __slots__ = ("name",)

    def __init__(self, name: str = "n", dtype: str = "int32"):
        self.name = expect(name, str, "the name of a SizeVar")

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def terms(self) -> Mapping[Monomial, int]:
        return {(self,): 1}

    def __repr__(self) -> str:
        return self.name


class Quotient:
    """`numerator // divisor` where nothing can be divided out: an atom of the normal form."""

    __slots__ = ("numerator", "divisor", "depth")
    kind = "tir.FloorDiv"

    def __init__(self, numerator: SymbolicDim, divisor: int):
        self.numerator, self.divisor = numerator, divisor
        inner = (a.depth for m in numerator.terms for a in m if isinstance(a, Quotient))
        self.depth = 1 + max(inner, default=0)
        if self.depth > DEEPEST_DIVISION:
            _undecided("a division so deep")

    def value(self, numerator: Dim | int) -> Dim | int:
        """What it is where its numerator is this."""
        return apply_operation(self.kind, numerator, self.divisor)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.divisor, self.numerator) == (other.divisor, other.numerator)

    def __hash__(self) -> int:
        return hash((self.numerator, self.divisor))

    def __repr__(self) -> str:
        inner = f"{self.numerator}"
        return f"{inner if isinstance(self.numerator, SizeVar) else f'({inner})'} // {self.divisor}"


class Positive(Quotient):
    """The numerator, or 0, which stands in the place of the divisor, if it is less: another atom."""

    __slots__ = ()
    kind = "tir.Max"

    def __repr__(self) -> str:
        return f"max({self.numerator}, 0)"


Atom = SizeVar | Quotient
Monomial = tuple[Atom, ...]


class SizeExpr(SymbolicDim):
    """An expression of sizes in normal form; equal to what has the same one. Arithmetic on sizes makes them."""

    __slots__ = ("_terms", "_key", "_hash", "_operation")

    def __init__(self, terms: Mapping[Monomial, int]):
        if len(terms) > MOST_TERMS:
            _undecided("an expression of so many terms")
        self._terms = dict(sorted(terms.items(), key=lambda t: (-len(t[0]), t[1] < 0, tuple(map(repr, t[0])))))
        self._key = frozenset(self._terms.items())
        self._hash = hash(self._key)
        self._operation: tuple[str, Dim, Dim] | None = None

    @property
    def terms(self) -> Mapping[Monomial, int]:
        return self._terms

    def __eq__(self, other: object, /) -> bool:
        return self is other or (isinstance(other, SizeExpr) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[SizeExpr], tuple[dict[Monomial, int]]]:
        return SizeExpr, (self._terms,)  # the hash follows from which objects the sizes are

    def __repr__(self) -> str:
        out = ""
        for monomial, factor in self.terms.items():
            sign = ("-" if factor < 0 else "") if not out else " - " if factor < 0 else " + "
            out += sign + _term_text(monomial, abs(factor))
        return out

    @property
    def operation(self) -> tuple[str, Dim, Dim]:
        """(kind, left, right): what is computed last, as a key of `OPERATIONS`; the same objects every time."""
        if self._operation is None:
            self._operation = self._last()
        return self._operation

    def _last(self) -> tuple[str, Dim, Dim]:
        *others, (monomial, factor) = self.terms.items()
        if others:
            kind = "tir.Sub" if factor < 0 else "tir.Add"
            return kind, _made(dict(others)), _made({monomial: abs(factor)})
        if factor != 1:
            return "tir.Mul", _made({monomial: 1}), IntImm(factor)
        atom = monomial[-1]
        if len(monomial) == 1 and isinstance(atom, Quotient):
            return atom.kind, atom.numerator, IntImm(atom.divisor)
        return "tir.Mul", _made({monomial[:-1]: 1}), _made({(atom,): 1})


OPERATIONS: Mapping[str, Callable[[Any, Any], Dim | int]] = {
    "tir.Add": lambda a, b: a + b,
    "tir.Sub": lambda a, b: a - b,
    "tir.Mul": lambda a, b: a * b,
    "tir.FloorDiv": lambda a, b: a // b,
    "tir.FloorMod": lambda a, b: a % b,
    "tir.Max": lambda a, b: larger(a, b),
    "tir.Min": lambda a, b: smaller(a, b),
}
"""The operations of expressions by TVM's names of them."""


def apply_operation(kind: str, left: Dim | int, right: Dim | int) -> Dim | int:
    """What an operation of `OPERATIONS` gives for two dimensions or numbers."""
    unknown = next((d for d in (left, right) if type(d) is AnyDim), None)
    return unknown or OPERATIONS[kind](left, right)


def larger(a: Dim | int, b: Dim | int) -> Dim | int:
    """The larger of two dimensions: `b` and what `a` is more than it."""
    more = apply_operation("tir.Sub", a, b)
    if not isinstance(more, SymbolicDim):
        return more if isinstance(more, AnyDim) else a if more >= 0 else b
    ahead, behind = _least(more), _least(-more)
    if ahead is not None and ahead >= 0:
        return a
    return b if behind is not None and behind >= 0 else SizeExpr({(Positive(more, 0),): 1}) + b


def smaller(a: Dim | int, b: Dim | int) -> Dim | int:
    """The smaller of two dimensions."""
    return apply_operation("tir.Sub", apply_operation("tir.Add", a, b), larger(a, b))


def _term_text(monomial: Monomial, factor: int) -> str:
    atoms = [str(a) if isinstance(a, SizeVar) or len(monomial) == factor == 1 else f"({a})" for a in monomial]
    return " * ".join([str(factor)] * (factor != 1 or not monomial) + atoms)


def _made(terms: Mapping[Monomial, int]) -> Dim:
    """The dimension of a polynomial."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return IntImm(0)
    if len(kept) == 1:
        (monomial, factor) = next(iter(kept.items()))
        if not monomial:
            return IntImm(factor)
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], SizeVar):
            return monomial[0]
    return SizeExpr(kept)


def _terms_of(value: object) -> Mapping[Monomial, int] | None:
    """A polynomial; None for what is unknown or no whole number."""
    if isinstance(value, SymbolicDim):
        return value.terms
    if isinstance(value, (int, float, np.number)) and float(cast(float, value)).is_integer():
        return {(): int(cast(int, value))}
    return None


def _sum(a: SymbolicDim, b: object, sign: int) -> Dim:
    other = _terms_of(b)
    if other is None:
        return _unknown(b)
    out = dict(a.terms)
    for monomial, factor in other.items():
        out[monomial] = out.get(monomial, 0) + sign * factor
    return _made(out)


def _product(a: SymbolicDim, b: object) -> Dim:
    other = _terms_of(b)
    if other is None:
        return _unknown(b)
    if len(a.terms) * len(other) > MOST_TERMS:
        _undecided("an expression of so many terms")
    out: dict[Monomial, int] = {}
    for left, x in a.terms.items():
        for right, y in other.items():
            monomial = tuple(sorted(left + right, key=lambda atom: (repr(atom), hash(atom))))
            out[monomial] = out.get(monomial, 0) + x * y
    return _made(out)


def _product_of(a: Dim, b: object) -> Dim:
    return _product(a, b) if isinstance(a, SymbolicDim) else dim(cast(int, a) * cast(int, b))


def _unknown(value: object) -> Dim:
    """The result for an operand that is `?`; anything else is no operand."""
    if type(value) is AnyDim:
        return value
    _undecided(f"arithmetic on a size with {kind_of(value)}")


def _quotient(a: SymbolicDim, b: object) -> Dim:
    other = _terms_of(b)
    if other is None:
        return _unknown(b)
    divisor = other.get((), 0) if len(other) == 1 else 0
    if isinstance(b, SymbolicDim) or divisor < 1:
        _undecided(f"{a} // {b}")
    whole = _made({m: c // divisor for m, c in a.terms.items()})
    rest = _made({m: c % divisor for m, c in a.terms.items()})
    return _sum(cast(SymbolicDim, _reduced(rest, divisor)), whole, 1) if isinstance(rest, SymbolicDim) else whole


def _reduced(a: SymbolicDim, divisor: int) -> Dim:
    """`a // divisor` for coefficients below the divisor."""
    common = math.gcd(divisor, *(c for m, c in a.terms.items() if m))
    if common > 1:  # floor((g x + k) / (g d)) = floor((x + floor(k / g)) / d)
        return _quotient(cast(SymbolicDim, _made({m: c // common for m, c in a.terms.items()})), divisor // common)
    (first, factor), *others = a.terms.items()
    inner = first[0] if len(first) == factor == 1 else None
    if type(inner) is Quotient and all(not m for m, _ in others):  # floor((floor(x / c) + k) / d)
        shifted = inner.numerator + inner.divisor * sum(c for _, c in others)
        return _quotient(cast(SymbolicDim, shifted), inner.divisor * divisor)
    return _made({(Quotient(a, divisor),): 1})


def _least(value: Dim | int) -> int | None:
    """A number that the dimension is never below, as sizes are not negative; None if none is known."""
    if isinstance(value, int):
        return int(value)
    found = [_least_term(*term) for term in cast(SymbolicDim, value).terms.items()]
    total = None if None in found else sum(cast("list[int]", found))
    split = _either(cast(SymbolicDim, value))
    if split is not None:
        least, sides = split[0], [_least(side) for side in split[1:]]
        known = [side for side in (*sides, total) if side is not None]
        return (min if least else max)(known) if known and not (least and None in sides) else total
    below = _multiplied_out(cast(SymbolicDim, value)) if total is None else None
    return total if below is None else _least(below)


def _either(value: SymbolicDim) -> tuple[bool, Dim, Dim | int] | None:
    """For a size that is 0 if it is less: two expressions, and whether `value` is their smaller one, not the larger."""
    positive = [(m, c) for m, c in value.terms.items() if len(m) == 1 and type(m[0]) is Positive]
    if not 0 < len(positive) <= MOST_BRANCHES:
        return None
    monomial, factor = positive[0]
    without = _sum(value, _made({monomial: factor}), -1)
    return (
        factor < 0,
        without,
        apply_operation("tir.Add", without, _product_of(cast(Any, monomial[0]).numerator, factor)),
    )


def _least_term(monomial: Monomial, factor: int) -> int | None:
    bounds = [(0, 1) if isinstance(a, (SizeVar, Positive)) else (_least(a.numerator), a.divisor) for a in monomial]
    known = [least // by for least, by in bounds if least is not None]
    if monomial and (factor < 0 or len(known) < len(bounds)):
        return None
    return None if len(known) > 1 and min(known) < 0 else factor * math.prod(known)


def _multiplied_out(value: SymbolicDim) -> Dim | int | None:
    """What is never above `value`, with k * (n // k) as a number from n - k + 1 to n; None if it has no such part."""
    found: Any = value
    for monomial, factor in value.terms.items():
        if len(monomial) == 1 and type(q := monomial[0]) is Quotient and (times := factor // q.divisor):
            least: Any = q.numerator - (q.divisor - 1 if times > 0 else 0)
            found = found - _made({monomial: times * q.divisor}) + times * least
    return None if found is value or type(found) is AnyDim else found


def _positive(a: SymbolicDim, b: object, sign: int, least: int) -> bool:
    """Whether sign * (a - b) > -least, if it is the same for all sizes."""
    distance = a - b
    if type(distance) is not AnyDim:
        ahead, behind = _least(distance), _least(-cast("int | SymbolicDim", distance))
        low, high = (ahead, behind) if sign > 0 else (behind, ahead)
        if low is not None and low > -least:
            return True
        if high is not None and high >= least:
            return False
    _undecided(f"whether {a} is more than {b}")


def differ(a: Dim, b: Dim) -> bool:
    """Whether two dimensions have different values whatever the sizes are."""
    if not (isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim)) or AnyDim in (type(a), type(b)):
        return isinstance(a, int) and isinstance(b, int) and a != b
    first, other = (a, b) if isinstance(a, SymbolicDim) else (cast(SymbolicDim, b), a)
    try:
        terms: Mapping[Monomial, int] = getattr(first - other, "terms", {})
        if terms and terms.get((), 0) % math.gcd(*(factor for monomial, factor in terms.items() if monomial)):
            return True  # twice a size is never 1: what is added is no multiple of all factors
        return first < other or first > other
    except UndecidedSize:
        return False


def dim(value: object) -> Dim:
    """A dimension from an int, an `AnyDim`, or an object with `.value`."""
    if isinstance(value, (IntImm, AnyDim)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        if value < 0:
            raise RelayValueError(f"a dimension cannot be negative: {value}", code="type.negative-dimension")
        return IntImm(cast(int, value))
    raise RelayTypeError(
        f"a dimension is an int or relay.Any(), not {kind_of(value)}",
        code="type.bad-dimension",
        help="write relay.Any() for an unknown one",
    )
