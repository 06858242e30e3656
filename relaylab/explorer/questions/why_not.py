"""The question why a pass left a node alone: the nearest rules, each with the way of the matcher up to what failed."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from relaylab.explorer.question import Frame, question
from relaylab.explorer.session import Session
from relaylab.study.why import WhyNot, rules_of, why_not
from relaylab.support.errors import RelayError
from relaylab.transform import FuseOps, Pass
from relaylab.transform.rewriting.explain import Reason

MOST = 8
"""Reasons that are given, and reasons of other passes."""


NearMiss = TypedDict(
    "NearMiss",
    {
        "pass": str,
        "index": int,
        "rule": str,
        "words": str,
        "fires": bool,
        "near": float,
        "place": str,
        "id": str,
        "steps": list[tuple[str, bool, str]],
    },
)
"""A rule of a pass that came near: what failed (or that it fires), the share that fits, the line of its source, the
node that did not fit, and the tests of the matcher as words, whether they held, and node."""


Why = TypedDict(
    "Why",
    {
        "passes": list[tuple[int, str]],
        "pass": str,
        "index": int,
        "reasons": list[NearMiss],
        "others": list[NearMiss],
        "note": NotRequired[str],
    },
)
"""Passes that can say why, the one that was asked with its reasons, the near misses of the others; a note where
there is nothing to list."""


@question()
def why(session: Session, frame: Frame, name: str, index: int = -1) -> Why:
    """Why the pass at `index` did nothing to a node; without it the pass of the frame, then the others by nearness."""
    items = session.pipeline.items
    able = [(k, item.name) for k, item in enumerate(items) if _explains(item.made)]
    asked = index
    if index < 0:
        asked = frame - 1 if frame else able[0][0] if able else -1
    found = _asked(session, asked, name) if asked >= 0 else WhyNot("", [], "no pass of this pipeline is made of rules")
    others: list[NearMiss] = []
    if index < 0:
        others = [r for k, _ in able if k != asked for r in _told(session, k, _asked(session, k, name))]
        others.sort(key=lambda r: (r["fires"], r["near"]), reverse=True)
    answer: Why = {
        "passes": able,
        "pass": items[asked].name if asked >= 0 else "",
        "index": asked,
        "reasons": _told(session, asked, found),
        "others": others[:MOST],
    }
    if not found.reasons:
        answer["note"] = found.note or "it looks at no node like this"
    return answer


def _asked(session: Session, index: int, name: str) -> WhyNot:
    """What the pass at an index answers for a node of the program that it gets."""
    item = session.pipeline.item(index)
    expr = session.frames.nodes[index].get(name)
    if expr is None:
        return WhyNot(item.name, [], f"this node is not in the program that {item.name} gets")
    if not _explains(item.made):
        return WhyNot(item.name, [], f"{item.name} is not made of rules or patterns")
    return why_not(item.made, session.frames.modules[index], expr, most=MOST)


def _told(session: Session, index: int, found: WhyNot) -> list[NearMiss]:
    return [_near_miss(session, index, r) for r in found.reasons]


def _near_miss(session: Session, index: int, found: Reason) -> NearMiss:
    ids = session.frames.ids[index]
    return {
        "pass": session.pipeline.items[index].name,
        "index": index,
        "rule": found.rule,
        "words": found.why or found.done,
        "fires": found.fires,
        "near": found.near,
        "place": found.location,
        "id": ids.get(found.at, ""),
        "steps": [(s.words, s.holds, ids.get(s.node, "")) for s in found.steps],
    }


def _explains(made: Pass) -> bool:
    try:
        return isinstance(made, FuseOps) or bool(rules_of(made))
    except RelayError:
        return False
