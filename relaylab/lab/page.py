"""The explorer's ES modules and styles put together: for the widget, and for a page that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from relaylab.viz.html import asset as viz_asset
from relaylab.viz.metrics import plain
from relaylab.viz.svg import FONT, MONO, escape
from relaylab.viz.theme import css

STATIC = Path(__file__).parent / "static"
PARTS = ("dom.js", "drawn.js", "canvas.js", "query.js", "rail.js", "panels.js", "why.js", "undo.js", "ahead.js", "branches.js", "heat.js", "tools.js", "several.js", "views.js", "table.js", "explorer.js")
SAVED = ("book.js", "link.js", "print.js")
"""What only a saved page needs."""
LIVE = ("why.js", "branches.js", "table.js")
"""What only a widget needs."""
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE)
LIMIT = 150_000
"""Bytes of script and style that the explorer may have in all."""


def _module(text: str) -> str:
    """A module without its imports: what it imports stands before it in the same script."""
    return _IMPORT.sub("", text)


@cache
def script(end: str) -> str:
    """One ES module: the graph, the explorer, and `live.js` or `saved.js` at the end."""
    names = (*(n for n in PARTS if n not in LIVE), *SAVED, end) if end == "saved.js" else (*PARTS, end)
    return "\n".join([_module(viz_asset("graph.js")), *(_module((STATIC / name).read_text(encoding="utf-8")) for name in names)])


@cache
def sheet() -> str:
    """All styles; those of pictures only inside the explorer, light, and dark where the host is."""
    own = (STATIC / "explorer.css").read_text(encoding="utf-8")
    faces = f"text{{font-family:{FONT}}}.b{{font-weight:bold}}.m{{font-family:{MONO}}}"
    night = f"{css(dark=True)}{_night(own)}"
    return (
        f"{own}\n.rl-explorer{{{faces}{css()}}}\n"
        f'[data-jp-theme-light="false"] .rl-explorer{{{night}}}\n'
        f"@media screen and (prefers-color-scheme: dark){{.rl-page .rl-explorer{{{night}}}}}\n"
    )


def _night(own: str) -> str:
    """The rules of `.rl-night`, to be nested where it is night."""
    rules = re.findall(r"^\s*\.rl-night( [^{]*)?\{([^}]*)\}", re.sub(r"\} \.rl-night", "}\n.rl-night", own), re.MULTILINE)
    return "".join(f"& {where.strip()} {{{body}}}" if where.strip() else body for where, body in rules)


def page(book: dict[str, Any], title: str) -> str:
    """A self-contained page of the explorer; `book` has the rows, the first choices and all answers."""
    own = (STATIC / "page.css").read_text(encoding="utf-8")
    data = json.dumps(book, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(plain(title))}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{sheet()}{own}</style>\n</head>\n'
        f'<body class="rl-page">\n<div id="relaylab"></div>\n<noscript>This page of pictures needs JavaScript.</noscript>\n<script type="text/plain" id="relaylab-data">{packed}</script>\n'
        f'<script type="module">\n{script("saved.js")}</script>\n</body>\n</html>\n'
    )
