"""Scenes of an explorer: each is laid out to resemble the last one that was drawn with the same groups folded."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

from relaylab import viz
from relaylab.explorer.facts import summary
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.selection.changes import changes
from relaylab.viz.selection.copies import folded_copies
from relaylab.viz.selection.fold import collapse, focus
from relaylab.viz.selection.repeats import repeats
from relaylab.viz.write.html import SceneData, scene_data

NodeRow = tuple[str, str]
"""A node and the group that it is in."""
DRAWING = DrawOptions(types="nodes", caption=False, hint=summary)
REPEATS = "×"
"""Among folded groups: all blocks that come again at once."""
NEAR = "⌖"
"""Among folded groups, before a number and an id: all but what is so many edges from that node."""
CHANGES = "Δ"
"""Among folded groups: all that is far from every change, and equal changes but the first."""
SIDEWAYS = "→"
"""Among folded groups: the picture runs from left to right."""
OPENED = "+"
"""Among folded groups, before an id: what is shown all the same."""


class GraphScene(SceneData):
    """The picture of a program with its nodes as data."""

    nodes: list[NodeRow]


def drawing(closed: str) -> DrawOptions:
    """How a picture with these groups folded is drawn."""
    return replace(DRAWING, direction="LR") if SIDEWAYS in closed.split("\n") else DRAWING


def graph_scene(
    view: viz.View, seed: Mapping[str, float] | None = None, options: DrawOptions = DRAWING
) -> tuple[GraphScene, Mapping[str, float]]:
    """A view drawn, as data; and the seed of pictures that are to resemble it."""
    scene = draw(view, options, seed)
    return {**scene_data(scene), "nodes": [(n.id, n.group) for n in view.nodes]}, scene.seed


class Scenes:
    """The places of everything that was drawn, and what was found to be folded: blocks that come again, stretches."""

    def __init__(self) -> None:
        self.blocks: dict[str, viz.Node | viz.Group] = {}
        self._seeds: dict[Hashable, Mapping[str, float]] = {}
        self._last: dict[str, dict[str, float]] = {}

    def scene(self, view: viz.View, closed: str, key: Hashable) -> GraphScene:
        """A view with the groups of `closed` (one a line) folded; asked again with the same key it looks the same."""
        made, places = graph_scene(*self.arranged(view, closed, key), drawing(closed))
        self._last[_kept(closed)].update(places)
        return made

    def arranged(self, view: viz.View, closed: str, key: Hashable) -> tuple[viz.View, Mapping[str, float] | None]:
        """What `scene` draws, and the places that it resembles."""
        seed = self._seeds.setdefault((closed, key), dict(self._last.setdefault(_kept(closed), {})))
        return self.folded(view, closed.split("\n") if closed else ()), seed or None

    def folded(self, view: viz.View, closed: Collection[str]) -> viz.View:
        """A view with groups folded; if wished only a part or what changed, and runs of equal blocks as cards."""
        opened = {name.removeprefix(OPENED) for name in closed if name.startswith(OPENED)}
        near = [c for c in closed if c.startswith(NEAR)]
        for line in near:
            hops, _, name = line[len(NEAR) :].partition(" ")
            if name in view.node_by_id or name in view.group_by_id:
                view = focus(view, name, int(hops) if hops.isdecimal() else 0)
        if CHANGES in closed and not near:
            whole, view = view, changes(view, opened=opened)
            self.blocks.update((p.id, p) for p in (*view.nodes, *view.groups) if view is not whole and _made(p, whole))
        if REPEATS in closed:
            view, found = folded_copies(repeats(view), opened)
            self.blocks.update((name, view.group_by_id[name]) for name in found)
            closed = {*closed, *found}
        return collapse(view, closed)


def _kept(closed: str) -> str:
    """What is folded in all pictures; what is opened in one leaves the rest where it was."""
    return "\n".join(name for name in closed.split("\n") if not name.startswith(OPENED))


def _made(part: viz.Node | viz.Group, whole: viz.View) -> bool:
    """Whether a part stands for others of the whole picture."""
    return part.id not in whole.node_by_id and part.id not in whole.group_by_id
