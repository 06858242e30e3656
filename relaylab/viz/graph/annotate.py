"""What other rooms know about the nodes of a program: their Relay text and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaylab.analysis.cost import node_cost
from relaylab.ir import Call, Constant, Expr, IRModule
from relaylab.text import print_with_map

LONGEST = 240
"""Characters of a node's text that a picture keeps."""


def texts(program: IRModule | Expr, name: Callable[[Constant], str] | None = None) -> dict[Expr, str]:
    """For every node the line of the printed program that defines it (of functions, the first line).

    `name` says what constants are called that stand in the section of meta data.
    """
    text, ranges = print_with_map(program, lambda expr: "", name)
    found: dict[Expr, str] = {}
    for start, end, node in ranges:
        if isinstance(node, Expr) and node not in found:
            line = text[start : min(end, start + LONGEST)].split("\n", 1)[0].rstrip()
            found[node] = line if end - start <= LONGEST else f"{line} …"
    return found


def cost(expr: Expr) -> Mapping[str, float]:
    """Multiply-accumulates and bytes moved of a call in a typed program; empty where that is not known."""
    if not isinstance(expr, Call) or expr.inferred is None or None in [a.inferred for a in expr.args]:
        return {}
    known = node_cost(expr)
    figures = (("MACs", known.macs), ("bytes read", known.bytes_read), ("bytes written", known.bytes_written))
    return {name: value for name, value in figures if value}
