"""Why a rewrite did not happen at a node: the test that failed first on the way that led furthest.

Nothing is decided here: the matcher, the rules and the grouping are asked the same questions as in a
rewrite, and what they answer is kept.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relaylab.ir import Expr, Function, GlobalVar, Op, post_order
from relaylab.ir.trail import unrecorded
from relaylab.support.errors import RelayError
from relaylab.transform.pattern import told
from relaylab.transform.pattern.callback import DFPatternCallback
from relaylab.transform.pattern.facts import Uses
from relaylab.transform.pattern.group import PatternGroup, group_of
from relaylab.transform.pattern.match import Match, Matcher, Miss, brief, pattern_nodes
from relaylab.transform.pattern.nodes import AltPattern, CallPattern, DFPattern, WildcardPattern
from relaylab.transform.rewriting.rules import Engine, Rule

Rewriting = Rule | DFPatternCallback | DFPattern


@dataclass(frozen=True)
class MatchStep:
    """One test of a matcher in words: the node that it looked at, and whether it held."""

    words: str
    node: Expr
    holds: bool = True

    def __str__(self) -> str:
        return f"{'✓' if self.holds else '✗'} {self.words}"


@dataclass(frozen=True)
class Reason:
    """What keeps a rule from firing at a node; `why` is empty if it fires. `at` is the node that did not fit.

    `near` is the share of the pattern's tests that held before the one that failed, 1 if all of it fits.
    `steps` is the way of the matcher: what it expected at which node, up to the test that failed.
    """

    rule: str
    location: str
    node: Expr
    why: str
    at: Expr
    near: float
    pattern: str = ""
    done: str = "it fires"
    steps: tuple[MatchStep, ...] = ()

    @property
    def fires(self) -> bool:
        """Whether the rule rewrites the node."""
        return not self.why

    def __str__(self) -> str:
        place = f"  {self.location}" if self.location else ""
        where = f" at {brief(self.node)}" if self.pattern else ""
        return f"{self.rule}{where}: {self.why or self.done}{place}"


class Explainer:
    """Asks rules about the nodes of one typed function."""

    def __init__(self, func: Expr):
        self.func = func
        self.order = {node: i for i, node in enumerate(post_order(func))}
        self.engine, self.uses = Engine(()), Uses(func)
        self.engine.prepare(func)

    def ask(self, rule: Rewriting, node: Expr) -> Reason:
        """Why a rule does not fire at a node, or that it does."""
        pattern = pattern_of(rule)
        matcher = Matcher(self.func, self.engine.types, keep_misses=True)
        matcher.uses = self.uses
        found = matcher.first(pattern, node)
        if found is None:
            return _reason(rule, node, *_furthest(matcher.misses or [], pattern, node))
        way = matcher.way()
        with unrecorded():
            why = self._refusal(rule, found, matcher)
        return _reason(rule, node, why, node, 1.0, way)

    def _refusal(self, rule: Rewriting, found: Match, matcher: Matcher) -> str:
        """Why a rule whose pattern fits does not fire; empty if it does."""
        if not isinstance(rule, Rule):
            group = group_of(found, matcher, self.order, set())
            return (
                group
                if isinstance(group, str)
                else self._unchanged(rule, group)
                if isinstance(rule, DFPatternCallback)
                else ""
            )
        shared = self.engine.shared(found)
        if shared:
            return f"interior node {brief(shared[0])} is used outside the match"
        if not rule.holds(found, self.engine.types):
            return f"the condition of {rule.name} does not hold for these nodes"
        after = rule.apply(found, self.engine.types)
        return f"{rule.name} gave no replacement" if after is None or after is found.root else ""

    @staticmethod
    def _unchanged(rule: DFPatternCallback, group: PatternGroup) -> str:
        try:
            after = rule.callback(group.root, group.root, group.match.node_map)
        except RelayError as error:
            return f"callback raised: {error.message}"
        return "callback gave the node back unchanged" if after is group.root else ""

    def nearest(self, rules: Iterable[Rewriting], nodes: Iterable[Expr] | None = None, most: int = 5) -> list[Reason]:
        """The rules and nodes that come nearest to fitting, what fires first; of all nodes if none are given."""
        chosen = (
            [n for n in self.order if not isinstance(n, (Function, GlobalVar, Op))] if nodes is None else list(nodes)
        )
        found = [self.ask(rule, node) for rule in rules for node in chosen]
        found.sort(key=lambda r: (r.fires, r.near), reverse=True)
        return found[:most]


def _reason(
    rule: Rewriting, node: Expr, why: str, at: Expr, near: float, way: Sequence[tuple[DFPattern, Expr]]
) -> Reason:
    location = rule.location if isinstance(rule, Rule) else ""
    steps = [MatchStep(words, n) for p, n in way if (words := told.met(p, n))]
    last = MatchStep(why or "all of the pattern fits, and the rule fires", at, not why)
    return Reason(title(rule), location, node, why, at, near, repr(pattern_of(rule)), steps=(*steps, last))


def title(rule: Rewriting) -> str:
    """The name of a rule, or what stands for one."""
    if isinstance(rule, Rule):
        return rule.name
    return type(rule).__name__ if isinstance(rule, DFPatternCallback) else f"pattern {rule!r}"


def pattern_of(rule: Rewriting) -> DFPattern:
    """The pattern of a rule or callback."""
    if isinstance(rule, DFPattern):
        return rule
    if rule.pattern is None:
        raise RelayError(f"{title(rule)} has no pattern", code="pattern.none", help="set self.pattern in __init__")
    return rule.pattern


def _furthest(
    misses: list[Miss], pattern: DFPattern, node: Expr
) -> tuple[str, Expr, float, Sequence[tuple[DFPattern, Expr]]]:
    """The first of the misses that had the most parts bound: why, where, how near it came, and its way."""
    best = max(misses, key=lambda m: len(m.way), default=Miss(pattern, node, f"{told.node(node)} does not fit", ()))
    size = _size(pattern, {best.pattern, *(p for p, _ in best.way)})
    return best.why, best.node, sum(_weight(p) for p, _ in best.way) / (size + 1), best.way


def _size(pattern: DFPattern, looked_at: set[DFPattern]) -> int:
    """How many tests a pattern makes; of alternatives those of the one that was looked at, or the fewer."""
    size: dict[DFPattern, int] = {}
    tried: dict[DFPattern, bool] = {}
    for p in pattern_nodes(pattern):
        parts = [q for q in p.parts() if q in size]  # a pattern that holds itself is counted once
        tried[p] = p in looked_at or any(tried[q] for q in parts)
        counts = [size[q] for q in parts]
        if isinstance(p, AltPattern):
            counts = [min([size[q] for q in parts if tried[q]] or counts)]
        size[p] = _weight(p) + sum(counts)
    return size[pattern]


def _weight(p: DFPattern) -> int:
    """1 for a part that not every node fits, and whose own parts do not say it all."""
    is_named_call = isinstance(p, CallPattern) and bool(p.op_name)
    return 0 if is_named_call or isinstance(p, (AltPattern, WildcardPattern)) else 1
