"""Sizes as text writes them: `n`, `2 * n + 1`, `floordiv(n, 4)`, `max(n - 3, 0)`.

`//` begins a comment, so that a division has a word of its own, as in TVM.
Choices: docs/choices.md, The language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from relaylab.ir.dims import Dim, Positive, Quotient, SizeVar, SymbolicDim
from relaylab.ir.names import IDENT, KEYWORDS
from relaylab.text.scalars import special_number

DIVISIONS, LARGER = ("floordiv", "floormod"), "max"
_TAKEN = {*KEYWORDS, *DIVISIONS, LARGER, "True", "False", "None", "nullptr"}
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


class SizeNames:
    """What sizes are called in one text: their names if these can be read, each for one size."""

    def __init__(self) -> None:
        self.known: dict[SizeVar, str] = {}
        self._taken: set[str] = set()

    def name(self, size: SizeVar) -> str:
        """The name of a size, the same every time."""
        if size not in self.known:
            hint = readable(size.name)
            name, number = hint, 0
            while name in self._taken:
                number += 1
                name = f"{hint}_{number}"
            self._taken.add(name)
            self.known[size] = name
        return self.known[size]

    def text(self, d: Dim) -> str:
        """A dimension as it is read back."""
        if isinstance(d, SizeVar):
            return self.name(d)
        if not isinstance(d, SymbolicDim):
            return str(d)
        out = ""
        for monomial, factor in d.terms.items():
            sign = ("-" if factor < 0 else "") if not out else " - " if factor < 0 else " + "
            number = [str(abs(factor))] if abs(factor) != 1 or not monomial else []
            out += sign + " * ".join([*number, *map(self._atom, monomial)])
        return out

    def _atom(self, atom: SizeVar | Quotient) -> str:
        if isinstance(atom, SizeVar):
            return self.name(atom)
        if isinstance(atom, Positive):
            return f"{LARGER}({self.text(atom.numerator)}, 0)"
        return f"floordiv({self.text(atom.numerator)}, {atom.divisor})"  # at most `DEEPEST_DIVISION` within each other


def readable(hint: str) -> str:
    """A name as the text format can have it."""
    name = _ILLEGAL.sub("_", hint)
    name = name if name[:1].isalpha() or name[:1] == "_" else f"n{name}"
    taken = name in _TAKEN or special_number(name, plain=True) is not None
    return f"{name}_" if taken or not re.fullmatch(IDENT, name) else name


def named_sizes(sizes: Iterable[object]) -> dict[str, SizeVar]:
    """Sizes by the names that a text calls them by which was printed after them, in their order."""
    names = SizeNames()
    return {names.name(size): size for size in sizes if isinstance(size, SizeVar)}
