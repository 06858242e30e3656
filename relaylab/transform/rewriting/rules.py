"""Rewrite rules as data: a pattern, what replaces it, a condition, and the line of source that says so.

    x, y = wild("x"), wild("y")

    @rule(x / is_op("sqrt")(y))
    def to_rsqrt(x, y):
        "A division by a root is a multiplication with the reciprocal root."
        return x * rsqrt(y)

A builder names what it wants: the named parts of the pattern, `root` (the matched node), `types`
(the type of any node). It returns the replacement, or None if the rule does not apply after all.
Rules keep the type of what they replace. The engine applies a set of rules from the leaves up,
again and again until none fires, and records each firing as a step of the trail.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, Type, children, rewrite, walk
from relaylab.ir.node import expect
from relaylab.ir.trail import Step, kept_trail
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, kind_of
from relaylab.support.source import python_place
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.pattern.callback import LIMIT, endless
from relaylab.transform.pattern.match import Match, Matcher, pattern_nodes
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.possible import Test, root_ops, test_of
from relaylab.transform.pattern.tried import tried


@checked
@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule. `location` is `file:line` of its definition."""

    name: str
    pattern: DFPattern
    build: Callable[..., Expr | None]
    when: Callable[..., bool] | None = None
    location: str = ""
    doc: str = ""

    @cached_property
    def heads(self) -> frozenset[str] | None:
        """The operators at which the rule can fire; None: anywhere."""
        return root_ops(self.pattern)

    @cached_property
    def test(self) -> Test | None:
        """What says of a node that the pattern may fit it, without a search; None: of any."""
        return test_of(self.pattern)

    @cached_property
    def _wants(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return _parameters(self.build), _parameters(self.when) if self.when else ()

    def apply(self, found: Match, types: Types) -> Expr | None:
        """What replaces a match, or None."""
        if not self.holds(found, types):
            return None
        known = self._known(found, types)
        after = self.build(**{k: known.get(k) for k in self._wants[0]})
        if after is not None and not isinstance(after, Expr):
            raise RelayTypeError(
                f"the rule {self.name} ({self.location}) built {kind_of(after)}", code="rewrite.wrong-result"
            )
        return after

    def holds(self, found: Match, types: Types) -> bool:
        """Whether the rule's condition holds for a match."""
        known = self._known(found, types)
        return self.when is None or bool(self.when(**{k: known.get(k) for k in self._wants[1]}))

    @staticmethod
    def _known(found: Match, types: Types) -> dict[str, Any]:
        return {**found.named(), "root": found.root, "types": types, "found": found}

    def __repr__(self) -> str:
        return f"Rule({self.name}: {self.pattern!r}, {self.location})"


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def rule(
    pattern: DFPattern, when: Callable[..., bool] | None = None, name: str | None = None
) -> Callable[[Callable[..., Expr | None]], Rule]:
    """Make a rule of a pattern and the function that builds its replacement; the source line is noted."""
    if not isinstance(pattern, DFPattern):
        text = f"a rule is made of a pattern, not of {kind_of(pattern)}"
        raise RelayTypeError(text, code="rewrite.no-pattern", help='write @rule(is_op("add")(wildcard(), wildcard()))')

    def make(build: Callable[..., Expr | None]) -> Rule:
        code = build.__code__
        location = python_place(code.co_filename, code.co_firstlineno)
        made = Rule(
            name or build.__name__, pattern, build, when, location, (inspect.getdoc(build) or "").split("\n")[0]
        )
        _check_names(made)
        return made

    return make


def _check_names(made: Rule) -> None:
    known = {p.name for p in pattern_nodes(made.pattern)} | {"root", "types", "found"}
    for wanted in made._wants:
        for name in wanted:
            if name not in known:
                text = f"the rule {made.name} asks for `{name}`, but no part of its pattern has that name"
                raise RelayError(
                    text, code="rewrite.unknown-name", help=f"named parts: {', '.join(sorted(known - {''}))}"
                )


@checked
class RuleSet(tuple[Rule, ...]):
    """Rules in the order in which they are tried; `+` puts sets together."""

    def __new__(cls, rules: Iterable[Rule] = ()) -> RuleSet:
        return super().__new__(cls, (expect(r, Rule, "each rule of a set") for r in rules))

    def __add__(self, other: Iterable[Rule]) -> RuleSet:
        return RuleSet((*self, *other))

    def without(self, *names: str) -> RuleSet:
        """The set without the named rules."""
        return RuleSet(r for r in self if r.name not in names)

    def index(self) -> dict[str | None, list[Rule]]:
        """The rules that can fire at each operator; under None those for all other nodes."""
        heads = {h for r in self for h in r.heads or ()}
        table: dict[str | None, list[Rule]] = {h: [r for r in self if r.heads is None or h in r.heads] for h in heads}
        table[None] = [r for r in self if r.heads is None]
        return table


class Types:
    """The types of nodes during a rewrite: found by inference, or those of the nodes they replaced."""

    def __init__(self) -> None:
        self._kept: dict[Expr, Type] = {}

    def __call__(self, expr: Expr) -> Type | None:
        """The type of a node; None for one built by a rule in this round."""
        return expr.inferred or self._kept.get(expr)

    def tensor(self, expr: Expr) -> TensorType | None:
        """The type of a node if it is a tensor."""
        found = self(expr)
        return found if isinstance(found, TensorType) else None

    def keep(self, new: Expr, old: Expr) -> None:
        """`new` stands for `old`: it has the same type."""
        found = self(old)
        if found is not None and new.inferred is None:
            self._kept[new] = found


class Engine:
    """Applies a set of rules to one expression until none fires."""

    def __init__(self, rules: Iterable[Rule], single_use: bool = True):
        self.rules = RuleSet(rules)
        self.table = self.rules.index()
        self.single_use = single_use
        self.fired: Counter[str] = Counter()

    def fixpoint(self, expr: Expr, mod: IRModule | None = None) -> Expr:
        """`expr` rewritten until no rule fires; `RelayError` after 100 rounds, naming the rules that repeat."""
        for _ in range(LIMIT):
            before = typed(expr, mod)
            self.fired.clear()
            after = self.once(before)
            if after is before:
                return expr if before is expr else before
            expr = after
        raise endless([name for name, _ in self.fired.most_common()])

    def once(self, expr: Expr) -> Expr:
        """`expr` with every node rewritten, from the leaves up, while a rule fires there."""
        self.prepare(expr)
        return rewrite(expr, self._at)

    def prepare(self, expr: Expr) -> None:
        """Look at `expr` before its nodes are matched: who uses what."""
        self.types = Types()
        self.uses = self._count(expr)

    def _count(self, expr: Expr) -> Counter[Expr]:
        return Counter(c for node in walk((expr,)) for c in children(node))

    def _at(self, new: Expr, old: Expr) -> Expr:
        if new is not old:
            self.types.keep(new, old)
        for _ in range(LIMIT):
            after = self._try(new)
            if after is None:
                if new is not old:
                    self.uses[new] += self.uses[old]
                return new
            self.types.keep(after, new)
            new = after
        raise endless([name for name, _ in self.fired.most_common()])

    def _try(self, node: Expr) -> Expr | None:
        head = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else None
        for r in self.table.get(head, self.table[None]):
            if r.test is not None and not r.test(node):
                continue
            start = time.perf_counter()
            found = Matcher(node, self.types).first(r.pattern, node)
            after = r.apply(found, self.types) if found is not None and not self.shared(found) else None
            if after is not None and after is not node:
                spent = time.perf_counter() - start
                self._note(Step(r.name, r.location, node, after, spent, r.doc, r, found))
                return after
        return None

    def _note(self, step: Step) -> None:
        self.fired[step.rule] += 1
        trail = kept_trail()
        if trail is not None:
            trail.fired(step)

    def shared(self, found: Match) -> list[Expr]:
        """The values inside a match that are used outside it, for which the rule must not fire."""
        if not self.single_use:
            return []
        inner = [n for p, ns in found.node_map.items() if p.parts() for n in ns if n is not found.root and children(n)]
        return [n for n in inner if not isinstance(n, Function) and self.uses[n] > 1]


def apply_rules(expr: Expr, rules: Iterable[Rule], mod: IRModule | None = None, single_use: bool = True) -> Expr:
    """`expr` rewritten by a set of rules until none fires.

    With `single_use` a rule does not fire where a value inside its match is also used elsewhere.
    """
    engine = Engine(rules, single_use)
    tried(engine.rules)
    return engine.fixpoint(expr, mod)
