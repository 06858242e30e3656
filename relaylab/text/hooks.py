"""What other rooms hang into the text room (which imports none of them)."""

from __future__ import annotations

from relaylab.ir.expr import Expr
from relaylab.ir.module import IRModule
from relaylab.support.hook import Hook


@Hook
def typed(mod: IRModule) -> IRModule:
    """`mod` after type inference, which `parse` runs on every module that it returns; as it is while none is loaded."""
    return mod


@Hook
def untold(root: Expr, mod: IRModule | None) -> set[Expr]:
    """The typed calls below `root` whose type arguments inference would not find again; none while none is loaded."""
    return set()
