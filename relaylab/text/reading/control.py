"""Functions, branches, matches and cells: the expressions with scopes of their own."""

from __future__ import annotations

from relaylab.ir.adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from relaylab.ir.base import placed
from relaylab.ir.expr import Expr, Function, If, RefCreate, RefRead, RefWrite, Var
from relaylab.support.trampoline import Task
from relaylab.text.reading.atoms import PLACEHOLDER
from relaylab.text.reading.attributes import Written, at_attribute, attribute, device_of, values_of
from relaylab.text.reading.expressions import block, postfix, sequence, variable
from relaylab.text.reading.reader import DEFINES
from relaylab.text.reading.state import State
from relaylab.text.reading.types import type_, type_params

# ---- functions


def function(p: State, first: int) -> Task[Function]:
    """What follows `fn` or `def @f`: `[A](%x: T, key=value) -> R { body }`; `first` is the token at which it begins."""
    types, variables = p.names.types.open(), p.names.variables.open()
    waiting = p.names.bind_waiting()
    mark = p.names.variables.open()
    parameters = type_params(p)
    params, written = _params(p)
    p.check_names(mark, "this function")
    result = None
    if p.at(":"):
        raise p.unexpected("`->` or `{`", help="the type of the result is written -> float32")
    if p.accept("->"):
        result = type_(p)
    body = yield block(p)
    p.names.waiting = waiting
    p.names.variables.close(variables)
    p.names.types.close(types)
    device = device_of(written)
    made = Function(params, body, result, parameters, values_of(written) or None, span=p.since(first))
    return placed(made, device)


def _params(p: State) -> tuple[list[Var], Written]:
    """`(%x: T, %y, key=value)`; the parameters are in scope afterwards."""
    help = "a function with a name is written def @name(…) { … }" if p.at("global") else ""
    opened = p.expect("(", "`(` and the parameters", help=help)
    params: list[Var] = []
    written: Written = {}
    more = not p.accept(")")
    while more:
        if p.at("local"):
            params.append(_param(p))
        elif at_attribute(p):
            attribute(p, written)
        else:
            raise p.unexpected("a parameter like %x: T", opened)
        more = p.more(")", opened)
    return params, written


def _param(p: State) -> Var:
    """`%x: T`."""
    token = p.expect("local")
    name = p.texts[token]
    var = variable(p, token)
    p.names.variables.bind(name, var)
    return var


def function_literal(p: State) -> Task[Expr]:
    """`fn (%x: T) { body }`."""
    first = p.expect("fn")
    return (yield function(p, first))


# ---- branches


def branch(p: State) -> Task[Expr]:
    """`if (cond) { a } else { b }`."""
    first = p.expect("if")
    opened = p.expect("(", "`(` and the condition")
    cond = yield sequence(p)
    p.expect(")", opened=opened)
    true_branch = yield block(p)
    p.expect("else", "`else` and the other branch", help="every `if` has a value, so it needs both branches")
    false_branch = yield block(p)
    return If(cond, true_branch, false_branch, span=p.since(first))


def match_(p: State) -> Task[Expr]:
    """`match (data) { pattern => { value }, … }`; `match?` need not cover every case."""
    first = p.i
    p.i += 1
    data = yield postfix(p)
    opened = p.expect("{", "`{` and the clauses")
    clauses: list[Clause] = []
    more = not p.accept("}")
    while more:
        clauses.append((yield _clause(p)))
        more = p.more("}", opened)
    return Match(data, clauses, p.kinds[first] == "match", span=p.since(first))


def _clause(p: State) -> Task[Clause]:
    mark = p.names.variables.open()
    if p.at("name") and p.texts[p.i] == "case" and p.kinds[p.i + 1] == "name":
        return _case(p)
    lhs = _pattern(p)
    p.check_names(mark, "this pattern")
    p.expect("=>", "`=>` and the value of the clause")
    rhs = (yield block(p)) if p.at("{") else (yield sequence(p))
    p.names.variables.close(mark)
    return Clause(lhs, rhs)


def _case(p: State) -> Clause:
    """`case Pair(x, y) { … }`, as documentation of old writes it: reported with the edit, and stepped over."""
    first, words = p.i, ""
    p.i += 1
    while not p.at("{") and p.kinds[p.i] not in DEFINES:
        words += f"%{p.texts[p.i]}" if words and p.at("name") else p.texts[p.i] + " " * p.at(",")
        p.i += 1
    written = f"{words.removesuffix('()')} => {{ … }},"
    help = f"write `{written}` with `%` before variables inside"
    p.report("parse.documentation", "`case` is not part of the text format", p.since(first), help)
    depth = p.accept("{")
    while depth and p.kinds[p.i] not in DEFINES:
        depth += p.at("{") - p.at("}")
        p.i += 1
    if not p.at(",") and not p.at("}"):
        p.i -= 1
        p.kinds[p.i] = ","  # what follows is read as the next clause
    return Clause(PatternWildcard(), PLACEHOLDER)


def _pattern(p: State, depth: int = 0) -> Pattern:
    """`_`, `%x: T`, `Cons(a, b)` or `(a, b)`."""
    p.check_depth(depth, "patterns")
    token, kind = p.i, p.kinds[p.i]
    p.i += 1
    match kind:
        case "_":
            return PatternWildcard()
        case "local":
            name = p.texts[token]
            var = variable(p, token)
            p.names.variables.bind(name, var)
            return PatternVar(var)
        case "(":
            return PatternTuple(_patterns(p, token, depth))
        case "name":
            return _constructor_pattern(p, token, depth)
        case _:
            p.i = token
            raise p.unexpected("a pattern", help="patterns are _, %x, Constructor(…) and (…, …)")


def _patterns(p: State, opened: int, depth: int) -> list[Pattern]:
    found: list[Pattern] = []
    more = not p.accept(")")
    while more:
        found.append(_pattern(p, depth + 1))
        more = p.more(")", opened)
    return found


def _constructor_pattern(p: State, token: int, depth: int) -> Pattern:
    name = p.texts[token]
    inside: list[Pattern] = []
    if p.at("("):
        opened = p.expect("(")
        inside = _patterns(p, opened, depth)
    ctor = p.names.constructors.get(name)
    if ctor is None:
        help = p.near(name, p.names.constructors) or "a variable begins with `%`"
        p.report("parse.unknown-constructor", f"there is no constructor named `{name}`", p.span(token), help)
        return PatternWildcard()
    if len(inside) != len(ctor.inputs):
        message = f"{name} holds {len(ctor.inputs)} values, the pattern has {len(inside)}"
        p.report("parse.constructor-arity", message, p.span(token))
    return PatternConstructor(ctor, inside)


# ---- cells


def cell(p: State) -> Task[Expr]:
    """`ref(a)`, `ref_read(r)` or `ref_write(r, a)`."""
    first = p.i
    p.i += 1
    opened = p.expect("(")
    value = yield sequence(p)
    if p.kinds[first] == "ref_write":
        p.expect(",", "`,` and the new content", opened)
        content = yield sequence(p)
        p.expect(")", opened=opened)
        return RefWrite(value, content, span=p.since(first))
    p.expect(")", opened=opened)
    return (RefCreate if p.kinds[first] == "ref" else RefRead)(value, span=p.since(first))
