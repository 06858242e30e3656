"""Questions about the single rewrites of a pass: the list of them, one told whole, the next one at the same node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from relaylab.explorer.question import Index, question
from relaylab.explorer.session import Session
from relaylab.ir import Expr
from relaylab.study.rewriting.rewrites import Rewrite, followers
from relaylab.study.stage_text import TextRow
from relaylab.support.errors import RelayValueError
from relaylab.support.source import CELL, readable
from relaylab.viz.scene.scene import Scene
from relaylab.viz.selection.piece import Piece
from relaylab.viz.write.html import SceneData, scene_data

MOST_CODE = 60
"""Lines of a rule's or pass's Python that are shown."""
SAVED = 3
"""Rewrites of each rule of a pass that a saved page tells whole, and of each kind of change of other passes."""
SAVED_IN_ALL = 80


class RewriteRow(TypedDict):
    """One rewrite: the rule (or what a pass without rules did), the line of its source, the ids of what was replaced
    by what, and the number of the next rewrite of the pass at the same node, or -1.
    """

    rule: str
    at: str
    note: str
    us: float
    ids: list[str]
    next: int


class Steps(TypedDict):
    """The rewrites of a pass, in order."""

    steps: list[RewriteRow]


def _all(session: Session) -> Iterator[tuple[int]]:
    return ((k,) for k in range(len(session.pipeline.items)))


def _some(session: Session) -> Iterable[tuple[int, int]]:
    """The first rewrites of each rule of each pass."""
    found: list[tuple[int, int]] = []
    for k in range(len(session.pipeline.items)):
        seen: Counter[str] = Counter()
        for at, rewrite in enumerate(session.frames.rewrites(k)):
            seen[rewrite.rule] += 1
            if seen[rewrite.rule] <= SAVED:
                found.append((k, at))
    return found[:SAVED_IN_ALL]


@question(saved=_all)
def steps(session: Session, index: Index) -> Steps:
    """The single rewrites of a pass, or what a pass without rules touched, in order."""
    main, found = session.pipeline.segments[index].main, session.frames.rewrites(index)
    after = followers(found, main) if main is not None else []
    listed: list[RewriteRow] = [
        {
            "rule": r.rule,
            "at": r.location,
            "note": r.note,
            "us": r.seconds * 1e6,
            "ids": _ids(session, index, r),
            "next": following,
        }
        for r, following in zip(found, after)
    ]
    return {"steps": listed}


def _ids(session: Session, index: int, found: Rewrite) -> list[str]:
    """The ids of what was replaced and of what stands there now; empty where it is in neither program."""
    if found.where is not None:
        return [next(iter(found.where.before), ""), next(iter(found.where.after), "")]
    old, new, main = session.frames.ids[index], session.frames.ids[index + 1], session.pipeline.segments[index].main
    if main is None or found.before is None or found.after is None:
        return ["", ""]
    became = main.became(found.before)
    return [old.get(found.before, ""), new.get(found.after, "") or (new.get(became, "") if became else "")]


class RewriteAnswer(TypedDict):
    """One rewrite told whole: the pair of pictures, the names of the pattern as name, words and node, the changed
    lines, the Python of the rule or pass.
    """

    before: SceneData
    after: SceneData
    bindings: list[tuple[str, str, str]]
    rows: list[TextRow]
    code: str


@question(saved=_some)
def rewrite(session: Session, index: Index, at: int) -> RewriteAnswer:
    """Pattern and result of a rewrite as pictures, what the names stand for, the changed lines, the rule's Python."""
    found = _one(session, index, at)
    old, new = session.frames.ids[index], session.frames.ids[index + 1]
    left, right = found.pair
    before, after = found.scenes
    code = found.code.text.split("\n") if found.code is not None else []
    return {
        "before": _named(before, left, old),
        "after": _named(after, right, new),
        "bindings": [(b.name, b.words, old.get(b.node, "")) for b in found.bindings],
        "rows": found.rows,
        "code": "\n".join([*code[:MOST_CODE], *(["…"] if len(code) > MOST_CODE else [])]),
    }


def _named(scene: Scene, shown: Piece, ids: Mapping[Expr, str]) -> SceneData:
    """A small picture whose boxes have the ids of the large one, where they stand for nodes of it."""
    data = scene_data(scene)
    for figure in data["figures"]:
        if figure["kind"] == "node" and shown.nodes:
            node = shown.nodes.get(figure["id"])
            figure["id"] = ids.get(node, "") if node is not None else ""
    return data


def _one(session: Session, index: int, at: int) -> Rewrite:
    found = session.frames.rewrites(index)
    if not 0 <= at < len(found):
        name = session.pipeline.item(index).name
        raise RelayValueError(
            f"{name} made {len(found)} rewrites; there is none of index {at}", code="explorer.rewrite"
        )
    return found[at]


class Place(TypedDict):
    """Where code stands: the names of its file (whole, and from the home folder), or its cell; the first line."""

    files: list[str]
    cell: str
    line: int


@question()
def code_place(session: Session, index: Index, at: int) -> Place:
    """The file or cell that the rule of a rewrite stands in."""
    code = _one(session, index, at).code
    if code is None:
        raise RelayValueError("the code of this rule is not known", code="explorer.code")
    if (name := readable(code.file)).startswith(CELL):
        return {"files": [], "cell": name.removeprefix(CELL).rstrip("]"), "line": code.line}
    path, home = Path(code.file).resolve(), Path.home()
    short = [f"~/{path.relative_to(home).as_posix()}"] if path.is_relative_to(home) else []
    return {"files": [str(path), *short], "cell": "", "line": code.line}


class NextRewrite(TypedDict):
    """A pass and one of its rewrites; -1 if there is none."""

    index: int
    at: int


@question()
def next_rewrite(session: Session, index: Index, at: int) -> NextRewrite:
    """The next rewrite, of this pass or a later one, that touched what a rewrite left."""
    found, main = _one(session, index, at), session.pipeline.segments[index].main
    here = followers(session.frames.rewrites(index), main)[at] if main is not None else -1
    if here >= 0:
        return {"index": index, "at": here}
    node: Expr | None = session.frames.nodes[index + 1].get(_ids(session, index, found)[1])
    for k in range(index + 1, len(session.pipeline.segments)):
        if node is None:
            break
        for stage in session.pipeline.segments[k].stages:
            if node is not None and stage is session.pipeline.segments[k].main:
                number = _touching(session.frames.rewrites(k), node, session.frames.ids[k].get(node, ""))
                if number >= 0:
                    return {"index": k, "at": number}
            node = stage.became(node) if stage.changed and node is not None else node
    return {"index": -1, "at": -1}


def _touching(found: Sequence[Rewrite], node: Expr, name: str) -> int:
    """The first rewrite that touched a node."""
    hits = (k for k, r in enumerate(found) if node in r.touched or (r.where is not None and name in r.where.before))
    return next(hits, -1)
