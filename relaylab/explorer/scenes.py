"""Scenes of an explorer: each is laid out to resemble the last one that was drawn with the same groups folded."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from relaylab import viz
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.selection.fold import collapse, of_kind
from relaylab.viz.selection.repeats import repeats
from relaylab.viz.write.html import SceneData, scene_data

NodeRow = tuple[str, str, str, str, list[str]]
"""What the search looks at: id, group, operator, type, attributes."""
DRAWING = DrawOptions(types="nodes", caption=False)
REPEATS = "×"
"""Among folded groups: all blocks that come again at once."""


class GraphScene(SceneData):
    """The picture of a program with its nodes as data."""

    nodes: list[NodeRow]


def graph_scene(view: viz.View, seed: Mapping[str, float] | None = None) -> tuple[GraphScene, Mapping[str, float]]:
    """A view drawn, as data; and the seed of pictures that are to resemble it."""
    scene = draw(view, DRAWING, seed)
    return {**scene_data(scene), "nodes": [_row(n) for n in view.nodes]}, scene.seed


def _row(node: viz.Node) -> NodeRow:
    return node.id, node.group, node.operator, node.type, [f"{a.name}={a.value}" for a in node.attrs]


class Scenes:
    """The places of everything that was drawn, and the groups that were found as blocks that come again."""

    def __init__(self) -> None:
        self.blocks: dict[str, viz.Group] = {}
        self._seeds: dict[Hashable, Mapping[str, float]] = {}
        self._last: dict[str, dict[str, float]] = {}

    def scene(self, view: viz.View, closed: str, key: Hashable) -> GraphScene:
        """A view with the groups of `closed` (one a line) folded; asked again with the same key it looks the same."""
        last = self._last.setdefault(closed, {})
        seed = self._seeds.setdefault((closed, key), dict(last))
        made, places = graph_scene(self.folded(view, closed.split("\n") if closed else ()), seed or None)
        last.update(places)
        return made

    def folded(self, view: viz.View, closed: Collection[str]) -> viz.View:
        """A view with groups folded, and where that is wished each run of equal blocks as one card."""
        if REPEATS in closed:
            view = repeats(view)
            found = of_kind(view, "repeat", "block")
            self.blocks.update((name, view.group_by_id[name]) for name in found)
            closed = {*closed, *found}
        return collapse(view, closed)
