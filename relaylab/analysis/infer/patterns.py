"""Patterns of a `match`: what they bind, and whether they cover every case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaylab.analysis.cases import pattern_text, unmatched_cases
from relaylab.analysis.infer.solver import FAILED
from relaylab.analysis.kind import constructor_type
from relaylab.ir.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from relaylab.ir.types import IncompleteType, TupleType, Type

if TYPE_CHECKING:
    from relaylab.analysis.infer.typer import Typer


def bind(t: Typer, pattern: Pattern, found: Type, site: Match) -> None:
    """Give types to the variables of `pattern`, matched against a value of type `found`."""
    stack = [(pattern, found)]
    while stack:
        pattern, found = stack.pop()
        if isinstance(pattern, PatternVar):
            _bind_var(t, pattern, found, site)
        elif isinstance(pattern, PatternConstructor):
            stack.extend(zip(pattern.patterns, _constructor_parts(t, pattern, found, site)))
        elif isinstance(pattern, PatternTuple):
            stack.extend(zip(pattern.patterns, _tuple_parts(t, pattern, found, site)))


def _bind_var(t: Typer, pattern: PatternVar, found: Type, site: Match) -> None:
    var = pattern.var
    if var.type_annotation is None and var not in t.types:
        t.types[var] = found
    else:
        t.require(t.declare(var), found, site, f"the variable %{var.name_hint} of a pattern")


def _constructor_parts(t: Typer, pattern: PatternConstructor, found: Type, site: Match) -> list[Type]:
    ctor, parts = pattern.constructor, pattern.patterns
    made = constructor_type(ctor, t.mod)
    if made is None:
        t.fail(
            "unknown-type",
            f"the constructor {ctor.name_hint} belongs to {ctor.belong_to}, which is not in the module",
            site,
        )
    elif len(made.arg_types) != len(parts):
        t.fail(
            "arity",
            f"the constructor {ctor.name_hint} has {len(made.arg_types)} fields, the pattern has {len(parts)}",
            site,
        )
    else:
        made = made.instantiate([IncompleteType() for _ in made.type_params])
        t.require(found, made.ret_type, site, f"a pattern of the constructor {ctor.name_hint}")
        return list(made.arg_types)
    return [FAILED] * len(parts)


def _tuple_parts(t: Typer, pattern: PatternTuple, found: Type, site: Match) -> list[Type]:
    known = t.solver.shallow(found)
    if isinstance(known, TupleType) and len(known.fields) == len(pattern.patterns):
        return list(known.fields)
    parts = [IncompleteType() for _ in pattern.patterns]
    t.require(found, TupleType(parts), site, "a tuple pattern")
    return list(parts)


def check_complete(t: Typer, match: Match) -> None:
    """Report the cases that a complete match leaves out."""
    missing = unmatched_cases(match, t.mod) if match.complete else []
    if missing:
        cases = ", ".join(map(pattern_text, missing))
        t.fail(
            "match-incomplete",
            f"this match does not cover every case; missing: {cases}",
            match,
            "add the clauses, or write `match?`",
        )
