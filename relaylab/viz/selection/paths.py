"""Ways through a picture: the shortest between two nodes, in the direction of the edges."""

from __future__ import annotations

from collections import deque

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.graph.view import View


@checked
def path(view: View, source: str, target: str) -> tuple[str, ...]:
    """The nodes of a shortest path along the edges from one node to another, both included; none if there is no way.

    Recursion and the order of effects are no ways. Linear time. Raises `RelayValueError` for an id that is not there.
    """
    for name in (source, target):
        if name not in view.node_by_id:
            help = did_you_mean(name, view.node_by_id)
            raise RelayValueError(f"the picture has no node `{name}`", code="viz.unknown-node", help=help)
    came: dict[str, str] = {source: ""}
    waiting = deque([source])
    while waiting and target not in came:
        at = waiting.popleft()
        for edge in view.outgoing.get(at, ()):
            if edge.target not in came and edge.kind not in ("recursion", "order"):
                came[edge.target] = at
                waiting.append(edge.target)
    found = [target] if target in came else []
    while found and came[found[-1]]:
        found.append(came[found[-1]])
    return tuple(reversed(found))
