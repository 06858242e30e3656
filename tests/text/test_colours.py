"""The colours of code: the table of token kinds, held to the reader of Relay text and to Pygments."""

from __future__ import annotations

import io
import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.code import CODE

from relaylab import relay, study
from relaylab.cli.command import code
from relaylab.lab.cell_colours import cell_script
from relaylab.lab.page import STATIC, sheet
from relaylab.text.colours import KINDS, LANGUAGES, markup, terminal, tokens
from relaylab.text.reading.lexer import KEYWORDS, tokenize


def kinds(text: str, language: str) -> dict[str, str]:
    return {part: kind for kind, part in tokens(text, language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_tokens_are_the_text(language):
    for text in (CODE[language], "", '"', "/* never closed /*", "é %ü\n\n", "\t\x00%"):
        assert "".join(part for _, part in tokens(text, language)) == text
    assert re.sub("\x1b.*?m", "", terminal(CODE[language], language)) == CODE[language]
    assert {kind for kind, _ in tokens(CODE[language], language)} <= {*KINDS, ""}


def test_what_is_what():
    found = kinds(CODE["relay"], "relay")
    assert found["/* a /* b */ c */"] == found['// "no"'] == "comment" and found['"a // b"'] == "string"
    assert found["%x.y"] == found["%s"] == "variable" and found["nn.relu"] == "call" and found["type"] == ""
    assert found["meta[relay.Constant][0]"] == found["2.5e-3f"] == "number" and found["True"] == "keyword"
    found = kinds(CODE["loops"], "loops")
    assert (found["for"], found["acc"], found["max"], found["0.5f"]) == ("keyword", "variable", "call", "number")
    found = kinds(CODE["llvm"], "llvm")
    assert (found["load"], found["float"], found["x"], found["; here"]) == ("call", "type", "", "comment")
    assert found['@"odd name"'] == found["entry:"] == "global"
    found = kinds(CODE["assembly"], "assembly")
    assert (found["\tvmovups"], found["%zmm0"], found["x0"], found["#12"]) == ("call", "variable", "variable", "number")
    assert (found["\t.p2align"], found["# spill"], found[".LBB0_1"]) == ("keyword", "comment", "global")


@pytest.mark.parametrize("network", ["lstm", "resnet8"])
def test_relay_is_coloured_as_it_is_read(network):
    """Each token of the reader has the kind that the reader knows it by."""
    text = study.load(network).mod.astext(show_meta_data=False)
    text += '\nextern @e: fn (int32);\ntype T[A] { C(A) }\ndef @f(%r) { match (ref_read(%r)) { C(_) => @"a b" } }'
    read = tokenize(text, lambda *complaint: pytest.fail(str(complaint)))
    expected = {"local": "variable", "graph": "variable", "global": "global", "string": "string", "bool": "keyword"}
    expected |= {"number": "number", "meta": "number"} | dict.fromkeys(KEYWORDS - {"_"}, "keyword")
    starts, at = {}, 0
    for kind, part in tokens(text, "relay"):
        starts[at] = kind
        at += len(part)
    known = [(k, s) for k, s in zip(read.kinds, read.starts) if k in expected]
    assert len(known) > 100
    wrong = [text[s : s + 20] for k, s in known if starts.get(s) != expected[k] and text[s - 1] != "."]
    assert not wrong


def test_llvm_agrees_with_pygments():
    """Variables, globals, labels and comments of real kernels."""
    lexers, token = pytest.importorskip("pygments.lexers"), pytest.importorskip("pygments.token")
    mod, params = relay.testing.mlp.get_workload(1)
    lib = relay.build(mod, target="llvm", params=params)
    text = lib.inspect("llvm", lib.kernels()[0])
    same = {
        token.Name.Variable.Global: "global",
        token.Name.Variable: "variable",
        token.Name.Variable.Anonymous: "variable",
        token.Comment: "comment",
        token.Name.Label: "global",
    }
    mine = kinds(text, "llvm")
    mine = {part.strip().rstrip(":"): kind for part, kind in mine.items()}
    theirs = [
        (same[t], v.strip().rstrip(":"))
        for t, v in lexers.get_lexer_by_name("llvm").get_tokens(text)
        if t in same and not v.startswith("#")
    ]
    assert len(theirs) > 100
    assert not [(kind, part) for kind, part in theirs if mine.get(part, mine.get(f"{part}:")) != kind]


def test_pygments_knows_relay():
    pygments = pytest.importorskip("pygments")
    from pygments.formatters import HtmlFormatter

    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    for name, target in project["project"]["entry-points"]["pygments.lexers"].items():
        lexer = EntryPoint(name, target, "pygments.lexers").load()
        assert name in lexer.aliases
        made = pygments.highlight(CODE["relay" if name == "relay" else "loops"], lexer(), HtmlFormatter())
        assert '<span class="c">' in made and '<span class="nf">' in made and 'class="err"' not in made


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_day_and_night():
    """On every ground that code stands on in the explorer, and in a cell, 4.5 to 1 (level AA)."""
    sheets = {"frame": ("#ffffff", "#f5f5f5"), "picture": ("#111111", "#212121", "#11151c", "#1b2230")}
    for name, grounds in sheets.items():
        rules = (STATIC / f"style/{name}.css").read_text()
        own = re.findall(r"--rl-(?:soft|plus|minus): (?:var\([^,]*, )?(#\w{6})", rules)
        assert len(own) >= 2
        for look in KINDS.values():
            colour = look.day if name == "frame" else look.night
            assert min(contrast(colour, g) for g in (*grounds, *own)) >= 4.5, colour


def test_markup_is_escaped_and_styled():
    assert markup('"<b>" <i>', "relay") == '<span class="rl-t-string">"&lt;b&gt;"</span> &lt;i&gt;'
    made = markup('let "ab" c', "relay", [(5, 6), (9, 10)], "color:red")
    assert re.findall(r"<span ([^>]*)>(.*?)</span>", made) == [
        ('class="rl-t-keyword"', "let"),
        ('class="rl-t-string"', '"'),
        ('style="color:red"', "a"),
        ('class="rl-t-string"', 'b"'),
        ('style="color:red"', "c"),
    ]
    assert all(f".rl-t-{kind}{{color:{look.day}}}" in sheet() for kind, look in KINDS.items())
    assert all(f"::highlight(rl-t-{kind})" in cell_script() for kind in KINDS)
    assert not re.search(r"innerHTML|\beval\(|https?://|^import|^export", cell_script(), re.MULTILINE)


def test_a_terminal_has_colours_if_it_wants_them(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert code("let", "relay") == "let", "what goes into a file has none"
    monkeypatch.setattr(sys, "stdout", Screen())
    assert code("let %x", "relay") == "\x1b[1;35mlet\x1b[0m \x1b[36m%x\x1b[0m" and code("let", "") == "let"
    monkeypatch.setenv("NO_COLOR", "1")
    assert code("let", "relay") == "let"
