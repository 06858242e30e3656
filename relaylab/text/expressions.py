"""Expressions: recursive descent in generators (see `trampoline`), loops where programs are long."""

from __future__ import annotations

import warnings

from relaylab.ir.attrs import Attrs
from relaylab.ir.expr import Call, Constant, Expr, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import OPERATORS
from relaylab.ir.types import Type
from relaylab.support.source import caret
from relaylab.support.table import did_you_mean
from relaylab.text.attributes import Written, at_attribute, attribute, call_attrs, global_name, number
from relaylab.text.reader import Stop
from relaylab.text.scalars import scalar_array, special_number
from relaylab.text.state import State
from relaylab.text.trampoline import Task
from relaylab.text.types import type_

AN_EXPRESSION = "an expression"
PLACEHOLDER = Var("error")
"""Stands for what could not be read, so that the rest of the text can be checked too."""

PRECEDENCE = {"*": 12, "/": 12, "+": 10, "-": 10, "<": 8, "<=": 8, ">": 8, ">=": 8, "==": 7, "!=": 7}
_MEANING = {
    "*": "multiply", "/": "divide", "+": "add", "-": "subtract", "<": "less", "<=": "less_equal",
    ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip
_AFTER_ATOM = frozenset((",", ")", ";", "}"))


class ParseWarning(UserWarning):
    """Text that means something else than it seems to."""


# ---- sequences of statements


def block(p: State) -> Task[Expr]:
    """`{ … }`."""
    opened = p.expect("{", "`{`")
    body = yield sequence(p, "}")
    p.expect("}", "`;` or `}`", opened)
    return body


def sequence(p: State, closing: str = "") -> Task[Expr]:
    """`let %x = a; %0 = b; c; d`, in a scope of its own. With `closing` errors in one statement do not end the others."""
    mark, lets = p.names.variables.open(), []
    while True:
        first = p.i
        try:
            body = yield _statement(p, lets)
        except Stop:
            if not closing:
                raise
            p.recover(first, closing)
            body = None if p.accept(";") else PLACEHOLDER
        if body is not None:
            break
    last = max(first, p.i - 1)
    for var, value, start in reversed(lets):
        body = Let(var, value, body, p.span(start, last))
    p.names.variables.close(mark)
    return body


def _statement(p: State, lets: list[tuple[Var, Expr, int]]) -> Task[Expr | None]:
    """One statement; the value of the sequence if it is the last, else None."""
    first, kind = p.i, p.kinds[p.i]
    if kind == "graph" and p.kinds[first + 1] == "=":
        yield _graph_binding(p)
    elif kind == "let":
        lets.append((yield _let(p)))
    elif kind == "free_var":
        yield _free_var(p)
    else:
        value = yield binary(p)
        if not p.accept(";"):
            return value
        lets.append((Var("_anon", span=p.span(first)), value, first))
    return None


_END_HELP = "every binding ends with `;`, and an expression follows the last one"


def _graph_binding(p: State) -> Task[None]:
    """`%0 = value;`: a name for a node, known in the whole text; the first binding of a number stays."""
    token = p.i
    p.i += 2
    name, known = p.texts[token], p.names.graph
    value: Expr = PLACEHOLDER
    try:
        value = yield binary(p)
        p.expect(";", "`;`", help=_END_HELP)
    finally:
        if name in known and known[name][0] is not PLACEHOLDER:
            _warn_rebinding(p, token)
        else:
            known[name] = (value, p.span(token))


def _warn_rebinding(p: State, token: int) -> None:
    name = p.texts[token]
    before = p.names.graph[name][1]
    place = caret(p.text, p.span(token))
    message = f"{name} is bound at line {before.line} already and keeps that meaning; give this node another number"
    warnings.warn(f"{message}\n{place}", ParseWarning, stacklevel=2)


def _let(p: State) -> Task[tuple[Var, Expr, int]]:
    """`let %x: T = value;`. A function, or a value without an outer `%x`, may refer to `%x` itself."""
    first = p.i
    p.i += 1
    token = p.expect("local", "a variable like %x", help="`let` binds a variable: let %x = …;")
    name = p.texts[token]
    var = Var(name[1:], (yield annotation(p)), p.span(token))
    p.expect("=", "`=` and a value")
    recursive = p.at("fn") or p.names.variable(name) is None
    if recursive:
        p.names.variables.bind(name, var)
    try:
        value = yield binary(p)
        p.expect(";", "`;`", help=_END_HELP)
    finally:
        if not recursive:
            p.names.variables.bind(name, var)
    return var, value, first


def _free_var(p: State) -> Task[None]:
    """`free_var %x: T;`: a variable that the text uses and does not bind."""
    p.i += 1
    token = p.expect("local", "a variable like %x")
    name = p.texts[token]
    p.names.free[name] = Var(name[1:], (yield annotation(p)), p.span(token))
    p.expect(";", "`;`", help="write free_var %x: T; and then the expression")


def annotation(p: State) -> Task[Type | None]:
    """`: T`, if it is there."""
    if not p.accept(":"):
        return None
    return (yield type_(p))


# ---- operators


def binary(p: State) -> Task[Expr]:
    """Operands with infix operators between them, by precedence."""
    first = p.i
    operand = simple(p)
    if operand is None:
        operand = yield postfix(p)
    if p.kinds[p.i] not in PRECEDENCE:
        return operand
    return (yield _operations(p, operand, first))


def _operations(p: State, operand: Expr, first: int) -> Task[Expr]:
    """The rest of `a + b * c`, by operator precedence; all operators associate to the left."""
    operands, operators = [(operand, first)], []
    while p.kinds[p.i] in PRECEDENCE:
        token = p.i
        p.i += 1
        while operators and PRECEDENCE[p.kinds[operators[-1]]] >= PRECEDENCE[p.kinds[token]]:
            _reduce(p, operands, operators)
        operators.append(token)
        start, atom = p.i, simple(p)
        operands.append(((yield postfix(p)) if atom is None else atom, start))
    while operators:
        _reduce(p, operands, operators)
    return operands[0][0]


def _reduce(p: State, operands: list[tuple[Expr, int]], operators: list[int]) -> None:
    """Apply the last operator to the last two operands."""
    token = operators.pop()
    (right, _), (left, first) = operands.pop(), operands.pop()
    name = _MEANING[p.kinds[token]]
    op = OPERATORS.get(name)
    if op is None:
        p.report("parse.unknown-operator", f"the operator `{name}` is not registered", p.span(token))
        operands.append((PLACEHOLDER, first))
    else:
        attrs = call_attrs(p, op, {}, None, token)
        operands.append((Call(op, (left, right), attrs, None, p.since(first)), first))


# ---- calls and projections


def postfix(p: State) -> Task[Expr]:
    """A primary expression with what is applied to it: `f(x)(y).0`."""
    first = p.i
    expr = atom(p)
    if expr is None:
        nested = NESTED.get(p.kinds[first])
        if nested is None:
            raise p.unexpected(AN_EXPRESSION)
        expr = yield nested(p)
    while True:
        kind = p.kinds[p.i]
        if kind == "(":
            expr = yield _call(p, expr, first)
        elif kind == ".":
            expr = _projection(p, expr, first)
        else:
            return expr


def _projection(p: State, expr: Expr, first: int) -> Expr:
    """`.0`, and `.0.1` (of which the lexer makes one number)."""
    p.i += 1
    token = p.expect("number", "the number of a field")
    for part in p.texts[token].split("."):
        if not part.isdigit():
            help = "fields are counted from 0: %x.0"
            raise p.stop("parse.bad-projection", f"`{p.texts[token]}` is not the number of a field", token, help)
        expr = TupleGetItem(expr, int(part), p.since(first))
    return expr


def _call(p: State, callee: Expr, first: int) -> Task[Expr]:
    """`(a, b, key=value)` after what is called."""
    opened, args = p.i, []
    written: Written = {}
    stored: Attrs | None = None
    p.i += 1
    more = not p.accept(")")
    while more:
        if at_attribute(p):
            yield attribute(p, written)
        elif (record := _stored_attrs(p)) is not None:
            stored = record
        elif written:
            raise p.unexpected("an attribute", opened, "arguments come before attributes")
        else:
            arg = simple(p)
            args.append((yield sequence(p)) if arg is None else arg)
        more = p.more(")", opened)
    attrs = call_attrs(p, callee, written, stored, opened - 1)
    return Call(callee, args, attrs, None, p.since(first))


def _stored_attrs(p: State) -> Attrs | None:
    """The record of a bare `meta[relay.attrs.X][0]`."""
    if not p.at("meta"):
        return None
    value = p.meta.lookup(p, p.i)
    if not isinstance(value, Attrs):
        return None
    p.i += 1
    return value


# ---- atoms


def simple(p: State) -> Expr | None:
    """A variable with nothing applied to it: nearly every argument of nearly every program."""
    i = p.i
    kind = p.kinds[i]
    if (kind == "local" or kind == "graph") and p.kinds[i + 1] in _AFTER_ATOM:
        return _ATOMS[kind](p)
    return None


def atom(p: State) -> Expr | None:
    """An expression without expressions inside; None (and nothing read) if there is none."""
    reader = _ATOMS.get(p.kinds[p.i])
    return None if reader is None else reader(p)


def _local(p: State) -> Expr:
    p.i += 1
    name = p.texts[p.i - 1]
    var = p.names.variable(name)
    if var is not None:
        return var
    close = did_you_mean(name, [*p.names.variables.known, *p.names.free])
    help = close or f"bind it, make it a parameter, or declare it before: free_var {name}: T;"
    p.report("parse.unbound-variable", f"{name} is not bound here", p.span(p.i - 1), help)
    p.names.free[name] = Var(name[1:])
    return p.names.free[name]


def _graph(p: State) -> Expr:
    p.i += 1
    name = p.texts[p.i - 1]
    known = p.names.graph.get(name)
    if known is None:
        help = f"write {name} = …; before its first use"
        p.report("parse.unbound-graph-variable", f"{name} is not bound before this place", p.span(p.i - 1), help)
        known = p.names.graph[name] = (PLACEHOLDER, p.span(p.i - 1))
    return known[0]


def _global(p: State) -> Expr:
    p.i += 1
    return p.names.global_var(global_name(p.texts[p.i - 1]), p.i - 1, p.span(p.i - 1))


def _number(p: State) -> Expr:
    first = p.i
    value, dtype = number(p)
    return Constant(scalar_array(value, dtype), p.since(first))


def _bool(p: State) -> Expr:
    p.i += 1
    return Constant(scalar_array(p.texts[p.i - 1] == "True", "bool"), p.span(p.i - 1))


def _meta(p: State) -> Expr:
    value = p.meta.lookup(p, p.i)
    if isinstance(value, Expr):
        p.i += 1
        return value
    raise p.stop("parse.bad-metadata", f"`{p.texts[p.i]}` is not an expression")


def _name(p: State) -> Expr:
    """A constructor or an operator: `Cons`, `nn.conv2d`."""
    first = p.i
    if special_number(p.texts[first]):
        return _number(p)
    p.i += 1
    while p.at(".") and p.kinds[p.i + 1] == "name":
        p.i += 2
    name = "".join(p.texts[first : p.i])
    ctor = p.names.constructors.get(name)
    if ctor is not None:
        return ctor if ctor.inputs or p.at("(") else Call(ctor, (), span=p.since(first))
    op = OPERATORS.get(name)
    if op is not None:
        return op
    return _unknown_name(p, name, first)


def _unknown_name(p: State, name: str, first: int) -> Expr:
    help = did_you_mean(name, [*OPERATORS, *p.names.constructors]) or "variables begin with `%`, functions with `@`"
    p.report("parse.unknown-operator", f"there is no operator or constructor named `{name}`", p.since(first), help)
    return PLACEHOLDER


_ATOMS = {
    "local": _local, "graph": _graph, "global": _global, "number": _number, "-": _number,
    "bool": _bool, "meta": _meta, "name": _name,
}  # fmt: skip


# ---- parentheses


def _parentheses(p: State) -> Task[Expr]:
    """`()`, `(a)` or a tuple."""
    opened, fields = p.i, []
    p.i += 1
    if p.accept(")"):
        return Tuple((), p.since(opened))
    while True:
        field = simple(p)
        fields.append((yield sequence(p)) if field is None else field)
        if len(fields) == 1 and p.accept(")"):
            return fields[0]
        if not p.more(")", opened):
            return Tuple(fields, p.since(opened))


NESTED = {"(": _parentheses, "{": block}
"""How expressions that hold others begin; `control` adds functions, branches, matches and cells."""
