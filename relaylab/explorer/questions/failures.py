"""The question about a pass that stopped the pipeline: what it raised, where, and a program that shows it."""

from __future__ import annotations

from typing import TypedDict

from relaylab.explorer.question import Index, question
from relaylab.explorer.session import Session
from relaylab.study.crash import crash_of
from relaylab.support.errors import RelayValueError


class FailureFacts(TypedDict):
    """What stopped the pipeline: the class of the error (of a pass that raised), its text, the place and line of code;
    the calls as place, function, code, whether they are relaylab's; a Python program that shows it."""

    index: int
    name: str
    raised: bool
    kind: str
    message: str
    at: str
    code: str
    trace: list[tuple[str, str, str, bool]]
    reproducer: str


@question(saved=lambda session: [(k,) for k, s in enumerate(session.pipeline.segments) if s.error is not None])
def failure(session: Session, index: Index) -> FailureFacts:
    """Why the pipeline stopped at a pass."""
    pipeline = session.pipeline
    crash = crash_of(pipeline.history)
    if crash is None or pipeline.segments[index].error is not crash.error:
        raise RelayValueError(f"{pipeline.items[index].name} did not fail", code="explorer.failure")
    return {
        "index": index,
        "name": crash.stage.name,
        "raised": crash.raised,
        "kind": crash.kind,
        "message": crash.message,
        "at": crash.site.place if crash.site else "",
        "code": crash.site.code if crash.site else "",
        "trace": [(t.place, t.function, t.code, t.ours) for t in crash.trace],
        "reproducer": crash.reproducer(),
    }
