"""ES modules put together into one script, for pages and widgets that load nothing.

All modules share one scope in the end, so no two may declare the same name and none exports; comments, types among
them, blank lines, indentation and most line breaks stay behind, so no text in backticks has a line break.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r'^import [^;]*? from "([^"]+)";\n', re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)\n", re.MULTILINE | re.DOTALL)
_BEHIND = re.compile(r"(?<=[;,(){}\[\]:?])[ \t]+//[^\n]*$|/\*\* @type [^\n]*? \*/ ", re.MULTILINE)
"""Comments behind code, and the types of values."""
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)
"""Blank lines and indentation."""
_OPEN = re.compile(r"^((?:(?!//)[^\n])*[,;{(\[=>?:&|])\n", re.MULTILINE)
_CLOSING = re.compile(r"^((?:(?!//)[^\n])*)\n(?=[)}\].?:&|])", re.MULTILINE)
"""Line breaks that end nothing: what stands before or behind them says that they do not; no line with a comment."""


def modules(entry: Path) -> list[Path]:
    """A module and all that it imports, what is imported first."""
    found: dict[Path, None] = {}
    stack = [(entry.resolve(), False)]
    while stack:
        path, done = stack.pop()
        if done:
            found[path] = None
        elif path not in found:
            names = _IMPORT.findall(path.read_text(encoding="utf-8"))
            stack += [(path, True), *(((path.parent / name).resolve(), False) for name in reversed(names))]
    return list(found)


@cache
def script(entry: Path) -> str:
    """A module with all that it imports as one."""
    return "\n".join(_code(p.read_text(encoding="utf-8")) for p in modules(entry))


def _code(text: str) -> str:
    for pattern in (_IMPORT, COMMENT, _BEHIND, _EXPORT, _INDENT):
        text = pattern.sub("", text)
    for pattern in (_OPEN, _CLOSING):
        text = pattern.sub(r"\1", text)
    return text.strip()
