"""How many times an expression of sizes is in another that is a multiple of it, as heads and groups are counted."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, cast

from relaylab.ir.dims import Dim, SizeExpr, SizeVar, SymbolicDim, UndecidedSize


def times_in(a: object, b: SymbolicDim) -> Dim | int:
    """`a // b` where `a` is a multiple of `b` whatever the sizes are; a size that divides is not 0. Raises
    `UndecidedSize` where sizes do not tell.
    """
    undecided = UndecidedSize(
        f"{a} // {b} is known only at run time", code="type.symbolic", help="give the size as a number"
    )
    if not isinstance(a, SymbolicDim):
        raise undecided
    (unit, factor), *others = b.terms.items()
    if others:
        many = a.terms.get(unit, 0) // factor
        if not many or a != b * many:
            raise undecided
        return many
    total: Any = 0
    for monomial, times in a.terms.items():
        rest = Counter(monomial)
        rest.subtract(unit)
        if min(rest.values(), default=0) < 0 or factor < 1:
            raise undecided
        atoms = [v if isinstance(v, SizeVar) else SizeExpr({(v,): 1}) for v in rest.elements()]
        total = total + math.prod(cast("list[Any]", atoms)) * times
    return total // factor
