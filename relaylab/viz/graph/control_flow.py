"""The control flow of a native kernel as a graph view: blocks as nodes, branches as edges, loops as boxes."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.codegen.inspection.control_flow import PRODUCTS, BasicBlock, ControlFlow, work_of
from relaylab.support.words import counted
from relaylab.viz.graph.view import Attr, Edge, Group, Node, View

ROWS = 6
"""Kinds of work that a block names."""
WIDE = 72
"""Characters of an instruction that a block shows."""


def control_flow(flow: ControlFlow, titles: Callable[[int], str] | None = None, title: str = "") -> View:
    """The view of one function. `titles` names the parts of the kernel (the Relay operators) that blocks belong to."""
    groups = tuple(
        Group(f"loop{k}", "block", f"loop: {_turns(loop.turns)}", "" if loop.parent is None else f"loop{loop.parent}")
        for k, loop in enumerate(flow.loops)
    )
    nodes = tuple(_node(flow, block, titles) for block in flow.blocks)
    edges = tuple(_edge(flow, block, target, k) for block in flow.blocks for k, target in enumerate(block.targets))
    return View(title or flow.name, nodes, edges, groups).check()


def _turns(turns: int | None) -> str:
    return "computed bounds" if turns is None else counted(turns, "turn")


def _node(flow: ControlFlow, block: BasicBlock, titles: Callable[[int], str] | None) -> Node:
    home = flow.innermost(block.label)
    work = work_of((block,)).most_common(ROWS)
    parts = dict.fromkeys(titles(part) for part in block.parts) if titles else ()
    words = ", ".join(f"{count} {kind}" for kind, count in work)
    attrs = (Attr("instructions", str(len(block.lines) + 1)), *([Attr("work", words)] if words else []))
    return Node(
        f"block:{block.label}",
        "call",
        block.label,
        "",
        _family(work),
        "" if home is None else f"loop{home}",
        rows=_instructions(block),
        attrs=attrs,
        note=", ".join(parts),
        text="\n".join(block.lines),
    )


def _instructions(block: BasicBlock) -> tuple[str, ...]:
    """The instructions of a block; a card shows the first, and how many more there are."""
    lines = (line.strip() for line in block.lines)
    return tuple(line if len(line) <= WIDE else f"{line[: WIDE - 1]}…" for line in lines)


def _family(work: list[tuple[str, int]]) -> str:
    """The colour: products, memory, or nothing of both."""
    kinds = [kind for kind, _ in work]
    if any(kind.startswith(PRODUCTS) for kind in kinds):
        return "fusable"
    return (
        "injective"
        if any(word in kind for kind in kinds for word in ("store", "load", "gather", "scatter"))
        else "call"
    )


def _edge(flow: ControlFlow, block: BasicBlock, target: str, position: int) -> Edge:
    back = flow.back(block.label, target)
    label = ("again" if back else "") or (
        ""
        if len(block.targets) == 1 or any(flow.back(block.label, t) for t in block.targets)
        else ("yes", "no")[position]
    )
    return Edge(f"block:{block.label}", f"block:{target}", position, "recursion" if back else "data", label)
