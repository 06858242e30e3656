"""Questions about branches of the pipeline: keeping them, comparing their figures, stages of two side by side."""

from __future__ import annotations

from typing import Literal, TypedDict

from relaylab import viz
from relaylab.explorer.frames import NodeIdentities, expressions
from relaylab.explorer.question import question, within
from relaylab.explorer.scenes import GraphScene, graph_scene
from relaylab.explorer.session import Session
from relaylab.ir import Expr
from relaylab.study.compare import Crossing, Quantity
from relaylab.study.pipeline import Pipeline
from relaylab.study.stage_text import TextRow, printed, text_rows
from relaylab.viz.diffs.difference import BY_TRAIL
from relaylab.viz.draw.draw import draw
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.graph.annotate import texts


class BranchList(TypedDict):
    """The names of all branches, and of each its stages that differ from the one before, as frame and pass."""

    names: list[str]
    stages: dict[str, list[tuple[int, str]]]


@question()
def branch(session: Session, how: Literal["keep", "use", "drop", "list"], name: str) -> BranchList:
    """Keep the current pipeline under a name, use a kept one as the current pipeline, or drop it; gives all names."""
    branches = session.branches
    if how == "keep":
        branches.keep(name)
    elif how == "use":
        branches.use(name)
        session.refresh()
    elif how == "drop":
        branches.drop(name)
    return {"names": branches.names(), "stages": {n: _stages(branches.pipeline(n)) for n in branches.names()}}


def _stages(pipeline: Pipeline) -> list[tuple[int, str]]:
    made = zip(pipeline.items, pipeline.segments)
    return [(0, "source program"), *((k, item.name) for k, (item, s) in enumerate(made, 1) if s.changed)]


QuantityRow = tuple[str, str, float | None, float | None, float | None, list[tuple[float, float] | None]]
"""Name, unit, the figures of both, the change as a share, the 95 % intervals of measured ones."""


class Compared(TypedDict):
    """The figures of two branches beside each other, and the operators whose number differs."""

    names: list[str]
    rows: list[QuantityRow]
    operators: list[QuantityRow]


@question()
def compare(session: Session, a: str, b: str, measured: bool = False) -> Compared:
    """The figures of both ends, the operators whose number differs, and if asked the measured time."""
    found = session.branches.comparison(a, b, session.small)
    quantities = [*found.quantities, *(found.measured() if measured else [])]
    return {"names": [a, b], "rows": [_row(q) for q in quantities], "operators": [_row(q) for q in found.operators]}


def _row(quantity: Quantity) -> QuantityRow:
    spread = [(i.low, i.high) if i else None for i in quantity.spread]
    return quantity.name, quantity.unit, quantity.a, quantity.b, quantity.change, spread


class Versus(TypedDict):
    """The merged picture of two stages, how many parts have each role, and the text difference."""

    scenes: list[GraphScene]
    roles: dict[str, int]
    rows: list[TextRow]


@question()
def versus(session: Session, a: str, at_a: int, b: str, at_b: int) -> Versus:
    """A stage of one branch against a stage of another: the merged picture, the roles, the text difference."""
    one, other = session.branches.pipeline(a), session.branches.pipeline(b)
    for pipeline, frame in ((one, at_a), (other, at_b)):
        within("frame", frame, len(pipeline.modules))
    names, constants = NodeIdentities(), session.frames.constants
    options = [ViewOptions(texts=texts(p.modules[k], constants.name)) for p, k in ((one, at_a), (other, at_b))]
    old = viz.view(one.modules[at_a], options[0], names, a)
    ids = [expressions(names.given)]
    names.follow(Crossing(one, other, at_a, at_b))
    new = viz.view(other.modules[at_b], options[1], names, b)
    ids.append(expressions(names.given))
    difference = viz.Difference(old, new, BY_TRAIL)
    scene, _ = graph_scene(difference.merged, draw(old).seed)

    def name(node: Expr | None, before: bool) -> str:
        return ids[0 if before else 1].get(node, "") if node is not None else ""

    text = text_rows(printed(one.modules[at_a], constants), printed(other.modules[at_b], constants), name)
    return {"scenes": [scene], "roles": difference.counts, "rows": text}
