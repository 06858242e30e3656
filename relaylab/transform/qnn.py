"""Lowering of the quantized dialect: `qnn.` operators become integer arithmetic.

Each operator says itself how (`canonicalize` on its class, or a function registered under
`FTVMQnnCanonicalize`); a program without such operators is left as it is.
"""

from __future__ import annotations

from relaylab.transform.legalize import Legalize
from relaylab.transform.manager import Pass, Sequential, register_pass

LEGALIZE, CANONICALIZE = "FTVMQnnLegalize", "FTVMQnnCanonicalize"


@register_pass()
def QnnLegalize() -> Pass:
    """Adapts quantized operators to the machine, then writes them as integer arithmetic."""
    return Sequential([Legalize(LEGALIZE), Legalize(CANONICALIZE)], name="QnnLegalize", opt_level=0)


@register_pass()
def QnnCanonicalizeOps() -> Pass:
    """Writes quantized operators as integer arithmetic."""
    return Sequential([Legalize(CANONICALIZE)], name="QnnCanonicalizeOps", opt_level=0)
