"""Functions of a module that a transformation converts as it meets calls of them."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir.adt import Constructor, Match, PatternConstructor, patterns
from relaylab.ir.expr import Call, Function, GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply
from relaylab.ir.types import FuncType, Type, type_leaves
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayValueError


def declared_to_hold(func: Function, kind: type[Type]) -> Constructor | None:
    """A constructor that a function calls or matches whose declaration, which conversions leave, has such a type."""
    nodes = list(walk((func,)))
    taken = [p for n in nodes if isinstance(n, Match) for c in n.clauses for p in patterns(c.lhs)]
    found = [n.op for n in nodes if isinstance(n, Call)] + [
        p.constructor for p in taken if isinstance(p, PatternConstructor)
    ]
    own = (c for c in found if isinstance(c, Constructor))
    return next((c for c in own if any(isinstance(p, kind) for t in c.inputs for p in type_leaves(t))), None)


def refuse_data_with_functions(func: Function) -> None:
    """RelayValueError for data types that are declared to hold functions (`List[fn …]` is none)."""
    found = declared_to_hold(func, FuncType)
    if found is not None:
        raise RelayValueError(
            f"the constructor {found.name_hint} is declared to hold a function",
            code="pass.data-with-functions",
            help="give the data type a parameter",
        )


class Conversions:
    """Converted functions of a module under names of their own, each made once when it is first asked for."""

    def __init__(self, mod: IRModule, suffix: str):
        self.mod, self.suffix, self.supply = mod, suffix, GlobalVarSupply(mod)
        self.names: dict[GlobalVar, GlobalVar] = {}
        self.waiting: list[GlobalVar] = []

    def name(self, gv: GlobalVar) -> GlobalVar:
        """The name of the converted function."""
        if gv not in self.names:
            self.names[gv] = self.supply.fresh_global(f"{gv.name_hint}_{self.suffix}")
            self.waiting.append(gv)
        return self.names[gv]

    def finish(self, convert: Callable[[Function], Function]) -> None:
        """Put every function that was asked for into the module, and those that these ask for."""
        made: dict[GlobalVar, Function] = {}
        while self.waiting:
            gv = self.waiting.pop()
            made[self.names[gv]] = convert(self.mod.functions[gv])
        for gv, func in made.items():
            self.mod[gv] = func
