"""Text whose lines are longer than a notebook is wide: scrolled sideways, not wrapped."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from IPython.display import display

from relaylab.text.colours import markup, style
from relaylab.viz.diffs.tokens import for_stream, html_lines

if TYPE_CHECKING:
    from relaylab.study import Trial

STYLE = (
    "white-space:pre;overflow-x:auto;margin:0;padding:0 var(--jp-code-padding,0);background:none;color:inherit;"
    "font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px);line-height:1.3"
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


@dataclass(frozen=True)
class ScheduleTried:
    """A schedule tried on a kernel: in a page the loops and what was measured, and folded below what changed and the
    code; in a terminal the loops, or all of it."""

    trial: Trial
    code: bool = False

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        trial = self.trial
        folded = (
            ("loops before and after", WideDifference(trial.changes, "loops")),
            ("LLVM IR", Wide(trial.llvm, "llvm")),
            ("assembly", Wide(trial.assembly, "assembly")),
        )
        shown = [Wide(trial.loops, "loops"), Wide(trial.measures)]
        html = [part._repr_mimebundle_()["text/html"] for part in shown]
        opened = " open" if self.code else ""
        for title, part in folded:
            inner = part._repr_mimebundle_()["text/html"]
            html.append(f"<details{opened}><summary>{title}</summary>{inner}</details>")
        return {"text/plain": trial.listing if self.code else str(trial), "text/html": "\n".join(html)}


def show_schedule(trial: Trial, code: bool = False) -> None:
    """Show a schedule that was tried; with `code`, unfolded."""
    display(ScheduleTried(trial, code))


def show(text: str, language: str = "") -> None:
    """Show a table or a listing; where there is no page, its text."""
    display(Wide(text, language))


def show_difference(text: str, language: str = "") -> None:
    """Show a difference of two texts."""
    display(WideDifference(text, language))
