"""ES modules put together into one script, for pages and widgets that load nothing.

All modules share one scope in the end, so no two may declare the same name; comments, types among them, stay behind.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r'^import [^;]*? from "([^"]+)";\n', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)


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
    return "\n".join(_COMMENT.sub("", _IMPORT.sub("", p.read_text(encoding="utf-8"))).strip() for p in modules(entry))
