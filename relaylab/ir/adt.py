"""Algebraic data types: constructors, `match` and its patterns."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir.declare import Each, MaybeEach, One, field, node
from relaylab.ir.expr import Callee, Expr, ExprWithOp, Var
from relaylab.ir.node import Node, set_field
from relaylab.ir.types import GlobalTypeVar, Type


@node
class Constructor(Callee):
    """A constructor of an algebraic data type."""

    name_hint: str = field(converter=One(str, "the name of a Constructor"))
    """The name as written."""
    inputs: tuple[Type, ...] = field(converter=Each(Type, "the inputs of a Constructor"))
    """The types of the values that it holds."""
    belong_to: GlobalTypeVar = field(converter=One(GlobalTypeVar, "the type of a Constructor"))
    """The data type whose values it makes."""
    tag: int = field(default=-1)
    """Its number at run time; -1 until a module registers the type."""

    def register(self, tag: int) -> None:
        """Set the tag when the module takes in the type (once; later calls must agree)."""
        if self.tag == -1:
            set_field(self, "tag", tag)


class Pattern(Node):
    """The base of patterns."""

    __slots__ = ()


@node
class PatternWildcard(Pattern):
    """`_`: matches anything."""


@node
class PatternVar(Pattern):
    """Matches anything and binds it."""

    var: Var = field(converter=One(Var, "the variable of a PatternVar"))
    """What the clause calls the value."""


@node
class PatternConstructor(Pattern):
    """Matches a value made by one constructor."""

    constructor: Constructor = field(converter=One(Constructor, "the constructor of a pattern"))
    """What must have made the value."""
    patterns: tuple[Pattern, ...] = field(default=None, converter=MaybeEach(Pattern, "the patterns of a constructor"))
    """One for each input of the constructor."""


@node
class PatternTuple(Pattern):
    """Matches a tuple field by field."""

    patterns: tuple[Pattern, ...] = field(default=None, converter=MaybeEach(Pattern, "the patterns of a tuple"))
    """One for each field."""


@node
class Clause(Node):
    """One arm of a `match`."""

    lhs: Pattern = field(converter=One(Pattern, "the pattern of a Clause"))
    """What the value must look like."""
    rhs: Expr = field(converter=One(Expr, "the result of a Clause"))
    """The result, in which the variables of the pattern are bound."""


@node
class Match(ExprWithOp):
    """The first clause whose pattern fits."""

    data: Expr = field(converter=One(Expr, "what a Match looks at"))
    """The value that is taken apart."""
    clauses: tuple[Clause, ...] = field(converter=Each(Clause, "the clauses of a Match"))
    """The arms, tried in this order."""
    complete: bool = field(default=True, converter=bool)
    """Whether the clauses must cover every case (`match`, not `match?`)."""


def pattern_parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct sub-patterns."""
    return pattern.patterns if isinstance(pattern, (PatternConstructor, PatternTuple)) else ()


def patterns(pattern: Pattern) -> list[Pattern]:
    """The pattern and all inside it, in the order of the text."""
    out: list[Pattern] = []
    stack = [pattern]
    while stack:
        out.append(p := stack.pop())
        stack.extend(reversed(pattern_parts(p)))
    return out


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern binds, in the order of the text."""
    return [p.var for p in patterns(pattern) if isinstance(p, PatternVar)]


def map_pattern(pattern: Pattern, var: Callable[[Var], Var]) -> Pattern:
    """`pattern` with `var` applied to each bound variable; the same object if none changes."""
    if isinstance(pattern, PatternVar):
        new = var(pattern.var)
        return pattern if new is pattern.var else PatternVar(new)
    old = pattern_parts(pattern)
    new = tuple(map_pattern(p, var) for p in old)
    if all(a is b for a, b in zip(old, new)):
        return pattern
    return (
        PatternConstructor(pattern.constructor, new) if isinstance(pattern, PatternConstructor) else PatternTuple(new)
    )
