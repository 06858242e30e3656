"""The widget without a browser: traits, messages, bundle, saving; and the laws of its scripts."""

from __future__ import annotations

import re

import pytest

from relaylab import study
from relaylab.lab.explorer import PassExplorer
from relaylab.lab.page import LIMIT, STATIC, STYLES, page_sheet, script, sheet
from relaylab.support.errors import RelayError
from relaylab.transform import default_passes
from relaylab.viz.write.modules import COMMENT, modules

ENDS = ("live.js", "saved.js", "predict.js")


@pytest.fixture(scope="module")
def widget():
    return PassExplorer(study.explore("mlp"))


def test_it_starts_at_the_first_change(widget):
    first = next(k for k, row in enumerate(widget.rows["rows"], 1) if row["changed"])
    assert (widget.before, widget.after) == (first - 1, first)
    assert widget.rows["rows"][first - 1]["name"] == "CanonicalizeOps"


def test_messages_are_answered(widget, monkeypatch):
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._answer(widget, {"id": "7", "what": "steps", "args": [0]}, [])
    widget._answer(widget, {"id": "8", "what": "nonsense", "args": []}, [])
    assert sent[0] == {"id": "7", "answer": {"steps": []}} and "no question" in sent[1]["answer"]["error"]


def test_every_message_is_answered_whatever_goes_wrong(widget, monkeypatch):
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._answer(widget, {"id": "9", "what": "steps", "args": [999]}, [])
    widget._answer(widget, {"id": "10", "what": "picture", "args": []}, [])
    for content in (None, [], "x", 7):
        widget._answer(widget, content, [])
    assert [m["id"] for m in sent] == ["9", "10", *[None] * 4] and all("error" in m["answer"] for m in sent)


def test_python_moves_it_and_hears_of_it(widget):
    seen = []
    widget.on_select(seen.append)
    widget.go(0)
    widget.step()
    assert widget.after == widget.session.frames.changing()[0]
    widget.step(-1)
    assert widget.after == 0
    widget.selected = "main/nn.softmax"
    assert seen == ["main/nn.softmax"] and widget.selected_node.op.name == "nn.softmax"
    widget.overlay("mine", {widget.selected_node: 3.0})
    assert widget.session.ask("overlay", "mine", 0)["values"]["main/nn.softmax"] == 3.0 and widget.overlays == ["mine"]
    widget.toggle("FuseOps")
    assert not any("Primitive" in str(m) for m in widget.session.frames.modules)
    widget.toggle("FuseOps")
    with pytest.raises(RelayError):
        widget.toggle("FusOps")


def test_it_shows_a_picture_where_there_is_no_widget(widget):
    bundle, _ = widget._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "image/svg+xml", "text/plain"} <= set(bundle)
    assert f"{len(default_passes(3))} passes" in bundle["text/plain"]


def test_saved_pages_need_nothing(widget, tmp_path):
    text = widget.save(tmp_path / "x.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?https?:|@import|import\(""", text)
    assert widget.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def breaks_in_backticks(text: str) -> int:
    """The line breaks in texts in backticks, those in code that stands in them left out."""
    inside, found, k = ["code"], 0, 0
    while k < len(text):
        here = text[k : k + 2]
        if here[0] == "\\":
            k += 1
        elif here[0] == "`":
            inside.append("text") if inside[-1] != "text" else inside.pop()
        elif inside[-1] == "text" and here == "${":
            inside.append("code")
            k += 1
        elif inside[-1] == "code" and len(inside) > 1 and here[0] in "{}":
            inside.append("code") if here[0] == "{" else inside.pop()
        elif inside[-1] == "text" and here[0] == "\n":
            found += 1
        k += 1
    return found


def test_no_text_loses_its_indentation():
    """Scripts are put together without the indentation of lines."""
    assert breaks_in_backticks("`a\n  b` + `c${d({\n  e: `f`\n})}g`") == 1
    for path in STATIC.rglob("*.js"):
        assert not breaks_in_backticks(COMMENT.sub("", path.read_text())), path


def test_scripts_are_small_and_build_no_markup_from_text():
    assert max(len(script("live.js") + sheet()), len(script("saved.js") + page_sheet())) < LIMIT
    for end in ENDS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3\.org)",
            script(end),
        ), end
    assert len(script("predict.js")) < 30_000


@pytest.mark.parametrize("end", ENDS)
def test_every_module_stands_behind_what_it_imports(end):
    """The modules are put together in order, once each, and nothing is in the folder that no end needs."""
    order = modules(STATIC / end)
    assert len(order) == len(set(order)) and order[-1] == STATIC / end
    for at, path in enumerate(order):
        for other in re.findall(r'^import .*? from "(\.[^"]+)"', path.read_text(), re.MULTILINE | re.DOTALL):
            assert (path.parent / other).resolve() in order[:at]
    assert "import" not in re.findall(r"^\w+", script(end), re.MULTILINE)


def test_every_script_and_style_is_used():
    used = {path for end in (*ENDS, "cells.js") for path in modules(STATIC / end)}
    assert {*STATIC.rglob("*.js")} == {p for p in used if STATIC in p.parents}
    assert {p.stem for p in STATIC.rglob("*.css")} == {*STYLES, "page", "predict"}


@pytest.mark.parametrize("end", ENDS)
def test_no_name_is_declared_twice(end):
    source = "".join(path.read_text() for path in modules(STATIC / end))
    declared = re.findall(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", source, re.MULTILINE)
    assert len(declared) == len(set(declared)), sorted(n for n in declared if declared.count(n) > 1)
