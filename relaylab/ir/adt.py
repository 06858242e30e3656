"""Algebraic data types: constructors, `match` and its patterns."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir.expr import Call, Expr, ExprWithOp, Var
from relaylab.ir.node import Node, expect, expect_all, set_field
from relaylab.ir.types import GlobalTypeVar, Type
from relaylab.support.source import AnySpan

set_ = set_field


class Constructor(Expr):
    """A constructor of an algebraic data type; `tag` is -1 until a module registers its type."""

    __slots__ = _fields = ("name_hint", "inputs", "belong_to", "tag")

    def __init__(self, name_hint: str, inputs: Iterable[Type], belong_to: GlobalTypeVar, tag: int = -1):
        set_(self, "name_hint", expect(name_hint, str, "the name of a Constructor"))
        set_(self, "inputs", expect_all(inputs, Type, "the inputs of a Constructor"))
        set_(self, "belong_to", expect(belong_to, GlobalTypeVar, "the type of a Constructor"))
        set_(self, "tag", tag)
        self._start(None)

    def register(self, tag: int) -> None:
        """Set the tag when the module takes in the type (once; later calls must agree)."""
        if self.tag == -1:
            set_(self, "tag", tag)

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)


class Pattern(Node):
    """The base of patterns."""

    __slots__ = ()


class PatternWildcard(Pattern):
    """`_`: matches anything."""

    __slots__ = ()


class PatternVar(Pattern):
    """Matches anything and binds it."""

    __slots__ = _fields = ("var",)

    def __init__(self, var: Var):
        set_(self, "var", expect(var, Var, "the variable of a PatternVar"))


class PatternConstructor(Pattern):
    """Matches a value made by one constructor."""

    __slots__ = _fields = ("constructor", "patterns")

    def __init__(self, constructor: Constructor, patterns: Iterable[Pattern] | None = None):
        set_(self, "constructor", expect(constructor, Constructor, "the constructor of a pattern"))
        set_(self, "patterns", expect_all(patterns or (), Pattern, "the patterns of a constructor"))


class PatternTuple(Pattern):
    """Matches a tuple field by field."""

    __slots__ = _fields = ("patterns",)

    def __init__(self, patterns: Iterable[Pattern] | None = None):
        set_(self, "patterns", expect_all(patterns or (), Pattern, "the patterns of a tuple"))


class Clause(Node):
    """One arm of a `match`."""

    __slots__ = _fields = ("lhs", "rhs")

    def __init__(self, lhs: Pattern, rhs: Expr):
        set_(self, "lhs", expect(lhs, Pattern, "the pattern of a Clause"))
        set_(self, "rhs", expect(rhs, Expr, "the result of a Clause"))


class Match(ExprWithOp):
    """The first clause whose pattern fits; a `complete` match must cover every case."""

    __slots__ = _fields = ("data", "clauses", "complete")

    def __init__(self, data: Expr, clauses: Iterable[Clause], complete: bool = True, span: AnySpan | None = None):
        set_(self, "data", expect(data, Expr, "what a Match looks at"))
        set_(self, "clauses", expect_all(clauses, Clause, "the clauses of a Match"))
        set_(self, "complete", bool(complete))
        self._start(span)


def pattern_parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct sub-patterns."""
    return pattern.patterns if isinstance(pattern, (PatternConstructor, PatternTuple)) else ()


def patterns(pattern: Pattern) -> list[Pattern]:
    """The pattern and all inside it, in the order of the text."""
    out, stack = [], [pattern]
    while stack:
        out.append(p := stack.pop())
        stack.extend(reversed(pattern_parts(p)))
    return out


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern binds, in the order of the text."""
    return [p.var for p in patterns(pattern) if isinstance(p, PatternVar)]


def map_pattern(pattern: Pattern, var) -> Pattern:
    """`pattern` with `var` applied to each bound variable; the same object if none changes."""
    if isinstance(pattern, PatternVar):
        new = var(pattern.var)
        return pattern if new is pattern.var else PatternVar(new)
    old = pattern_parts(pattern)
    new = tuple(map_pattern(p, var) for p in old)
    if all(a is b for a, b in zip(old, new)):
        return pattern
    return PatternTuple(new) if isinstance(pattern, PatternTuple) else PatternConstructor(pattern.constructor, new)
