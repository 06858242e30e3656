"""The public functions `show` and `save`, and what they make: a picture."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, overload

from relaylab.ir import Constant, Expr, IRModule, Var
from relaylab.ir.node import expect
from relaylab.support.checked import checked
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.support.formats import format_of
from relaylab.support.table import did_you_mean
from relaylab.viz.arrange import OPTIONS as SELECTING
from relaylab.viz.arrange import arranged
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.draw.from_ir import ViewOptions, view
from relaylab.viz.draw.with_types import UNTYPED, with_types
from relaylab.viz.graph import annotate
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.view import View, view_display
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import files, formats, plugins
from relaylab.viz.write.dot import dot_text, run_dot
from relaylab.viz.write.html import bundle
from relaylab.viz.write.terminal import tree

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
        """The picture in a format of `support.formats`; `options` go to the writer (`paper=` for PDF, `scale=`)."""
        if self.engine == "dot" and form in ("svg", "pdf", "png"):
            return run_dot(self.dot, form)
        return formats.data([self], form, self.view.title or "relaylab", options)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture in the format that the suffix of `path` names."""
        return files.write(path, self.data(format_of(path, plugins.formats()), **options))

    def __str__(self) -> str:
        return tree(self.view)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        if self.engine == "dot":
            return {"image/svg+xml": run_dot(self.dot, "svg").decode(), "text/plain": repr(self)}
        return bundle(self.scene, repr(self))

    def __repr__(self) -> str:
        return repr(self.view).replace("<view", "<picture", 1)


@dataclass(frozen=True)
class ScenePicture(formats.Shapes):
    """A picture that is drawn already and has no graph, such as the memory plan."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture in the format that the suffix of `path` names."""
        return formats.save([self], path, self.scene.title or "relaylab", options)

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
    What of it, in this order: `overlay` (a figure such as "MACs", or a mapping from ids or nodes to numbers), `fold`
    (repeated blocks as one card), `collapse` (group ids, a kind such as "primitive", or how many levels stay open),
    `select` (a query, see `viz.query`: what it means is marked), `focus` (ids or a query) with `hops`.
    A program without types is drawn with those that are inferred, except with options that speak of its own nodes
    (`texts`, `costs`, `identities`, nodes in an `overlay`).
    """
    if isinstance(program, Scene):
        return ScenePicture(program)
    of_ir, drawn, rest = split_options(options, {"title", "identities", "engine", "seed", *SELECTING})
    title, identities = expect(rest.pop("title", ""), str, "the title of a picture"), rest.pop("identities", None)
    chosen = {name: rest.pop(name) for name in SELECTING if name in rest}
    values = chosen.get("overlay")
    by_node = isinstance(values, Mapping) and any(isinstance(key, Expr) for key in values)
    if by_node and not isinstance(program, View):
        identities = identities or Identities()  # which have the ids of the nodes that have values
    shown = program if isinstance(program, View) else _viewed(program, ViewOptions(**of_ir), identities, title)
    if by_node and identities is not None:
        chosen["overlay"] = _by_id(cast("Mapping[object, object]", values), identities)
    return Picture(arranged(shown, **chosen), DrawOptions(**drawn), **rest)


def _by_id(values: Mapping[object, object], identities: Identities) -> dict[object, object]:
    """Values with ids in place of nodes of the program; variables and constants may be rows, which have no colour."""
    ids = {expr: name for name, expr in identities.expressions().items()}
    there = {key: ids.get(key) if isinstance(key, Expr) else key for key in values}
    for key, name in there.items():
        if name is None and not isinstance(key, (Var, Constant)):
            what = f"the picture does not show this {type(key).__name__} of the values to lay over it"
            help = "give nodes of the program that is drawn: a pass makes new ones"
            raise RelayValueError(what, code="viz.unknown-node", help=help)
    return {name: values[key] for key, name in there.items() if name is not None}


def _viewed(program: IRModule | Expr, options: ViewOptions, identities: Identities | None, title: str) -> View:
    """The view of a program, with types where they can be found and nothing refers to its nodes as they are."""
    if identities is not None or options.texts is not None or options.costs is not annotate.cost:
        return view(program, options, identities, title)
    if not isinstance(program, (IRModule, Expr)):
        return view(program, options, None, title)  # refused there
    program, found = with_types(program)
    made = view(program, options, None, title)
    return made if found else replace(made, notes=(*made.notes, UNTYPED))


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


@checked
def save(obj: object, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a program, a view, a scene, a picture or a list of them to `path`, in the format of its suffix.

    The suffixes are those of `support.formats`: .svg .pdf .png .html .dot .txt .json .onnx (for Netron) and
    .modelexplorer.json; installed plotters write others (see `viz.plugins`). A list becomes the pages of a PDF or HTML
    document. `paper` (fit, a4, letter), `width` (of a PDF that fits, in millimetres), `scale` and `doc_title` are for
    the writer, other options are those of `show`.
    Raises `RelayValueError` for an unknown suffix or an unwritable path; a file is written whole or not at all.
    """
    format_of(path, plugins.formats())
    writer = {name: options.pop(name) for name in ("paper", "scale", "width") if name in options}
    title = options.pop("doc_title", "")
    pictures = [_picture(o, options) for o in (obj if isinstance(obj, Sequence) else [obj])]
    if not pictures:
        raise RelayValueError(f"there is no picture to write to `{path}`", code="viz.nothing")
    if len(pictures) == 1 and isinstance(pictures[0], (Picture, ScenePicture)):
        return pictures[0].save(path, **writer)
    return formats.save(pictures, path, title or pictures[0].scene.title or "relaylab", writer)


def _picture(obj: object, options: Mapping[str, Any]) -> Any:
    """What has a scene and a view already, or the picture of a program."""
    if hasattr(obj, "scene") and hasattr(obj, "view"):
        return obj
    return show(cast("View", obj), **options)  # what is no program either is refused there


def _shown(view: Any) -> dict[str, str]:
    return show(view)._repr_mimebundle_()


view_display.register(_shown)
