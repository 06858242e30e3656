"""Taking parts out of a module: intermediate values."""

from __future__ import annotations

from relaylab.ir.expr import Call, Tuple, TupleGetItem
from relaylab.ir.module import IRModule
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayIndexError


def extract_intermediate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module that computes one intermediate value of `main`: `expr_id` counts calls, tuples and projections in the
    order in which they are computed.

    Raises `RelayIndexError` if there is no such value.
    """
    values = [n for n in walk((mod["main"],)) if isinstance(n, (Call, Tuple, TupleGetItem))]
    if not 0 <= expr_id < len(values):
        raise RelayIndexError(
            f"there is no expression {expr_id} in main",
            code="analysis.no-expression",
            help=f"it has {len(values)}, counted from 0",
        )
    functions = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    return IRModule.from_expr(values[expr_id], functions, mod.type_definitions)


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """`extract_intermediate_expr` under the name that Relay's API has for it (sic)."""
    return extract_intermediate_expr(mod, expr_id)
