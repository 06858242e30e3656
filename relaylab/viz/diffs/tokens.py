"""What differs inside a changed line: the words of a removed line that its added one does not have, and the other way.

Ranges of characters, for pages; painted text for terminals, where the words that differ are reversed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from typing import TextIO

from relaylab.text.colours import markup, style

Ranges = tuple[tuple[int, int], ...]
"""Parts of a line: from, to."""
_TOKEN = re.compile(r"\s+|[%@]?\w+(?:\.\w+)*|.")
LIKE = 0.4
"""The share of characters that two lines must have in common for their words to be compared."""
LONG = 400
"""Words that are compared one by one; of longer lines only the common beginning and end are known."""
_INK = {"-": "\x1b[33m", "+": "\x1b[36m"}
_REVERSED, _PLAIN, _END = "\x1b[7m", "\x1b[27m", "\x1b[0m"
_STYLE = {"-": "background:rgba(214,94,0,.14)", "+": "background:rgba(0,114,178,.14)"}
_WORD = {"-": "background:rgba(214,94,0,.36)", "+": "background:rgba(0,114,178,.36)"}


@lru_cache(maxsize=4096)  # a page compares all stages with each other: one pair of lines comes again and again
def changed_words(old: str, new: str) -> tuple[Ranges, Ranges]:
    """The parts of two lines that the other does not have; nothing at all if they have too little in common."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    head = _common(a, b)
    tail = min(_common(a[::-1], b[::-1]), len(a) - head, len(b) - head)
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    blocks = [(head, head + len(inner_a), head, head + len(inner_b))]
    if max(len(inner_a), len(inner_b)) <= LONG:
        found = SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_opcodes()
        blocks = [(head + i, head + j, head + k, head + m) for tag, i, j, k, m in found if tag != "equal"]
    left = _ranges(a, [(i, j) for i, j, _, _ in blocks])
    right = _ranges(b, [(k, m) for _, _, k, m in blocks])
    kept = len(old) + len(new) - sum(end - start for start, end in (*left, *right))
    return (left, right) if kept >= LIKE * (len(old) + len(new)) else ((), ())


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def _ranges(tokens: Sequence[str], blocks: Sequence[tuple[int, int]]) -> Ranges:
    """Runs of tokens as runs of characters; runs with nothing but a space between them are one."""
    starts = [0, *accumulate(map(len, tokens))]
    runs: list[tuple[int, int]] = []
    for first, last in blocks:
        if runs and not "".join(tokens[runs[-1][1] : first]).strip():
            runs[-1] = (runs[-1][0], last)
        elif first < last:
            runs.append((first, last))
    return tuple((starts[first], starts[last]) for first, last in runs)


def word_marks(rows: Sequence[tuple[str, str]]) -> list[Ranges]:
    """For each line, given as mark and text, what differs from the line that stands in its place."""
    found: list[Ranges] = [()] * len(rows)
    at = 0
    while at < len(rows):
        gone = _run(rows, at, "-")
        come = _run(rows, at + gone, "+")
        for old, new in _pairs([text for _, text in rows[at : at + gone + come]], gone):
            found[at + old], found[at + new] = changed_words(rows[at + old][1], rows[at + new][1])
        at += max(1, gone + come)
    return found


def _pairs(lines: Sequence[str], gone: int) -> Iterator[tuple[int, int]]:
    """Which of the removed lines, the first `gone`, stands in the place of which added one."""
    if 2 * gone == len(lines):
        yield from ((k, k + gone) for k in range(gone))
        return
    added: dict[str, list[int]] = {}
    for new in range(len(lines) - 1, gone - 1, -1):
        added.setdefault(_defined(lines[new]), []).append(new)
    for old in range(gone):
        if found := added.get(_defined(lines[old])):
            yield old, found.pop()


def _defined(line: str) -> str:
    """The name that a line defines; empty for one that defines none."""
    head, equals, _ = line.partition(" = ")
    return head.strip() if equals else ""


def _run(rows: Sequence[tuple[str, str]], at: int, mark: str) -> int:
    end = at
    while end < len(rows) and rows[end][0] == mark:
        end += 1
    return end - at


def _marked(text: str) -> Iterator[tuple[str, str, Ranges]]:
    """The lines of a difference as mark, line and the words in it that differ."""
    lines = text.split("\n")
    rows = [("" if line[:3] in ("---", "+++") else line[:1], line[1:]) for line in lines]
    for line, (mark, _), words in zip(lines, rows, word_marks(rows)):
        yield mark, line, tuple((start + 1, end + 1) for start, end in words)


def parts(line: str, words: Ranges) -> Iterator[tuple[str, bool]]:
    """A line cut at the words that differ: each part, and whether it differs."""
    at = 0
    for start, end in words:
        yield line[at:start], False
        yield line[start:end], True
        at = end
    yield line[at:], False


def painted(text: str) -> str:
    """A difference (lines that begin with - or +) for a terminal: colours, and what differs in a line reversed."""
    out: list[str] = []
    for mark, line, words in _marked(text):
        inner = "".join(f"{_REVERSED}{part}{_PLAIN}" if differs else part for part, differs in parts(line, words))
        out.append(f"{_INK[mark]}{inner}{_END}" if mark in _INK else line)
    return "\n".join(out)


def html_lines(text: str, language: str = "") -> str:
    """A difference as markup, in the colours of a language: spans with colours of their own; the text is escaped."""
    out: list[str] = []
    for mark, line, words in _marked(text):
        inner = markup(line, language, words, _WORD.get(mark, ""))
        out.append(f'<span style="{_STYLE[mark]}">{inner}</span>' if mark in _STYLE else inner)
    return (style() if language else "") + "\n".join(out)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose owner has not said `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def for_stream(text: str, stream: TextIO) -> str:
    """A difference, painted if the stream is a terminal."""
    return painted(text) if wants_colour(stream) else text
