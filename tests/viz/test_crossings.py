"""Lines that are cut at the border of a page name the page where they go on; every command has `--a4`."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import which
from subprocess import run

import pytest
from programs import chain, program
from test_exemplars import run as command

from relaylab import viz
from relaylab.viz.draw.crossings import PagePlace, crossings
from relaylab.viz.draw.pages import PAPERS, sheets, sheets_of
from relaylab.viz.scene.scene import Element, Scene, Text, curve
from relaylab.viz.write.pdf import pdf


def scene(*lines: list[tuple[float, float]]) -> Scene:
    """Lines through their corners."""
    made = (viz_line(k, corners) for k, corners in enumerate(lines))
    return Scene(100.0, 300.0, tuple(made))


def viz_line(number: int, corners: list[tuple[float, float]]) -> Element:
    from relaylab.viz.scene.scene import Path as Line

    return Element(str(number), "edge", (Line(curve(corners, sideways=False)),))


PLACES = [PagePlace(0, 0, 100, 100, 1, 1), PagePlace(0, 100, 100, 200, 1, 2), PagePlace(0, 200, 100, 300, 2, 1)]


def words(*lines: list[tuple[float, float]]) -> list[list[str]]:
    return [[t.text for t in texts] for texts in crossings(scene(*lines), PLACES, 1.0)]


def test_a_line_names_where_it_goes_on_and_where_it_comes_from() -> None:
    assert words([(10, 50), (10, 250)]) == [["to page 2"], ["to page 2", "from column 1"], ["from page 1"]]
    assert words([(10, 50), (10, 150)]) == [["to column 2"], ["from column 1"], []]
    assert words([(10, 10), (10, 90)]) == [[], [], []]


def test_lines_beside_each_other_say_it_once_and_others_below() -> None:
    assert words([(10, 50), (10, 150)], [(14, 50), (14, 150)])[0] == ["to column 2"]
    assert sorted(words([(10, 50), (10, 150)], [(14, 50), (14, 250)])[0]) == ["to column 2", "to page 2"]
    apart = crossings(scene([(10, 50), (10, 150)], [(14, 50), (14, 250)]), PLACES, 1.0)[0]
    assert len({t.y for t in apart}) == 2


def test_every_cut_of_a_chain_names_the_next_page() -> None:
    pages = sheets(viz.show(chain(200)).scene, *PAPERS["a4"])
    assert len(pages) > 1
    for number, page in enumerate(pages[:-1], 1):
        said = [s.text for part in page.parts for s in part.shapes if isinstance(s, Text)]
        assert said.count(f"to page {number + 1}") == 1


def test_the_words_are_links_to_that_page() -> None:
    """Of each picture to its own pages, whose numbers go through the document."""
    made = pdf([viz.show(chain(600)).scene, viz.show(chain(500)).scene], paper="a4")
    pages = {int(m[1]): m[2] for m in re.finditer(rb"\n(\d+) 0 obj\n<</Type/Page/([^\n]*)", made)}
    numbers = sorted(pages)
    starts = [0, len(sheets(viz.show(chain(600)).scene, *PAPERS["a4"]))]
    for start, end in zip(starts, [starts[1], len(numbers)], strict=True):
        inside = numbers[start:end]
        assert len(inside) > 2
        for k, number in enumerate(inside):
            goals = [int(g) for g in re.findall(rb"/Subtype/Link/.*?/Dest\[(\d+) 0 R/Fit\]", pages[number])]
            assert sorted(goals) == [*inside[max(0, k - 1) : k], *inside[k + 1 : k + 2]]


def test_numbers_of_pages_go_through_all_pictures() -> None:
    pictures = [viz.show(chain(n)).scene for n in (3, 600, 5, 500)]
    pages = sheets_of(pictures, *PAPERS["a4"])
    said = [
        [s.text for part in page.parts for s in part.shapes if isinstance(s, Text)] for own in pages for page in own
    ]
    assert len(pages[0]) == len(pages[2]) == 1 and len(said) > 6
    for number, words in enumerate(said, 1):
        assert f"page {number} of {len(said)}" in words
    for own in pages:
        first = said.index([s.text for part in own[0].parts for s in part.shapes if isinstance(s, Text)]) + 1
        assert all(f"to page {first + k + 1}" in said[first + k - 1] for k in range(len(own) - 1))


@pytest.mark.skipif(which("pdftotext") is None, reason="needs poppler")
def test_a_reader_finds_the_words(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(pdf([viz.show(chain(200)).scene], paper="a4"))
    text = run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout
    assert "to page 2" in text and "from page 1" in text


@pytest.mark.parametrize(
    "words",
    [
        ("viz", "mlp", "-o"),
        ("passes", "mlp", "-p", "FuseOps", "-o"),
        ("passes", "mlp", "-p", "FuseOps", "--heat"),
        ("diff", "mlp", "dqn", "-o"),
        ("figure", "mlp", "FuseOps", "-o"),
    ],
)
def test_commands_write_a4(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    assert command(*words, str(path), "--a4") == 0
    sizes = [f"[0 0 {a} {b}]".encode() for a, b in ((595, 842), (842, 595))]
    assert any(size in path.read_bytes() for size in sizes)


def test_the_legend_says_what_the_dots_between_lets_mean() -> None:
    pages = sheets(viz.show(program("closure")).scene, *PAPERS["a4"])
    said = {s.text for page in pages for p in page.parts for s in p.shapes if isinstance(s, Text)}
    assert "evaluated before" in said and "only before" not in said
