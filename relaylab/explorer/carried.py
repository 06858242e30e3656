"""Measured times at any stage: those of the kernels, carried back to the nodes that became them."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.explorer.frames import Frames
from relaylab.explorer.story import Story
from relaylab.ir import Function
from relaylab.viz.graph.view import Node

CARRIED = "times of the kernels that the nodes became, shared out by MACs, or else by bytes"


def times_at(frames: Frames, story: Story, frame: int, times: Mapping[Function, float]) -> dict[str, float]:
    """Microseconds by node: what a kernel takes, among the operators that became it in proportion to their work.

    Nodes that are in no kernel (they became constants, say) have no time.
    """
    homes: dict[Function, list[Node]] = {}
    for node in frames.views[frame].nodes:
        kernel = story.fused(frame, node.id) if node.operator else None
        if kernel is not None and kernel in times:
            homes.setdefault(kernel, []).append(node)
    found: dict[str, float] = {}
    for kernel, nodes in homes.items():
        work = _work(nodes)
        whole = sum(work)
        found |= {n.id: times[kernel] * w / whole for n, w in zip(nodes, work)}
    return found


def _work(nodes: list[Node]) -> list[float]:
    """What the nodes do, in a unit that all of them share."""
    costs = [dict(n.cost) for n in nodes]
    for names in (("MACs",), ("bytes read", "bytes written")):
        work = [sum(cost.get(name, 0.0) for name in names) for cost in costs]
        if any(work):
            return work
    return [1.0] * len(nodes)
