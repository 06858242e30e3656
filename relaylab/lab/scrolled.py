"""Text whose lines are longer than a notebook is wide: scrolled sideways, not wrapped."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from IPython.display import display

STYLE = (
    "white-space:pre;overflow-x:auto;margin:0;padding:0 var(--jp-code-padding,0);background:none;color:inherit;"
    "font-size:var(--jp-code-font-size,13px);line-height:1.3"
)


@dataclass(frozen=True)
class Wide:
    """A table or a listing."""

    text: str

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": f'<pre style="{STYLE}">{escape(self.text)}</pre>'}


def show(text: str) -> None:
    """Show a table or a listing; where there is no page, its text."""
    display(Wide(text))
