"""The difference of two stages of a program: as one picture, side by side, as text, and in numbers.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from relaylab.ir import Expr, Function, IRModule
from relaylab.ir.trail import Trail
from relaylab.support.errors import RelayError
from relaylab.support.words import counted
from relaylab.transform.engine.history import Tracker
from relaylab.transform.engine.infer_type import InferType
from relaylab.viz.diffs import textdiff
from relaylab.viz.diffs.roles import Roles
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.draw.from_ir import ViewOptions, view
from relaylab.viz.graph.align import align
from relaylab.viz.graph.identity import Identities, Origins
from relaylab.viz.graph.view import ROLES, View
from relaylab.viz.picture import Picture, save, split_options
from relaylab.viz.scene.scene import Scene, beside
from relaylab.viz.write.html import bundle

Program = IRModule | Expr | View
BY_TRAIL = "compared by provenance"
BY_STRUCTURE = "compared by structure: no trail of passes was given"


@dataclass(frozen=True)
class Difference:
    """Two views with common ids and what changed between them; shows itself in a notebook, saves itself."""

    before: View
    after: View
    how: str = ""
    texts: tuple[str, str] = ("", "")
    options: DrawOptions = field(default_factory=DrawOptions)
    style: str = "merged"

    @cached_property
    def roles(self) -> Roles:
        """The roles of all parts."""
        return Roles(self.before, self.after)

    @cached_property
    def merged(self) -> View:
        """One view with everything: what was removed is drawn as a ghost; a note says how many boxes dissolved."""
        made = self.roles.merged()
        dissolved = self.roles.counts["removed"] - sum(p.role == "removed" for p in (*made.nodes, *made.groups))
        told = f"{counted(dissolved, 'group')} dissolved" if dissolved else ""
        return replace(made, notes=tuple(filter(None, (told, self.how))))

    @cached_property
    def sides(self) -> tuple[View, View]:
        """The views before and after, each with roles."""
        return self.roles.sides()

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes and groups have each role; `sides` has what was merged before, with which all parts add up.

        Before: the same, changed, moved, merged, removed. After: as many the same, changed and moved; merged, added.
        """
        return {role: self.roles.counts[role] for role in ROLES if self.roles.counts[role]}

    @property
    def changed_edges(self) -> int:
        """How many edges are new or gone."""
        return sum(1 for e in self.merged.edges if e.role)

    @property
    def text(self) -> str:
        """The changed lines of the printed programs, with the left side's names of temporaries."""
        return textdiff.unified(*self.texts)

    @cached_property
    def _seed(self) -> Mapping[str, float]:
        return draw(self.before, self.options).seed

    @cached_property
    def scene(self) -> Scene:
        """The picture, `merged` or `both` sides beside each other."""
        if self.style == "merged":
            return self.picture.scene
        left, right = self.sides
        drawn = draw(replace(left, title=left.title or "before"), self.options)
        return beside(drawn, draw(replace(right, title=right.title or "after"), self.options, drawn.seed))

    def side_by_side(self) -> Difference:
        """The same difference, drawn as two pictures beside each other."""
        return replace(self, style="both")

    @property
    def view(self) -> View:
        """The view that files of the formats dot, txt and json hold: the merged one."""
        return self.merged

    @property
    def picture(self) -> Picture:
        """The merged picture, laid out so that what is kept stays where it was before."""
        return Picture(self.merged, self.options, seed=self._seed)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture in the format that the suffix of `path` names."""
        return save(self, path, **options)

    def __repr__(self) -> str:
        same = "nothing changed" if self.texts[0] == self.texts[1] else "nothing that is drawn changed"
        parts = ", ".join(f"{n} {role}" for role, n in self.counts.items()) or same
        return f"<difference: {parts}; {counted(self.changed_edges, 'edge')}; {self.how}>"

    def __str__(self) -> str:
        return self.text or "nothing changed"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, repr(self))


def diff(
    before: IRModule | Expr | View, after: IRModule | Expr | View, trail: Trail | Origins | None = None, **options: Any
) -> Difference:
    """The difference of two programs (or views).

    `trail` is what a pass run or a pipeline kept: a `Trail`, `Stage` or `History` from `before` to `after`; without it
    the two are aligned by structure, and the picture says so. Options are those of `show`, and `style`: merged, both.
    """
    style = options.pop("style", "merged")
    of_ir, drawn, _ = split_options(options, {"title"})
    title = options.get("title", "")
    if isinstance(before, View) or isinstance(after, View) or trail is None:
        before, after = _typed_alike(before, after)
        first = before if isinstance(before, View) else view(before, ViewOptions(**of_ir))
        second = after if isinstance(after, View) else view(after, ViewOptions(**of_ir), title=title)
        second = _renamed(first, second)
        return Difference(first, second, BY_STRUCTURE, _texts(before, after), DrawOptions(**drawn), style)
    identities = Identities()
    first = view(before, ViewOptions(**of_ir), identities)
    identities.follow(_relation(before, after, trail))
    second = view(after, ViewOptions(**of_ir), identities, title)
    return Difference(first, second, BY_TRAIL, _texts(before, after), DrawOptions(**drawn), style)


def _typed_alike(before: Program, after: Program) -> tuple[Program, Program]:
    """Two modules of which one has no types yet, which is no difference: both with types if they have any."""
    known = [_typed(m) if isinstance(m, IRModule) else None for m in (before, after)]
    if {True, False} != set(known):
        return before, after
    try:
        return _inferred(before), _inferred(after)
    except RelayError:
        return before, after


def _inferred(program: Program) -> Program:
    return InferType()(program) if isinstance(program, IRModule) and not _typed(program) else program


def _typed(mod: IRModule) -> bool:
    return all(f.body.inferred is not None for f in mod.functions.values() if isinstance(f, Function))


def _relation(before: Program, after: Program, trail: Trail | Origins) -> Trail | Origins:
    """What answers `parents(node)`: a bare trail is completed by what the two modules are."""
    if isinstance(trail, Trail) and isinstance(before, IRModule) and isinstance(after, IRModule):
        return _Parents(Tracker(before, after, trail))
    return trail


@dataclass(frozen=True)
class _Parents:
    tracker: Tracker

    def parents(self, node: Expr) -> tuple[Expr, ...]:
        return self.tracker.backward(node)

    def became(self, node: Expr) -> Expr | None:
        return self.tracker.forward(node)


def _renamed(before: View, after: View) -> View:
    """`after` with the ids of its counterparts in `before`, and ids of its own for the rest."""
    ids = dict(align(before, after))
    taken = before.node_by_id.keys() | before.group_by_id.keys()
    for part in (*after.nodes, *after.groups):
        if part.id not in ids:
            ids[part.id] = part.id if part.id not in taken else f"{part.id}'"
    return after.renamed(ids)


def _texts(before: Program, after: Program) -> tuple[str, str]:
    return "" if isinstance(before, View) else str(before), "" if isinstance(after, View) else str(after)
