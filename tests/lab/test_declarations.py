"""The declarations that the script of the explorer is checked with are those of the table of questions."""

from __future__ import annotations

import pytest

from relaylab import study
from relaylab.explorer import QUESTIONS, Session
from relaylab.explorer.question import HELD
from relaylab.lab import saved_page
from relaylab.lab.declarations import PATH, declarations
from relaylab.lab.page import STATIC

pytestmark = pytest.mark.slow


def test_the_file_is_what_the_table_says():
    """`python -m relaylab.lab.declarations` writes it."""
    assert PATH.read_text(encoding="utf-8") == declarations()


def test_every_question_is_declared():
    assert all(f"  {name}: {{ args: [" in declarations() for name in QUESTIONS)


def test_a_page_holds_what_the_table_says():
    made = saved_page.snapshot(Session(study.explore("mlp", passes=["FoldConstant", "FuseOps"])))
    script = (STATIC / "saved/saved_page.js").read_text(encoding="utf-8")
    assert made["held"] == [q.name for q in QUESTIONS.values() if q.saved == HELD]
    assert all(f"\n  {name}(" in script for name in made["held"]), "the script unfolds what a page holds"
    assert {key.split("\n")[0] for key in made["answers"]} == {q.name for q in QUESTIONS.values() if callable(q.saved)}
    assert not any("error" in answer for answer in made["answers"].values())
    assert [f["name"] for f in made["rows"]["figures"]] == ["MACs", "bytes", "intensity"]
