"""The built-in layered layout (Sugiyama's method) with nested groups, in pure Python.

Source of the method: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System
Structures, 1981; crossing counting after Barth, Jünger, Mutzel, Simple and Efficient Bilayer Cross
Counting, 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relaylab.viz.layout.compound import Compound
from relaylab.viz.layout.graph import Bounds, Box, Cluster, GraphLayout, LayoutOptions, Link, Point

__all__ = ["Box", "Cluster", "GraphLayout", "LayoutOptions", "Link", "Point", "Bounds", "lay_out"]


def lay_out(
    boxes: Sequence[Box],
    links: Sequence[Link],
    frames: Sequence[Cluster] = (),
    options: LayoutOptions | None = None,
    seed: Mapping[str, float] | None = None,
) -> GraphLayout:
    """Give every box and frame a rectangle and every link a route.

    Deterministic and near linear: no recursion, long edges beyond a budget become stubs. `seed` is the
    `GraphLayout.seed` of an earlier picture: what both have in common keeps its place along the layers.
    """
    options = options or LayoutOptions()
    sideways = options.direction == "LR"
    if sideways:
        boxes = [replace(b, width=b.height, height=b.width) for b in boxes]
    layout = Compound(boxes, frames, links, options, dict(seed or {})).run()
    if sideways:
        _transpose(layout)
    _add_curves(layout, links, boxes)
    return layout


def _transpose(layout: GraphLayout) -> None:
    for table in (layout.boxes, layout.frames):
        for name, r in table.items():
            table[name] = Bounds(r.y, r.x, r.height, r.width)
    for name, route in layout.routes.items():
        layout.routes[name] = [(y, x) for x, y in route]
    layout.width, layout.height = layout.height, layout.width


def _add_curves(layout: GraphLayout, links: Sequence[Link], boxes: Sequence[Box]) -> None:
    """Routes of the links that take no part in the layout: from border to border, sideways."""
    places = {**layout.frames, **layout.boxes}
    for link in links:
        if link.source == link.target:
            layout.routes[link.id] = _loop(places[link.source])
        elif link.loose:
            layout.routes[link.id] = _beside(places[link.source], places[link.target])


def _loop(box: Bounds) -> list[Point]:
    """A small loop on the right of a box."""
    third, out = box.height / 3, box.right + 14
    return [
        (box.right, box.y + third),
        (out, box.y + third),
        (out, box.bottom - third),
        (box.right, box.bottom - third),
    ]


def _beside(a: Bounds, b: Bounds) -> list[Point]:
    """From the side of `a` that faces `b` to the side of `b` that faces `a`."""
    if a.center[0] <= b.center[0]:
        return [(a.right, a.center[1]), (b.x, b.center[1])]
    return [(a.x, a.center[1]), (b.right, b.center[1])]
