"""Questions about the pipeline: what each pass did in numbers and sentences, its options, edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypedDict

from relaylab import viz
from relaylab.explorer.narration import sentences
from relaylab.explorer.question import Frame, Index, question
from relaylab.explorer.session import Session
from relaylab.ir import IRModule
from relaylab.study.crash import message_of
from relaylab.study.pipeline import options_of
from relaylab.study.suggest import suggestions
from relaylab.support.errors import RelayValueError
from relaylab.transform import Stage
from relaylab.viz.graph.figure import FIGURES


class FigureData(TypedDict):
    """A figure that nodes can be coloured by; a ratio has no sum, a measured one needs compiled code."""

    name: str
    unit: str
    ratio: bool
    measured: bool


class Changes(TypedDict):
    """How many nodes and groups have each role, one table a pass."""

    roles: list[dict[str, int]]


class NestedPass(TypedDict):
    """A pass that another one ran or required."""

    name: str
    ms: float
    changed: bool


class PassRow(TypedDict):
    """What one pass did: operators that came and went, work and traffic more or less, functions that it changed; the
    error that stopped it, and the class of that error."""

    name: str
    text: str
    enabled: bool
    ran: bool
    changed: bool
    skipped: str
    ms: float
    ops: list[tuple[str, int]]
    macs: float
    bytes: float
    functions: list[str]
    steps: int
    error: str
    error_kind: str
    nested: list[NestedPass]


class Rows(TypedDict):
    """All passes; `start` are the operators of the program before them, `edits` how many passes were run so far,
    `functions` the most functions that the program has on its way."""

    title: str
    level: int
    frames: int
    functions: int
    start: dict[str, float]
    rows: list[PassRow]
    edits: int
    figures: list[FigureData]


@question()
def rows(session: Session) -> Rows:
    """The passes with what each did in numbers, the error that stopped them, the frames; the figures of the menu."""
    frames = session.frames
    return {
        "title": session.program.name + (" (edited)" if session.is_edited else ""),
        "level": session.opt_level,
        "frames": len(frames),
        "functions": max(len(mod.functions) for mod in frames.modules),
        "start": {**frames.totals(0), "operators": float(frames.operators(0).total())},
        "rows": [_row(session, k) for k in range(len(session.pipeline.items))],
        "edits": session.pipeline.runs,
        "figures": [
            {"name": f.name, "unit": f.unit, "ratio": f.ratio, "measured": f.measured}
            for f in FIGURES.values()
            if f.offered
        ],
    }


@question(saved=lambda session: [()])
def changes(session: Session) -> Changes:
    """What each pass did to nodes and groups: how many it added, removed, changed, moved, merged."""
    views = session.frames.views
    return {
        "roles": [
            {} if views[k] is views[k + 1] else viz.Difference(views[k], views[k + 1]).counts
            for k in range(len(views) - 1)
        ]
    }


def _row(session: Session, k: int) -> PassRow:
    item, segment, frames = session.pipeline.items[k], session.pipeline.segments[k], session.frames
    before, after = frames.operators(k), frames.operators(k + 1)
    old, new = frames.totals(k), frames.totals(k + 1)
    main = segment.main
    return {
        "name": item.name,
        "text": item.text,
        "enabled": item.enabled,
        "ran": segment.ran,
        "changed": segment.changed,
        "skipped": main.skipped if main else "",
        "ms": segment.seconds * 1e3,
        "ops": [(n, after[n] - before[n]) for n in sorted(before | after) if after[n] != before[n]],
        "macs": new["macs"] - old["macs"],
        "bytes": new["bytes"] - old["bytes"],
        "functions": _touched(segment.before, segment.after),
        "steps": len(main.steps) if main else 0,
        "error": message_of(segment.error) if segment.error is not None else "",
        "error_kind": type(segment.error).__name__ if segment.error is not None else "",
        "nested": _nested([*(s for s in segment.stages if s is not main), *(main.nested if main else [])]),
    }


def _touched(before: IRModule, after: IRModule) -> list[str]:
    """The functions that a pass changed, made or removed."""
    old, new = ({gv.name_hint: f for gv, f in mod.functions.items()} for mod in (before, after))
    return [n for n in sorted({*old, *new}) if old.get(n) is not new.get(n)]


def _nested(stages: Iterable[Stage]) -> list[NestedPass]:
    return [{"name": s.name, "ms": s.seconds * 1e3, "changed": s.changed} for s in stages]


class Words(TypedDict):
    """Sentences, the most important first."""

    sentences: list[str]


@question(saved=lambda session: [(k,) for k in range(1, len(session.frames))])
def words(session: Session, frame: Frame) -> Words:
    """What the pass before a frame did, in sentences."""
    return {"sentences": sentences(session.frames, frame) if frame else []}


class PassOptions(TypedDict):
    """The options of a pass as name, value, default (empty if it must be given), type and what it does, all as text."""

    name: str
    options: list[tuple[str, str, str, str, str]]


@question()
def options(session: Session, index: Index) -> PassOptions:
    """The options of the pass at an index, each with value, default, type and what it does as text."""
    item = session.pipeline.item(index)
    found = [(o.name, o.value, o.default, o.type, o.doc) for o in options_of(item.made)]
    return {"name": item.text.split("(")[0], "options": found}


class Copy(TypedDict):
    """The pipeline as text that makes it again."""

    python: str
    command: str


@question()
def copy(session: Session) -> Copy:
    """The pipeline as Python and as a command."""
    return {"python": session.pipeline.python(), "command": session.pipeline.command(session.program.name)}


Edit = Literal["toggle", "set", "move", "remove", "insert", "undo", "redo"]


@question()
def edit(session: Session, how: Edit, index: int, value: str | int | None = None) -> Rows:
    """Toggle, set, move, remove, insert a pass; undo or redo an edit. The new rows; what follows the edit runs."""
    pipeline = session.pipeline
    edits: dict[str, Callable[[], None]] = {
        "toggle": lambda: pipeline.toggle(index),
        "set": lambda: pipeline.set(index, str(value)),
        "move": lambda: pipeline.move(index, _place(value)),
        "remove": lambda: pipeline.remove(index),
        "insert": lambda: pipeline.insert(index, str(value)),
        "undo": pipeline.undo,
        "redo": pipeline.redo,
    }
    edits[how]()
    session.refresh()
    return rows(session)


def _place(value: str | int | None) -> int:
    if not isinstance(value, int):
        raise RelayValueError(f"a pass is moved to a place, not to {value!r}", code="explorer.argument")
    return value


class Suggested(TypedDict):
    """A pass that would change the program, and the operators that would come and go."""

    name: str
    summary: str
    ops: list[tuple[str, int]]
    ms: float


class SuggestedPasses(TypedDict):
    """The passes that would change the program, in the order of their table."""

    suggestions: list[Suggested]


@question()
def suggest(session: Session, frame: Frame) -> SuggestedPasses:
    """Which passes would change the program at a frame now."""
    return {
        "suggestions": [
            {"name": s.name, "summary": s.summary, "ops": sorted(s.delta.items()), "ms": s.seconds * 1e3}
            for s in suggestions(session.frames.modules[frame])
        ]
    }
