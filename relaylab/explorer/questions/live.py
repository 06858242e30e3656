"""Questions about the program as text that is typed in: what is wrong, what it changes, to run the passes over it."""

from __future__ import annotations

from typing import Literal, TypedDict

from relaylab.explorer.question import question
from relaylab.explorer.questions.passes import Rows, rows
from relaylab.explorer.scenes import GraphScene, graph_scene
from relaylab.explorer.session import Session
from relaylab.support.errors import RelayValueError

LONGEST = 400_000
"""Characters of a program that can be typed in."""


class SourceText(TypedDict):
    """The program that the passes run over, as text."""

    text: str


@question()
def source(session: Session) -> SourceText:
    """The text of the program before all passes, to type in."""
    if len(session.live.text) > LONGEST:
        raise RelayValueError("this program is too long to be typed in", code="explorer.long")
    return {"text": session.live.text}


class TextFault(TypedDict):
    """What is wrong in a text, from a line and column to others, all from 1; `help` says what to do."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    help: str


class LiveAnswer(TypedDict):
    """What is wrong with a text; if nothing is, the merged picture of what it changed, and the number of each role."""

    faults: list[TextFault]
    scenes: list[GraphScene]
    roles: dict[str, int]


@question()
def live(session: Session, text: str, since: Literal["before", "program"] = "before") -> LiveAnswer:
    """What is wrong with a text, or what it changed since the good text before it, or since the program as it is."""
    made = session.live
    if not made.read(text):
        faults: list[TextFault] = [
            {
                "line": f.line,
                "column": f.column,
                "end_line": f.end_line,
                "end_column": f.end_column,
                "message": f.message,
                "help": f.help,
            }
            for f in made.faults
        ]
        return {"faults": faults, "scenes": [], "roles": {}}
    difference = made.difference(made.source if since == "program" else None, session.frames.constants.name)
    scene, session.live_places = graph_scene(difference.merged, session.live_places)
    return {"faults": [], "scenes": [scene], "roles": difference.counts}


@question()
def begin_with(session: Session, text: str) -> Rows:
    """Run the passes over the program of a text; an edit that can be undone. The new rows."""
    made = session.live
    if not made.read(text):
        first = made.faults[0]
        raise RelayValueError(f"the text is not good: {first}", code="explorer.text", help=first.help)
    if made.mod is not session.pipeline.source:
        session.pipeline.begin_with(made.mod)
        session.refresh()
    return rows(session)
