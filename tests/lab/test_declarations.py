"""The declarations that the script of the explorer is checked with are those of the table of questions."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.explorer import QUESTIONS, Session
from relaylab.explorer.question import HELD
from relaylab.lab import saved_page
from relaylab.lab.declarations import COLOURS, PATH, declarations, languages
from relaylab.lab.page import STATIC

pytestmark = pytest.mark.slow


def test_the_files_are_what_the_tables_say():
    """`python -m relaylab.lab.declarations` writes it."""
    assert PATH.read_text(encoding="utf-8") == declarations()
    assert COLOURS.read_text(encoding="utf-8") == languages()


def test_every_question_is_declared():
    assert all(f"  {name}: {{ args: [" in declarations() for name in QUESTIONS)


def test_a_page_holds_what_the_table_says():
    @relay.transform.module_pass(opt_level=0)
    def Boom(mod, ctx):
        return mod.missing

    made = saved_page.snapshot(Session(study.explore("mlp", passes=["FoldConstant", "FuseOps", Boom])))
    script = (STATIC / "saved/saved_page.js").read_text(encoding="utf-8")
    assert made["held"] == [q.name for q in QUESTIONS.values() if q.saved == HELD]
    assert all(f"\n  {name}(" in script for name in made["held"]), "the script unfolds what a page holds"
    assert {key.split("\n")[0] for key in made["answers"]} == {q.name for q in QUESTIONS.values() if callable(q.saved)}
    assert not any("error" in answer for answer in made["answers"].values())
    assert [f["name"] for f in made["rows"]["figures"]] == ["MACs", "bytes", "intensity"]
