"""The widget without a browser: traits, messages, bundle, saving; and the laws of its scripts."""

from __future__ import annotations

import re

import pytest

from relaylab import tour
from relaylab.lab.explorer import PassExplorer
from relaylab.lab.page import LIMIT, PARTS, SAVED, STATIC, script, sheet
from relaylab.support.errors import RelayError


@pytest.fixture(scope="module")
def widget():
    return PassExplorer(tour.explore("mlp"))


def test_it_starts_at_the_first_change(widget):
    assert (widget.before, widget.after) == (10, 11) and widget.rows["rows"][10]["name"] == "CanonicalizeOps"


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
    assert [m["id"] for m in sent] == ["9", "10"] and all("error" in m["answer"] for m in sent)


def test_python_moves_it_and_hears_of_it(widget):
    seen = []
    widget.on_select(seen.append)
    widget.go(0)
    widget.step()
    assert widget.after == 11
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
    assert "22 passes" in bundle["text/plain"]


def test_saved_pages_need_nothing(widget, tmp_path):
    text = widget.save(tmp_path / "x.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?https?:|@import|import\(""", text)
    assert widget.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def test_scripts_are_small_and_build_no_markup_from_text():
    assert max(len(script("live.js")), len(script("saved.js"))) + len(sheet()) < LIMIT
    for name in (*PARTS, *SAVED, "live.js", "saved.js"):
        text = (STATIC / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3\.org)", text), name
        assert not re.search(r"^\s*//.*TODO", text, re.MULTILINE)


def test_every_part_is_imported_before_it_is_used():
    """The parts are put together in order: what a part imports from the others stands before it."""
    for at, name in enumerate(PARTS):
        for other in re.findall(r'from "\./(\w+\.js)"', (STATIC / name).read_text()):
            assert other == "graph.js" or other in PARTS[:at]


@pytest.mark.parametrize("end", ["live.js", "saved.js"])
def test_no_name_is_declared_twice(end):
    declared = re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", script(end), re.MULTILINE)
    assert len(declared) == len(set(declared)), sorted(n for n in declared if declared.count(n) > 1)
