"""The question for the explorer's words in another language."""

from __future__ import annotations

from typing import TypedDict

from relaylab.explorer import wording as tables
from relaylab.explorer.question import question
from relaylab.explorer.session import Session


class Wording(TypedDict):
    """Words by the English ones."""

    table: dict[str, str]


@question()
def wording(session: Session, language: str) -> Wording:
    """The words of the explorer in a language; none if it is only spoken English."""
    return {"table": tables.wording(language)}
