"""The pass explorer without a screen: a session answers questions about a pipeline as plain data.

A widget in a notebook and a saved page ask the same questions (see `questions`); a page has the answers with it.
Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from threading import RLock
from typing import cast
from uuid import uuid4

from relaylab import viz
from relaylab.explorer.branches import Branches
from relaylab.explorer.checked import Checked
from relaylab.explorer.frames import Frames
from relaylab.explorer.question import answer, within
from relaylab.explorer.scenes import Scenes
from relaylab.explorer.stopping import working
from relaylab.explorer.story import Story
from relaylab.ir import Function, IRModule
from relaylab.study.compare import small_form
from relaylab.study.exploration import Exploration
from relaylab.study.kernels import Kernels
from relaylab.study.live import LiveText
from relaylab.study.pipeline import Pipeline, passes_of
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.progress import heard
from relaylab.transform import Pass
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.scene.scene import Scene
from relaylab.viz.selection.changes import changes

STOPPED = "stopped"
"""The answer to a question whose work was interrupted."""


class Session:
    """A program, its editable pipeline and what is known about it.

    `overlays` are figures of the user's own, by name and node. `bind` gives a part of a program a name in the notebook,
    and says which; `extracted` are these parts. An interrupt, or `stopping.stop(key)`, stops the work for a question,
    and is an answer; what is known stays, edits under way are taken back. Who holds `lock` is alone with the session:
    kernels answer some questions beside cells and some between them, in different threads.
    """

    def __init__(self, exploration: Exploration, passes: Iterable[Pass | str] | None = None):
        self.program, self.opt_level = exploration.program, exploration.opt_level
        known = exploration.pipeline
        wanted = None if passes is None else passes_of(passes, self.opt_level)
        if wanted is None or [item.made for item in known.items] == wanted:
            self.pipeline = known.branch()
        else:
            self.pipeline = Pipeline(known.source, wanted, self.opt_level)
        self.lock = RLock()
        self.overlays: dict[str, dict[str, float]] = {}
        self.extracted: dict[str, IRModule] = {}
        self.bind: Callable[[str, IRModule], str] = lambda name, mod: ""
        self.key = uuid4().hex
        self.live_places: Mapping[str, float] | None = None
        self._opened = self.pipeline.source
        self.branches = Branches(self.pipeline)
        self.checked = Checked(self.pipeline)
        self.refresh()

    @property
    def first(self) -> int:
        """The frame to open at: the pass that failed, or else the first that changed something."""
        failed = (k for k, segment in enumerate(self.pipeline.segments, 1) if segment.error is not None)
        return next(failed, next(iter(self.frames.changing()), 0))

    def refresh(self) -> None:
        """Forget what was computed about the frames; after an edit."""
        self.frames = Frames(self.pipeline, self.program.name, self.program.mod)
        self.story = Story(self.frames)
        self.scenes = Scenes()
        self.__dict__.pop("kernels", None)
        self.__dict__.pop("spent", None)
        if "live" in self.__dict__ and self.live.source is not self.pipeline.source:
            self.live.follow(self.pipeline.source)

    @cached_property
    def kernels(self) -> Kernels:
        """The last frame, compiled."""
        return Kernels(self.frames.modules[-1], self.frames.constants, self.pipeline.source, self.opt_level)

    @cached_property
    def live(self) -> LiveText:
        """The program as text that can be typed in."""
        return LiveText(self.pipeline.source)

    @property
    def is_edited(self) -> bool:
        """Whether the program is another one than the explorer was opened with."""
        return self.pipeline.source is not self._opened

    @property
    def small(self) -> IRModule:
        """What is interpreted: the small form of a network of the zoo; another program, or an edited one, itself."""
        return self.pipeline.source if self.is_edited else self._small

    @cached_property
    def _small(self) -> IRModule:
        return small_form(self.program, self._opened)

    @cached_property
    def spent(self) -> dict[Function, float]:
        """Measured microseconds of the kernels of the last frame."""
        return self.kernels.times()

    def times(self) -> dict[str, float]:
        """Measured microseconds of the kernels of the last frame, by the ids of their groups."""
        ids = self.frames.ids[-1]
        return {ids[f]: spent for f, spent in self.spent.items() if f in ids}

    def still(self, before: int, after: int) -> Scene:
        """The merged picture of two frames as a scene, for places that show no widget."""
        with self.lock:
            for frame in (before, after):
                within("frame", frame, len(self.frames))
            old, new = self.frames.views[before], self.frames.views[after]
            return draw(new if old is new else changes(viz.Difference(old, new).merged), DrawOptions())

    def reply(self, content: object) -> dict[str, object]:
        """The answer to a message `{"id": …, "what": question, "args": […]}`, which may be anything at all."""
        message = cast("Mapping[object, object]", content) if isinstance(content, Mapping) else {}
        args = message.get("args", [])
        if not message or not isinstance(args, list):
            wrong = RelayValueError(
                f"a message is a question with a list of arguments, not {content!r:.60}", code="explorer.message"
            )
            return _reply(message, {"error": str(wrong)})
        with self.lock:
            return _reply(message, self._found(message.get("what"), *args))

    def _found(self, what: object, *args: object) -> dict[str, object]:
        """The answer to a question of a page, which must get one, whatever a pass of the user's raised."""
        try:
            with working(self.key):
                return self.ask(what, *args)
        except KeyboardInterrupt:
            self.refresh()  # views that were being made may be halves
            return {"error": STOPPED}
        except (Exception, SystemExit) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def ask(self, what: object, *args: object) -> dict[str, object]:
        """The answer to a question; errors of users are answers too."""
        try:
            listen = heard(lambda parts: self.pipeline.doing(parts))
            with self.pipeline.kept(), listen, no_collection():  # it would take a third of the time of a picture
                limits = {"frame": len(self.frames), "pass": len(self.pipeline.items)}
                return cast("dict[str, object]", answer(self, limits, what, args))
        except RelayError as error:
            return {"error": str(error)}


def _reply(message: Mapping[object, object], found: dict[str, object]) -> dict[str, object]:
    """An answer under the id of its message; what no kernel can send (halves of characters) is written as escapes."""
    if isinstance(error := found.get("error"), str):
        found = {**found, "error": _sendable(error)}
    key = message.get("id")
    return {"id": key if isinstance(key, int) else _sendable(key) if isinstance(key, str) else None, "answer": found}


def _sendable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
