"""The control flow of a compiled kernel as a picture, with the Relay operators that each block belongs to."""

from __future__ import annotations

from typing import Any

from relaylab.codegen.inspection.control_flow import flows
from relaylab.codegen.vm_parts import CompiledParts
from relaylab.study.running import Compiled, looked_at
from relaylab.support.checked import checked
from relaylab.viz import Picture, View, show
from relaylab.viz.graph.control_flow import control_flow as view_of


@checked
def control_flow(lib: Compiled | CompiledParts, kernel: str | None = None, **options: Any) -> Picture:
    """The picture of the blocks and loops of a kernel (or of the only one); `options` are those of `viz.show`.

    A function that takes several native kernels is drawn with one graph each. RelayValueError for an unknown name, for
    one that is not one kernel's only, and for a loaded module (it keeps the text but not the nodes).
    """
    views = [
        view_of(flow, linked.title, flow.name)
        for linked in looked_at(lib).linked(kernel or "")
        for flow in flows(linked.kernel.listing)
    ]
    if len(views) == 1:
        return show(views[0], **options)
    parts = [v.renamed({name: f"{k}.{name}" for name in (*v.node_by_id, *v.group_by_id)}) for k, v in enumerate(views)]
    return show(
        View(
            views[0].title,
            *(tuple(x for v in parts for x in getattr(v, field)) for field in ("nodes", "edges", "groups")),
        ),
        **options,
    )
