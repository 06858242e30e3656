"""Ways through a stage of an explorer, and parts of it: the path between two nodes, the critical path, a part as a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from relaylab import viz
from relaylab.ir import IRModule, post_order
from relaylab.support.errors import RelayValueError
from relaylab.viz.figures import figure, hot_path

if TYPE_CHECKING:
    from relaylab.tour.session import Session

LONGEST = 60_000
"""Characters of a part that are shown; a longer one (with large constants) is only bound."""


class Ways:
    """Answers about several nodes of one stage. `bind` gives a part a name in the notebook, and says which."""

    def __init__(self, session: Session):
        self.session = session
        self.extracted: dict[str, IRModule] = {}
        self.bind: Callable[[str, IRModule], str] = lambda name, mod: ""

    def path(self, frame: int, a: str, b: str) -> dict[str, Any]:
        """The nodes of a shortest path between two nodes, in the direction in which there is one."""
        view = self.session.frames.views[frame]
        found = viz.path(view, a, b) or viz.path(view, b, a)
        words = f"{len(found) - 1} edges from {found[0]} to {found[-1]}" if found else f"no way leads from {a} to {b} or back"
        return {"ids": list(found), "text": words, "nodes": _titles(view, found)}

    def critical(self, frame: int, name: str) -> dict[str, Any]:
        """The path with the largest sum of a figure: `MACs`, `bytes`, measured `time` (of the last stage), or one of the user's own."""
        frames = self.session.frames
        if name == "time":
            frame = len(frames) - 1
        answer = self.session.overlay(name, frame)
        view = frames.views[frame]
        values = _on_nodes(view, answer["values"])
        found = hot_path(view, values) if values else ()
        part, whole = sum(values.get(n, 0.0) for n in found), sum(values.values())
        share = f"{figure(part)} of {figure(whole)} {answer['unit']} ({part / whole:.0%})" if whole else f"no node has {name}"
        return {"ids": list(found), "frame": frame, "text": f"{name} on the critical path: {share}", "nodes": _titles(view, found)}

    def extract(self, frame: int, ids: list[str], name: str = "part") -> dict[str, Any]:
        """Nodes (or all of a group) as a module of their own: its text, the code that makes it, the name that it got."""
        if not name.isidentifier():
            raise RelayValueError(f"`{name}` is not a name", code="explorer.name")
        mod, frames = self.session.frames.modules[frame], self.session.frames
        wanted = [e for i in _inside(frames.views[frame], ids) if (e := frames.nodes[frame].get(i)) is not None]
        homes = {gv.name_hint: len(set(post_order(f.body)) & set(wanted)) for gv, f in mod.functions.items()}
        part = viz.extract(mod, wanted, max(homes, key=lambda n: homes[n]))
        given = self.bind(name, part) or name
        self.extracted[given] = part
        text = part.astext()
        shown = text if len(text) <= LONGEST else ""
        code = f"from relaylab import relay\n\n{given} = relay.parse(r'''{shown}''')\n" if shown else ""
        return {"name": given, "text": shown, "code": code, "inputs": [p.name_hint for p in part["main"].params]}


def _titles(view: viz.View, ids: Iterable[str]) -> list[list[str]]:
    return [[i, view.node_by_id[i].title, view.node_by_id[i].type] for i in ids]


def _on_nodes(view: viz.View, values: Mapping[str, float]) -> dict[str, float]:
    """Figures of nodes; that of a kernel whose nodes have none is its last operator's."""
    found = {n.id: values[n.id] for n in view.nodes if n.id in values}
    for group in view.groups:
        inside = [n.id for n in view.nodes if n.group == group.id and n.operator]
        if group.id in values and group.kind == "primitive" and inside and not any(i in found for i in inside):
            found[inside[-1]] = values[group.id]
    return found


def _inside(view: viz.View, ids: Iterable[str]) -> list[str]:
    """The nodes that ids mean: themselves, and everything in groups."""
    parents = {g.id: g.parent for g in view.groups}
    wanted = set(ids)

    def meant(group: str) -> bool:
        while group and group not in wanted:
            group = parents.get(group, "")
        return bool(group)

    return [n.id for n in view.nodes if n.id in wanted or meant(n.group)]

