"""What other rooms hang into the text room (which imports none of them)."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir.module import IRModule

infer: Callable[[IRModule], IRModule] | None = None
"""Type inference: `parse` runs it on every module that it returns. None: modules stay as they were written."""


def typed(mod: IRModule) -> IRModule:
    """`mod` after type inference, or as it is while no inference is registered."""
    return mod if infer is None else infer(mod)
