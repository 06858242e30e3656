"""The Chinese pages follow the English ones: section by section, with the same code, and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relaylab.course.translation import begin, mark
from relaylab.explorer.wording import wording

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {"README.md": DOCS.parent / "README.md", "teaching.md": DOCS / "teaching.md"}
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_follows_its_english_one(name: str) -> None:
    """Before every section stands `<!-- of MARK -->`, with the mark of the English section."""
    sections = {mark(s): begin(s) for s in re.split(r"^(?=## )", read(PAGES[name]), flags=re.MULTILINE)}
    marks = re.findall(r"^<!-- of ([0-9a-f]{8}) -->$", read(DOCS / "zh" / name), re.MULTILINE)
    changed = [f"{words} (its mark is {m})" for m, words in sections.items() if m not in marks]
    assert not changed, f"translate these sections anew in docs/zh/{name}, and write their marks: {changed}"
    assert set(marks) == set(sections), f"docs/zh/{name} translates what is there no more: {set(marks) - set(sections)}"
    blocks = lambda text: re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks(read(DOCS / "zh" / name)) == blocks(read(PAGES[name]))


def test_every_note_is_told_in_chinese() -> None:
    notes = {p.stem: mark(read(p)) for p in (DOCS / "notes").glob("*.md") if p.stem != "index"}
    told = dict(
        re.findall(r"<!-- of (\w{8}) -->\n## .*?\]\(\.\./notes/(\w+)\.md\)", read(DOCS / "zh" / "notes.md"), re.DOTALL)
    )
    changed = [f"{name} (its mark is {m})" for name, m in notes.items() if told.get(m) != name]
    assert not changed, f"tell these notes anew in docs/zh/notes.md, and write their marks: {changed}"
    assert len(told) == len(notes)


def test_links_lead_somewhere() -> None:
    for page in (DOCS / "zh").glob("*.md"):
        missing = [to for to in LINK.findall(read(page)) if not (page.parent / to).exists()]
        assert not missing, f"{page.name}: {missing}"


def test_terms_have_one_translation() -> None:
    """A term stands once in the glossary, and the explorer's table uses its translation."""
    rows = re.findall(r"^\| ([a-zA-Z][^|]*) \| ([^|]*) \| [^|]+ \|$", read(DOCS / "zh" / "glossary.md"), re.MULTILINE)
    terms = [row for row in rows if row[0] != "英文"]
    assert len(terms) == len({english for english, _ in terms}) > 60
    known = {e: z.split("，")[0] for e, z in terms}
    for english, chinese in wording("zh").items():
        for term in ("memory planning", "roofline", "critical path", "operator", "layout"):
            if term in known and re.search(rf"\b{term}s?\b", english) and " " not in english:
                assert known[term] in chinese, (english, chinese)
