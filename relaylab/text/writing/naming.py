"""The names that programs get when they are printed: readable, legal, and each used once."""

from __future__ import annotations

import re

from relaylab.ir.names import IDENT, KEYWORDS
from relaylab.ir.types import DTYPES
from relaylab.text.reading.lexer import LOCAL
from relaylab.text.scalars import quote

_LEGAL = re.compile(IDENT)
_LEGAL_LOCAL = re.compile(LOCAL)
RESERVED = KEYWORDS | {"True", "False"}
_ILLEGAL = re.compile(r"[^A-Za-z0-9_/]|/(?=[/*])")


class UniqueNames:
    """Hands out `x`, `x1`, `x2` …"""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """`name` if it is free, else `name` with the next number."""
        if name not in self._last:
            self._last[name] = 0
            return name
        number = self._last[name] + 1
        while f"{name}{number}" in self._last:
            number += 1
        self._last[name] = number
        self._last[f"{name}{number}"] = 0
        return f"{name}{number}"


def variable_name(hint: str) -> str:
    """`%x` for the hint `x`: a `v` before what is not a letter, `_` for what names cannot hold."""
    for name in (hint, _ILLEGAL.sub("_", hint)):
        name = name if name[:1].isalpha() else f"v{name}"
        if _LEGAL_LOCAL.fullmatch(name):
            return f"%{name}"
    return "%v"


def like_projection(hint: str) -> bool:
    """Whether a variable `%x.0` could be taken for field 0 of `%x`."""
    return hint[-1:].isdigit() and hint.rpartition(".")[2].isdigit() and "." in hint


def global_text(name: str) -> str:
    """`@f`, or `@"a name with other characters"`: the name of a function must stay as it is."""
    return f"@{name}" if _LEGAL.fullmatch(name) else f"@{quote(name)}"


def type_var_name(hint: str) -> str:
    """The name of a type parameter, which no other type has."""
    legal = _LEGAL.fullmatch(hint) and hint not in RESERVED and hint not in DTYPES
    return hint if legal else "T" + _ILLEGAL.sub("_", hint)
