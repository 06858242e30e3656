"""What is drawn, in each of the formats of `support.formats`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaylab.support.errors import RelayValueError
from relaylab.support.formats import FORMATS, SEVERAL, SHAPES, format_of, words
from relaylab.viz.draw.draw import DrawOptions
from relaylab.viz.graph.view import View
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import files, plugins
from relaylab.viz.write.dot import dot_text
from relaylab.viz.write.export import model_explorer, netron
from relaylab.viz.write.html import page
from relaylab.viz.write.pdf import pdf
from relaylab.viz.write.png import png
from relaylab.viz.write.svg import svg
from relaylab.viz.write.terminal import tree

Drawn = Any
"""A picture: its `scene`, and its `view`, which raises `RelayValueError` where there is no graph."""


@dataclass(frozen=True)
class Shapes:
    """A picture of shapes alone, such as a heat map, with the same in words."""

    scene: Scene
    text: str = ""

    @property
    def view(self) -> View:
        """What graph formats would need."""
        known = f"save it as {words(SHAPES)}"
        raise RelayValueError(f"`{self.scene.title}` is no graph", code="viz.format", help=known)


Options = Mapping[str, Any]
Writer = Callable[[Sequence[Drawn], str, Options], str | bytes]


def data(pictures: Sequence[Drawn], form: str, title: str, options: Options) -> str | bytes:
    """The pictures in one file; formats that hold one picture refuse more. `options` go to the writer."""
    for name, value in options.items():
        if name != "paper" and not (value is None or (isinstance(value, (int, float)) and 0 < value < math.inf)):
            raise RelayValueError(f"`{name}` is a number above zero, not {value!r}", code="viz.option")
    if form not in FORMATS:
        return plugins.plotted(form, [p.view for p in pictures], title)
    if FORMATS[form].single and len(pictures) != 1:
        count = f"a .{form} file holds one picture, not {len(pictures)}"
        raise RelayValueError(count, code="viz.pages", help=f"save as {words(SEVERAL)}")
    return WRITERS[form](pictures, title, options)


def save(pictures: Sequence[Drawn], path: str | os.PathLike[str], title: str, options: Options | None = None) -> Path:
    """Write pictures in the format that the suffix of `path` names."""
    graph = not all(isinstance(p, Shapes) for p in pictures)
    form = format_of(path, plugins.formats(), graph)
    return files.write(path, data(pictures, form, title, options or {}))


def save_scene(scene: Scene, path: str | os.PathLike[str], title: str, text: str, paper: str = "fit") -> Path:
    """Write shapes that have no graph, or as .txt their words."""
    return save([Shapes(scene, text)], path, title, {"paper": paper})


def _only(options: Options, *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _svg(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    return svg(pictures[0].scene, **_only(options, "scale"))


def _png(pictures: Sequence[Drawn], title: str, options: Options) -> bytes:
    return png(pictures[0].scene, **_only(options, "scale"))


def _pdf(pictures: Sequence[Drawn], title: str, options: Options) -> bytes:
    return pdf([p.scene for p in pictures], title=title, **_only(options, "paper", "width"))


def _html(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    return page([p.scene for p in pictures], title)


def _dot(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    drawn = getattr(pictures[0], "options", None)
    drawn = drawn if isinstance(drawn, DrawOptions) else DrawOptions()
    return dot_text(pictures[0].view, direction=drawn.direction, types=drawn.types, attrs=drawn.attrs)


def _txt(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    return "\n".join(f"{p.text}\n" if isinstance(p, Shapes) and p.text else tree(p.view) for p in pictures)


def _json(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    return pictures[0].view.to_json(indent=1) + "\n"


def _onnx(pictures: Sequence[Drawn], title: str, options: Options) -> bytes:
    return netron(pictures[0].view)


def _model_explorer(pictures: Sequence[Drawn], title: str, options: Options) -> str:
    return model_explorer(*(p.view for p in pictures), indent=1) + "\n"


WRITERS: Mapping[str, Writer] = {
    "svg": _svg,
    "pdf": _pdf,
    "png": _png,
    "html": _html,
    "htm": _html,
    "dot": _dot,
    "gv": _dot,
    "txt": _txt,
    "json": _json,
    "onnx": _onnx,
    "modelexplorer.json": _model_explorer,
}
"""Who writes each format of the table."""
