"""Matching a pattern against an expression: all ways in which it fits, found one after the other.

The search goes as deep as the pattern, not as the program. A pattern that was bound stands for
that node from then on, and is unbound again when another way is tried. A matcher that keeps its
misses can say why a pattern does not fit: the search is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from relaylab.ir.base import Expr
from relaylab.ir.equal import structural_equal
from relaylab.ir.expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op, op_name
from relaylab.ir.types import TensorType, Type
from relaylab.ir.visit import children
from relaylab.support.errors import RelayError
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern import told
from relaylab.transform.pattern.facts import InferredTypes, Uses
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.possible import COMMUTATIVE, attr_of, has_attrs, may_fit, reassociated, same_attr
from relaylab.transform.pattern.told import brief

Refined = pn.TypePattern | pn.DataTypePattern | pn.ShapePattern | pn.AttrPattern
"""A pattern with a condition on what it matches."""


class Match:
    """One way in which a pattern fits: the node that each part of the pattern stands for."""

    def __init__(self, pattern: DFPattern, root: Expr, bound: dict[DFPattern, list[Expr]]):
        self.pattern, self.root, self.node_map = pattern, root, bound

    def __getitem__(self, pattern: DFPattern) -> Expr:
        return self.node_map[pattern][0]

    def __contains__(self, pattern: DFPattern) -> bool:
        return pattern in self.node_map

    def named(self) -> dict[str, Expr]:
        """The nodes by the names that patterns have."""
        return {p.name: found[0] for p, found in self.node_map.items() if p.name}


@dataclass(frozen=True, slots=True)
class Miss:
    """A part of a pattern that did not fit a node, why, and the parts that stood for nodes by then, in order."""

    pattern: DFPattern
    node: Expr
    why: str
    way: tuple[tuple[DFPattern, Expr], ...]


class Matcher:
    """Matches patterns against nodes of one expression; `type_of` gives the types that conditions look at (None:
    those of the nodes, inferred where there are none).

    With `keep_misses` every test that fails is noted in `misses`.
    """

    def __init__(self, root: Expr, type_of: Callable[[Expr], Type | None] | None = None, keep_misses: bool = False):
        self.uses = Uses(root)
        self.type_of = type_of or InferredTypes(root).of
        self.bound: dict[DFPattern, list[Expr]] = {}
        self.misses: list[Miss] | None = [] if keep_misses else None
        self.calls: dict[DFPattern, Call] = {}
        """The calls whose operators were looked at, by the part of the pattern that they met."""
        self.alone: frozenset[DFPattern] = frozenset()
        """The parts of which one way is enough, since nothing else depends on it."""

    def first(self, pattern: DFPattern, expr: Expr) -> Match | None:
        """The first way in which the pattern fits, or None."""
        return next(self.all(pattern, expr, one=True), None)

    def all(self, pattern: DFPattern, expr: Expr, one: bool = False) -> Iterator[Match]:
        """Every way in which the pattern fits; with `one`, ways that differ where nothing depends on it are left out.

        `RelayError` for a pattern that holds itself, where it goes too deep.
        """
        self.bound = {}
        if self.misses is None and not may_fit(pattern, expr):
            return
        self.alone = _alone(pattern) if one else frozenset()
        try:
            for _ in self.fits(pattern, expr):
                # a copy: the search for the next way binds anew
                yield Match(pattern, expr, {p: list(found) for p, found in self.bound.items()})
        except RecursionError:
            raise RelayError(
                f"a pattern that holds itself goes too deep into the program at {told.node(expr)}{told.at(expr)}",
                code="pattern.too-deep",
                help="match one step of the repetition, again and again",
            ) from None

    def fits(self, pattern: DFPattern, expr: Expr) -> Iterator[None]:
        """Once for each way in which `pattern` fits `expr`, with `bound` telling which."""
        known = self.bound.get(pattern)
        if known is not None:
            yield from self.when(known[0] is expr, pattern, expr, lambda: told.other(pattern, known[0], expr))
            return
        for _ in _MATCHERS[type(pattern)](self, pattern, expr):
            self.bound[pattern] = [expr]
            yield
            self.bound.pop(pattern, None)

    def each(
        self, whole: DFPattern, expr: Expr, patterns: Sequence[DFPattern], exprs: Sequence[Expr]
    ) -> Iterator[None]:
        """All patterns, parts of `whole`, fit the expressions, parts of `expr`, one by one."""
        if not patterns or len(patterns) != len(exprs):
            same = len(patterns) == len(exprs)
            yield from self.when(same, whole, expr, lambda: told.other_count(expr, len(exprs), len(patterns)))
            return
        known = len(self.bound)
        for _ in self.fits(patterns[0], exprs[0]):
            yield from self.each(whole, expr, patterns[1:], exprs[1:])
            if patterns[0] in self.alone:  # the others would not fit after another way either
                while len(self.bound) > known:
                    self.bound.popitem()
                return

    def when(self, holds: bool, p: DFPattern, e: Expr, why: Callable[[], str]) -> Iterator[None]:
        """Once if the test holds; if it does not, that is a miss."""
        if holds:
            yield
        elif self.misses is not None:
            self.misses.append(Miss(p, self.calls.get(p, e), why(), self.way()))

    def way(self) -> tuple[tuple[DFPattern, Expr], ...]:
        """The parts that stand for nodes, in the order in which they were met; the call for its operator."""
        return tuple((p, self.calls.get(p, found[0])) for p, found in self.bound.items() if found)

    def kind(self, holds: bool, p: DFPattern, e: Expr, wanted: str) -> Iterator[None]:
        """Once if the node is of the kind that is wanted."""
        return self.when(holds, p, e, lambda: told.other_kind(wanted, e))

    # ---- kinds of patterns

    def expr(self, p: pn.ExprPattern, e: Expr) -> Iterator[None]:
        if isinstance(p.expr, Op) or isinstance(e, Op):
            return self.when(p.expr is e, p, e, lambda: told.other_op(brief(p.expr), e, self.calls.get(p, e)))
        return self.kind(p.expr is e or structural_equal(p.expr, e), p, e, f"the same as {brief(p.expr)}")

    def var(self, p: pn.VarPattern, e: Expr) -> Iterator[None]:
        fits = isinstance(e, Var) and p.name_hint in ("", e.name_hint)
        return self.kind(fits, p, e, f"the variable %{p.name_hint}" if p.name_hint else "a variable")

    def constant(self, p: pn.ConstantPattern, e: Expr) -> Iterator[None]:
        return self.kind(isinstance(e, Constant), p, e, "a constant")

    def wildcard(self, p: pn.WildcardPattern, e: Expr) -> Iterator[None]:
        return iter((None,)) if p.pattern is None else self.fits(p.pattern, e)

    def call(self, p: pn.CallPattern, e: Expr) -> Iterator[None]:
        if not isinstance(e, Call):
            yield from self.kind(False, p, e, f"a call of {told.name(p.op)}")
            return
        if self.misses is not None:
            self.calls[p.op] = e
        for _ in self.fits(p.op, e.op):
            if p.args is None:
                yield
                continue
            # as written first: where both orders fit, the parts are bound in the order of the program
            yield from self.each(p, e, p.args, e.args)
            if p.op_name in COMMUTATIVE and len(p.args) == 2:
                yield from self.each(p, e, p.args[::-1], e.args)
        for other in _reassociated(p, e):
            yield from self.call(other, e)

    def function(self, p: pn.FunctionPattern, e: Expr) -> Iterator[None]:
        if not isinstance(e, Function):
            return self.kind(False, p, e, "a function")
        params = () if p.params is None else p.params
        return self.each(p, e, (*params, p.body), (*(e.params if p.params is not None else ()), e.body))

    def branch(self, p: pn.IfPattern, e: Expr) -> Iterator[None]:
        return self.each(p, e, p.parts(), children(e)) if isinstance(e, If) else self.kind(False, p, e, "an if")

    def let(self, p: pn.LetPattern, e: Expr) -> Iterator[None]:
        return self.each(p, e, p.parts(), children(e)) if isinstance(e, Let) else self.kind(False, p, e, "a let")

    def tuple(self, p: pn.TuplePattern, e: Expr) -> Iterator[None]:
        if not isinstance(e, Tuple) or p.fields is None:
            return self.kind(isinstance(e, Tuple), p, e, "a tuple")
        return self.each(p, e, p.fields, e.fields)

    def projection(self, p: pn.TupleGetItemPattern, e: Expr) -> Iterator[None]:
        if isinstance(e, TupleGetItem) and p.index in (-1, e.index):
            return self.fits(p.tuple, e.tuple_value)
        return self.kind(False, p, e, "a field of a tuple" if p.index < 0 else f"field {p.index} of a tuple")

    def alternative(self, p: pn.AltPattern, e: Expr) -> Iterator[None]:
        yield from self.fits(p.left, e)
        yield from self.fits(p.right, e)

    def refined(self, p: Refined, e: Expr) -> Iterator[None]:
        holds, why = _CONDITIONS[type(p)]
        for _ in self.fits(p.pattern, e):
            yield from self.when(holds(self, p, e), p, e, lambda: why(self, p, e))

    def dominator(self, p: pn.DominatorPattern, e: Expr) -> Iterator[None]:
        for _ in self.fits(p.child, e):
            found = self._paths(p, e)
            for _ in self.when(
                found is not None,
                p,
                e,
                lambda: f"not all that goes into {told.node(e)} comes from one {told.name(p.parent)}",
            ):
                self.bound[p.path] = found or []
                yield
                self.bound.pop(p.path, None)
            self.bound.pop(p.parent, None)

    def _paths(self, p: pn.DominatorPattern, child: Expr) -> list[Expr] | None:
        """The nodes between `child` and the parent, or None; binds the parent."""
        before = dict(self.bound)
        for parent in self._parents(p, child):
            if self._is(p.parent, parent, keep=True):
                region = self._region(p, child, parent)
                if region is not None and self._enclosed(parent, region, child):
                    return [n for n in region if n is not child]
            self.bound = dict(before)
        return None

    def _parents(self, p: pn.DominatorPattern, child: Expr) -> Iterator[Expr]:
        """What may be the parent: the nodes that its pattern fits, behind nothing but the path, the nearest first."""
        seen: set[Expr] = set()
        ways = [child]
        while ways:
            for below in _operands(ways.pop(0)):
                if below not in seen:
                    seen.add(below)
                    if self._is(p.parent, below):
                        yield below
                    if self._is(p.path, below):
                        ways.append(below)

    def _region(self, p: pn.DominatorPattern, child: Expr, parent: Expr) -> dict[Expr, None] | None:
        """The child and what lies between it and the parent; None if a way from it leads elsewhere."""
        region: dict[Expr, None] = {child: None}
        stack = [child]
        while stack:
            for below in _operands(stack.pop()):
                if below is not parent and below not in region:
                    if not self._is(p.path, below):
                        return None
                    region[below] = None
                    stack.append(below)
        return region

    def _is(self, p: DFPattern, e: Expr, keep: bool = False) -> bool:
        """Whether the pattern fits by itself; its parts stay bound only if `keep`."""
        # a probe: what it binds must not decide what fits elsewhere
        before = dict(self.bound)
        for _ in self.fits(p, e):
            after = dict(self.bound)
            self.bound = {**before, **after} if keep else before
            return True
        self.bound = before
        return False

    def _enclosed(self, parent: Expr, region: dict[Expr, None], child: Expr) -> bool:
        """Whether nothing outside uses the parent or what lies between it and the child."""
        inner = [n for n in (parent, *region) if n is not child and children(n)]
        return all(user in region for n in inner for user in self.uses.of(n))


def _operands(node: Expr) -> tuple[Expr, ...]:
    """What flows into a node."""
    return node.args if isinstance(node, Call) else children(node)


def _reassociated(p: pn.CallPattern, e: Call) -> Iterator[pn.CallPattern]:
    """(a * b) / c also fits a * (b / c), and the other way round."""
    name = op_name(e)
    if p.args is None or name == "" or reassociated(p) != name:
        return
    for inner in p.args[:1] if p.op_name == "divide" else p.args:
        if not isinstance(inner, pn.CallPattern) or inner.op_name != name or inner.args is None:
            continue
        if p.op_name == "divide":
            for one, other in (inner.args, inner.args[::-1]):
                yield pn.CallPattern(inner.op, (other, pn.CallPattern(p.op, (one, p.args[1]))))
        else:
            factor = p.args[1] if inner is p.args[0] else p.args[0]
            yield pn.CallPattern(inner.op, (pn.CallPattern(p.op, (factor, inner.args[0])), inner.args[1]))


def _tensor(self: Matcher, e: Expr) -> TensorType | None:
    found = self.type_of(e)
    return found if isinstance(found, TensorType) else None


def _has_dtype(self: Matcher, p: pn.DataTypePattern, e: Expr) -> bool:
    found = _tensor(self, e)
    return found is not None and found.dtype == p.dtype


def _has_shape(self: Matcher, p: pn.ShapePattern, e: Expr) -> bool:
    found = _tensor(self, e)
    return found is not None and found.shape == p.shape


def _other_attrs(self: Matcher, p: pn.AttrPattern, e: Expr) -> str:
    name, value = next((n, v) for n, v in p.attrs.items() if not same_attr(attr_of(e, n), v))
    return told.other_attr(name, value, e, attr_of(e, name))


_Test = Callable[[Matcher, Any, Expr], bool]
_CONDITIONS: dict[type, tuple[_Test, Callable[[Matcher, Any, Expr], str]]] = {
    pn.TypePattern: (
        lambda self, p, e: self.type_of(e) == p.type,
        lambda self, p, e: told.other_type(str(p.type), e, self.type_of(e)),
    ),
    pn.DataTypePattern: (_has_dtype, lambda self, p, e: told.other_dtype(p.dtype, e, _tensor(self, e))),
    pn.ShapePattern: (_has_shape, lambda self, p, e: told.other_shape(p.shape, e, _tensor(self, e))),
    pn.AttrPattern: (lambda self, p, e: has_attrs(p.attrs, e), _other_attrs),
}

_MATCHERS: dict[type, Callable[[Matcher, Any, Expr], Iterator[None]]] = {
    pn.ExprPattern: Matcher.expr,
    pn.VarPattern: Matcher.var,
    pn.ConstantPattern: Matcher.constant,
    pn.WildcardPattern: Matcher.wildcard,
    pn.CallPattern: Matcher.call,
    pn.FunctionPattern: Matcher.function,
    pn.IfPattern: Matcher.branch,
    pn.LetPattern: Matcher.let,
    pn.TuplePattern: Matcher.tuple,
    pn.TupleGetItemPattern: Matcher.projection,
    pn.AltPattern: Matcher.alternative,
    pn.TypePattern: Matcher.refined,
    pn.DataTypePattern: Matcher.refined,
    pn.ShapePattern: Matcher.refined,
    pn.AttrPattern: Matcher.refined,
    pn.DominatorPattern: Matcher.dominator,
}


def match(pattern: DFPattern, expr: Expr) -> Match | None:
    """How `pattern` fits `expr` as a whole, or None."""
    return Matcher(expr).first(pattern, expr)


def pattern_nodes(pattern: DFPattern) -> list[DFPattern]:
    """The pattern and all its parts, parts first, each once."""
    seen: dict[DFPattern, None] = {}
    stack: list[tuple[DFPattern, bool]] = [(pattern, False)]
    entered: set[DFPattern] = set()
    while stack:
        p, done = stack.pop()
        if done:
            seen[p] = None
        elif p not in entered:
            entered.add(p)
            stack.append((p, True))
            stack.extend((c, False) for c in reversed(p.parts()))
    return list(seen)


def _alone(pattern: DFPattern) -> frozenset[DFPattern]:
    """The parts of a pattern of which no part stands elsewhere in it, too; none where paths are looked for, which bind
    and let go in an order of their own.
    """
    known = _ALONE.get(pattern)
    if known is None:
        above: dict[DFPattern, list[DFPattern]] = {}
        nodes = pattern_nodes(pattern)
        if not any(isinstance(p, pn.DominatorPattern) for p in nodes):
            for whole in nodes:
                for part in whole.parts():
                    above.setdefault(part, []).append(whole)
        alone = (p for p in above if p is not pattern and len(above[p]) == 1 and _is_alone(p, above))
        known = _ALONE[pattern] = frozenset(alone)
    return known


def _is_alone(whole: DFPattern, above: dict[DFPattern, list[DFPattern]]) -> bool:
    inside = set(pattern_nodes(whole))
    parts = (p for p in inside if p is not whole and not (isinstance(p, pn.ExprPattern) and isinstance(p.expr, Op)))
    return all(user in inside for p in parts for user in above[p])


_ALONE: WeakKeyDictionary[DFPattern, frozenset[DFPattern]] = WeakKeyDictionary()

pn.engine.match = match
