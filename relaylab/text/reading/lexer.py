"""Text to tokens: parallel lists of kinds, texts and offsets (a module has many thousands).

A token's kind is its own text for keywords and punctuation, else one of `local` (`%x`, `%conv1.weight`), `graph`
(`%12`), `global` (`@f`), `name`, `number`, `string`, `bool`, `meta` (`meta[key][0]`), `_`,
`metadata` (all that follows `#[metadata]`) and `end`. Comments and white space are dropped.
A sign is never part of a number: the parser decides whether `-` is a sign or a subtraction.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from relaylab.ir.names import IDENT, KEYWORDS
from relaylab.text.reading.look_alikes import is_look_alike, plain, remedy, why

_PART = rf"(?:\.|::)(?:[0-9][A-Za-z0-9_]*+|{IDENT})"
LOCAL = rf"{IDENT}(?>(?:{_PART})*)"
"""Names of variables: those of PyTorch's parameters have dots, those of ONNX exporters two colons."""
GLOBAL = rf"{IDENT}(?>(?:\.{IDENT})*)"
_STRING = r'"(?>(?:[^"\\\n]|\\.)*)"'
_SINGLE = r"'(?>(?:[^'\\\n]|\\.)*)'"  # TVM prints so within what it has no syntax for
_SKIP = r"(?>(?:[ \t\n]++|\r\n|//[^\n]*+|/\*(?>(?:[^*/]++|\*(?!/)|/(?!\*))*)\*/)*)"
_TOKEN = re.compile(
    rf"{_SKIP}(?:"
    rf"(?P<local>%{LOCAL})|(?P<graph>%[0-9]++)|(?P<global>@(?:{GLOBAL}|{_STRING}))"
    rf"|(?P<meta>meta\[[A-Za-z0-9_.]++\]\[[0-9]++\])"
    rf"|(?P<name>match\?|{IDENT})"
    r"|(?P<number>[0-9](?>(?:[0-9A-Za-z_.]|(?<=[eE])[+-])*))"
    rf"|(?P<string>{_STRING}|{_SINGLE})"
    r"|(?P<metadata>\#\[metadata\])"
    r"|(?P<comment>/\*)|(?P<hash>\#(?!\[))"
    r"|(?P<punctuation>->|=>|==|!=|<=|>=|[(){}\[\]<>,.=;:+\-*/!?@%\#])"
    r"|(?P<quote>\")|(?P<end>\Z)|(?P<unknown>.))",
    re.DOTALL,
)
# the last alternatives, any character and the end, match everywhere: there is always a match, with a group
_match = cast("Callable[[str, int], re.Match[str]]", _TOKEN.match)
_COMMENT_EDGE = re.compile(r"/\*|\*/")

Complain = Callable[[str, str, int, int, str], None]
"""How the lexer reports: code, message, first offset, offset behind the last, help."""


@dataclass(slots=True)
class Tokens:
    """The tokens of one text, ended by an `end`; `metadata` is the offset of the meta data section, or -1."""

    kinds: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    metadata: int = -1

    def add(self, kind: str, text: str, start: int) -> None:
        self.kinds.append(kind)
        self.texts.append(text)
        self.starts.append(start)


def tokenize(text: str, complain: Complain) -> Tokens:
    """The tokens of `text`; what is none is reported and left out."""
    tokens = Tokens()
    _read(text, 0, tokens, complain)
    return tokens


def _read(text: str, position: int, tokens: Tokens, complain: Complain) -> None:
    """Add the tokens from `position` to the end."""
    match = _match
    kinds, texts, starts = tokens.kinds.append, tokens.texts.append, tokens.starts.append
    while True:
        found = match(text, position)
        group = found.lastgroup or ""
        word, start, position = found[group], found.start(group), found.end()
        if group == "name":
            group = word if word in KEYWORDS else "bool" if word in ("True", "False") else "name"
        elif group == "punctuation":
            group = word
            if word == "=" and tokens.kinds and tokens.kinds[-1] in KEYWORDS:
                tokens.kinds[-1] = "name"  # `type=…`: before `=` a keyword is the name of an attribute
        elif group in _RARE:
            if group == "end":
                return tokens.add("end", "", start)
            if group == "unknown" and is_look_alike(word):
                return _read_plain(text, start, tokens, complain)
            position = _rare(group, text, start, tokens, complain)
            continue
        kinds(group)
        texts(word)
        starts(start)


def _read_plain(text: str, start: int, tokens: Tokens, complain: Complain) -> None:
    """Read on as if the text had the characters that those of its tokens look like; report those that do not."""
    begin, first = start, len(tokens.kinds)
    if tokens.starts and tokens.starts[-1] + len(tokens.texts[-1]) == start:  # `%d` of a `%data` with a foreign `a`
        begin, first = tokens.starts.pop(), first - 1
        del tokens.kinds[first:], tokens.texts[first:]
    _read(plain(text), begin, tokens, complain)
    wrong = [(start, 1)]
    for word, at in zip(tokens.texts[first:], tokens.starts[first:]):
        length = 1 if word[:1] in ("'", '"') else len(word)  # within a string anything may stand
        if text[at : at + length] != word[:length]:
            wrong.append((at, length))
    for at, length in wrong[len(wrong) > 1 :]:
        found = text[at : at + length]
        complain("parse.unexpected-character", why(found), at, at + length, f"write `{plain(found)}`")


_RARE = frozenset(("comment", "hash", "metadata", "quote", "unknown", "end"))


def _rare(group: str, text: str, start: int, tokens: Tokens, complain: Complain) -> int:
    """Deal with what is not a token of its own; where to go on."""
    if group == "comment":
        return _nested_comment(text, start, complain)
    if group == "metadata":
        tokens.metadata = start + len("#[metadata]")
        return len(text)
    line_end = text.find("\n", start)
    end = len(text) if line_end < 0 else line_end
    if group == "hash":
        complain("parse.unexpected-character", "`#` does not begin a comment", start, end, "write `//`")
        return end
    if group == "quote":
        complain("parse.unterminated-string", "this string has no closing quote", start, end, 'close it with `"`')
        return end
    end = start + 1
    char = text[start]
    if char == "\r":
        help = "end lines with \\n or \\r\\n"
        complain("parse.unexpected-character", "a carriage return without a line feed", start, end, help)
        return end
    while end < len(text) and _is_unknown(text[end]):
        end += 1
    found = text[start:end]
    name = f"`{found}`" if found.isprintable() and found.strip() else f"the character U+{ord(char):04X}"
    complain("parse.unexpected-character", f"{name} is not part of Relay's text format", start, end, remedy(found))
    return end


def _is_unknown(char: str) -> bool:
    return char not in ' \t\n\r"' and not is_look_alike(char) and _match(char, 0).lastgroup == "unknown"


def _nested_comment(text: str, start: int, complain: Complain) -> int:
    """The offset behind a comment that holds comments."""
    depth, position = 0, start
    while (edge := _COMMENT_EDGE.search(text, position)) is not None:
        position = edge.end()
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return position
    help = "close it with `*/`; comments nest"
    complain("parse.unterminated-comment", "this comment is not closed", start, start + 2, help)
    return len(text)
