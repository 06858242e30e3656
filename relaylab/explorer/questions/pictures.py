"""Questions with pictures or texts of the program as answers: a frame, what differs between two, the whole pipeline."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Hashable
from typing import Literal, NotRequired, TypedDict

from relaylab import viz
from relaylab.explorer.heat import BY, heat_of
from relaylab.explorer.question import HELD, Frame, question
from relaylab.explorer.scenes import CHANGES, GraphScene, drawing
from relaylab.explorer.session import Session
from relaylab.ir import Expr
from relaylab.study.stage_text import TextRow, text_rows
from relaylab.support.formats import FORMATS, format_of
from relaylab.viz.diffs.difference import BY_TRAIL
from relaylab.viz.selection.changes import STRETCH
from relaylab.viz.write.formats import data
from relaylab.viz.write.html import SceneData, scene_data


class PictureScenes(TypedDict):
    """One scene, or two beside each other; how many parts have each role; groups as id, title, kind, parent.

    `whole` is how many nodes there are where only what changed is shown.
    """

    scenes: list[GraphScene]
    roles: dict[str, int]
    edges: int
    groups: list[tuple[str, str, str, str]]
    note: NotRequired[str]
    whole: NotRequired[int]


@question(saved=HELD)
def picture(
    session: Session, before: Frame, after: Frame, style: Literal["merged", "both"] = "merged", closed: str = ""
) -> PictureScenes:
    """The picture of a frame, or the difference of two; `closed` names folded groups, one a line.

    Among them "×" means all repeats, "Δ" all that is far from every change (not beside each other), "+" before an id
    that it is shown, "→" that the picture runs from left to right.
    """
    old, new = session.frames.views[before], session.frames.views[after]
    groups = [(g.id, g.title, g.kind, g.parent) for g in new.groups]
    difference = viz.Difference(old, new, BY_TRAIL)
    closed = _closed(closed, style)
    scenes = [session.scenes.scene(view, closed, key) for view, key in _seen(difference, before, after, style)]
    if old is new:
        return {"scenes": scenes, "roles": {}, "edges": 0, "groups": groups}
    edges = difference.changed_edges
    found: PictureScenes = {"scenes": scenes, "roles": difference.counts, "edges": edges, "groups": groups}
    if any(name.startswith(STRETCH) for drawn in scenes for name, _ in drawn["nodes"]):
        found["whole"] = len(difference.merged.nodes)
    return found


def _closed(closed: str, style: Literal["merged", "both"]) -> str:
    """What is folded: two pictures beside each other are whole, so that one finds everything on both."""
    return closed if style == "merged" else "\n".join(name for name in closed.split("\n") if name != CHANGES)


def _seen(
    difference: viz.Difference, before: int, after: int, style: Literal["merged", "both"]
) -> list[tuple[viz.View, Hashable]]:
    """The views that a picture shows, each with what names it."""
    if difference.before is difference.after:
        return [(difference.after, ("one", after))]
    if style == "both":
        return [(side, (style, before, after, k)) for k, side in enumerate(difference.sides)]
    return [(difference.merged, (style, before, after))]


class PictureFormats(TypedDict):
    """The suffixes of the files that a picture can be, each with what it is."""

    formats: list[tuple[str, str]]


@question()
def formats(session: Session) -> PictureFormats:
    """What the picture of a stage can be saved as."""
    return {"formats": [(form.suffix, form.about) for form in FORMATS.values() if not form.alias]}


class PictureFile(TypedDict):
    """The bytes of a file in base64."""

    data: str


@question()
def picture_file(
    session: Session, before: Frame, after: Frame, style: Literal["merged", "both"], closed: str, form: str
) -> PictureFile:
    """What `picture` shows as a file of a format; both sides are two pages where it has pages, else one picture."""
    form = format_of(f"picture.{form}")
    difference = viz.Difference(session.frames.views[before], session.frames.views[after], BY_TRAIL)
    shown = _seen(difference, before, after, "merged" if FORMATS[form].single else style)
    closed = _closed(closed, style)
    arranged = [session.scenes.arranged(view, closed, key) for view, key in shown]
    drawn = [viz.Picture(view, drawing(closed), seed=seed) for view, seed in arranged]
    made = data(drawn, form, session.program.name, {})
    return {"data": b64encode(made.encode() if isinstance(made, str) else made).decode()}


class TextRows(TypedDict):
    """Lines as mark, text and node; the mark ⋮ stands for that many equal lines."""

    rows: list[TextRow]


@question(saved=HELD)
def text(session: Session, before: Frame, after: Frame) -> TextRows:
    """The difference of two frames as text, line by line; of a frame with itself all its lines."""
    ids = session.frames.ids[after], session.frames.ids[before]

    def name(node: Expr | None, old: bool) -> str:
        return ids[old].get(node, "") if node is not None else ""

    return {"rows": text_rows(session.frames.printed(before), session.frames.printed(after), name)}


class HeatMap(TypedDict):
    """A picture whose cells have the id `frame:row`."""

    scene: SceneData


@question(saved=lambda session: [(by,) for by in BY])
def heat(session: Session, by: Literal["function", "operator"] = "function") -> HeatMap:
    """The heat map of the whole pipeline: how many nodes of each row each pass changed."""
    return {"scene": scene_data(heat_of(session.frames, by).scene)}
