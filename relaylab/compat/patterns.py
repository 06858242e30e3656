"""For code generators of others: tables of patterns by name, and what partitioned functions are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylab.analysis import get_calibration_data as calibration_data
from relaylab.ir import GlobalVar, IRModule
from relaylab.runtime.ndarray import NDArray, array
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


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """The values that each partitioned function of a module gets and gives for these inputs, as NDArrays."""
    found = calibration_data(mod, data)
    return {gv: {kind: list(map(array, values)) for kind, values in parts.items()} for gv, parts in found.items()}


__all__ = ["get_calibration_data", "get_pattern_table", "register_pattern_table"]
