"""The explorer's ES modules and styles put together: for the widget, and for a page that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from relaylab.viz.scene.metrics import plain
from relaylab.viz.scene.theme import css
from relaylab.viz.write import modules
from relaylab.viz.write.svg import FONT, MONO, escape

STATIC = Path(__file__).parent / "static"
STYLES = ("frame", "rail", "stage", "tabs", "panel", "kernel", "picture")
"""Sheets of the explorer, in the order in which later rules win."""
LIMIT = 190_000
"""Bytes of script and style that the explorer may have in all."""


def script(end: str) -> str:
    """One ES module: the explorer with what `live.js` or `saved.js` at its end needs."""
    return modules.script(STATIC / end)


def _style(name: str) -> str:
    return (STATIC / "style" / f"{name}.css").read_text(encoding="utf-8")


@cache
def sheet() -> str:
    """All styles; those of pictures only inside the explorer, light, and dark where the host is."""
    own = "".join(map(_style, STYLES))
    faces = f"text{{font-family:{FONT}}}.b{{font-weight:bold}}.m{{font-family:{MONO}}}"
    night = f"{css(dark=True)}{_night(own)}"
    return (
        f"{own}\n.rl-explorer{{{faces}{css()}}}\n"
        f'[data-jp-theme-light="false"] .rl-explorer{{{night}}}\n'
        f"@media screen and (prefers-color-scheme: dark){{.rl-page .rl-explorer{{{night}}}}}\n"
    )


def _night(own: str) -> str:
    """The rules of `.rl-night`, to be nested where it is night."""
    rules = re.findall(r"^\.rl-night( [^{]*)?\{([^}]*)\}", own, re.MULTILINE)
    return "".join(f"& {where.strip()} {{{body}}}" if where.strip() else body for where, body in rules)


def page(data: dict[str, Any], title: str) -> str:
    """A self-contained page of the explorer; `data` has the rows, the first choices and all answers."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(plain(title))}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{sheet()}{_style('page')}</style>\n</head>\n"
        '<body class="rl-page">\n<div id="relaylab"></div>\n'
        "<noscript>This page of pictures needs JavaScript.</noscript>\n"
        f'<script type="text/plain" id="relaylab-data">{packed}</script>\n'
        f'<script type="module">\n{script("saved.js")}</script>\n</body>\n</html>\n'
    )
