"""Text whose lines are longer than a notebook is wide: scrolled sideways, not wrapped."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape

from IPython.display import display

from relaylab.text.colours import markup, style
from relaylab.viz.diffs.tokens import for_stream, html_lines

STYLE = (
    "white-space:pre;overflow-x:auto;margin:0;padding:0 var(--jp-code-padding,0);background:none;color:inherit;"
    "font-size:var(--jp-code-font-size,13px);line-height:1.3"
)


@dataclass(frozen=True)
class Wide:
    """A table or a listing; in a language of `text.colours`, in its colours."""

    text: str
    language: str = ""

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        shown = style() + markup(self.text, self.language) if self.language else escape(self.text)
        return {"text/plain": self.text, "text/html": f'<pre style="{STYLE}">{shown}</pre>'}


@dataclass(frozen=True)
class WideDifference(Wide):
    """A difference of two texts: in a page what differs inside a line is marked, in a terminal it is reversed."""

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        html = f'<pre style="{STYLE}">{html_lines(self.text, self.language)}</pre>'
        return {"text/plain": for_stream(self.text, sys.stdout), "text/html": html}


def show(text: str, language: str = "") -> None:
    """Show a table or a listing; where there is no page, its text."""
    display(Wide(text, language))


def show_difference(text: str, language: str = "") -> None:
    """Show a difference of two texts."""
    display(WideDifference(text, language))
