"""Questions about one node: what there is to read about it, its life, its counterparts, why a pass left it alone."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from relaylab.explorer.facts import PartFacts, group_facts, node_facts
from relaylab.explorer.question import HELD, Frame, question
from relaylab.explorer.session import Session
from relaylab.explorer.story import Chapter
from relaylab.study.why import rules_of, why_not
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import FuseOps, Pass

MOST = 8
"""Reasons that are given."""


class NodeAnswer(PartFacts):
    """All about a node or group: where it was found last, what happened to it, whether it became part of a kernel."""

    frame: int
    story: list[Chapter]
    kernel: bool


@question(saved=HELD)
def node(session: Session, frame: Frame, name: str) -> NodeAnswer:
    """All about a node or group, and its life story."""
    frames = session.frames
    for k in (frame, *range(frame - 1, -1, -1)):
        view = frames.views[k]
        if name in view.node_by_id:
            facts = node_facts(view.node_by_id[name], frames.nodes[k].get(name), frames.previews)
        elif name in view.group_by_id:
            facts = group_facts(view.group_by_id[name])
        else:
            continue
        kernel = session.story.fused(k, name) is not None
        return {**facts, "frame": k, "story": session.story.of(k, name), "kernel": kernel}
    if name in session.scenes.blocks:
        return {**group_facts(session.scenes.blocks[name]), "frame": frame, "story": [], "kernel": False}
    raise RelayValueError(f"there is no node `{name}` up to this frame", code="explorer.node")


class Counterparts(TypedDict):
    """Ids by frame (as text: JSON has no other keys)."""

    ids: dict[str, list[str]]


@question(saved=HELD)
def counterparts(session: Session, frame: Frame, name: str, others: list[Frame]) -> Counterparts:
    """What stands for a node (or what it was made from) in other frames, by frame; none is an empty list."""
    return {"ids": {str(other): session.story.counterparts(frame, name, other) for other in others}}


Why = TypedDict(
    "Why",
    {
        "passes": list[tuple[int, str]],
        "pass": str,
        "index": int,
        "reasons": NotRequired[list[tuple[str, str, bool, float, str, str]]],
        "error_here": NotRequired[str],
    },
)
"""Passes that can say why, the one that says it, and reasons: rule, words, whether it fires, how near, place, node."""


@question()
def why(session: Session, frame: Frame, name: str, index: int = -1) -> Why:
    """Why the pass at `index` (default: the one after or at the frame that can say) did nothing to a node."""
    able = [(k, item.name) for k, item in enumerate(session.pipeline.items) if _explains(item.made)]
    if not able:
        return {"passes": [], "pass": "", "index": -1, "reasons": []}
    if index < 0:
        index = next((k for k, _ in able if k >= frame - 1), able[-1][0])
    item = session.pipeline.item(index)
    expr, ids = session.frames.nodes[index].get(name), session.frames.ids[index]
    answer: Why = {"passes": able, "pass": item.name, "index": index}
    if expr is None:
        answer["error_here"] = f"this node is not in the program that {item.name} gets"
        return answer
    found = why_not(item.made, session.frames.modules[index], expr, most=MOST).reasons
    answer["reasons"] = [(r.rule, r.why or r.done, r.fires, r.near, r.location, ids.get(r.at, "")) for r in found]
    return answer


def _explains(made: Pass) -> bool:
    try:
        return isinstance(made, FuseOps) or bool(rules_of(made))
    except RelayError:
        return False
