"""MergeComposite: parts of a program that look like what an accelerator offers become functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from relaylab.ir import Expr, Function, FunctionWithFields, IRModule
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.partition import partition

Entry = tuple[str, DFPattern, Callable[[Expr], bool] | None]


def _entry(row: Sequence[Any]) -> Entry:
    """One row of a pattern table: a name, a pattern, and perhaps a check."""
    if len(row) not in (2, 3) or not isinstance(row[0], str) or not isinstance(row[1], DFPattern):
        text = f"a row of a pattern table is (name, pattern) or (name, pattern, check), not {row!r}"
        raise RelayTypeError(text, code="composite.bad-row")
    return row[0], row[1], row[2] if len(row) == 3 else None


def merge_composite(func: Function, table: Sequence[Entry], mod: IRModule | None = None) -> Function:
    """`func` with each match of the patterns, in order, called as a function with the attribute `Composite`."""
    for name, pattern, check in table:
        func = typed(func, mod)
        body = partition(pattern, func.body, {"Composite": name}, check)
        func = derived(FunctionWithFields(func, body=body), func)
    return func


@pass_(level=0, example={"pattern_table": []})
class MergeComposite(FunctionPass):
    """Makes each match of patterns (name, pattern[, check]) a function with the attribute `Composite`."""

    pattern_table: Annotated[Sequence[Sequence[object]], "Rows of a name, a pattern and possibly a check of a match."]

    def __post_init__(self) -> None:
        self.entries()

    def entries(self) -> list[Entry]:
        """The rows; `RelayTypeError` for one that is none."""
        return [_entry(row) for row in self.pattern_table]

    @property
    def rules(self) -> list[DFPattern]:
        return [pattern for _, pattern, _ in self.entries()]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return merge_composite(func, self.entries(), mod)
