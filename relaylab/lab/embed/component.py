"""The explorer as a component of other programs: a script with `render({ el, model })`, a style sheet, a model.

The script is an ES module as anywidget's convention has it. Its `model` is an object of the host with `get(name)`,
`set(name, value)`, `save_changes()`, `on(event, run)` and `send(message)`; the host carries messages to `reply`, and
its answers back as the event `msg:custom`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relaylab.explorer.questions.passes import rows
from relaylab.explorer.session import Session
from relaylab.lab.page import script, sheet
from relaylab.study.exploration import Exploration
from relaylab.viz.write import files


@dataclass(frozen=True)
class Component:
    """An explorer for a host: what its model holds at first, and who answers."""

    session: Session

    @property
    def state(self) -> dict[str, object]:
        """The traits of the model at first, as JSON has them; they change as people look."""
        first = self.session.first
        chosen = {"before": max(0, first - 1), "after": first, "selected": "", "compare": "merged", "pane": "graph"}
        return {"rows": rows(self.session), **chosen, "overlays": [], "views": {}, "height": 680, "still": ""}

    def reply(self, message: object) -> dict[str, object]:
        """The answer to a message of the script, as JSON has it; never an exception."""
        return self.session.reply(message)


def component(exploration: Exploration) -> Component:
    """A pipeline run for a host of its own."""
    return Component(Session(exploration))


def write(folder: str | Path) -> tuple[Path, Path]:
    """Write the script and the style sheet, `explorer.mjs` and `explorer.css`, which hold for every program."""
    place = Path(folder)
    return files.write(place / "explorer.mjs", script("live.js")), files.write(place / "explorer.css", sheet())
