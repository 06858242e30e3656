"""Questions about one node: what there is to read about it, its life, its counterparts."""

from __future__ import annotations

from typing import TypedDict

from relaylab.explorer.facts import PartFacts, PartWords, part_facts, part_words
from relaylab.explorer.question import HELD, Frame, question
from relaylab.explorer.session import Session
from relaylab.explorer.story import Chapter
from relaylab.support.errors import RelayValueError


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
        part = view.node_by_id.get(name) or view.group_by_id.get(name)
        if part is None:
            continue
        facts = part_facts(view, part, frames.nodes[k].get(name), frames.previews)
        kernel = session.story.fused(k, name) is not None
        return {**facts, "frame": k, "story": session.story.of(k, name), "kernel": kernel}
    if name in session.scenes.blocks:
        facts = part_facts(frames.views[frame], session.scenes.blocks[name])
        return {**facts, "frame": frame, "story": [], "kernel": False}
    raise RelayValueError(f"there is no node `{name}` up to this frame", code="explorer.node")


class FrameParts(TypedDict):
    """The nodes of a frame, then its groups, as queries see them."""

    parts: list[PartWords]


@question(saved=HELD)
def parts(session: Session, frame: Frame) -> FrameParts:
    """What the search looks at: the explorer's script evaluates queries itself, so that typing waits for no kernel."""
    view = session.frames.views[frame]
    return {"parts": [part_words(view, part) for part in (*view.nodes, *view.groups)]}


class Counterparts(TypedDict):
    """Ids by frame (as text: JSON has no other keys)."""

    ids: dict[str, list[str]]


@question(saved=HELD)
def counterparts(session: Session, frame: Frame, name: str, others: list[Frame]) -> Counterparts:
    """What stands for a node (or what it was made from) in other frames, by frame; none is an empty list."""
    return {"ids": {str(other): session.story.counterparts(frame, name, other) for other in others}}
