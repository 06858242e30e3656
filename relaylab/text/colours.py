"""Code in colours: one table of token kinds for each language, and how a kind looks everywhere.

The rules are regular expressions that Python and JavaScript read alike: the script of pages is given the same table.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape

from relaylab.ir.names import KEYWORDS


@dataclass(frozen=True, slots=True)
class Look:
    """A kind of token: its colour by day and by night, in a terminal, and what Pygments calls it."""

    day: str
    night: str
    terminal: str
    pygments: str


KINDS = {
    "comment": Look("#566073", "#a3b0c2", "2", "Comment"),
    "string": Look("#1a6334", "#8fd694", "32", "String"),
    "number": Look("#7a4300", "#f2b36b", "33", "Number"),
    "keyword": Look("#7a1fa2", "#dcb0ff", "1;35", "Keyword"),
    "type": Look("#6b4a00", "#ffd98a", "33", "Keyword.Type"),
    "call": Look("#0b4a9e", "#8cc8ff", "34", "Name.Function"),
    "variable": Look("#005a57", "#8fe0d6", "36", "Name.Variable"),
    "global": Look("#96184c", "#ffa3bd", "31", "Name.Function"),
}
"""All kinds of tokens that have a colour."""
PLAIN = ""
"""The kind of what has none."""
_STRING = r'"(?:[^"\\\n]|\\.)*"?'
_NUMBER = r"\b(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*"
_SCALARS = r"(?:u?int|float|bfloat|bool|handle)\d*(?:x\d+)?"
_RELAY_KEYWORDS = "|".join(sorted((re.escape(w) for w in KEYWORDS if w not in ("_", "match?")), reverse=True))
_LOOP_KEYWORDS = "for|in|by|if|else|while|and|or|not|parallel|over"
_LLVM_KEYWORDS = (
    "define|declare|ret|br|switch|to|label|type|attributes|align|internal|global|constant|splat",
    "n[su]w|exact|inbounds|fast|true|false|null|undef|poison|zeroinitializer|[sou][lg][te]|oeq",
)
LANGUAGES: dict[str, tuple[tuple[str, str], ...]] = {
    "relay": (
        ("comment", r"//.*"),
        ("nested", r"/\*"),
        ("string", rf"{_STRING}|'(?:[^'\\\n]|\\.)*'"),
        ("keyword", r"#\[\w+"),
        ("global", rf"@(?:{_STRING}|\w+(?:\.\w+)*)"),
        ("variable", r"%\w+(?:(?:\.|::|/(?![/*]))\w+)*"),
        ("number", r"\bmeta\[[\w.]+\]\[\d+\]"),
        (PLAIN, r"\b\w+(?=\s*=(?![=>]))"),
        ("type", rf"\b{_SCALARS}\b|\b(?!True|False)[A-Z]\w*"),
        ("keyword", rf"\b(?:{_RELAY_KEYWORDS}|True|False)\b\??"),
        ("call", r"\b[a-z_]\w*(?:\.\w+)*(?=\s*\()"),
        ("number", _NUMBER),
        (PLAIN, r"\w+(?:\.\w+)*"),
    ),
    "loops": (
        ("comment", r"#.*"),
        ("string", _STRING),
        ("type", rf"\b{_SCALARS}\b"),
        ("keyword", rf"\b(?:{_LOOP_KEYWORDS})\b"),
        ("call", r"\b[a-zA-Z_]\w*(?=\()"),
        ("variable", r"\b[a-zA-Z_]\w*(?=\[)"),
        ("number", _NUMBER),
        (PLAIN, r"\w+"),
    ),
    "llvm": (
        ("comment", r";.*"),
        ("string", rf"c?{_STRING}"),
        ("global", r'@(?:"[^"]*"|[\w.$-]+)|^[ \t]*[\w.$-]+:'),
        ("variable", r'%(?:"[^"]*"|[\w.$-]+)'),
        ("number", r"[#!]\d+"),
        ("type", r"\b(?:i\d+|half|bfloat|float|double|ptr|void|metadata)\b"),
        *(("keyword", rf"\b(?:{words})\b") for words in _LLVM_KEYWORDS),
        ("number", _NUMBER),
        (PLAIN, r"\bx\b"),
        ("call", r"\b[a-z][\w.]*\b"),
        (PLAIN, r"\w+"),
    ),
    "assembly": (
        ("comment", r"(?:#|//|;)(?!-?\d).*"),
        ("string", _STRING),
        ("global", r"^[ \t]*[\w.$@]+:|\.L\w+"),
        ("keyword", r"^[ \t]*\.\w+"),
        ("call", r"^[ \t]*[a-z][\w.]*"),
        ("variable", r"%\w+(?:\(\d\))?|\b(?:[xwvqdsbhz]\d+|sp|wzr|xzr|lr|fp)(?:\.\d*[bhsdq])?\b"),
        ("number", r"[$#]-?(?:0x[\da-f]+|\d+)|\b-?(?:0x[\da-f]+|\d+)\b"),
        (PLAIN, r"[\w.]+"),
    ),
}
"""Each language with its rules in order: a kind and what is of that kind; `nested` opens a comment that nests."""
STAGES = {"relay": "relay", "loop": "loops", "llvm": "llvm", "asm": "assembly"}
"""The languages of the stages at which a kernel can be looked at; a stage that is not here is words."""
_EDGE = re.compile(r"/\*|\*/")


@cache
def _matcher(language: str) -> re.Pattern[str]:
    return re.compile("|".join(f"({rule})" for _, rule in LANGUAGES[language]), re.MULTILINE | re.ASCII)


def tokens(text: str, language: str) -> Iterator[tuple[str, str]]:
    """The tokens of a text in a language of `LANGUAGES`, kind and text; together they are the text."""
    rules, search, at = LANGUAGES[language], _matcher(language).search, 0
    while (found := search(text, at)) is not None:
        if found.start() > at:
            yield PLAIN, text[at : found.start()]
        kind, at = rules[(found.lastindex or 1) - 1][0], found.end()
        if kind == "nested":
            kind, at = "comment", _closing(text, found.start())
        yield kind, text[found.start() : at]
    if at < len(text):
        yield PLAIN, text[at:]


def _closing(text: str, at: int) -> int:
    """Where a comment that may hold comments ends: at the end of a text that does not close it."""
    depth = 0
    for edge in _EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)


def terminal(text: str, language: str) -> str:
    """The text with the colours of a terminal, line by line."""

    def painted(kind: str, part: str) -> str:
        look = f"\x1b[{KINDS[kind].terminal}m"
        return "\n".join(f"{look}{line}\x1b[0m" if line else "" for line in part.split("\n"))

    return "".join(painted(kind, part) if kind else part for kind, part in tokens(text, language))


def markup(text: str, language: str, words: Iterable[tuple[int, int]] = (), word: str = "") -> str:
    """The text as HTML: parts of a kind are of the class `rl-t-…`; `word` is the style of the parts in `words`.

    Those have no class: on the ground that marks them not every colour can be read.
    """
    out: list[str] = []
    edges, at = [edge for both in words for edge in both], 0
    for kind, part in tokens(text, language) if language else [(PLAIN, text)]:
        end = at + len(part)
        for next in (*(edge for edge in edges if at < edge < end), end):
            differs = bisect_right(edges, at) % 2
            attributes = f' style="{word}"' if differs else f' class="rl-t-{kind}"' if kind else ""
            shown = escape(text[at:next], quote=False)
            out.append(f"<span{attributes}>{shown}</span>" if attributes else shown)
            at = next
    return "".join(out)


def style() -> str:
    """The element that gives `markup` its colours in a notebook, by day and by night."""
    night = css(night=True, rule='[data-jp-theme-light="false"] .rl-t-{}')
    return f"<style>{css()}{night}</style>"


def css(night: bool = False, rule: str = ".rl-t-{}") -> str:
    """A rule of style for each kind, by day or by night; `rule` says what it is for."""
    return "".join(f"{rule.format(name)}{{color:{k.night if night else k.day}}}" for name, k in KINDS.items())
