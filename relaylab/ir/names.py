"""Fresh names: `x`, `x_1`, `x_2` …

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relaylab.ir.expr import GlobalVar, Var
from relaylab.ir.op import OPERATORS
from relaylab.ir.types import DTYPES, TypeData
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from relaylab.ir.module import IRModule


KEYWORDS = frozenset("let fn def if else type match match? extern free_var ref ref_read ref_write _".split())
# (?>(?:…)*) where (?:…)*+ would do: Python before 3.11.4 loses the place behind a possessive group
IDENT = r"[A-Za-z_](?>(?:[A-Za-z0-9_]|/(?![/*]))*)"
"""What the text format takes for a name."""
_LITERALS = {"True", "False"} | {f"{word}f{width}" for word in ("inf", "nan") for width in ("", "16", "32", "64")}
_TYPES = {"Tensor", "uint1", "int", "uint", "float", *DTYPES}


def check_names(data: TypeData) -> None:
    """RelayValueError if the text format cannot write a data type: its name and those of its constructors stay."""
    header = data.header.name_hint
    for name, what, taken in (
        (header, "a data type", header in _TYPES),
        *((c.name_hint, "a constructor", c.name_hint in OPERATORS) for c in data.constructors),
    ):
        if taken or name in KEYWORDS or name in _LITERALS or not re.fullmatch(IDENT, name):
            raise RelayValueError(
                f"{what} cannot be named {name!r}" + (", which means something else" if taken else ""),
                code="ir.bad-name",
                help="a letter or _, then letters, digits and _; no word of the text format",
            )


def parameter_names(params: Sequence[Var]) -> list[str]:
    """A name for each parameter, by which a value can be given to it: its own, or for a second one of the name
    `data` the next of `data1`, `data2` ... that no parameter has.
    """
    own = {p.name_hint for p in params}
    counters: dict[str, itertools.count[int]] = {}
    names: list[str] = []
    for p in params:
        name = p.name_hint
        counter = counters.get(name)
        if counter is not None:
            name = next(n for k in counter if (n := f"{p.name_hint}{k}") not in own)
            own.add(name)
        counters.setdefault(p.name_hint, itertools.count(1))
        names.append(name)
    return names


@checked
class NameSupply:
    """Hands out names that were not handed out before."""

    def __init__(self, prefix: str = ""):
        self.prefix = prefix
        self._next: dict[str, int] = {}

    def _full(self, name: str, add_prefix: bool) -> str:
        name = name.replace(".", "_")
        return f"{self.prefix}_{name}" if add_prefix and self.prefix else name

    def fresh_name(self, name: str, add_prefix: bool = True) -> str:
        """`name` if it is free, else the first free of `name_1`, `name_2` …"""
        base = self._full(name, add_prefix)
        if base not in self._next:
            self._next[base] = 1
            return base
        while (candidate := f"{base}_{self._next[base]}") in self._next:
            self._next[base] += 1
        self._next[base] += 1
        self._next[candidate] = 1
        return candidate

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name out of circulation."""
        base = self._full(name, add_prefix)
        self._next.setdefault(base, 1)
        return base

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether the name is taken."""
        return self._full(name, add_prefix) in self._next


@checked
class GlobalVarSupply:
    """Fresh global variables, beside those of a module, of several, or of a name supply."""

    def __init__(self, value: IRModule | Sequence[IRModule] | NameSupply | None = None):
        self.name_supply = value if isinstance(value, NameSupply) else NameSupply()
        self._known: dict[str, GlobalVar] = {}
        modules: IRModule | Sequence[IRModule] = () if value is None or isinstance(value, NameSupply) else value
        for mod in modules if isinstance(modules, Sequence) else [modules]:
            for gv in mod.functions:
                self.reserve_global(gv)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A global variable with a name that is not taken."""
        gv = GlobalVar(self.name_supply.fresh_name(name, add_prefix))
        self._known[gv.name_hint] = gv
        return gv

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The one global variable of that name."""
        full = self.name_supply.reserve_name(name, add_prefix)
        return self._known.setdefault(full, GlobalVar(full))

    def reserve_global(self, var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take in a global variable that exists."""
        if not allow_conflict and self._known.get(var.name_hint, var) is not var:
            raise RelayValueError(f"there are two global variables named `{var.name_hint}`", code="ir.duplicate-global")
        self.name_supply.reserve_name(var.name_hint, add_prefix=False)
        self._known[var.name_hint] = var
