"""What a saved page of the explorer holds: pictures of every stage, every node, and machine code if it was made.

A page compares any two stages by itself: it has each stage by itself, with the ids that follow nodes and what nodes
were made from. Only the merged pictures of neighbours, which need the layout, are drawn beforehand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from relaylab.tour.heat import BY
from relaylab.tour.session import Session

MOST_NODES = 2500
"""Frames larger than this are saved without the details of single nodes."""
MOST_PICTURE = 6000
"""Neighbours with more nodes than this together are saved without their merged picture."""
MOST_LINES = 600
"""Lines of LLVM IR and of assembly of a kernel that are saved."""
LEFT_OUT = "left out of the saved page to keep it small; open the explorer in a notebook to see it"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def book(session: Session) -> dict[str, Any]:
    """All that a saved page can be asked, as plain data; pictures are packed, see `Pool`."""
    frames, answers, pool = session.frames, {}, Pool()
    stops = [0, *frames.changing()]

    def keep(what: str, *args: Any) -> None:
        answers["\x01".join(map(str, (what, *args)))] = session.ask(what, *args)

    for question in questions(session, stops):
        keep(*question)
    for key, answer in answers.items():
        if key.startswith("picture"):
            answer["scenes"] = [pool.scene(s) for s in answer["scenes"]]
    made = {stop: {n.id: n.origins for n in frames.views[stop].nodes if n.origins not in ((), (n.id,))} for stop in stops}
    first = stops[1] if len(stops) > 1 else 0
    chosen = {"before": max(0, first - 1), "after": first, "selected": "", "compare": "merged", "pane": "graph", "overlays": list(session.overlays)}
    return {
        "rows": session.rows(), "chosen": chosen, "answers": answers, "pool": pool.values, "origins": made,
        "kernels": kernels(session, stops), "missing": LEFT_OUT,
    }


def questions(session: Session, stops: list[int]) -> Iterator[tuple]:
    """What a page must be able to answer without computing it."""
    views = session.frames.views
    for stop in stops:
        yield "picture", stop, stop, "merged", ""
    for previous, stop in dict.fromkeys([*zip(stops, stops[1:]), (0, stops[-1])]):
        if len(views[previous].nodes) + len(views[stop].nodes) <= MOST_PICTURE and previous != stop:
            yield "picture", previous, stop, "merged", ""
            yield "text", previous, stop
        if len(views[previous].nodes) + len(views[stop].nodes) <= MOST_NODES:
            yield "picture", previous, stop, "both", ""
            yield "picture", stop, stop, "both", ""
    for previous, stop in [(0, 0), *zip(stops, stops[1:])]:
        yield "text", stop, stop
        yield from (("overlay", name, stop) for name in ("MACs", "bytes"))
        view, before = views[stop], views[previous]
        if len(view.nodes) + len(before.nodes) <= MOST_NODES:
            yield from (("node", stop, part.id) for part in (*view.nodes, *view.groups))
            yield from (("node", stop, name) for name in before.node_by_id.keys() - view.node_by_id.keys())
    yield from (("steps", index) for index in range(len(session.frames) - 1))
    yield from (("words", frame) for frame in range(1, len(session.frames)))
    yield from (("heat", by) for by in BY)


def kernels(session: Session, stops: list[int]) -> dict[str, Any] | None:
    """The kernels at every level, each once, and which one each node of each stage is in; None if nothing was compiled."""
    made = session.__dict__.get("kernels")
    if made is None or "library" not in made.__dict__:
        return None
    listings: dict[str, Any] = {}
    homes: dict[int, dict[str, str]] = {}
    for stop in stops:
        for name in (*session.frames.views[stop].node_by_id, *session.frames.views[stop].group_by_id):
            function = session._function(stop, name)
            kernel = made.names.get(function) if function is not None else None
            if kernel is not None and kernel not in listings:
                listings[kernel] = _clipped(session.kernel(stop, name))
            if kernel is not None:
                homes.setdefault(stop, {})[name] = kernel
    return {"listings": listings, "homes": homes}


def _clipped(listing: dict[str, Any]) -> dict[str, Any]:
    """A kernel whose long listings end with a line that says how many more there are."""
    long = {key: lines for key in ("llvm", "asm") if len(lines := listing.get(key, ())) > MOST_LINES}
    return listing | {key: [*lines[:MOST_LINES], [f"… {len(lines) - MOST_LINES} more lines", -1]] for key, lines in long.items()}


class Pool:
    """Values that pictures share: a box that only stands elsewhere is stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._known: dict[str, int] = {}

    def put(self, value: Any) -> int:
        """The number of a value."""
        key = json.dumps(value)
        if key not in self._known:
            self._known[key] = len(self.values)
            self.values.append(value)
        return self._known[key]

    def scene(self, scene: dict[str, Any]) -> dict[str, Any]:
        """A scene whose figures are `[number, x, y]` and whose nodes are numbers."""
        figures = [self._figure(f) for f in scene["figures"]]
        return scene | {"figures": figures, "nodes": [self.put(n) for n in scene["nodes"]]}

    def _figure(self, figure: dict[str, Any]) -> list:
        x, y = _origin(figure)
        shapes = [self.put(_shifted(s, -x, -y)) for s in figure["shapes"]]
        left, top, wide, high = figure["box"]
        box = [left - x, top - y, wide, high] if wide else [0, 0, 0, 0]
        rest = [figure[key] for key in ("id", "kind", "label", "detail", "role", "source", "target")]
        return [self.put([*rest, [round(v, 1) for v in box], shapes]), x, y]


def _origin(figure: dict[str, Any]) -> tuple[float, float]:
    """Where a figure stands: the corner of its box, or the first point of its first shape."""
    if figure["box"][2]:
        return round(figure["box"][0], 1), round(figure["box"][1], 1)
    kind, first, *rest = figure["shapes"][0] if figure["shapes"] else ("r", 0.0, 0.0)
    if kind == "p":
        x, y = (float(v) for v in _NUMBER.findall(first)[:2])
        return x, y
    return first, rest[0]


def _shifted(shape: list, dx: float, dy: float) -> list:
    """A shape of a page moved; coordinates of paths come in pairs."""
    kind, first, *rest = shape
    if kind != "p":
        return [kind, round(first + dx, 1), round(rest[0] + dy, 1), *rest[1:]]
    by = iter(range(10**9))
    return [kind, _NUMBER.sub(lambda m: f"{round(float(m[0]) + (dy if next(by) % 2 else dx), 1):g}", first), *rest]
