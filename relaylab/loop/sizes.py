"""Index arithmetic with sizes that are known at run time: products of them as atoms, division by such products.

A sum (`Linear`) has numbers as factors; what multiplies an axis by a size is an atom of it, with its factors in one
order, so that equal products are equal expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaylab.loop.affine import INTERVAL_RULES, UNBOUNDED, Linear, Rect
from relaylab.loop.expr import INDEX, Apply, Axis, Const, ScalarExpr, Size, children, post_order
from relaylab.support.errors import RelayTypeError

MOST_TERMS = 8


def product_of(a: Linear, b: Linear) -> Linear | None:
    """The product of two sums of which one has only sizes; None of any others."""
    if not any(all(map(_is_size, side.terms)) for side in (a, b)) or len(a.terms) * len(b.terms) > MOST_TERMS:
        return None
    total = a * b.const + Linear(b.terms) * a.const
    for x, f in a.terms.items():
        for y, g in b.terms.items():
            total += Linear({_product([*factors(x), *factors(y)]): f * g})
    return total


def divided(value: Linear, sizes: ScalarExpr) -> tuple[Linear, Linear] | None:
    """Quotient and remainder by a product of sizes, where the terms of the sum tell them; None elsewhere.

    What is left of the terms that the product divides has to be smaller than it, as an axis is than its size.
    """
    divisor = factors(sizes)
    if not all(isinstance(s, Size) for s in divisor):
        return None
    whole, below = Linear({}), Linear({}, value.const)
    for atom, factor in value.terms.items():
        left = _without(factors(atom), divisor)
        if left is None:
            below += Linear({atom: factor})
        else:
            whole += Linear({_product(left): factor}) if left else Linear({}, factor)
    return (whole, below) if _is_below(below, divisor) else None


def _is_below(value: Linear, sizes: Sequence[ScalarExpr]) -> bool:
    """Whether a sum is p * (b * c) + q * c + r for axes p, q, r of the sizes a, b, c: it is in 0 .. a * b * c - 1."""
    terms = dict(value.terms)
    while terms:
        steps = ((t, _stepped(t, sizes)) for t in terms)
        term, left = next(((t, left) for t, left in steps if left is not None), (None, None))
        if term is None or left is None or terms.pop(term) != 1:
            return False
        sizes = left
    return value.const == 0


def _stepped(term: ScalarExpr, sizes: Sequence[ScalarExpr]) -> list[ScalarExpr] | None:
    """All sizes but that of the axis which a term multiplies by them; None for other terms."""
    axis, *others = factors(term)
    if not isinstance(axis, Axis) or axis.size is None or axis.size not in sizes:
        return None
    left = _without(sizes, [axis.size])
    return left if left is not None and sorted(map(id, left)) == sorted(map(id, others)) else None


def _without(factors: Sequence[ScalarExpr], taken: Sequence[ScalarExpr]) -> list[ScalarExpr] | None:
    """The factors that are left when some are taken out; None if one is not among them."""
    left = list(factors)
    for size in taken:
        if size not in left:
            return None
        left.remove(size)
    return left


def factors(node: ScalarExpr) -> list[ScalarExpr]:
    """What is multiplied, at most one axis first."""
    found: list[ScalarExpr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Apply) and top.op == "mul" and top.dtype == INDEX:
            stack.extend(reversed(top.args))
        else:
            found.append(top)
    return found


def _product(factors: Sequence[ScalarExpr]) -> ScalarExpr:
    """The product, sizes by their slots; 1 of none."""
    sizes = sorted((s for s in factors if isinstance(s, Size)), key=lambda s: s.slot)
    total: ScalarExpr | None = None
    for size in sizes:
        total = size if total is None else Apply("mul", (total, size), INDEX)
    for other in (s for s in factors if not isinstance(s, Size)):
        total = other if total is None else Apply("mul", (other, total), INDEX)
    return Const(1, INDEX) if total is None else total


def _is_size(node: ScalarExpr) -> bool:
    return all(isinstance(s, Size) for s in factors(node))


_MEANING: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "max": max, "min": min,
}  # fmt: skip


Numbers = Sequence[int]
"""Those of sizes, by slot."""


def formula(value: ScalarExpr | int) -> Callable[[Numbers], int]:
    """What gives the number of an expression of sizes; RelayTypeError for any other."""
    if not isinstance(value, ScalarExpr):
        return lambda sizes: int(value)
    done: dict[ScalarExpr, Callable[[Numbers], int]] = {}
    for node in post_order(value):
        done[node] = _formula(node, [done[c] for c in children(node)])
    return done[value]


def largest(value: ScalarExpr | int, sizes: Numbers) -> int:
    """No less than the number of an expression of sizes up to these: a remainder may be larger for smaller ones."""
    if not isinstance(value, ScalarExpr):
        return int(value)
    bounds: dict[ScalarExpr, Rect] = {}
    for node in post_order(value):
        match node:
            case Size(_, slot):
                bounds[node] = 0, sizes[slot]
            case Const(number):
                bounds[node] = int(number), int(number)
            case Apply(op, args) if op in _MEANING:
                bounds[node] = INTERVAL_RULES[op](*[bounds[a] for a in args])
            case _:
                raise RelayTypeError(f"not a size: {node!r}", code="loop.not-a-size")
    return number_of(value, sizes) if bounds[value] == UNBOUNDED else max(bounds[value][1], 0)


def _formula(node: ScalarExpr, parts: Sequence[Callable[[Numbers], int]]) -> Callable[[Numbers], int]:
    match node:
        case Size(_, slot):
            return lambda sizes: sizes[slot]
        case Const(number):
            return lambda sizes: int(number)
        case Apply(op) if op in _MEANING:
            combine, (left, right) = _MEANING[op], parts
            return lambda sizes: combine(left(sizes), right(sizes))
        case _:
            pass
    raise RelayTypeError(f"not a size: {node!r}", code="loop.not-a-size")


def number_of(value: ScalarExpr | int, sizes: Numbers) -> int:
    """The number of an expression of sizes."""
    return formula(value)(sizes)
