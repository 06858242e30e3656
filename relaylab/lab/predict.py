"""A question of the course about a picture: one clicks what one expects, and asks.

The words of the same answer: `check("NAME", ["nn.conv2d", …])`; `print(predict("NAME"))` lists the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import anywidget
from traitlets import Dict, List, Unicode

from relaylab import course
from relaylab.explorer.wording import wording
from relaylab.lab.page import predict_sheet, script
from relaylab.support.language import preferred
from relaylab.viz.write.html import bundle, scene_data


class Prediction(anywidget.AnyWidget):
    """A picture in which operators are chosen by clicking; `chosen` are their names, `verdict` what the judge said.

    `words` are those of the buttons in the language of the notebook, which is asked for unless it is `language`.
    """

    _esm = script("predict.js")
    _css = predict_sheet()
    scene = Dict().tag(sync=True)
    names = List(Unicode()).tag(sync=True)
    chosen = List(Unicode()).tag(sync=True)
    verdict = Dict().tag(sync=True)
    language = Unicode("").tag(sync=True)
    words = Dict().tag(sync=True)

    def __init__(self, name: str) -> None:
        self.question = course.question(name)
        spoken = preferred() if preferred() != "en" else ""
        super().__init__(
            scene=dict(scene_data(self.question.picture.scene)), names=list(self.question.nodes), language=spoken
        )
        self.on_msg(self._asked)

    def _asked(self, widget: object, content: object, buffers: object) -> None:
        """The buttons: the verdict about what is chosen, or the next hint; and the words of a language."""
        name = self.question.exercise.name
        message = cast("Mapping[str, object]", content) if isinstance(content, Mapping) else {"what": content}
        what, chosen = message.get("what"), message.get("chosen")
        if isinstance(chosen, list):
            self.chosen = [n for n in self.names if n in chosen]
        if what == "hint":
            self.verdict = {"right": False, "words": course.hint(name)}
        elif what == "check":
            found = course.check(name, self)
            self.verdict = {"right": found.right, "words": found.words}
        elif isinstance(what, str):
            self.words = wording(what)

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        """The widget; for places without one the picture."""
        made = super()._repr_mimebundle_()  # it reads none of them
        data, metadata = made if isinstance(made, tuple) else (made or {}, {})
        return {**bundle(self.question.picture.scene, repr(self)), **data, "text/plain": repr(self)}, metadata

    def __str__(self) -> str:
        return self.question.words

    def __repr__(self) -> str:
        chosen = ", ".join(self.chosen) or "nothing yet"
        return f"<question {self.question.exercise.name}: chosen {chosen}>"


predict = Prediction
