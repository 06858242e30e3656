"""What a saved page holds, without a browser: any two stages, each thing once, and what is left out said in words."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import PurePath

import pytest

from relaylab import relay, study, viz
from relaylab.lab import saved_page as writer
from relaylab.lab.packing import Pictures, ValuePool
from relaylab.lab.page import page
from relaylab.explorer.session import Session
from relaylab.viz.write.html import shape_data
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Text, curve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session():
    return Session(study.explore("resnet8"))


@pytest.fixture(scope="module")
def made(session):
    return writer.snapshot(session)


def test_any_two_stages_are_compared(session, made):
    stops = [0, *session.frames.changing()]
    assert made["pairs"].keys() == {f"{a} {b}" for a, b in combinations(stops, 2)}
    assert made["texts"].keys() == made["pairs"].keys() | {f"{k} {k}" for k in stops}
    for a, b in combinations(stops, 2):
        difference = viz.Difference(session.frames.views[a], session.frames.views[b])
        found = made["pairs"][f"{a} {b}"]
        assert found["roles"] == difference.counts and found["edges"] == difference.changed_edges
        roles = [made["roles"][role] for role in found["sides"][1][1::3]]
        assert roles.count("added") == difference.counts.get("added", 0)
    assert made["missing"] == {}


def test_each_kernel_is_there_once_with_every_level(session, made):
    names = [k["name"] for k in made["code"]["kernels"] if "name" in k]
    assert len(names) == len(set(names)) > 5
    for kernel in made["code"]["kernels"]:
        assert "error" in kernel or (
            kernel["relay"] and kernel["loops"] and kernel["llvm"] and kernel["asm"] and kernel["parts"]
        )
    last = len(session.frames) - 1
    homes = made["code"]["homes"]
    assert {made["ids"][n] for n in homes[session.frames.changing()[-1]][::2]} >= {
        g.id for g in session.frames.views[last].groups if g.kind == "primitive"
    }
    assert 0 in homes, "nodes of the source know what they became part of"


def test_nothing_is_stored_twice(made):
    for name in ("ids", "notes", "cards", "looks", "labels", "facts"):
        rows = [str(v) for v in made[name]]
        assert len(rows) == len(set(rows)), name
    assert not any("origins" == name or name == "kernels" for name in made)


def test_a_page_begins_with_what_is_chosen(session):
    found = writer.snapshot(session, {"after": 5, "views": {"here": {"after": 5}}})["chosen"]
    assert (found["after"], found["views"], found["pane"]) == (5, {"here": {"after": 5}}, "graph")
    panes = [writer.snapshot(session, {"pane": pane})["chosen"]["pane"] for pane in ("code", "branches")]
    assert panes == ["code", "graph"], "a page has no pane for what only a kernel can answer"


def test_pages_stay_small(made):
    assert len(page(made, "resnet8")) < 700_000


def test_a_program_without_machine_code_says_so():
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.If(relay.const(True), x, relay.nn.relu(x))))
    code = writer.snapshot(Session(study.explore(study.Program("branching", mod), passes=["InferType"])))["code"]
    assert (
        code["kernels"] == []
        and code["homes"] == {}
        and ("error" not in code or code["error"].startswith("no machine code"))
    )


@pytest.mark.parametrize(
    "limit, what", [("MOST_COMPARED", "picture"), ("MOST_PRINTED", "text"), ("MOST_NODES", "node")]
)
def test_what_is_left_out_is_named(session, monkeypatch, limit, what):
    monkeypatch.setattr(writer, limit, 200)
    found = writer.snapshot(session)
    assert what in found["missing"] and len(found["pairs"]) > 0
    assert "too l" in found["missing"][what]


def test_long_listings_end_with_what_is_missing(session, monkeypatch):
    monkeypatch.setattr(writer, "MOST_LINES", 5)
    found = writer.snapshot(session)
    kernel = next(k for k in found["code"]["kernels"] if "llvm" in k)
    assert len(kernel["llvm"]) == 12 and "more lines" in found["lines"][kernel["llvm"][-2]][0]


# -- packing ----------------------------------------------------------------------------------------


def test_a_wire_is_its_corners():
    corners = [(10.0, 0.0), (10.0, 20.0), (30.0, 44.5)]
    line = Path(curve(corners, False), ("wire",))
    head = Path((("M", 30.0, 49.5), ("L", 27.3, 43.5), ("L", 32.7, 43.5), ("Z",)), ("tip",))
    edge = Element("a>b:0:data", "edge", (line, head), "a to b", ends=("a", "b"))
    pictures = Pictures(ValuePool())
    packed = pictures.put(Scene(100.0, 100.0, (edge,)))
    assert packed["wires"] == [[0, 1, 0, 0, 100, 0, 0, 200, 200, 245]] and packed["other"] == []
    assert pictures.looks.values == [["wire", "tip", 0, False, ""]] and pictures.labels.values == [
        ["a to b", "0", "data"]
    ]


def test_a_line_of_another_form_is_kept_as_it_is():
    line = Path((("M", 0.0, 0.0), ("C", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)), ("wire",))
    edge = Element("a>b:0:data", "edge", (line,), "a to b", ends=("a", "b"))
    packed = Pictures(ValuePool()).put(Scene(10.0, 10.0, (edge,)))
    assert packed["wires"] == [] and packed["other"][0]["id"] == "a>b:0:data"


def test_boxes_that_only_stand_elsewhere_share_a_card():
    def box(name, x, y):
        return Element(
            name, "node", (Rect(x, y, 20, 10, 4, ("box",)), Text(x + 10, y + 8, "add", 10)), "add", box=(x, y, 20, 10)
        )

    pictures = Pictures(ValuePool())
    packed = pictures.put(Scene(100.0, 100.0, (box("a", 5, 5), box("b", 40.5, 70.2))))
    assert packed["boxes"] == [0, 0, 50, 50, 1, 0, 405, 702] and len(pictures.cards.values) == 1


def test_shapes_move_both_ways():
    line = Path((("M", 1.0, 2.0), ("L", 3.0, 4.0), ("Z",)), ("wire",))
    assert shape_data(line, 10, 20)[1] == "M11 22L13 24Z" and shape_data(Rect(1, 2, 3, 4), 10, 20)[1:5] == [
        11,
        22,
        3,
        4,
    ]


def test_a_page_tells_no_folder_of_its_author(tmp_path):
    """Wherever the program was written and the page saved: people send pages to each other."""
    path = tmp_path / "secret" / "net.py"
    path.parent.mkdir()
    path.write_text(
        "from relaylab import relay\nx = relay.var('x', shape=(2, 3))\nmod = relay.IRModule.from_expr(relay.nn.relu(x))"
    )
    space: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    found = json.dumps(writer.snapshot(Session(study.explore(study.Program("net", space["mod"])))))
    assert "net.py:3:1" in found and "secret" not in found and str(PurePath(writer.__file__).parents[2]) not in found
    assert "secret" not in viz.show(space["mod"]).data("svg") + viz.show(space["mod"]).data("json")
