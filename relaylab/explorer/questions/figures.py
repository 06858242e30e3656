"""Questions about figures: nodes by a figure, the path with the largest sum, the table of operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict

from relaylab import viz
from relaylab.explorer.carried import CARRIED, times_at
from relaylab.explorer.question import Frame, question
from relaylab.explorer.questions.parts import NodeTitle, titles
from relaylab.explorer.session import Session
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.figures.overlay import hot_path, measured, values_of
from relaylab.viz.graph.figure import FIGURES, Figure, abbreviated


class Overlay(TypedDict):
    """A figure by node and group; those that have none, or zero, are left out. A note says where it comes from."""

    name: str
    unit: str
    values: dict[str, float]
    note: str


def _held(session: Session) -> Iterator[tuple[str, int]]:
    """Every figure that needs no compiled code, at every frame that differs from the one before."""
    names = [f.name for f in FIGURES.values() if f.offered and not f.measured]
    for frame in (0, *session.frames.changing()):
        yield from ((name, frame) for name in (*names, *session.overlays))


@question(saved=_held)
def overlay(session: Session, name: str, frame: Frame) -> Overlay:
    """A declared figure, or one of the user's own, for every node and group of a frame; of groups the sum.

    Times are those of the compiled kernels: at stages before the last they are carried back to the nodes.
    """
    view, figure = session.frames.views[frame], _figure(session, name)
    carried = figure.measured and view is not session.frames.views[-1]
    if carried:
        known = times_at(session.frames, session.story, frame, session.spent)
    else:
        known = session.times() if figure.measured else session.overlays.get(name)
    if known is not None:
        there = {k: v for k, v in known.items() if k in view.node_by_id or k in view.group_by_id}
        view = measured(view, "time" if figure.measured else name, there)
    values = {key: value for key, value in values_of(view, name).items() if value}
    notes = [CARRIED] if carried else []
    if figure.measured and session.kernels.sizes:
        notes.append(f"measured for {session.kernels.sizes}")
    return {"name": name, "unit": figure.unit, "values": values, "note": "; ".join(notes)}


def _figure(session: Session, name: str) -> Figure:
    if name in session.overlays:
        return Figure(name)
    if name not in FIGURES:
        help = did_you_mean(name, [*FIGURES, *session.overlays])
        raise RelayValueError(f"there is no overlay `{name}`", code="explorer.overlay", help=help)
    return FIGURES[name]


class Critical(TypedDict):
    """The nodes of a path with their share of the whole, in words."""

    ids: list[str]
    frame: int
    text: str
    nodes: list[NodeTitle]


@question()
def critical(session: Session, frame: Frame, name: str) -> Critical:
    """The path with the largest sum of a figure; measured ones are of the last frame, the compiled one."""
    figure = _figure(session, name)
    if figure.ratio:
        raise RelayValueError(f"`{name}` is a ratio: it has no sum along a path", code="explorer.overlay")
    if figure.measured:
        frame = len(session.frames) - 1
    view = session.frames.views[frame]
    values = _on_nodes(view, overlay(session, name, frame)["values"])
    found = hot_path(view, values) if values else ()
    part, whole = sum(values.get(n, 0.0) for n in found), sum(values.values())
    share = f"{abbreviated(part)} of {abbreviated(whole)} {figure.unit} ({part / whole:.0%})" if whole else ""
    words = f"{name} on the critical path: {share or f'no node has {name}'}"
    return {"ids": list(found), "frame": frame, "text": words, "nodes": titles(view, found)}


def _on_nodes(view: viz.View, values: Mapping[str, float]) -> dict[str, float]:
    """Figures of nodes; that of a kernel whose nodes have none is its last operator's."""
    found = {n.id: values[n.id] for n in view.nodes if n.id in values}
    last: dict[str, str] = {}
    known: set[str] = set()
    for node in view.nodes:
        if node.operator:
            last[node.group] = node.id
            known |= {node.group} if node.id in found else set()
    for group in view.groups:
        if group.id in values and group.kind == "primitive" and group.id in last and group.id not in known:
            found[last[group.id]] = values[group.id]
    return found


class Operators(TypedDict):
    """Operators as name, calls, MACs, bytes, microseconds; for which sizes they were measured if some are open."""

    frame: int
    sizes: str
    rows: list[tuple[str, int, float, float, float | None]]


@question()
def operators(session: Session, frame: Frame, measured: bool = False) -> Operators:
    """The table of operators of a frame, as rows; with measured times it is that of the last frame."""
    at = len(session.frames) - 1 if measured else frame
    table = viz.operator_table(session.frames.views[at], session.times() if measured else None)
    sizes = session.kernels.sizes if measured else ""
    return {"frame": at, "sizes": sizes, "rows": [(r.operator, r.calls, r.macs, r.bytes, r.time) for r in table.rows]}
