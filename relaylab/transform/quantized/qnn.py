"""Lowering of the quantized dialect: `qnn.` operators become integer arithmetic.

Each operator says itself how (`canonicalize` on its class, or a function registered under
`FTVMQnnCanonicalize`); a program without such operators is left as it is.
"""

from __future__ import annotations

from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import Sequential
from relaylab.transform.legalize import Legalize

LEGALIZE, CANONICALIZE = "FTVMQnnLegalize", "FTVMQnnCanonicalize"


def adapt_to_target() -> Legalize:
    """The first half of `QnnLegalize`: quantized operators stay, in the form that the target in scope prefers."""
    return Legalize(LEGALIZE)


@pass_(level=0)
class QnnLegalize(Sequential):
    """Adapts quantized operators to the machine, then writes them as integer arithmetic."""

    passes = (Legalize(LEGALIZE), Legalize(CANONICALIZE))


@pass_(level=0)
class QnnCanonicalizeOps(Sequential):
    """Writes quantized operators as integer arithmetic."""

    passes = (Legalize(CANONICALIZE),)
