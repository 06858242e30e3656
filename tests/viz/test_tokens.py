"""What differs inside a changed line: ranges that leave the same, text that comes back, terminal and page."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaylab.viz.diffs.tokens import LIKE, changed_words, for_stream, html_lines, painted, parts, word_marks

OLD = "  %1 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3]);"


@pytest.mark.parametrize(
    "new, gone, come",
    [
        (OLD.replace("64", "32"), ["64"], ["32"]),
        (OLD.replace("nn.conv2d", "nn.conv2d_transpose"), ["nn.conv2d"], ["nn.conv2d_transpose"]),
        (OLD.replace("%x", "%12"), ["%x"], ["%12"]),
        (OLD.replace(", channels=64", ""), [", channels=64"], []),
        (OLD, [], []),
        ("  return;", [], []),  # too little in common: the whole line is another one
    ],
)
def test_the_words_that_differ(new, gone, come):
    left, right = changed_words(OLD, new)
    found = [OLD[a:b] for a, b in left], [new[a:b] for a, b in right]
    assert ([t.strip(", ") for t in found[0]], found[1]) == ([t.strip(", ") for t in gone], come)


LINE = st.lists(st.sampled_from(["%1", "nn.relu", "(", ")", ", ", "axis=1", " ", "é<&>"]), max_size=14).map("".join)


@given(LINE, LINE)
@example("%1%1, nn.relu", "nn.relu%1%1%1%1%1%1nn.relu(nn.relu")
def test_what_is_not_marked_is_the_same_on_both_sides(old, new):
    left, right = changed_words(old, new)
    if not left and not right:
        return
    kept = [
        "".join(t for t, differs in parts(line, words) if not differs) for line, words in ((old, left), (new, right))
    ]
    # runs that only a space parts are one run: the space may be marked on one side
    assert kept[0].replace(" ", "") == kept[1].replace(" ", "")
    assert sum(map(len, kept)) >= LIKE * (len(old) + len(new))


def test_lines_are_paired_where_as_many_go_as_come():
    rows = [(" ", "a"), ("-", "f(x, y)"), ("-", "g(x)"), ("+", "f(x, z)"), ("+", "g(x)"), ("-", "h(x, y)"), (" ", "b")]
    assert word_marks(rows) == [(), ((5, 6),), (), ((5, 6),), (), (), ()]
    rows = [("-", "nn.relu(%x)"), ("+", "%0 = add(%x, %x)"), ("+", "nn.relu(%0)")]
    assert word_marks(rows) == [((8, 10),), (), ((8, 10),)], "of two lines that come the one that is alike"


TEXT = "  def @main() {\n-   nn.relu(%x) <b>\n+   nn.relu(%y) <b>\n--- before\n  }"


def test_a_terminal_gets_colours_and_a_file_none():
    shown = painted(TEXT)
    assert "\x1b[33m-   nn.relu(\x1b[7m%x\x1b[27m) <b>\x1b[0m" in shown and "\n--- before\n" in shown
    assert re.sub(r"\x1b\[\d+m", "", shown) == TEXT
    assert for_stream(TEXT, io.StringIO()) == TEXT


def test_markup_is_only_ever_our_own():
    class Reader(HTMLParser):
        tags, text = set(), ""

        def handle_starttag(self, tag, attrs):
            self.tags.add(tag)

        def handle_data(self, data):
            self.text += data

    reader = Reader()
    reader.feed(html_lines(TEXT))
    assert reader.tags == {"span"} and reader.text == TEXT
