"""What a saved page of the explorer holds: every stage, how any two differ, every node, and the machine code.

A page has each stage's picture, and for two stages the roles of their parts, which it paints on those pictures.
Merged pictures with what was removed in its place need the layout: they are drawn here, for neighbours first, until
there are enough. What is left out for its size is named in `missing`, in words that the page shows.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from relaylab import viz
from relaylab.explorer import questions
from relaylab.explorer.question import HELD, QUESTIONS
from relaylab.explorer.scenes import DRAWING
from relaylab.explorer.session import Session
from relaylab.explorer.wording import wording
from relaylab.lab.packing import Pictures, ValuePool
from relaylab.lab.page import page
from relaylab.study.exploration import Exploration
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayError
from relaylab.support.language import preferred
from relaylab.support.words import counted
from relaylab.transform import Pass
from relaylab.viz.draw.draw import draw
from relaylab.viz.graph.view import ROLES
from relaylab.viz.selection.changes import changes
from relaylab.viz.write import files

MOST_DRAWN = 1_500
"""Boxes in merged pictures: when there are so many, the other pairs of stages are shown side by side."""
MOST_NOTED = 400
"""Boxes of a stage up to which neighbours that lost nothing are drawn, with notes on the boxes; others are painted."""
MOST_COMPARED = 250_000
"""Boxes in compared stages: when there are so many, the other pairs are left out."""
MOST_PRINTED = 100_000
"""Lines in compared texts: when there are so many, the texts of the other pairs are left out."""
MOST_NODES = 20_000
"""Boxes in all stages together up to which what there is to read about every node is saved."""
MOST_LINES = 1000
"""Lines of LLVM IR and of assembly of a kernel that are saved."""
MOST_CODE = 80_000
"""Lines of LLVM IR and assembly in all."""
FACTS = (
    "title", "kind", "operator", "family", "type", "text", "names", "span", "group", "rows", "attrs", "operands",
    "figures", "cost", "doc", "reference", "values",
)  # fmt: skip
ALL_ROLES = ("", *ROLES)
MARKS = " +-⋮"
PANES = ("graph", "text", "both", "code", "several", "heat")
"""The panes that a page has."""


Doing = Callable[[str], None]
"""Is told what part of a page is being made."""


def snapshot(
    session: Session, choices: Mapping[str, Any] | None = None, doing: Doing = lambda part: None
) -> dict[str, Any]:
    """All that a saved page can be asked, as plain data; what is shared is stored once, see `packing`.

    `choices` are what the page shows at first (traits of the explorer, such as `after` or `views`).
    """
    with no_collection():
        found = Snapshot(session, doing).data()
    chosen = found["chosen"] | (choices or {})
    return found | {"chosen": chosen | {"pane": chosen["pane"] if chosen["pane"] in PANES else "graph"}}


def write(
    session: Session,
    path: str | Path,
    choices: Mapping[str, Any] | None = None,
    doing: Doing = lambda part: None,
    language: str = "",
) -> Path:
    """Write all that can be asked about a session as one page that needs neither kernel nor network; see `snapshot`.

    Its words are of a language, en or zh; of the environment's if that is not said.
    """
    language = language or preferred()
    data = snapshot(session, choices, doing)
    if table := wording(language):
        data["wording"] = table
    return files.write(path, page(data, session.program.name, language))


def save(
    exploration: Exploration,
    path: str | Path,
    passes: Iterable[Pass | str] | None = None,
    doing: Doing = lambda part: None,
    language: str = "",
) -> Path:
    """Write the explorer of a pipeline run as one page that needs neither kernel nor network; see `write`."""
    return write(Session(exploration, passes), path, doing=doing, language=language)


class Snapshot:
    """A session being written down."""

    def __init__(self, session: Session, doing: Doing = lambda part: None):
        self.session, self.frames, self.doing = session, session.frames, doing
        self.stops = [0, *self.frames.changing()]
        self.ids, self.facts, self.values, self.notes, self.lines = (
            ValuePool(),
            ValuePool(),
            ValuePool(),
            ValuePool(),
            ValuePool(),
        )
        self.pictures = Pictures(self.ids)
        self.missing: dict[str, str] = {}
        self.seeds: dict[int, Mapping[str, float]] = {}

    def data(self) -> dict[str, Any]:
        """All that the page holds."""
        pairs = self.pairs()
        stages = self.stages()
        return {
            "rows": self.rows(),
            "held": [q.name for q in QUESTIONS.values() if q.saved == HELD],
            "chosen": self.chosen(),
            "roles": ALL_ROLES,
            "fields": FACTS,
            "marks": MARKS,
            "stages": stages,
            "pairs": self.compared(pairs),
            "texts": self.texts(pairs),
            "code": self.code(stages),
            "answers": self.answers(),
            "missing": self.missing,
            "ids": self.ids.values,
            "facts": self.facts.values,
            "values": self.values.values,
            "notes": self.notes.values,
            "lines": self.lines.values,
            "cards": self.pictures.cards.values,
            "looks": self.pictures.looks.values,
            "labels": self.pictures.labels.values,
        }

    def rows(self) -> questions.passes.Rows:
        """The passes, and the figures that need no compiled code: a page has no others."""
        found = questions.passes.rows(self.session)
        return {**found, "figures": [f for f in found["figures"] if not f["measured"]]}

    def chosen(self) -> dict[str, Any]:
        """What a page shows at first: the pass that failed, or what the first did that changed something."""
        first = self.session.first
        return {
            "before": max(0, first - 1),
            "after": first,
            "selected": "",
            "compare": "merged",
            "pane": "graph",
            "overlays": list(self.session.overlays),
        }

    def pairs(self) -> list[tuple[int, int]]:
        """Any two stages, neighbours first, then the ends, then the nearer ones."""
        place = {stop: k for k, stop in enumerate(self.stops)}
        ends = (self.stops[0], self.stops[-1])
        return sorted(
            combinations(self.stops, 2),
            key=lambda p: (place[p[1]] - place[p[0]] > 1, p != ends, place[p[1]] - place[p[0]], p),
        )

    # -- stages ---------------------------------------------------------------------------------------

    def stages(self) -> dict[int, dict[str, Any]]:
        """Each stage: its picture, laid out to resemble the one before it, and its parts."""
        seed: Mapping[str, float] | None = None
        known = sum(len(self.frames.views[k].nodes) for k in self.stops) <= MOST_NODES
        if not known:
            self.missing["node"] = "too large for a page that tells about every node"
        out = {}
        for stop in self.stops:
            self.doing(f"stage {stop}")
            view = self.frames.views[stop]
            scene = draw(view, DRAWING, seed)
            seed = self.seeds[stop] = {**(seed or {}), **scene.seed}
            out[stop] = {
                "scene": self.pictures.put(scene),
                "parts": self.parts(stop, known),
                "groups": len(view.groups),
                "origins": self.origins(view),
            }
        return out

    def parts(self, stop: int, known: bool) -> list[int]:
        """Nodes and groups as `id, facts, story`."""
        view, found = self.frames.views[stop], []
        for part in (*view.nodes, *view.groups):
            facts = questions.nodes.node(self.session, stop, part.id)
            if not known:
                facts |= {"text": "", "values": [], "doc": "", "attrs": [], "operands": [], "story": []}
            found += [
                self.ids.put(part.id),
                self.facts.put([self.values.put(facts[name]) for name in FACTS]),
                self.values.put(facts["story"]),
            ]
        return found

    def origins(self, view: viz.View) -> dict[int, list[int]]:
        """What nodes were made from that is not the node of the same id."""
        made = ((n.id, [o for o in n.origins if o != n.id]) for n in view.nodes)
        return {self.ids.put(name): [self.ids.put(o) for o in origins] for name, origins in made if origins}

    # -- two stages -----------------------------------------------------------------------------------

    def compared(self, pairs: Collection[tuple[int, int]]) -> dict[str, Any]:
        """How any two stages differ: the roles of their parts, and the merged picture where there is room for it."""
        out: dict[str, Any] = {}
        drawn = seen = 0
        for k, (a, b) in enumerate(pairs):
            if k % 10 == 0:
                self.doing(f"differences {k} of {len(pairs)}")
            old, new = self.frames.views[a], self.frames.views[b]
            seen += len(old.nodes) + len(new.nodes)
            if seen > MOST_COMPARED:
                self.missing["picture"] = "too large for a page that compares any two stages"
                break
            difference = viz.Difference(old, new)
            found = out[f"{a} {b}"] = {
                "roles": difference.counts,
                "edges": difference.changed_edges,
                "sides": [self.roles(s) for s in difference.sides],
            }
            if k < len(self.stops) and (brief := changes(difference.merged)) is not difference.merged:
                found["brief"] = self.pictures.put(draw(brief, DRAWING))
                found["whole"] = len(difference.merged.nodes)
            noted = len(new.nodes) <= MOST_NOTED and b == self.stops[self.stops.index(a) + 1]
            if drawn < MOST_DRAWN and ("removed" in difference.counts or noted):
                drawn += len(difference.merged.nodes)
                found["merged"] = self.pictures.put(
                    draw(difference.merged, DRAWING, {**self.seeds[b], **self.seeds[a]})
                )
        return out

    def roles(self, view: viz.View) -> list[int]:
        """The parts that differ, as `id, role, note`."""
        found: list[int] = []
        for part in (*view.nodes, *view.groups):
            if part.role:
                found += [self.ids.put(part.id), ALL_ROLES.index(part.role), self.notes.put(part.note)]
        return found

    def texts(self, pairs: Collection[tuple[int, int]]) -> dict[str, list[int]]:
        """The text of each stage and the differences of two, as `line, mark`; runs of equal lines: `-number, mark`."""
        out: dict[str, list[int]] = {}
        printed = 0
        for a, b in (*((k, k) for k in self.stops), *pairs):
            printed += len(self.frames.printed(a).lines) + len(self.frames.printed(b).lines)
            if printed > MOST_PRINTED:
                self.missing["text"] = "too long for a page that compares any two texts"
                break
            out[f"{a} {b}"] = [
                n for row in questions.pictures.text(self.session, a, b)["rows"] for n in self._row(*row)
            ]
        return out

    def _row(self, mark: str, text: str | int, name: str, words: list[int]) -> tuple[int, int]:
        line = [text, self.ids.put(name) if name else -1, *([words] if words else [])]
        number = -text if isinstance(text, int) else self.lines.put(line)
        return number, MARKS.index(mark)

    # -- what else can be asked -----------------------------------------------------------------------

    def answers(self) -> dict[str, Any]:
        """Answers to the questions that are asked when the page is written, by question."""
        asked = [(q.name, *args) for q in QUESTIONS.values() if callable(q.saved) for args in q.saved(self.session)]
        return {"\n".join(map(str, question)): self.session.ask(*question) for question in asked}

    def code(self, stages: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
        """Each kernel once, at every level, and which one a part of a stage is in; the reason if there are none."""
        self.doing("code")
        try:
            names = self.session.kernels.names
            self.session.kernels.compiled  # noqa: B018 - compiles
        except RelayError as error:
            return {"error": f"no machine code: {str(error).splitlines()[0]}", "kernels": [], "homes": {}}
        kernels, numbers = [], {}
        homes: dict[int, list[int]] = {}
        left = MOST_CODE
        for stop, stage in stages.items():
            for number in stage["parts"][::3]:
                name = self.ids.values[number]
                function = self.session.story.fused(stop, name)
                kernel = names.get(function) if function is not None else None
                if kernel is None:
                    continue
                if kernel not in numbers:
                    numbers[kernel] = len(kernels)
                    kernels.append(self._kernel(questions.kernels.kernel(self.session, stop, name), left))
                    left -= sum(len(kernels[-1].get(key, ())) // 2 for key in ("llvm", "asm"))
                homes.setdefault(stop, []).extend((number, numbers[kernel]))
        return {"kernels": kernels, "homes": homes}

    def _kernel(self, found: Mapping[str, Any], left: int) -> dict[str, Any]:
        """A kernel whose lines are `line, part`; long listings end with a line that says how many more there are."""
        listing, most = dict(found), min(MOST_LINES, left)
        for key in ("llvm", "asm"):
            lines = listing.get(key, [])
            more = (
                [[f"… {counted(len(lines) - most, 'more line')}, left out of the saved page", -1]]
                if len(lines) > most
                else []
            )
            listing |= {key: [n for text, part in [*lines[:most], *more] for n in (self.lines.put([text, -1]), part)]}
        return listing
