"""The single rewrites of a pass, each told whole: pattern and result as a pair of small pictures, what the names of the
pattern stand for, the changed lines, the rule's own Python.

A pass that has no rules (fusion, layouts, what looks at types) shows what it touched in the same way: the nodes that
stood there, and those that were made from them.
"""

from __future__ import annotations

import base64
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from html import escape
from pathlib import Path

from relaylab import viz
from relaylab.ir import Constant, Expr, GlobalVar, Op, Type, Var
from relaylab.ir.trail import Step
from relaylab.study.definition import SourceCode, code_of
from relaylab.study.exploration import Exploration, explore
from relaylab.study.pipeline import Segment, passes_of
from relaylab.study.program import Loadable
from relaylab.study.stage_text import Constants, TextRow, parameter_names, plain_rows
from relaylab.support.source import python_place
from relaylab.support.words import counted
from relaylab.transform import Pass, Stage
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.pattern import DFPatternCallback
from relaylab.transform.pattern.match import Match
from relaylab.transform.rewriting.rules import Rule
from relaylab.viz.diffs.roles import Roles
from relaylab.viz.diffs.tokens import for_stream, html_lines
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.graph.annotate import texts
from relaylab.viz.graph.identity import Identities
from relaylab.viz.scene.scene import Scene, beside
from relaylab.viz.selection.minigraph import Pair, minigraph, pairs
from relaylab.viz.selection.piece import Cut, Holes, Piece, holes_of, matched, near, piece, words_of
from relaylab.viz.write.html import bundle
from relaylab.viz.write.svg import svg

MOST_TITLES = 3
"""Operators that the words about a pair name."""
MOST_SHOWN = 12
"""Rewrites that a notebook shows."""
DRAWING = DrawOptions(types="nodes", caption=False)


@dataclass(frozen=True)
class Binding:
    """A name of a pattern, and the node that it stands for."""

    name: str
    node: Expr
    words: str

    def __str__(self) -> str:
        return f"{self.name} = {self.words}"


@dataclass(frozen=True, eq=False)
class Rewrite:
    """One rewrite: the rule (or words for what a pass without rules did), the line of its source, what is replaced.

    `number` counts from 1; `touched` are the program nodes before it that the rule met, `where` the ids in the views
    around a pass without rules; `code` is the Python of the rule or pass. It shows itself in a notebook as the pair of
    pictures, and as text with the changed lines.
    """

    number: int
    rule: str
    location: str
    note: str
    seconds: float
    before: Expr | None
    after: Expr | None
    touched: tuple[Expr, ...]
    bindings: tuple[Binding, ...]
    code: SourceCode | None
    where: Pair | None
    make_pair: Callable[[], tuple[Piece, Piece]]

    @cached_property
    def pair(self) -> tuple[Piece, Piece]:
        """What stood there, and what stands there now."""
        return self.make_pair()

    @cached_property
    def rows(self) -> list[TextRow]:
        """The changed lines; equal ones are folded."""
        left, right = self.pair
        found = plain_rows(left.text, right.text, 0)
        before = self.lines_before
        return [("⋮", before, "", []), *found] if before else found

    @property
    def lines_before(self) -> int:
        """The lines of the program before the rewritten ones, as far as they are counted."""
        if self.before is None:
            return 0
        atoms = (Op, Var, Constant, GlobalVar)
        return sum(not isinstance(n, atoms) and n not in self.touched for n in near(self.before))

    @cached_property
    def scenes(self) -> tuple[Scene, Scene]:
        """The pair, drawn; the second resembles the first."""
        left, right = self.pair
        drawn = draw(left.view, DRAWING)
        return drawn, draw(right.view, DRAWING, drawn.seed)

    @property
    def scene(self) -> Scene:
        """The pair in one picture."""
        left, right = self.pair
        drawn = draw(left.view)
        return beside(drawn, draw(right.view, None, drawn.seed))

    @property
    def view(self) -> viz.View:
        """What graph formats hold: the result."""
        return self.pair[1].view

    @property
    def text(self) -> str:
        """The changed lines, equal ones as their number."""
        return "\n".join(
            f"  … {counted(int(text), 'equal line')}" if mark == "⋮" else f"{mark} {text}"
            for mark, text, _, _ in self.rows
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the pair of pictures in the format that the suffix of `path` names."""
        return viz.save(self, path)

    def __str__(self) -> str:
        head = "  ".join(filter(None, (f"{self.number}. {self.rule}", self.location, self.note)))
        return "\n".join([head, *(f"   {b}" for b in self.bindings), self.text])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, str(self))


class Rewrites(list[Rewrite]):
    """The rewrites of a pass: a list that shows itself as their pictures and changed lines."""

    def save(self, path: str | os.PathLike[str], *, paper: str = "fit") -> Path:
        """Write the pairs of pictures, one a page, in the format that the suffix of `path` names."""
        return viz.save(list(self), path, paper=paper)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "no rewrite"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        more = f"<p>… {len(self) - MOST_SHOWN} more</p>" if len(self) > MOST_SHOWN else ""
        shown = "".join(_html(r) for r in self[:MOST_SHOWN])
        return {"text/plain": for_stream(str(self), sys.stdout), "text/html": f"{shown or '<p>no rewrite</p>'}{more}"}


def _html(found: Rewrite) -> str:
    image = base64.b64encode(svg(found.scene).encode()).decode()
    code = "font-family:var(--jp-code-font-family,monospace)"  # converted notebooks give `pre` the letters of prose
    return (
        f"<p><b>{escape(found.rule)}</b> <code>{escape(found.location)}</code> {escape(found.note)}</p>"
        f'<img alt="{escape(found.rule)}" style="max-width:100%" src="data:image/svg+xml;base64,{image}">'
        f"<p>{'<br>'.join(escape(str(b)) for b in found.bindings)}</p>"
        f'<pre style="{code}">{html_lines(found.text)}</pre>'
    )


def rewrites(program: Loadable, what: Pass | str, first: str | Iterable[Pass | str] | None = None) -> Rewrites:
    """The single rewrites of a pass over a program (whatever `explore` takes).

    The pass runs where the default passes have it, else alone, or after the passes of `first`.
    """
    if first is None:
        run = explore(program)
        known = [k for k, item in enumerate(run.pipeline.items) if what in (item.name, item.text, item.made)]
        changing = [k for k in known if run.pipeline.segments[k].changed]
        if known:
            return Rewrites(of_segment(run.pipeline.segments[(changing or known)[0]], constants=_names(run)))
    run = explore(program, passes=[*(passes_of(first, 3) if first else ()), what])
    if run.history.error is not None:
        raise run.history.error
    return Rewrites(of_segment(run.pipeline.segments[-1], constants=_names(run)))


def _names(run: Exploration) -> Constants:
    return Constants(parameter_names(run.program.mod, run.pipeline.source))


def of_segment(
    segment: Segment, sides: tuple[viz.View, viz.View] | None = None, constants: Constants | None = None
) -> list[Rewrite]:
    """The rewrites of one pass of a pipeline; without rules what it touched, by the views around it, with roles.

    `constants` are the names of constants in texts.
    """
    main = segment.main
    if main is None or not segment.changed:
        return []
    name = (constants or Constants()).name
    if main.steps:
        told = Told(TypesInPass(main), name)
        return [_of_step(k, step, told) for k, step in enumerate(main.steps, 1)]
    before, after = sides or _sides(segment, name)
    code = _code(_maker(main.made))
    return [_of_pair(k, p, before, after, code) for k, p in enumerate(pairs(before, after), 1)]


# ---- what a rule did


class TypesInPass:
    """The types of nodes while a pass runs: of one that was just built that of the node that it stands for."""

    def __init__(self, stage: Stage):
        self.stood: dict[Expr, list[Expr]] = {}
        for old, new in (*stage.trail.became.items(), *((s.before, s.after) for s in stage.steps)):
            self.stood.setdefault(new, []).append(old)

    def __call__(self, node: Expr) -> Type | None:
        met, rim = {node}, [node]
        while rim:
            at = rim.pop()
            if (found := type_of(at)) is not None:
                return found
            rim += [old for old in self.stood.get(at, ()) if old not in met]
            met.update(rim)
        return None


@dataclass(frozen=True)
class Told:
    """How nodes of a pass are told: their types, and the names of constants."""

    type_of: TypesInPass
    name: Callable[[Constant], str]


def _of_step(number: int, step: Step, told: Told) -> Rewrite:
    found = step.match if isinstance(step.match, Match) else None
    holes = holes_of(found) if found is not None else {}
    inner = matched(found) if found is not None else {step.before}
    named = {n[0]: p.name for p, n in found.node_map.items() if p.name and n} if found is not None else {}
    code = _code(_maker(step.by))
    place = step.location or (python_place(code.file, code.line) if code else "")
    bindings = tuple(
        Binding(name, node, words_of(node, told.type_of(node), told.name))
        for node, name in {**named, **holes}.items()
        if not isinstance(node, Op)
    )
    pair = partial(_pieces, step, holes, inner, told)
    rest = (step.before, step.after, tuple(inner), bindings, code, None, pair)
    return Rewrite(number, step.rule, place, step.note, step.seconds, *rest)


def _pieces(step: Step, holes: Holes, inner: set[Expr], told: Told) -> tuple[Piece, Piece]:
    cut = Cut(holes, near(step.before), inner, told.type_of, told.name)
    return piece(step.before, cut, "before"), piece(step.after, cut, "after")


@lru_cache(maxsize=256)
def _code(maker: object) -> SourceCode | None:
    """The Python of a rule, callback or pass; a file is read once for the many rewrites of a rule."""
    return code_of(maker)


def _maker(made: object) -> object:
    """What has the code of a rule, callback or pass."""
    if isinstance(made, Rule):
        return made.build
    if isinstance(made, DFPatternCallback):
        return type(made)
    function = getattr(made, "pass_func", None)
    record = made.record if isinstance(made, Pass) else None
    return function or (record.maker if record is not None else None)


# ---- what a pass without rules touched


def _sides(segment: Segment, name: Callable[[Constant], str]) -> tuple[viz.View, viz.View]:
    """The views around a pass, with roles; a constant has one name in both."""
    identities = Identities()
    before = viz.view(segment.before, ViewOptions(texts=texts(segment.before, name)), identities)
    for stage in filter(lambda s: s.changed, segment.stages):
        identities.follow(stage)
    after = viz.view(segment.after, ViewOptions(texts=texts(segment.after, name)), identities)
    return Roles(before, after).sides()


def _of_pair(number: int, found: Pair, before: viz.View, after: viz.View, code: SourceCode | None) -> Rewrite:
    old = [before.node_by_id[name] for name in found.before]
    new = [after.node_by_id[name] for name in found.after]
    kernel = next((g for n in new[:1] for g in after.around(n.group) if g.kind == "primitive" and g.role), None)
    came = f"one kernel: {_titles(new)}" if kernel is not None else _titles(new)
    words = f"{_titles(old)} → {came}" if old and new else f"{_titles(old)} removed" if old else f"{came} added"
    if _titles(old) == came:
        words = f"{came} changed"
    notes = (n.note for n in new if n.role == "changed" and not n.note.startswith("was "))
    place = python_place(code.file, code.line) if code else ""

    def pair() -> tuple[Piece, Piece]:
        return _shown(before, old), _shown(after, new)

    note = "; ".join(dict.fromkeys(filter(None, notes)))
    return Rewrite(number, words, place, note, 0.0, None, None, (), (), code, found, pair)


def _shown(view: viz.View, nodes: Sequence[viz.Node]) -> Piece:
    text = "\n".join(n.text for n in nodes if n.text)
    return Piece(minigraph(view, [n.id for n in nodes]), {}, text)


def _titles(nodes: Sequence[viz.Node]) -> str:
    """Nodes by their titles; fields of what is named too say nothing more."""
    counts = Counter(n.title for n in nodes if n.kind != "projection") or Counter(n.title for n in nodes)
    told = [title if n == 1 else f"{n} {title}" for title, n in counts.items()]
    return ", ".join(told[:MOST_TITLES]) + (" …" if len(told) > MOST_TITLES else "")


# ---- the next one at the same node


def followers(found: Sequence[Rewrite], stage: Stage) -> list[int]:
    """For each rewrite of a pass the index of the next one that touched what it left; -1 for none."""
    met: dict[Expr, list[int]] = {}
    for k, rewrite in enumerate(found):
        for node in rewrite.touched:
            met.setdefault(node, []).append(k)
    return [min(_later(met, way(rewrite, stage), k), default=-1) for k, rewrite in enumerate(found)]


def way(rewrite: Rewrite, stage: Stage) -> list[Expr]:
    """What a rewrite left, and what stood in its place later in the pass, in order."""
    at, found = rewrite.after, dict[Expr, None]()
    while at is not None and at not in found:
        found[at] = None
        at = stage.trail.became.get(at)
    return list(found)


def _later(met: dict[Expr, list[int]], nodes: Iterable[Expr], k: int) -> Iterator[int]:
    for node in nodes:
        places = met.get(node, [])
        at = bisect_right(places, k)
        yield from places[at : at + 1]
