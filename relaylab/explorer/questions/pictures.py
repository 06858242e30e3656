"""Questions with pictures or texts of the program as answers: a frame, what differs between two, the whole pipeline."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from relaylab import viz
from relaylab.explorer.heat import BY, heat_of
from relaylab.explorer.question import HELD, Frame, question
from relaylab.explorer.scenes import GraphScene
from relaylab.explorer.session import Session
from relaylab.ir import Expr
from relaylab.study.stage_text import TextRow, text_rows
from relaylab.viz.diffs.difference import BY_TRAIL
from relaylab.viz.write.html import SceneData, scene_data


class PictureScenes(TypedDict):
    """One scene, or two beside each other; how many parts have each role; groups as id, title, kind, parent."""

    scenes: list[GraphScene]
    roles: dict[str, int]
    edges: int
    groups: list[tuple[str, str, str, str]]
    note: NotRequired[str]


@question(saved=HELD)
def picture(
    session: Session, before: Frame, after: Frame, style: Literal["merged", "both"] = "merged", closed: str = ""
) -> PictureScenes:
    """The picture of a frame, or the difference of two; `closed` names folded groups, one a line; "×": all repeats."""
    old, new = session.frames.views[before], session.frames.views[after]
    scene, groups = session.scenes.scene, [(g.id, g.title, g.kind, g.parent) for g in new.groups]
    if old is new:
        return {"scenes": [scene(new, closed, ("one", after))], "roles": {}, "edges": 0, "groups": groups}
    difference = viz.Difference(old, new, BY_TRAIL)
    key = (style, before, after)
    if style == "both":
        scenes = [scene(side, closed, (*key, k)) for k, side in enumerate(difference.sides)]
    else:
        scenes = [scene(difference.merged, closed, key)]
    return {"scenes": scenes, "roles": difference.counts, "edges": difference.changed_edges, "groups": groups}


class TextRows(TypedDict):
    """Lines as mark, text and node; the mark ⋮ stands for that many equal lines."""

    rows: list[TextRow]


@question(saved=HELD)
def text(session: Session, before: Frame, after: Frame) -> TextRows:
    """The difference of two frames as text, line by line; of a frame with itself all its lines."""
    ids = session.frames.ids

    def name(node: Expr | None, old: bool) -> str:
        return ids[before if old else after].get(node, "") if node is not None else ""

    return {"rows": text_rows(session.frames.printed(before), session.frames.printed(after), name)}


class HeatMap(TypedDict):
    """A picture whose cells have the id `frame:row`."""

    scene: SceneData


@question(saved=lambda session: [(by,) for by in BY])
def heat(session: Session, by: Literal["function", "operator"] = "function") -> HeatMap:
    """The heat map of the whole pipeline: how many nodes of each row each pass changed."""
    return {"scene": scene_data(heat_of(session.frames, by).scene)}
