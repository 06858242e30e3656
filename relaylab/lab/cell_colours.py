"""Colours for `%%relay` cells, from a script that the page of the notebook runs.

JupyterLab's editor learns a language only from an extension that is built with it. So a script marks what the editor
shows with CSS highlights, which change neither text nor document; browsers without them leave the cell as it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from relaylab.lab.page import STATIC, script
from relaylab.text.colours import KINDS, css

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MODULE = STATIC / "cells.js"


def cell_script() -> str:
    """The script; a page that has it already runs it once."""
    style = css(rule="::highlight(rl-t-{})") + css(
        night=True, rule='[data-jp-theme-light="false"] ::highlight(rl-t-{})'
    )
    body = re.sub("^export ", "", script(MODULE.name), flags=re.MULTILINE)
    arguments = f"{json.dumps(list(KINDS))}, {json.dumps(style)}"
    once = "if (!CSS.highlights || window.relaylabCells) return;"
    return f"(() => {{\n{once}\n{body}\nwindow.relaylabCells = colourCells({arguments});\n}})();"


def colour_cells(ip: InteractiveShell) -> None:
    """Send the script where a page shows what the kernel displays."""
    if getattr(ip, "kernel", None) is not None:
        ip.display_pub.publish({"application/javascript": cell_script()})
