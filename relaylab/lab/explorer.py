"""The pass explorer: a widget that steps through a pipeline.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
from IPython.display import display
from traitlets import Bool, Dict, Enum, Int, List, Unicode, observe

from relaylab.explorer.question import within
from relaylab.explorer.questions.passes import rows
from relaylab.explorer.session import Session
from relaylab.ir import Expr
from relaylab.lab.arguments import named_in_notebook
from relaylab.lab.page import script, sheet
from relaylab.lab.saved_page import write
from relaylab.study.exploration import Exploration, explore
from relaylab.study.program import Loadable
from relaylab.study.record import SUFFIX, record
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayAttributeError, RelayValueError
from relaylab.support.language import preferred
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.transform import Pass
from relaylab.viz.write.html import bundle

SAVED = ("before", "after", "selected", "compare", "pane", "views", "slides")
"""What a saved page takes along of what is chosen."""


PANES = ("graph", "text", "both", "code", "several", "heat", "operators", "branches", "live")
"""What the explorer can show, as `w.pane` says it."""


class PassExplorer(anywidget.AnyWidget):
    """Every pass, step by step. What is chosen is a trait: `selected` (a node's id), `before` and `after` (frames).

    `compare` is merged or both (side by side), `pane` one of `PANES`. A program in the place of a run is run.
    `direction` is that of pictures, `TB` or `LR`; without one it is the one that was chosen last in this browser.
    `slides` shows one changing pass at a time, large, on the whole screen once a key was pressed.
    `language` is en or zh; as long as it is empty, that of the notebook around the widget.
    """

    _esm = script("live.js")
    _css = sheet()
    rows = Dict().tag(sync=True)
    before = Int(0).tag(sync=True)
    after = Int(0).tag(sync=True)
    selected = Unicode("").tag(sync=True)
    compare = Enum(("merged", "both"), "merged").tag(sync=True)
    pane = Enum(PANES, "graph").tag(sync=True)
    overlays = List(Unicode()).tag(sync=True)
    views = Dict().tag(sync=True)
    slides = Bool(False).tag(sync=True)
    direction = Enum(("", "TB", "LR"), "").tag(sync=True)
    height = Int(680).tag(sync=True)
    still = Unicode("").tag(sync=True)
    work = Unicode("").tag(sync=True)
    language = Unicode("").tag(sync=True)

    def __init__(
        self, exploration: Exploration | Loadable, passes: Iterable[Pass | str] | None = None, **choices: object
    ):
        for name in choices:
            _known(name)
        run = exploration if isinstance(exploration, Exploration) else explore(exploration)
        self.exploration, self.session = run, Session(run, passes)
        self.session.bind = named_in_notebook
        self.session.pipeline.doing = self._doing
        first = self.session.first
        start: dict[str, object] = {
            "work": self.session.key,
            "rows": rows(self.session),
            "before": max(0, first - 1),
            "after": first,
            "still": uuid4().hex,
        }
        if choices.get("slides"):
            start |= {"before": 0, "after": 0}  # a lecture begins with the program as it was written
        if (spoken := preferred()) != "en":
            start["language"] = spoken
        super().__init__(**(start | choices))
        self._listeners: list[Callable[[str], None]] = []
        self.on_msg(self._answer)

    def _answer(self, widget: object, content: object, buffers: object) -> None:
        with no_collection():  # it waits until the answer is sent
            self.send(self.session.reply(content))

    def _doing(self, what: str) -> None:
        self.send({"doing": what})

    def __setattr__(self, name: str, value: object) -> None:
        if "_listeners" in self.__dict__ and name not in self.__dict__ and name[0] != "_":
            _known(name)
        super().__setattr__(name, value)

    # -- from Python ------------------------------------------------------------------------------------

    @observe("selected")
    def _tell(self, change: Any) -> None:
        for listener in getattr(self, "_listeners", ()):
            listener(change.new)

    def on_select(self, listener: Callable[[str], None]) -> None:
        """Call `listener(id)` whenever another node is selected; the empty text is none."""
        self._listeners.append(listener)

    @property
    def selected_node(self) -> Expr | None:
        """The selected node of the program at the stage that is shown."""
        with self.session.lock:
            return self.session.frames.nodes[self.frame].get(self.selected)

    @property
    def frame(self) -> int:
        """The frame that is shown: `after`, or the last where an edit left fewer."""
        return max(0, min(self.after, len(self.session.frames) - 1))

    def go(self, after: int, before: int | None = None) -> None:
        """Show what changed up to frame `after` (default: since the frame before it).

        RelayValueError `explorer.frame` for one that there is not.
        """
        for frame in (after,) if before is None else (before, after):
            within("frame", frame, len(self.session.frames))
        with self.hold_sync():
            self.before, self.after = max(0, after - 1 if before is None else before), after

    def step(self, by: int = 1) -> None:
        """Show the next pass that changed something, or the one before."""
        stops = [0, *self.session.frames.changing()]
        later = [k for k in stops if k > self.after] if by > 0 else [k for k in reversed(stops) if k < self.after]
        if later:
            self.go(later[0])

    def toggle(self, name: str) -> None:
        """Switch the passes of that name on or off."""
        found = [i for i, item in enumerate(self.session.pipeline.items) if item.name == name]
        if not found:
            known = [item.name for item in self.session.pipeline.items]
            help = did_you_mean(name, known) or f"it has: {', '.join(dict.fromkeys(known))}"
            raise RelayValueError(f"the pipeline has no pass `{name}`", code="explorer.pass", help=help)
        with self.session.lock:
            for index in found:
                self.session.pipeline.toggle(index)
            self.session.refresh()
            self.rows = rows(self.session)

    def overlay(self, name: str, values: Mapping[str | Expr, float]) -> None:
        """Offer a figure of your own for nodes (by id, or the node itself) to colour them by.

        RelayValueError `explorer.node` for a node that neither program has.
        """
        with self.session.lock:
            ids = self.session.frames.ids[-1] | self.session.frames.ids[self.frame]
        found = {ids.get(k, "") if isinstance(k, Expr) else k: float(v) for k, v in values.items()}
        if "" in found:
            what = "a node of the values is in neither the last program of the pipeline nor the one that is shown"
            help = "give ids, or nodes of w.session.frames.modules[w.frame]"
            raise RelayValueError(what, code="explorer.node", help=help)
        self.session.overlays[name] = found
        self.overlays = [*dict.fromkeys([*self.overlays, name])]

    def save(self, path: str | Path, paper: str = "fit") -> Path:
        """Write the explorer as one page that needs neither kernel nor network (.html).

        Of other suffixes .rlab is the run with the named views; else the pictures are written (`paper`: that of a PDF).
        """
        if Path(path).suffix.lower() == SUFFIX:
            with self.session.lock:
                return record(Exploration(self.session.program, self.session.pipeline), path, self.views)
        if Path(path).suffix.lower() not in (".html", ".htm"):
            return self.exploration.save(path, paper)
        with self.session.lock:
            return write(self.session, path, {name: getattr(self, name) for name in SAVED}, language=self.language)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget; for places without one the picture of the stage that is shown."""
        made = super()._repr_mimebundle_(**kwargs)
        data, metadata = made if isinstance(made, tuple) else (made or {}, {})
        return {**self._still(), **data, "text/plain": repr(self)}, metadata

    def _still(self) -> dict[str, str]:
        return bundle(self.session.still(max(0, min(self.before, self.frame)), self.frame), repr(self))

    def _ipython_display_(self) -> None:
        """The picture of the stage that is shown, and the widget, which hides the picture when its kernel answers.

        Two outputs: a page that a notebook is converted to, and a notebook that is opened again, have a widget's output
        but nothing behind it, and show none of the other forms that it has.
        """
        still = self._still()
        html = f'<div data-relaylab-still="{self.still}">{still["text/html"]}</div>'
        display({"text/html": html, "text/plain": still["text/plain"]}, raw=True)
        made = super()._repr_mimebundle_()
        data, metadata = made if isinstance(made, tuple) else (made or {}, {})
        display({**data, "text/plain": repr(self)}, raw=True, metadata=metadata)

    def __repr__(self) -> str:
        rows = self.rows.get("rows", [])
        changed = sum(r["changed"] for r in rows)
        return f"<pass explorer: {self.session.program.name}, {counted(len(rows), 'pass')}, {changed} changed it>"


def _known(name: str) -> None:
    """Refuse what would change nothing: an explorer has no such trait."""
    if not hasattr(PassExplorer, name):
        own = [n for n in PassExplorer.class_own_traits() if n[0] != "_"]
        help = did_you_mean(name, own) or f"it has: {', '.join(own)}; w.go(frame) shows another stage"
        raise RelayAttributeError(f"an explorer has no `{name}`", code="explorer.trait", help=help)
