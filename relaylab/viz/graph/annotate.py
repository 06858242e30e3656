"""What other rooms know about the nodes of a program: their Relay text and their cost."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from relaylab.analysis.cost import node_cost
from relaylab.ir import Call, Constant, Expr, IRModule
from relaylab.text import print_with_map

Range = tuple[int, int, object]
"""Which characters belong to a node: from, to, node."""
LONGEST = 240
"""Characters of a node's text that a picture keeps."""


def texts(program: IRModule | Expr, name: Callable[[Constant], str] | None = None) -> dict[Expr, str]:
    """For every node the line of the printed program that defines it (of functions, the first line).

    `name` says what constants are called that stand in the section of meta data.
    """
    text, ranges = print_with_map(program, annotate=lambda expr: "")
    if name is not None:
        text, ranges = with_names(text, ranges, name)
    found: dict[Expr, str] = {}
    for start, end, node in ranges:
        if isinstance(node, Expr) and node not in found:
            line = text[start : min(end, start + LONGEST)].split("\n", 1)[0].rstrip()
            found[node] = line if end - start <= LONGEST else f"{line} …"
    return found


def with_names(text: str, ranges: Iterable[Range], name: Callable[[Constant], str]) -> tuple[str, list[Range]]:
    """A printed program with names of its constants in the place of references to the section of meta data."""
    ranges, parts, at = list(ranges), list[str](), 0
    ends, moved = [0], [0]  # where a name ends in the old text, and by how much what follows stands elsewhere
    for start, end, node in sorted((r for r in ranges if isinstance(r[2], Constant)), key=lambda r: r[0]):
        if start < at or not text.startswith("meta[", start):
            continue
        called = name(cast("Constant", node))
        parts += [text[at:start], called]
        at = end
        ends.append(end)
        moved.append(moved[-1] + len(called) - (end - start))

    def place(old: int) -> int:
        return old + moved[bisect_right(ends, old) - 1]

    return "".join([*parts, text[at:]]), [(place(start), place(end), node) for start, end, node in ranges]


def cost(expr: Expr) -> Mapping[str, float]:
    """Multiply-accumulates and bytes moved of a call in a typed program; empty where that is not known."""
    if not isinstance(expr, Call) or any(e.inferred is None for e in (expr, *expr.args)):
        return {}
    figures = node_cost(expr)
    named = {"MACs": figures.macs, "bytes read": figures.bytes_read, "bytes written": figures.bytes_written}
    return {name: value for name, value in named.items() if value}
