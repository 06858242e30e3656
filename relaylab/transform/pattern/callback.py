"""Rewriting with callbacks, the classic interface: subclass `DFPatternCallback`, call `rewrite`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from relaylab.ir import Expr, IRModule, structural_equal, walk
from relaylab.ir import rewrite as rebuild_all
from relaylab.ir.node import expect
from relaylab.ir.trail import Step, kept_trail
from relaylab.support.errors import RelayError, RelayTypeError, kind_of
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.pattern.group import PatternGroup, groups
from relaylab.transform.pattern.match import Match
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.tried import tried

LIMIT = 100


class DFPatternCallback:
    """A pattern and what to put in the place of its matches.

    Set `self.pattern` in `__init__` and override `callback`. With `require_type` the types of the
    expression are inferred before matching; with `rewrite_once` there is one round only.
    """

    pattern: DFPattern | None = None
    require_type = rewrite_once = False  # also of a subclass that does not call `super().__init__()`

    def __init__(self, require_type: bool = False, rewrite_once: bool = False):
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """`expr` with every match replaced."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, Sequence[Expr]]) -> Expr:
        """What replaces a match: `pre` is its root as it was, `post` with everything below rewritten."""
        name = type(self).__name__
        raise RelayTypeError(
            f"{name} does not say what replaces a match",
            code="pattern.no-callback",
            help="override `callback(self, pre, post, node_map)`",
        )


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr, mod: IRModule | None = None
) -> Expr:
    """`expr` with the callbacks applied, one after the other, round after round, until nothing changes.

    `RelayError` after 100 applications, or when more matches were replaced than 100 for each node of `expr` (10,000 in
    a small one): callbacks undo each other's work, or make more of what they match.
    """
    expect(expr, Expr, "what is rewritten")
    listed = (callbacks,) if isinstance(callbacks, DFPatternCallback) else tuple(callbacks)
    tried(listed)
    count, most = 0, LIMIT * max(100, sum(1 for _ in walk((expr,))))
    while listed:
        last = expr
        active = []
        for callback in listed:
            before = expr
            expr, fired = _apply(callback, expr, mod)
            active += [type(callback).__name__] if expr is not before else []
            count, most = count + 1, most - fired
        if expr is last or structural_equal(last, expr) or all(c.rewrite_once for c in listed):
            break
        if count >= LIMIT or most < 0:
            raise endless(active, count)
    return expr


def endless(active: Sequence[str], rounds: int = LIMIT) -> RelayError:
    """The error for rewriting that does not come to rest, naming what still fires."""
    names = ", ".join(dict.fromkeys(active))
    text = f"rewriting does not end: after {rounds} rounds these still change the program: {names}"
    return RelayError(
        text, code="rewrite.endless", help="their results match again; make a rule's condition exclude its own result"
    )


def _apply(callback: DFPatternCallback, expr: Expr, mod: IRModule | None) -> tuple[Expr, int]:
    """`expr` with the matches of a callback replaced, and how many there were."""
    if callback.pattern is None:
        raise RelayTypeError(
            f"{type(callback).__name__} has no pattern", code="pattern.none", help="set self.pattern in __init__"
        )
    if callback.require_type:
        expr = typed(expr, mod)
    found = {g.root: g for g in groups(callback.pattern, expr)}
    if not found:
        return expr, 0
    memo: dict[Expr, Expr] = {}
    new = rebuild_all(
        expr, lambda new, old: _replace(callback, found[old], new, memo) if old in found else new, memo=memo
    )
    return new, len(found)


class _NodeMap(dict[DFPattern, list[Expr]]):
    """What the parts of a pattern stand for; asking for another part says that it was not matched."""

    def __missing__(self, part: object) -> NoReturn:
        raise RelayError(
            f"`{part!r}` stands for nothing here: the match has no such part",
            code="pattern.no-part",
            help="a part that is optional may be missing: ask `if self.part in node_map`",
        )


def _replace(callback: DFPatternCallback, group: PatternGroup, post: Expr, memo: dict[Expr, Expr]) -> Expr:
    now = _NodeMap((p, [memo.get(n, n) for n in nodes]) for p, nodes in group.match.node_map.items())
    now[group.match.pattern] = [post]
    after: Any = callback.callback(group.root, post, now)
    if not isinstance(after, Expr):
        name = type(callback).__name__
        raise RelayTypeError(
            f"{name}.callback returned {kind_of(after)}, not an expression",
            code="pattern.wrong-result",
            help="return what stands in place of the match; `post` leaves it as it is",
        )
    trail = kept_trail()
    if trail is not None and after is not post:
        match = Match(group.match.pattern, post, now)
        trail.fired(Step(type(callback).__name__, "", post, after, by=callback, match=match))
    return after
