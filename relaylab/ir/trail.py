"""The trail of a pass run: what became of every node, and where every new node came from.

The engine keeps it, not the author of a pass: the rewriting kernel (`visit.rewrite`) and the
rule engine record into the trail that is open, and a node built while one is open inherits
the place in the source (span) of the node that is being rewritten.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from relaylab.support.source import AnySpan, SourceName, Span, readable

if TYPE_CHECKING:
    from relaylab.ir.expr import Expr

E = TypeVar("E", bound="Expr")


@dataclass(frozen=True, slots=True)
class Step:
    """One rewrite inside a pass: the rule that fired, its source line, what it replaced by what, how long it took.

    `by` is the rule or callback itself, `match` how its pattern fitted (`transform.pattern.match.Match`).
    """

    rule: str
    location: str
    before: Expr
    after: Expr
    seconds: float = 0.0
    note: str = ""
    by: object = None
    match: object = None


@dataclass(slots=True, eq=False)
class Trail:
    """What one run of one pass did; nodes are compared by identity.

    `became` maps an old node to what stands in its place, `parents` a new node to the ordered set of
    old ones that it was made from, `steps` lists the rewrites that fired. One that is not `kept` only gives new nodes
    their places: nobody will ask for the rest.
    """

    name: str = ""
    kept: bool = True
    became: dict[Expr, Expr] = field(default_factory=lambda: {})
    parents: dict[Expr, dict[Expr, None]] = field(default_factory=lambda: {})
    steps: list[Step] = field(default_factory=lambda: [])
    site: Expr | None = None

    def record(self, old: Expr, new: Expr) -> None:
        """`new` stands where `old` stood."""
        if old is new or not self.kept:
            return
        self.became[old] = new
        known = self.parents.get(new)
        if known is None:
            self.parents[new] = {old: None}
        else:
            known[old] = None

    def derive(self, new: Expr, olds: Iterable[Expr]) -> None:
        """`new` was made from `olds` (in addition to what is known)."""
        if not self.kept:
            return
        known = self.parents.setdefault(new, {})
        for old in olds:
            if old is not new:
                known[old] = None

    def fired(self, step: Step) -> None:
        """A rule replaced `step.before` by `step.after`."""
        if self.kept:
            self.steps.append(step)
            self.record(step.before, step.after)


_open: ContextVar[Trail | None] = ContextVar("relaylab_trail", default=None)


def current_trail() -> Trail | None:
    """The trail of the pass that runs, if one does."""
    return _open.get()


def kept_trail() -> Trail | None:
    """The trail that is being kept, if any."""
    trail = _open.get()
    return trail if trail is not None and trail.kept else None


@contextmanager
def recording(trail: Trail) -> Generator[Trail, None, None]:
    """Keep `trail` while the block runs; the outer one, if any, rests."""
    token = _open.set(trail)
    try:
        yield trail
    finally:
        _open.reset(token)


@contextmanager
def unrecorded() -> Generator[None, None, None]:
    """Keep no trail while the block runs: for work whose result is only looked at."""
    token = _open.set(None)
    try:
        yield
    finally:
        _open.reset(token)


@contextmanager
def made_from(*olds: Expr) -> Generator[None, None, None]:
    """Nodes that the block builds come from `olds`: their spans are inherited. For hand-written passes."""
    trail = _open.get()
    if trail is None or not olds:
        yield
        return
    before, trail.site = trail.site, olds[0]
    try:
        yield
    finally:
        trail.site = before


def derived(new: E, *olds: Expr) -> E:
    """Note in the open trail that `new` stands in the place of `olds`; returns `new`."""
    trail = _open.get()
    if trail is not None and trail.kept:
        for old in olds:
            if old is not new:
                trail.became[old] = new
        trail.derive(new, olds)
    return new


_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # not resolved: the names of code objects are not either
_NETWORKS = tuple(os.path.join(_PACKAGE, room, "") for room in ("zoo", "bench"))
_LAYERS = os.path.join(_PACKAGE, "zoo", "layers.py")
_places: dict[tuple[str, int], Span] = {}


@cache  # asked for several frames at every new node, of a few hundred files
def is_inner(filename: str) -> bool:
    """Whether code of this file builds nodes for others: all of the package, except where networks are written."""
    if not filename.startswith(f"{_PACKAGE}{os.sep}"):
        return False
    return filename == _LAYERS or not filename.startswith(_NETWORKS)


def default_span() -> AnySpan | None:
    """Where a node built now comes from: the node being rewritten, or the caller's line of Python."""
    trail = _open.get()
    if trail is not None:
        return trail.site.span if trail.site is not None else None
    # from the caller of the node's constructor on; `inspect.stack` would read the source of every frame
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    key = (frame.f_code.co_filename, frame.f_lineno)
    if key not in _places:
        _places[key] = Span(SourceName(readable(key[0])), key[1], key[1], 1, 1)
    return _places[key]
