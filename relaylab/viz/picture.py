"""The public functions `show` and `save`, and what they make: a picture."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, cast, overload

from relaylab.ir import Expr, IRModule
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.arrange import OPTIONS as SELECTING
from relaylab.viz.arrange import arranged
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.draw.from_ir import ViewOptions, view
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.view import View
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import files, plugins
from relaylab.viz.write.dot import dot_text, run_dot
from relaylab.viz.write.html import bundle, page
from relaylab.viz.write.pdf import pdf
from relaylab.viz.write.png import png
from relaylab.viz.write.svg import svg
from relaylab.viz.write.terminal import tree

FORMATS = ("svg", "pdf", "png", "html", "dot", "txt", "json")
ENGINES = ("builtin", "dot")


@dataclass(frozen=True)
class Picture:
    """A view with the way to draw it: shows itself in a notebook, saves itself by the suffix of a path."""

    view: View
    options: DrawOptions = field(default_factory=DrawOptions)
    engine: str = "builtin"
    seed: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise RelayValueError(f"`engine` cannot be {self.engine!r}; it is builtin or dot", code="viz.option")

    @cached_property
    def scene(self) -> Scene:
        """The drawn picture (built-in engine)."""
        return draw(self.view, self.options, self.seed)

    @cached_property
    def dot(self) -> str:
        """The Dot text."""
        return dot_text(self.view, direction=self.options.direction, types=self.options.types, attrs=self.options.attrs)

    @no_collection()
    def data(self, form: str, **options: Any) -> str | bytes:
        """The picture in one of `FORMATS`; `options` go to the writer (`paper=` for PDF, `scale=` for PNG and SVG)."""
        if self.engine == "dot" and form in ("svg", "pdf", "png"):
            return run_dot(self.dot, form)
        return _data([self], form, self.view.title or "relaylab", options)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture in the format that the suffix of `path` names."""
        return files.write(path, self.data(_form(path), **options))

    def __str__(self) -> str:
        return tree(self.view)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        if self.engine == "dot":
            return {"image/svg+xml": run_dot(self.dot, "svg").decode(), "text/plain": repr(self)}
        return bundle(self.scene, repr(self))

    def __repr__(self) -> str:
        return (
            f"<picture of {len(self.view.nodes)} nodes, {len(self.view.edges)} edges, {len(self.view.groups)} groups>"
        )


@dataclass(frozen=True)
class ScenePicture:
    """A picture that is drawn already and has no graph, such as the memory plan."""

    scene: Scene

    @property
    def view(self) -> View:
        """What graph formats would need."""
        raise RelayValueError(
            f"`{self.scene.title}` is no graph", code="viz.format", help="save it as .svg, .pdf, .png or .html"
        )

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture in the format that the suffix of `path` names."""
        return files.write(path, _data([self], _form(path), self.scene.title or "relaylab", options))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, repr(self))

    def __repr__(self) -> str:
        return f"<picture: {self.scene.title}>"


@overload
def show(program: Scene, **options: Any) -> ScenePicture: ...
@overload
def show(program: IRModule | Expr | View, **options: Any) -> Picture: ...
def show(program: IRModule | Expr | View | Scene, **options: Any) -> Picture | ScenePicture:
    """The picture of a module, function, expression, view or scene; as the last value of a cell it draws itself.

    Options: `title`; `params` (rows, nodes, hide), `inputs`, `texts`, `costs` (see `from_ir.ViewOptions`); `direction`
    (TB, LR), `types` (nodes, edges, both, none), `attrs` (changed, all, none), `caption`; `engine` (builtin, dot);
    `seed` (the `scene.seed` of an earlier picture to resemble); `identities` (shared by the stages of a pipeline).
    What of it, in this order: `overlay` (a figure such as "MACs", or a mapping from nodes to numbers), `fold` (repeated
    blocks as one card), `collapse` (group ids, a kind such as "primitive", or how many levels stay open), `select`
    (a query, see `viz.query`: what it means is marked), `focus` (ids or a query) with `hops`.
    """
    if isinstance(program, Scene):
        return ScenePicture(program)
    of_ir, drawn, rest = split_options(options, {"title", "identities", "engine", "seed", *SELECTING})
    title, identities = rest.pop("title", ""), rest.pop("identities", None)
    shown = (
        program if isinstance(program, View) else view(program, ViewOptions(**of_ir), identities or Identities(), title)
    )
    chosen = {name: rest.pop(name) for name in SELECTING if name in rest}
    return Picture(arranged(shown, **chosen), DrawOptions(**drawn), **rest)


def split_options(options: Mapping[str, Any], others: Collection[str]) -> tuple[dict, dict, dict]:
    """Options sorted into those of the view, those of the drawing, and `others`; others are refused."""
    of_ir, drawn = ({f.name for f in fields(kind)} for kind in (ViewOptions, DrawOptions))
    for name in options:
        if name not in of_ir | drawn | set(others):
            known = sorted(of_ir | drawn | set(others))
            raise RelayTypeError(
                f"there is no option `{name}`",
                code="viz.option",
                help=did_you_mean(name, known) or f"there are: {', '.join(known)}",
            )
    split = [{k: v for k, v in options.items() if k in names} for names in (of_ir, drawn, set(others))]
    return split[0], split[1], split[2]


def save(obj: object, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a program, a view, a scene, a picture or a list of them to `path`: .svg .pdf .png .html .dot .txt or .json.

    A list becomes the pages of a PDF or HTML document. `paper` (fit, a4, letter), `scale` and `doc_title` are
    for the writer, other options are those of `show`. Installed plotters write other suffixes (see `viz.plugins`).
    Raises `RelayValueError` for an unknown suffix or an unwritable path; a file is written whole or not at all.
    """
    form = _form(path)
    writer = {name: options.pop(name) for name in ("paper", "scale") if name in options}
    title = options.pop("doc_title", "")
    pictures = [_picture(o, options) for o in (obj if isinstance(obj, Sequence) else [obj])]
    if len(pictures) == 1 and isinstance(pictures[0], (Picture, ScenePicture)):
        return pictures[0].save(path, **writer)
    return files.write(path, _data(pictures, form, title or pictures[0].scene.title or "relaylab", writer))


def _picture(obj: object, options: Mapping[str, Any]) -> Any:
    """What has a scene and a view already, or the picture of a program."""
    if hasattr(obj, "scene") and hasattr(obj, "view"):
        return obj
    return show(cast("View", obj), **options)  # what is no program either is refused there


def _form(path: str | os.PathLike[str]) -> str:
    form = Path(path).suffix.lstrip(".").lower()
    if form not in FORMATS and form not in plugins.formats():
        raise RelayValueError(
            f"cannot tell the format of `{path}`: the suffix is {f'`.{form}`' if form else 'missing'}",
            code="viz.format",
            help=did_you_mean(form, FORMATS) or "use one of " + ", ".join(f".{f}" for f in FORMATS),
        )
    return form


def _data(pictures: Sequence[Any], form: str, title: str, options: Mapping[str, Any]) -> str | bytes:
    """The pictures in one file; formats that hold one picture refuse more."""
    if form not in FORMATS:
        return plugins.plotter(form)([p.view for p in pictures], title)
    match form:
        case "pdf":
            return pdf([p.scene for p in pictures], title=title, **_only(options, "paper"))
        case "html":
            return page([p.scene for p in pictures], title)
        case "txt":
            return "\n".join(tree(p.view) for p in pictures)
    if len(pictures) != 1:
        raise RelayValueError(
            f"a .{form} file holds one picture, not {len(pictures)}", code="viz.pages", help="save as .pdf or .html"
        )
    match form:
        case "svg":
            return svg(pictures[0].scene, **_only(options, "scale"))
        case "png":
            return png(pictures[0].scene, **_only(options, "scale"))
        case "dot":
            return dot_text(pictures[0].view, direction=getattr(pictures[0], "options", DrawOptions()).direction)
        case _:
            return pictures[0].view.to_json(indent=1) + "\n"


def _only(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: options[name]} if name in options else {}
