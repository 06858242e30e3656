"""Tables of patterns by the name of what they are for, as programs register them for `MergeComposite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylab.support.table import Table

PATTERNS: Table[Sequence[tuple]] = Table("pattern table")


def register_pattern_table(compiler: str, table: Callable[[], Sequence[tuple]] | None = None) -> Any:
    """Register what `table()` gives, tuples of a name, a pattern and maybe a check; usable as a decorator."""
    if table is None:
        return lambda function: register_pattern_table(compiler, function)
    PATTERNS.insert(compiler, table(), replace=True)
    return table


def get_pattern_table(compiler: str) -> Sequence[tuple]:
    """The patterns registered under a name."""
    return PATTERNS.lookup(compiler)


__all__ = ["get_pattern_table", "register_pattern_table"]
