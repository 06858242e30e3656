"""Why a rewrite did not happen at a node: the test that failed first on the way that led furthest.

Nothing is decided here: the matcher, the rules and the grouping are asked the same questions as in a
rewrite, and what they answer is kept.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relaylab.ir import Expr, Function, GlobalVar, Op, post_order
from relaylab.ir.trail import unrecorded
from relaylab.support.errors import RelayError
from relaylab.transform.pattern.callback import DFPatternCallback
from relaylab.transform.pattern.facts import Uses
from relaylab.transform.pattern.group import PatternGroup, group_of
from relaylab.transform.pattern.match import Match, Matcher, Miss, brief, pattern_nodes
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.rewriting.rules import Engine, Rule

Rewriting = Rule | DFPatternCallback | DFPattern


@dataclass(frozen=True)
class Reason:
    """What keeps a rule from firing at a node; `why` is empty if it fires. `at` is the node that did not fit.

    `near` is the share of the pattern that had a node to stand for when the test failed, 1 if all of it fits.
    """

    rule: str
    location: str
    node: Expr
    why: str
    at: Expr
    near: float
    pattern: str = ""
    done: str = "it fires"

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
        pattern = _pattern(rule)
        matcher = Matcher(self.func, self.engine.types, keep_misses=True)
        matcher.uses = self.uses
        found = matcher.first(pattern, node)
        if found is None:
            return self._reason(rule, node, *_furthest(matcher.misses or [], pattern, node))
        with unrecorded():
            why = self._refusal(rule, found, matcher)
        return self._reason(rule, node, why, node, 1.0)

    def _reason(self, rule: Rewriting, node: Expr, why: str, at: Expr, near: float) -> Reason:
        location = rule.location if isinstance(rule, Rule) else ""
        return Reason(title(rule), location, node, why, at, near, repr(_pattern(rule)))

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


def title(rule: Rewriting) -> str:
    """The name of a rule, or what stands for one."""
    if isinstance(rule, Rule):
        return rule.name
    return type(rule).__name__ if isinstance(rule, DFPatternCallback) else f"pattern {rule!r}"


def _pattern(rule: Rewriting) -> DFPattern:
    if isinstance(rule, DFPattern):
        return rule
    if rule.pattern is None:
        raise RelayError(f"{title(rule)} has no pattern", code="pattern.none", help="set self.pattern in __init__")
    return rule.pattern


def _furthest(misses: list[Miss], pattern: DFPattern, node: Expr) -> tuple[str, Expr, float]:
    """The first of the misses that had the most parts bound."""
    parts = len(pattern_nodes(pattern))
    best = max(misses, key=lambda m: m.bound, default=Miss(pattern, node, f"{brief(node)} does not fit", 0))
    return best.why, best.node, min(best.bound, parts - 1) / parts
