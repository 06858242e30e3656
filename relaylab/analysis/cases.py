"""The cases that the clauses of a `match` leave uncovered."""

from __future__ import annotations

from relaylab.analysis.kind import find_type
from relaylab.ir.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    pattern_parts,
)
from relaylab.ir.module import IRModule

FITS, CLASHES, OPEN = "fits", "clashes", "open"


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns for the values that no clause of `match` takes, in the order of the constructors; empty if it is
    exhaustive.

    A candidate starts as `_` and is split by constructors only where a clause looks at them.
    """
    missing: list[Pattern] = []
    stack: list[Pattern] = [PatternWildcard()]
    while stack:
        case = stack.pop()
        for clause in match.clauses:
            verdict = _compare(clause.lhs, case)
            if verdict == FITS:
                break
            if verdict == OPEN:
                stack.extend(reversed(_split(case, clause.lhs, mod)))
                break
        else:
            missing.append(case)
    return missing


def _compare(pattern: Pattern, case: Pattern) -> str:
    """Whether a pattern takes every value of a case, none, or (`open`) it depends on more of the value."""
    stack, verdict = [(pattern, case)], FITS
    while stack:
        p, c = stack.pop()
        if isinstance(p, (PatternWildcard, PatternVar)):
            continue
        if isinstance(c, PatternWildcard):
            verdict = OPEN
        elif _constructor(p) != _constructor(c):
            return CLASHES
        else:
            stack.extend(zip(pattern_parts(p), pattern_parts(c)))
    return verdict


def _constructor(pattern: Pattern) -> str:
    return pattern.constructor.name_hint if isinstance(pattern, PatternConstructor) else ""


def _split(case: Pattern, pattern: Pattern, mod: IRModule | None) -> list[Pattern]:
    """The cases that together are `case`, told apart where `pattern` looks closer."""
    if isinstance(case, PatternWildcard):
        if isinstance(pattern, PatternTuple):
            return [PatternTuple([PatternWildcard()] * len(pattern.patterns))]
        siblings = _siblings(pattern.constructor, mod) if isinstance(pattern, PatternConstructor) else ()
        return [PatternConstructor(c, [PatternWildcard()] * len(c.inputs)) for c in siblings]
    parts, looks = pattern_parts(case), pattern_parts(pattern)
    k = next(k for k, (p, c) in enumerate(zip(looks, parts)) if _compare(p, c) == OPEN)
    return [_with_part(case, (*parts[:k], new, *parts[k + 1 :])) for new in _split(parts[k], looks[k], mod)]


def _siblings(ctor: Constructor, mod: IRModule | None) -> tuple[Constructor, ...]:
    data = find_type(mod, ctor.belong_to)
    return data.constructors if data is not None else (ctor,)


def _with_part(case: Pattern, parts: tuple[Pattern, ...]) -> Pattern:
    return PatternConstructor(case.constructor, parts) if isinstance(case, PatternConstructor) else PatternTuple(parts)


def pattern_text(pattern: Pattern) -> str:
    """A pattern as the text format writes it."""
    match pattern:
        case PatternVar():
            return f"%{pattern.var.name_hint}"
        case PatternTuple():
            return f"({', '.join(map(pattern_text, pattern.patterns))}{',' * (len(pattern.patterns) == 1)})"
        case PatternConstructor(patterns=()):
            return pattern.constructor.name_hint
        case PatternConstructor():
            return f"{pattern.constructor.name_hint}({', '.join(map(pattern_text, pattern.patterns))})"
        case _:
            return "_"
