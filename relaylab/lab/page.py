"""The explorer's ES modules and styles put together: for the widget, and for a page that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from relaylab.text import colours
from relaylab.viz.scene.metrics import plain
from relaylab.viz.scene.theme import css
from relaylab.viz.write import modules
from relaylab.viz.write.svg import FONT, MONO, escape

STATIC = Path(__file__).parent / "static"
STYLES = ("frame", "rail", "stage", "tabs", "panel", "kernel", "picture", "room", "words", "live", "slides")
"""Sheets of the explorer, in the order in which later rules win."""
LIMIT = 192_000
"""Bytes of script and style that the explorer may have in all."""
TAGS = {"en": "en", "zh": "zh-CN"}
"""How HTML calls languages."""


def script(end: str) -> str:
    """One ES module: the explorer with what `live.js` or `saved.js` at its end needs."""
    return modules.script(STATIC / end)


def _style(name: str) -> str:
    return (STATIC / "style" / f"{name}.css").read_text(encoding="utf-8")


@cache
def sheet() -> str:
    """All styles of the widget; those of pictures only inside the explorer, light, and dark where the host is."""
    faces = f"text{{font-family:{FONT}}}.b{{font-weight:bold}}.m{{font-family:{MONO}}}"
    day = css() + colours.css()
    return _dense(f'{_own()}\n.rl-explorer{{{faces}{day}}}\n[data-jp-theme-light="false"] .rl-explorer{{{_night()}}}\n')


def _own() -> str:
    return "".join(map(_style, STYLES))


def _dense(style: str) -> str:
    """A sheet without the spaces that only people need: a seventh of its size."""
    return re.sub(r"(?<=[{};,])\s+|(?<=:) | (?={)| (?=>)|(?<=>) ", "", style).replace(";}", "}")


def _night() -> str:
    """What is other at night, to be nested where it is night: pictures, code, and the rules of `.rl-night`."""
    rules = re.findall(r"^\.rl-night( [^{]*)?\{([^}]*)\}", _own(), re.MULTILINE)
    own = "".join(f"& {where.strip()} {{{body}}}" if where.strip() else body for where, body in rules)
    return f"{css(dark=True)}{colours.css(night=True)}{own}"


def page(data: dict[str, Any], title: str, language: str = "en") -> str:
    """A self-contained page of the explorer; `data` has the rows, the first choices and all answers."""
    style, run = f"<style>{page_sheet()}</style>", f'<script type="module">\n{script("saved.js")}</script>'
    return document(data, title, style, run, language=language)


def page_sheet() -> str:
    """All styles of a page of the explorer, which is dark where its reader's system is."""
    night = f"@media screen and (prefers-color-scheme: dark){{.rl-page .rl-explorer{{{_night()}}}}}"
    return sheet() + _dense(f"{night}\n{_style('page')}")


def predict_sheet() -> str:
    """The styles of a question about a picture."""
    return sheet() + _style("predict")


def classic(end: str) -> str:
    """The script for a file beside pages: browsers load no modules from a file system."""
    return f"(() => {{\n{script(end)}}})();\n"


def document(data: dict[str, Any], title: str, style: str, run: str, top: str = "", language: str = "en") -> str:
    """A page of the explorer with the markup that brings its styles, its script, and what stands above it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    return (
        f'<!DOCTYPE html>\n<html lang="{TAGS[language]}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(plain(title))}</title>\n"
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{style}\n</head>\n'
        f'<body class="rl-page">\n{top}<div id="relaylab"></div>\n'
        "<noscript>This page of pictures needs JavaScript.</noscript>\n"
        f'<script type="text/plain" id="relaylab-data">{packed}</script>\n{run}\n</body>\n</html>\n'
    )
