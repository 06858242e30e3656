"""Writers: whole files or none, hostile names stay text, the same scene gives the same bytes."""

from __future__ import annotations

import base64
import gzip
import json
import math
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import combinations

import pytest
from programs import SOURCES, chain, pdf_texts, program, random_view

from relaylab import relay, study
from relaylab.ir import Call, Function, GlobalVar, IRModule, TensorType, Var
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError
from relaylab.viz import Node, View, relay_viz, save, show, view
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.write.html import bundle, page
from relaylab.viz.scene.metrics import fit, text_width, wrap
from relaylab.viz.draw.pages import PAPERS, Page, PageWindow, cuts, sheets
from relaylab.viz.write.pdf import pdf
from relaylab.support.formats import FORMATS, SHAPES
from relaylab.viz.write.formats import WRITERS, save_scene
from relaylab.viz.scene.scene import Rect, Text, extent
from relaylab.viz.write.svg import svg
from relaylab.viz.write.terminal import tree
from relaylab.viz.scene.theme import DARK, HEAT, LIGHT, ROLE_ICONS, resolve
from relaylab.viz.graph.view import ROLES

pytestmark = pytest.mark.slow

HOSTILE = [
    "<script>alert(1)</script>",
    "</style></svg><img src=x onerror=alert(1)>",
    "]]> --> \" ' & &amp;",
    ") Tj ET (\\",
    '\\n\\l{|}"',
    "a\nb\tc\0d\x1b[31m",
    "Ωλ→漢字😀\ud800",
    "${x}`",
    "%s%n",
    "x" * 5000,
]


def hostile_program() -> Function:
    params = [Var(name, TensorType((1,))) for name in HOSTILE]
    from relaylab.ir import Tuple

    return Function(params, Tuple(params))


class Tags(HTMLParser):
    """The start tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list]] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, attrs))


@pytest.mark.parametrize("params", ["rows", "nodes"])
def test_hostile_names_stay_text_in_svg(params):
    text = svg(show(hostile_program(), params=params, title=HOSTILE[0]).scene)
    root = ET.fromstring(text)
    kinds = {e.tag.split("}")[1] for e in root.iter()}
    assert kinds <= {"svg", "title", "desc", "style", "g", "rect", "path", "text"}
    assert "<script" not in text and "onerror" not in {k for e in root.iter() for k in e.attrib}


def test_shapes_keep_their_order_behind_names_that_are_read_from_the_right():
    """After such a name stands a mark that is read from the left (Unicode's annex 9, 2.3); no other name has one."""
    a, b, c, d = (Var(name, TensorType((2, 3))) for name in ("שלום", "عربي", "אב גד", "é"))
    scene = show(Function([a, b, c, d], relay.add(relay.add(a, b), relay.add(c, d)))).scene
    rows = [e.text or "" for e in ET.fromstring(svg(scene)).iter() if e.tag.endswith("text")]
    carried = re.search(r'id="relaylab-data">([^<]*)<', page([scene], ""))
    assert carried
    figures = json.loads(gzip.decompress(base64.b64decode(carried[1])))["pages"][0]["figures"]
    for texts in (rows, [part[3] for f in figures for part in f["shapes"] if part[0] == "t"]):
        for var in (a, b, c):
            found = [row for row in texts if var.name_hint in row]
            assert found and all(f"{var.name_hint}\u200e" in row for row in found)
        assert "\u200e" not in "".join(row for row in texts if "é" in row and "ש" not in row)


def test_hostile_names_stay_text_in_html():
    picture = show(hostile_program(), params="nodes", title="</title><script>alert(1)</script>")
    whole = page([picture.scene], picture.view.title)
    assert whole.count("<script") == 2 and "alert(1)<" not in whole
    carried = re.search(r'id="relaylab-data">([^<]*)<', whole)
    assert carried
    data = json.loads(gzip.decompress(base64.b64decode(carried[1])))
    assert any(HOSTILE[0] in f["label"] for f in data["pages"][0]["figures"])


def test_hostile_names_stay_text_in_the_notebook_bundle():
    made = bundle(show(hostile_program(), title=HOSTILE[1]).scene, "plain")
    assert made.keys() == {"text/html", "image/svg+xml", "text/plain"}
    tags = Tags()
    tags.feed(made["text/html"])
    assert [name for name, _ in tags.found] == ["div", "img", "script"]
    assert {key for _, attrs in tags.found for key, _ in attrs} == {"id", "class", "alt", "style", "src"}
    image = re.search(r"base64,([^\"]*)\"", made["text/html"])
    assert image and base64.b64decode(image[1]).decode() == made["image/svg+xml"]


def test_hostile_names_stay_text_in_pdf():
    for content in pdf_texts(pdf([show(hostile_program(), params="nodes", title=HOSTILE[3]).scene])):
        outside = re.sub(r"\((?:[^()\\]|\\.)*\)|<[0-9a-f]+>", "()", content)
        assert re.fullmatch(r"[-0-9. \n\[\]/()a-zA-Z]*", outside)
        assert outside.count("BT") == outside.count("ET") <= outside.count("Tj") == outside.count("()")


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the program dot of Graphviz")
@pytest.mark.dot
def test_hostile_names_are_valid_dot():
    assert show(hostile_program(), params="nodes", title=HOSTILE[4], engine="dot").data("svg").startswith(b"<?xml")


@pytest.mark.parametrize("types, found", [("none", (False, False)), ("edges", (False, True)), ("both", (True, True))])
def test_dot_has_types_where_they_are_asked_for(types, found, tmp_path):
    text = save(show(program("fused"), types=types, attrs="none"), tmp_path / "x.dot").read_text()
    assert "channels=4" not in text
    lines = [line for line in text.splitlines() if "float32" in line and "subgraph" not in line]
    assert (any(" -> " not in line for line in lines), any(" -> " in line for line in lines)) == found


def test_names_of_functions_are_no_markup_and_no_ports_in_dot():
    """Two functions, one calls the other: as many names as there are boxes, each quoted."""
    x, y = (Var(name, TensorType((1,))) for name in ("z:0", "<y>"))
    inner = Function([y], relay.nn.relu(y))
    called = GlobalVar("<inner>")
    mod = IRModule({called: inner, GlobalVar("a:b"): Function([x], Call(called, [x]))})
    plotter = relay_viz.DotPlotter()
    relay_viz.RelayVisualizer(mod, plotter=plotter)
    for source in (show(mod).data("dot"), plotter.digraph.source):
        names = {n for a, b in re.findall(r'^\t+("[^"]*") -> ("[^"]*")', source, re.MULTILINE) for n in (a, b)}
        made = set(re.findall(r'^\t+("[^"]*") \[label', source, re.MULTILINE))
        assert names <= made and len(names) > 3 and not re.search(r"^\t+<", source, re.MULTILINE), source
    assert 'label="%&amp;lt;' in show(Function([Var("&lt;", TensorType((1,)))], relay.const(1.0))).data("dot")


def test_marks_of_direction_turn_no_line_around():
    assert "\u202e" not in show(Function([Var("a\u202eb", TensorType((1,)))], Var("c"))).data("txt")


def test_hostile_names_keep_a_terminal_line_a_line():
    lines = tree(show(hostile_program(), params="nodes").view).splitlines()
    assert all(len(line) <= 120 and "\x1b" not in line and "\0" not in line for line in lines)
    assert len(lines) == len(HOSTILE) + 2


def test_a_chain_is_a_list_in_a_terminal():
    """Of a network every operator is written once, and nothing is far from the margin."""
    assert tree(show(chain(3)).view).splitlines()[1:] == [
        "`-- nn.relu  : 4 float32",
        *["    <- nn.relu  : 4 float32"] * 2,
        "       `-- %x  : 4 float32",
    ]
    view = show(study.load("resnet8").mod).view
    lines = tree(view, width=500).splitlines()
    assert max(len(line) - len(line.lstrip(" |`-<")) for line in lines) < 40
    for name in ("nn.conv2d", "nn.batch_norm.0", "nn.relu", "add"):
        said = re.compile(rf"(-- |<- |\] |^){re.escape(name)}(\(| )")
        written = [line for line in lines if said.search(line) and "^" not in line]
        assert len(written) == sum(n.title == name for n in view.nodes) > 1, name


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("form", [f for f in FORMATS if f not in ("png", "onnx")])
def test_every_format_is_deterministic(name, form):
    assert show(program(name)).data(form) == show(program(name)).data(form)


NEEDS = {"png": "pypdfium2", "onnx": "onnx"}


def test_every_format_of_the_table_has_a_writer_and_no_other():
    assert FORMATS.keys() == WRITERS.keys()


@pytest.mark.parametrize("path", ["x.pfd", "x", "x.tar.gz"])
def test_a_suffix_that_nobody_knows_lists_all(path, tmp_path):
    for refused in (
        lambda p: save(program("adt"), p),
        lambda p: save_scene(show(program("adt")).scene, p, "t", "words"),
    ):
        with pytest.raises(RelayValueError, match="suffix") as err:
            refused(tmp_path / path)
        assert all(f".{suffix}" in err.value.help for suffix in SHAPES)
    with pytest.raises(RelayValueError, match="no graph"):
        save_scene(show(program("adt")).scene, tmp_path / "x.onnx", "t", "words")
    with pytest.raises(RelayValueError, match="one picture, not 2"):
        save([program("adt"), program("adt")], tmp_path / "x.svg")


def test_several_views_are_one_collection_of_model_explorer(tmp_path):
    path = save([program("adt"), program("fused")], tmp_path / "x.modelexplorer.json")
    assert len(json.loads(path.read_text())["graphs"]) == 2


@pytest.mark.parametrize("form", FORMATS)
def test_save_by_suffix(form, tmp_path):
    if form in NEEDS:
        pytest.importorskip(NEEDS[form])
    path = save(program("fused"), tmp_path / f"picture.{form}")
    start = {
        "svg": b"<svg",
        "pdf": b"%PDF-1.6",
        "png": b"\x89PNG",
        "html": b"<!DOCTYPE",
        "dot": b"digraph",
        "txt": b"@main",
        "json": b"{",
        "htm": b"<!DOCTYPE",
        "gv": b"digraph",
        "onnx": b"\x08",
        "modelexplorer.json": b'{\n "label"',
    }
    assert path.read_bytes().startswith(start[form])


@pytest.mark.parametrize(
    "option, value",
    [("scale", 0), ("scale", math.nan), ("scale", "x"), ("width", "x"), ("title", 3), ("collapse", 1.5),
     ("collapse", None), ("overlay", 3), ("select", 3), ("focus", 3), ("hops", "x")],
)  # fmt: skip
def test_options_of_the_wrong_kind_are_refused(option, value, tmp_path):
    with pytest.raises(RelayError, match=option):
        save(program("adt"), tmp_path / "x.pdf", **{option: value})


def test_unknown_suffixes_and_options_are_refused(tmp_path):
    with pytest.raises(RelayValueError, match="suffix"):
        save(program("adt"), tmp_path / "x.pfd")
    with pytest.raises(RelayValueError, match="missing"):
        save(program("adt"), tmp_path / "x")
    with pytest.raises(RelayTypeError) as err:
        show(program("adt"), directon="LR")
    assert "direction" in err.value.help
    for name, value in (("direction", "XY"), ("types", "some"), ("params", "all"), ("engine", "neato")):
        with pytest.raises(RelayValueError, match=name):
            show(program("adt"), **{name: value})


@pytest.mark.parametrize("where", ["missing/x.svg", "folder.svg", "file/x.svg"])
def test_what_cannot_be_written_leaves_nothing(where, tmp_path):
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").write_text("mine")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(RelayValueError) as err:
        save(program("adt"), tmp_path / where)
    assert err.value.code == "viz.unwritable" and err.value.help
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_an_older_file_stays_whole_when_the_new_one_fails(tmp_path, monkeypatch):
    path = save(program("adt"), tmp_path / "x.svg")
    old = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(RelayValueError, match="No space left"):
        save(program("fused"), path)
    assert path.read_bytes() == old and [p.name for p in tmp_path.iterdir()] == ["x.svg"]


def test_pages_and_bookmarks(tmp_path):
    pictures = [show(program(n), title=n) for n in SOURCES]
    data = save(pictures, tmp_path / "all.pdf", doc_title="everything").read_bytes()
    assert data.count(b"/Type/Page/") == len(SOURCES)
    titles = {bytes.fromhex(m.decode()).decode("utf-16") for m in re.findall(rb"/Title <([0-9A-F]*)>", data)}
    assert titles == {*SOURCES, "everything"}
    with pytest.raises(RelayValueError, match="one picture"):
        save(pictures, tmp_path / "all.svg")


def test_pdf_offsets_are_right():
    data = pdf([show(program("closure")).scene])
    start = int(data.rsplit(b"startxref\n", 1)[1].split(b"\n")[0])
    assert data[start : start + 4] == b"xref"
    for number, line in enumerate(data[start:].split(b"\n")[3:-5], 1):
        if line.endswith(b" n "):
            assert data[int(line[:10]) :].startswith(b"%d 0 obj" % number)


def test_huge_pages_are_scaled_and_paper_is_tiled():
    tall = View(nodes=tuple(Node(f"n{i}", "call", "op", group="") for i in range(3)))
    scene = draw(tall)
    from dataclasses import replace

    huge = pdf([replace(scene, height=100_000.0)])
    assert b"/UserUnit 6.944" in huge
    box = re.search(rb"MediaBox\[0 0 ([\d.]+) ([\d.]+)\]", huge)
    assert box and float(box[2]) <= 14_400
    tiles = pdf([show(program("closure")).scene, replace(scene, height=5000.0)], paper="a4")
    assert tiles.count(b"MediaBox[0 0 595 842]") + tiles.count(b"MediaBox[0 0 842 595]") >= 2


def test_pages_are_cut_between_boxes():
    scene = draw(random_view(3, 60))
    found = cuts(scene.bands, scene.height, 500.0)
    assert found[0][0] == 0.0 and found[-1][1] == scene.height
    assert all(a[1] == b[0] and b[1] - b[0] <= 500.01 for a, b in zip(found, found[1:]))


def windows(page: Page) -> list[PageWindow]:
    """The parts of a page that show the picture."""
    return list(page.parts[2:])


def test_a_long_picture_is_strips_beside_each_other():
    scene = draw(view(chain(60)))
    pages = sheets(scene, *PAPERS["a4"])
    assert len(pages) == 1 and len(windows(pages[0])) > 2
    shown = windows(pages[0])
    assert [p.window[1] for p in shown] == sorted(p.window[1] for p in shown)
    assert sum(p.window[3] for p in shown) == pytest.approx(scene.height)
    for left, right in zip(shown, shown[1:]):
        assert left.offset[0] + left.window[2] * left.scale <= right.offset[0]


def test_strips_are_as_wide_as_what_is_in_them():
    """Long chains behind one wide row of boxes: more strips beside each other than the whole width would let."""
    x = relay.var("x", shape=(2, 2))
    body = relay.stack([relay.exp(x), relay.log(x), relay.sqrt(x), relay.tanh(x)], 0)
    for _ in range(60):
        body = relay.nn.relu(body)
    scene = show(relay.Function([x], body)).scene
    pages = sheets(scene, *PAPERS["a4"])
    widths = [p.window[2] for page in pages for p in windows(page)]
    assert len(pages) == 1 and max(widths) > 2 * min(widths)
    for part in windows(pages[0]):
        left, right = part.window[0], part.window[0] + part.window[2]
        boxes = [s for s in part.shapes if isinstance(s, Rect) and any(n.startswith("group-") for n in s.styles)]
        assert boxes and all(left <= s.x and s.x + s.width <= right for s in boxes)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("paper", PAPERS)
def test_every_box_is_on_some_page(seed, paper):
    scene = draw(random_view(seed, 80))
    parts = [p for sheet in sheets(scene, *PAPERS[paper]) for p in windows(sheet)]
    for figure in (f for f in scene.elements if f.kind == "node"):
        x, y, w, h = figure.box
        inside = [
            p
            for p in parts
            if p.window[0] <= x + w / 2 <= p.window[0] + p.window[2]
            and p.window[1] <= y + h / 2 <= p.window[1] + p.window[3]
        ]
        assert len(inside) == 1, figure.id
    for sheet in sheets(scene, *PAPERS[paper]):
        for p in windows(sheet):
            assert p.offset[0] + p.window[2] * p.scale <= sheet.paper[0] - 27
            assert p.offset[1] + p.window[3] * p.scale <= sheet.paper[1] - 27


def test_pages_have_numbers_and_a_legend():
    scene = draw(view(chain(400)))
    pages = sheets(scene, *PAPERS["a4"])
    for k, sheet in enumerate(pages, 1):
        words = {s.text for s in sheet.parts[0].shapes if isinstance(s, Text)}
        assert f"page {k} of {len(pages)}" in words and {"input", "elementwise"} <= words


def test_png_without_the_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(RelayError) as err:
        show(program("adt")).data("png")
    assert err.value.code == "viz.no-png" and "relaylab[png]" in err.value.help


def test_dot_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RelayError) as err:
        show(program("adt"), engine="dot").data("svg")
    assert err.value.code == "viz.no-dot"
    assert show(program("adt")).data("svg")


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("types", ["nodes", "both"])
def test_labels_fit_into_their_boxes(name, types):
    scene = draw(show(program(name)).view, DrawOptions(types=types, attrs="all"))
    for figure in scene.elements:
        if figure.kind == "node":
            x, y, w, h = figure.box
            for shape in figure.shapes:
                if isinstance(shape, Text):
                    left, top, right, bottom = extent(shape)
                    assert left >= x - 0.2 and right <= x + w + 0.2 and top >= y - 0.2 and bottom <= y + h + 0.2, shape


@pytest.mark.parametrize("seed", range(4))
def test_every_style_is_known(seed):
    for figure in draw(random_view(seed)).elements:
        for shape in figure.shapes:
            assert all(s in LIGHT for s in shape.styles if not s.startswith("wire-")), shape


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_roles_stand_out(theme):
    """WCAG 2: 4.5 for text on every fill it stands on, 3 for the lines of roles; roles differ without colour too."""
    fills = [p.fill for name, p in theme.items() if name.startswith(("family-", "group-")) or name in ("page", "box")]
    for name, paint in theme.items():
        if name in ("text-title", "text-plain"):
            assert min(contrast(paint.fill, fill) for fill in fills) > 4.5, name
        if name.startswith("role-"):
            assert contrast(paint.stroke, theme["page"].fill) > 3, name
            assert contrast(paint.stroke, theme["box"].fill) > 4.5, name
    looks = {(theme[f"role-{r}"].dash, theme[f"role-{r}"].width) for r in ROLES}
    assert len(looks) == len(ROLES)


DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
"""What people without green or red cones see, in linear RGB (Machado, Oliveira, Fernandes 2009, severity 1)."""


def lab(color: str, sight: tuple | None = None) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour, as seen by normal or other eyes."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    r, g, b = [min(1.0, max(0.0, sum(k * v for k, v in zip(row, linear)))) for row in sight] if sight else linear
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("sight", [None, DEUTERANOPIA, PROTANOPIA], ids=["normal", "deuteranopia", "protanopia"])
def test_roles_look_different_to_all_eyes(theme, sight):
    """At least seven times a just noticeable difference by colour alone (and the dash, which all see, differs too)."""
    for a, b in combinations(ROLES, 2):
        first, second = theme[f"role-{a}"], theme[f"role-{b}"]
        apart = math.dist(lab(first.stroke, sight), lab(second.stroke, sight))
        assert apart > 14 and first.dash != second.dash, (a, b, apart)


def test_roles_differ_on_a_greyscale_print():
    """Without any colour the five differ in dash, in icon and in width."""
    assert len({LIGHT[f"role-{r}"].dash for r in ROLES}) == len(ROLES) == len(set(ROLE_ICONS.values()))
    assert len({LIGHT[f"role-{r}"].width for r in ROLES}) == len(ROLES)


def test_steps_of_an_overlay_grow_darker_for_all_eyes():
    for sight in (None, DEUTERANOPIA, PROTANOPIA):
        steps = [lab(light, sight)[0] for light, _ in HEAT]
        assert all(a - b > 3 for a, b in zip(steps, steps[1:])), steps


def test_widths_are_those_of_helvetica():
    assert text_width("Relay", 1000) == 722 + 556 + 222 + 556 + 500
    assert text_width("Relay", 1000, "bold") == 722 + 556 + 278 + 556 + 556
    assert text_width("Relay", 1000, "mono") == 3000


def test_fit_and_wrap():
    assert fit("short", 100, 10) == "short"
    cut = fit("a long line of text", 50, 10)
    assert cut.endswith("…") and text_width(cut, 10) <= 50
    assert all(text_width(line, 10) <= 60 for line in wrap("some words that do not fit on one line", 60, 10))


def test_later_styles_override_earlier_ones():
    assert resolve(("box", "family-reduce")).fill == LIGHT["family-reduce"].fill
    assert resolve(("box", "fill:#123456")).fill == "#123456"
