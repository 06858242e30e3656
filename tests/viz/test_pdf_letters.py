"""Letters of a PDF: those of its own fonts, what is spelled instead, and those that the reader's fonts have."""

from __future__ import annotations

import re

import pytest
from programs import pdf_texts

from relaylab.viz.scene.metrics import text_width
from relaylab.viz.scene.scene import Element, Scene, Text
from relaylab.viz.write.pdf import pdf


def said(text: str) -> tuple[str, bytes]:
    """How a line in the middle of a picture is set, and the file."""
    scene = Scene(100.0, 20.0, (Element("a", "note", (Text(50.0, 10.0, text, 10.0, anchor="middle"),)),))
    data = pdf([scene])
    return re.search(r"BT (.*) ET", pdf_texts(data)[0])[1], data


def test_pdf_text_outside_winansi_is_spelled_or_set_in_another_font():
    set_as = {text: said(text)[0].split("Tm ")[1] for text in ("a→b", "µ(×)\\", "漢a")}
    assert set_as == {
        "a→b": "/F1 10 Tf (a->b) Tj",
        "µ(×)\\": "/F1 10 Tf (\\265\\(\\327\\)\\\\) Tj",
        "漢a": "/F4 10 Tf 100 Tz <6f22> Tj 100 Tz /F1 10 Tf (a) Tj",
    }
    assert b"STSong" in said("漢")[1] and b"STSong" not in said("a→b")[1]


def test_letters_of_another_font_can_be_found_in_a_pdf():
    """They were question marks."""
    pdfium = pytest.importorskip("pypdfium2")
    page = pdfium.PdfDocument(said("卷积 – Ωμ é")[1])[0].get_textpage()
    assert page.get_text_range() == "卷积 – Ωμ é"
    left, right = page.get_charbox(0, loose=True)[0], page.get_charbox(8, loose=True)[2]
    assert (left + right) / 2 == pytest.approx(50.0, abs=2.0)


@pytest.mark.parametrize("text, width", [("abc", "abc"), ("漢字", "漢字"), ("a→b", "a->b")])
def test_what_a_pdf_spells_stands_in_the_middle_all_the_same(text: str, width: str):
    x = re.match(r"1 0 0 -1 (\S+) ", said(text)[0])[1]
    assert float(x) + text_width(width, 10.0) / 2 == pytest.approx(50.0, abs=0.01)
