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
PARTS = ("dom.js", "canvas.js", "query.js", "rail.js", "panels.js", "why.js", "undo.js", "branches.js", "heat.js", "several.js", "explorer.js")
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE)
LIMIT = 150_000
"""Bytes of script and style that the explorer may have in all."""


def _module(text: str) -> str:
    """A module without its imports: what it imports stands before it in the same script."""
    return _IMPORT.sub("", text)


@cache
def script(end: str) -> str:
    """One ES module: the graph, the explorer, and `live.js` or `saved.js` at the end."""
    inner = "\n".join(_module((STATIC / name).read_text(encoding="utf-8")) for name in PARTS)
    last = _module((STATIC / end).read_text(encoding="utf-8"))
    # the modules share a few private names (`svg`, `html`): each half keeps its own
    return f"{_module(viz_asset('graph.js'))}\n{inner}\n{last}"


@cache
def sheet() -> str:
    """All styles; those of pictures only inside the explorer, light, and dark where the host is."""
    own = (STATIC / "explorer.css").read_text(encoding="utf-8")
    faces = f"text{{font-family:{FONT}}}.b{{font-weight:bold}}.m{{font-family:{MONO}}}"
    night = f"{css(dark=True)}{_night(own)}"
    return (
        f"{own}\n.rl-explorer{{{faces}{css()}}}\n"
        f'[data-jp-theme-light="false"] .rl-explorer{{{night}}}\n'
        f"@media (prefers-color-scheme: dark){{.rl-page .rl-explorer{{{night}}}}}\n"
    )


def _night(own: str) -> str:
    """The rules of `.rl-night`, to be nested where it is night."""
    rules = re.findall(r"^\s*\.rl-night( [^{]*)?\{([^}]*)\}", re.sub(r"\} \.rl-night", "}\n.rl-night", own), re.MULTILINE)
    return "".join(f"& {where.strip()} {{{body}}}" if where.strip() else body for where, body in rules)


PAGE = """html, body { margin: 0; height: 100%; }
.rl-page .rl-explorer { height: 100vh; border: 0; border-radius: 0; }
@media (prefers-color-scheme: dark) { .rl-page .rl-explorer { --rl-bg: #11151c; --rl-fg: #e6ebf2; --rl-dim: #a3b0c2; --rl-line: #3a4456; --rl-soft: #1b2230; } }
"""


def page(book: dict[str, Any], title: str) -> str:
    """A self-contained page of the explorer; `book` has the rows, the first choices and all answers."""
    data = json.dumps(book, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(plain(title))}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{sheet()}{PAGE}</style>\n</head>\n'
        f'<body class="rl-page">\n<div id="relaylab"></div>\n<script type="text/plain" id="relaylab-data">{packed}</script>\n'
        f'<script type="module">\n{script("saved.js")}</script>\n</body>\n</html>\n'
    )
