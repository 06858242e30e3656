"""Questions that run the interpreter: whether a pass keeps the numbers, and which rewrite first changed them."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from relaylab.explorer.question import Index, question
from relaylab.explorer.session import Session
from relaylab.study.bisect import TOLERANCE, bisect_history
from relaylab.study.crash import Crash, crash_of
from relaylab.support.errors import RelayValueError
from relaylab.viz.write.html import SceneData, scene_data


class CheckAnswer(TypedDict):
    """How far the outputs after a pass are from those before all passes; no size where their shapes differ."""

    index: int
    error_size: float | None
    ok: bool


@question()
def check(session: Session, index: Index) -> CheckAnswer:
    """Whether a pass keeps the numbers: the interpreter on seeded input, against the program before all passes."""
    pipeline = session.checked.pipeline(session.small)
    if pipeline.segments[index].error is not None:
        why = f"{pipeline.items[index].name} stopped: there are no numbers after it"
        raise RelayValueError(why, code="explorer.check")
    size = session.checked.error(session.small, index)
    return {"index": index, "error_size": size, "ok": size is not None and bool(size <= TOLERANCE)}


class Bisected(TypedDict):
    """The pass that first changed the numbers, a program that shows it, and a picture of the values; or the pass that
    stopped the pipeline, which has no picture."""

    found: bool
    text: str
    index: NotRequired[int]
    reproducer: NotRequired[str]
    scene: NotRequired[SceneData]


@question()
def bisect(session: Session) -> Bisected:
    """The pass and the rewrite that first changed the numbers, or the pass that raised."""
    pipeline = session.checked.pipeline(session.small)
    finding = bisect_history(pipeline.history)
    if finding is None:  # the small form may lack what a pass cannot take
        pipeline = session.pipeline
        finding = crash_of(pipeline.history)
    if finding is None:
        return {"found": False, "text": "every pass keeps the numbers"}
    index = next(i for i, s in enumerate(pipeline.segments) if finding.stage in s.stages)
    found: Bisected = {"found": True, "text": str(finding), "index": index, "reproducer": finding.reproducer()}
    return found if isinstance(finding, Crash) else {**found, "scene": scene_data(finding.scene)}
