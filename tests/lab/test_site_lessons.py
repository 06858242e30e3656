"""The lessons of a site: what comes along, links from page to page, formulas without a network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from relaylab.cli.notebooks import shipped
from relaylab.cli.site import lesson_groups
from relaylab.lab.site.build import build
from relaylab.lab.site.lessons import LessonGroup, lesson

CELL = {"cell_type": "markdown", "metadata": {}}
TEXT = """# The `first` page

*Lesson 1 of 2*

Costs $W / M$.

$$t \\geq \\frac{W}{P}$$

[next](two.ipynb#here), [a note](../docs/note.md), [gone](gone.md), [away](https://example.org/x.md)"""


@pytest.fixture
def groups(tmp_path: Path) -> list[LessonGroup]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "books").mkdir()
    (tmp_path / "docs" / "note.md").write_text("# A note\n\nBack to [one](../books/one.ipynb).")
    for name, text in {"one": TEXT, "two": "# Two"}.items():
        (tmp_path / "books" / f"{name}.ipynb").write_text(json.dumps({"cells": [CELL | {"source": text}]}))
    books = [tmp_path / "books" / f"{name}.ipynb" for name in ("one", "two")]
    return [LessonGroup("Course", "course/en", books), LessonGroup("Notes", "notes", [tmp_path / "docs" / "note.md"])]


def test_the_course_comes_first_then_what_else_there_is():
    found = {group.title: [p.stem for p in group.paths] for group in lesson_groups(shipped())}
    assert list(found) == ["The course", "Notebooks", "Notes of one page", "课程"]
    assert len(found["The course"]) == len(found["课程"]) == 12 and found["The course"][5] == "06_fusion"
    assert found["Notebooks"][0] == "00_quick_start" and "stride" in found["Notes of one page"]


def test_links_lead_from_page_to_page(groups: list[LessonGroup]):
    hrefs = {path: href for group in groups for path, href in group.hrefs().items()}
    found = lesson(groups[0].paths[0], hrefs, run=False)
    assert found.href == "course/en/one.html" and '<a href="../../index.html">' in found.page
    assert (
        '<a href="two.html#here">next</a>' in found.page and '<a href="../../notes/note.html">a note</a>' in found.page
    )
    assert "gone.md" not in found.page and ", gone, " in found.page and 'href="https://example.org/x.md"' in found.page
    assert '<a href="../course/en/one.html">one</a>' in lesson(groups[1].paths[0], hrefs).page


def test_formulas_are_mathml_and_the_index_shows_the_first_words(groups: list[LessonGroup]):
    hrefs = {path: href for group in groups for path, href in group.hrefs().items()}
    found = lesson(groups[0].paths[0], hrefs, run=False)
    assert found.page.count("<math ") == 2 and "<mfrac>" in found.page and "$" not in found.page
    assert (found.title, found.about) == ("The first page", "Costs W / M.")


def test_a_formula_that_cannot_be_read_stays_text(tmp_path: Path):
    path = tmp_path / "x.md"
    path.write_text("# X\n\n$\\frac{a}$ and $\\left( b$ <b>")
    assert "\\left( b" in lesson(path, {path.resolve(): "notes/x.html"}).page


def test_a_page_carries_its_pictures_and_says_its_language(tmp_path: Path):
    (tmp_path / "a b.svg").write_text("<svg/>")
    path = tmp_path / "x.md"
    path.write_text("# X\n\n![one](a%20b.svg) ![none](gone.svg) ![text](x.md)")
    page = lesson(path, {path.resolve(): "course/zh/x.html"}).page
    assert '<img src="data:image/svg+xml;base64,PHN2Zy8+"' in page and '<html lang="zh">' in page
    assert 'src="gone.svg"' in page and 'src="x.md"' in page
    assert '<html lang="en">' in lesson(path, {path.resolve(): "notes/x.html"}).page


def test_every_link_of_a_site_leads_somewhere(groups: list[LessonGroup], tmp_path: Path):
    out = tmp_path / "out"
    made = list(build(out, [], groups, run_lessons=False))
    assert {p.relative_to(out).as_posix() for p in out.rglob("*.html")} == {
        "index.html", "course/en/one.html", "course/en/two.html", "notes/note.html"
    }  # fmt: skip
    assert (out / "course/en/one.ipynb").is_file() and all(b.size for b in made)
    index = (out / "index.html").read_text()
    assert index.index("<h2>Course</h2>") < index.index('href="course/en/one.html"') < index.index("<h2>Notes</h2>")


def test_files_of_one_name_and_of_odd_names_have_pages_that_links_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    paths = [Path("a", "one.relay"), Path("b", "one.relay"), Path("50%25 #1?.relay")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("fn (%x: Tensor[(2), float32]) { nn.relu(exp(%x)) }")
    odd = tmp_path / "Lesson #1.ipynb"
    odd.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    out = tmp_path / "out"
    list(build(out, [*map(str, paths), str(paths[0])], [LessonGroup("L", "lessons", [odd])], run_lessons=False))
    pages = re.findall(r'<a href="([^"#]+)"', (out / "index.html").read_text())
    assert len(set(pages)) == 4 and all((out / unquote(page)).is_file() for page in pages)
    for page in pages:
        book = re.findall(r'<a href="([^"]+)" download', (out / unquote(page)).read_text())
        assert (out / unquote(page)).with_name(unquote(book[0])).is_file()
    cells = json.loads((out / "networks" / "one-2.ipynb").read_text())["cells"]
    assert "study.load('b/one.relay')" in cells[2]["source"] and cells[3]["source"] == "%relay_passes program"


def test_what_a_site_runs_is_not_what_its_author_has_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAYLAB_COURSE_DIR", str(tmp_path / "learner"))
    book = tmp_path / "mine.ipynb"
    source = 'from relaylab.course import check\nprint(check("count", (3, 6)))'
    cells = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None, "id": "a"}]
    book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    found = lesson(book, {book: "lessons/mine.html"}, run=True)
    assert "count: right" in found.page and not (tmp_path / "learner").exists()
