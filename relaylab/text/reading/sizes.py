"""Sizes with names as text writes them, to dimensions. A name is one size in all of a text."""

from __future__ import annotations

from typing import cast

from relaylab.ir.dims import MOST_TERMS, Dim, SizeVar, SymbolicDim, dim, larger
from relaylab.support.errors import RelayError
from relaylab.text.reading.size_names import DIVISIONS, LARGER
from relaylab.text.reading.state import State
from relaylab.text.scalars import BadNumber, parse_number, special_number

Size = int | SymbolicDim
MOST = 1 << 63


def _quotient(a: Size, b: Size) -> Dim | int:
    return a // b


def _remainder(a: Size, b: Size) -> Dim | int:
    return a % b


CALLS = {**dict(zip(DIVISIONS, (_quotient, _remainder))), LARGER: larger}


def at_size(p: State, known: bool = False) -> bool:
    """Whether a size with a name comes next, or an expression of such; with `known` one that was read before."""
    at = p.i + (p.kinds[p.i] == "-")
    if p.kinds[at] == "(" and not known:
        return True
    if p.kinds[at] == "number":
        return at == p.i and p.kinds[at + 1] in ("*", "+", "-")
    if p.kinds[at] != "name" or (known and special_number(p.texts[at], plain=True)):
        return False
    return not known or p.texts[at] in p.names.sizes or (p.texts[at] in CALLS and p.kinds[at + 1] == "(")


def size(p: State) -> Dim:
    """A dimension that is a size with a name, or made of such."""
    token = p.i
    try:
        return dim(_sum(p, 0))
    except BadNumber as bad:
        raise p.stop(bad.args[0], bad.args[1], token, bad.args[2]) from None
    except RelayError as error:
        if error.code.startswith("parse"):
            raise
        raise p.stop("parse.bad-dimension", error.message, token, "give the size a name of its own") from None


def _sum(p: State, depth: int) -> Size:
    p.check_depth(depth, "sizes")
    negative = p.accept("-")
    total = _product(p, depth)
    total = -total if negative else total
    while p.kinds[p.i] in ("+", "-"):
        added = p.accept("+") or not p.accept("-")
        term = _product(p, depth)
        total = _bounded(p, cast(Size, total + term if added else total - term))
    return total


def _product(p: State, depth: int) -> Size:
    found = _atom(p, depth)
    while p.accept("*"):
        found = _bounded(p, cast(Size, found * _atom(p, depth)))
    return found


def _bounded(p: State, value: Size) -> Size:
    """The value of what was just read, if its numbers are those of extents and its products are not long."""
    terms = {(): value} if isinstance(value, int) else value.terms
    if any(abs(factor) >= MOST or len(product) > MOST_TERMS for product, factor in terms.items()):
        raise p.stop("parse.bad-dimension", "a size is too large", p.i - 1, "extents are whole numbers of 64 bits")
    return value


def _atom(p: State, depth: int) -> Size:
    token, kind, text = p.i, p.kinds[p.i], p.texts[p.i]
    p.i += 1
    if kind == "number":
        if not text.isdigit():
            raise p.stop("parse.bad-dimension", f"`{text}` is no size", token, "sizes are whole numbers")
        return int(parse_number(text)[0])
    if kind == "(":
        value = _sum(p, depth + 1)
        p.expect(")", opened=token)
        return value
    if kind != "name":
        p.i = token
        raise p.unexpected("a size", help="sizes are numbers, names, and sums, products, floordiv(n, 2) of these")
    if text in CALLS and p.kinds[p.i] == "(":
        p.i += 1
        value = _sum(p, depth + 1)
        p.expect(",", "`,` and " + ("another size" if text == LARGER else "the number to divide by"))
        by, other = p.i, _sum(p, depth + 1)
        if text in DIVISIONS and (not isinstance(other, int) or other < 1):
            raise p.stop("parse.bad-dimension", "a size is divided by a positive number", by, "as in floordiv(n, 2)")
        found = cast(Size, CALLS[text](value, other))
        p.expect(")", opened=token + 1)
        return found
    if "/" in text:
        name, _, by = text.partition("/")
        help = f"a division is floordiv({name}, {by or 2})"
        raise p.stop("parse.bad-dimension", f"`{text}` is no name of a size", token, help)
    if text not in p.names.sizes:
        p.names.sizes[text] = SizeVar(p.meta.size_name(text))
    return p.names.sizes[text]
