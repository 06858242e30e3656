"""Expressions: recursive descent in generators (see `trampoline`), loops where programs are long."""

from __future__ import annotations

from relaylab.ir.adt import Constructor
from relaylab.ir.attrs import Attrs
from relaylab.ir.base import placed
from relaylab.ir.expr import Call, Expr, Let, Tuple, Var
from relaylab.ir.op import OPERATORS, Op
from relaylab.support.errors import warn
from relaylab.support.source import caret
from relaylab.support.trampoline import Task
from relaylab.text.reading.atoms import PLACEHOLDER, atom, projected, simple
from relaylab.text.reading.attributes import Written, at_attribute, attribute, call_attrs, device_of
from relaylab.text.reading.metadata import CONSTANT, slot_of
from relaylab.text.reading.older import modernize
from relaylab.text.reading.reader import Stop
from relaylab.text.reading.state import State
from relaylab.text.reading.types import type_, types

PRECEDENCE = {"*": 12, "/": 12, "+": 10, "-": 10, "<": 8, "<=": 8, ">": 8, ">=": 8, "==": 7, "!=": 7}
_MEANING = {
    "*": "multiply", "/": "divide", "+": "add", "-": "subtract", "<": "less", "<=": "less_equal",
    ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip


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
    """`let %x = a; %0 = b; c; d`, in a scope of its own; with `closing` parsing goes on after a wrong statement."""
    mark = p.names.variables.open()
    lets: list[tuple[Var, Expr, int]] = []
    while True:
        first = p.i
        try:
            body = yield _statement(p, lets)
        except Stop:
            if not closing or not p.recover(first, closing):
                raise
            body = None if p.accept(";") else PLACEHOLDER
        if body is not None:
            break
    last = max(first, p.i - 1)
    for var, value, start in reversed(lets):
        body = Let(var, value, body, span=p.span(start, last))
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
        _free_var(p)
    else:
        value = yield binary(p)
        if not p.accept(";"):
            return value
        lets.append((Var("_anon", span=p.span(first)), value, first))
    return None


_BEGINNINGS = frozenset(("graph", "local", "global", "name", "let", "if", "match", "match?", "fn", "free_var"))
_END_HELP = "every binding ends with `;`, and an expression follows the last one"


def _end(p: State) -> None:
    """The `;` of a binding; where only a new line is in its place, reading goes on."""
    if p.accept(";"):
        return
    if not p.at_new_line() or p.kinds[p.i] not in _BEGINNINGS:
        raise p.unexpected("`;`", help=_END_HELP)
    p.report("parse.unexpected-token", "expected `;` at the end of this line", p.span(p.i - 1), _END_HELP)


def _graph_binding(p: State) -> Task[None]:
    """`%0 = value;`: a name for a node, until a later function binds it; in one function the first binding stays."""
    token = p.i
    p.i += 2
    name, known = p.texts[token], p.names.graph
    value: Expr = PLACEHOLDER
    try:
        value = yield binary(p)
        _end(p)
    finally:
        if name in p.names.own and known[name][0] is not PLACEHOLDER:
            _warn_rebinding(p, token)
        else:
            known[name] = (value, p.span(token))
            p.names.own.add(name)


def _warn_rebinding(p: State, token: int) -> None:
    name = p.texts[token]
    before = p.names.graph[name][1]
    place = caret(p.text, p.span(token))
    message = f"{name} is bound at line {before.line} already and keeps that meaning; give this node another number"
    warn(f"{message}\n{place}", ParseWarning)


def _let(p: State) -> Task[tuple[Var, Expr, int]]:
    """`let %x: T = value;`. A function may refer to `%x` itself, and so may one within a value, if no outer `%x` is."""
    first = p.i
    p.i += 1
    token = p.expect("local", "a variable like %x", help="`let` binds a variable: let %x = …;")
    name = p.texts[token]
    var = variable(p, token)
    p.expect("=", "`=` and a value")
    waiting, recursive = p.names.waiting, p.at("fn")
    if recursive:
        p.names.variables.bind(name, var)
    elif p.names.variable(name) is None:
        p.names.waiting = (var, waiting)
    try:
        value = yield binary(p)
        _end(p)
    finally:
        p.names.waiting = waiting
        if not recursive:
            p.names.variables.bind(name, var)
    return var, value, first


def _free_var(p: State) -> None:
    """`free_var %x: T;`: a variable that the text uses and does not bind."""
    p.i += 1
    token = p.expect("local", "a variable like %x")
    name = p.texts[token]
    p.names.free[name] = variable(p, token)
    if not p.at_new_line():  # TVM before 0.8 prints no `;` here
        p.expect(";", "`;`", help="write free_var %x: T; and then the expression")
    p.accept(";")


def variable(p: State, token: int) -> Var:
    """The variable that the token before names, with ` {virtual_device=…}: T` if that is there."""
    written: Written = {}
    if p.kinds[p.i : p.i + 3] == ["{", "name", "="]:
        opened = p.expect("{")
        attribute(p, written)
        p.expect("}", opened=opened)
    typ = type_(p) if p.accept(":") else None
    return placed(Var(p.texts[token][1:], typ, span=p.span(token)), device_of(written))


# ---- operators

_FOREIGN = {
    "@": "Relay has no `@`: write nn.matmul(a, b), or nn.dense(a, w) for weights that are transposed",
    "%": "Relay has no `%` between expressions: write mod(a, b) or floor_mod(a, b)",
    "?": "write if (a) { b } else { c }, or where(a, b, c) for every element",
    "!": "write logical_not(a)",
    ":": "a type stands behind a variable that is bound, let %x: T = …;, the new content of a cell in ref_write(r, a)",
    "=": "a name gets its value by let %x = …; or %0 = …;",
    "and": "write logical_and(a, b)",
    "or": "write logical_or(a, b)",
    "not": "write logical_not(a)",
    "if": "write if (a) { b } else { c }",
}
"""What stands behind an expression in other languages, and how Relay says it."""
_NO_VALUE = {
    "string": "Relay has no texts as values, only as attributes",
    "}": "a body ends with its value: an expression behind the last `;`, or () for nothing",
    "def": "a function within another is a value: let %f = fn (…) { … };",
}
"""What is found where a value should begin."""


def binary(p: State) -> Task[Expr]:
    """Operands with infix operators between them, by precedence."""
    first = p.i
    operand = simple(p)
    if operand is None:
        operand = yield postfix(p)
    kind = p.kinds[p.i]
    if kind not in PRECEDENCE:
        if p.texts[p.i] in _FOREIGN and kind != "string" and not p.at_new_line():
            raise p.unexpected("`;` or the end of the expression", help=_FOREIGN[p.texts[p.i]])
        return operand
    return (yield _operations(p, operand, first))


def _operations(p: State, operand: Expr, first: int) -> Task[Expr]:
    """The rest of `a + b * c`, by operator precedence; all operators associate to the left."""
    operands = [(operand, first)]
    operators: list[int] = []
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
        operands.append((Call(op, (left, right), attrs, None, span=p.since(first)), first))


# ---- calls and projections


def postfix(p: State) -> Task[Expr]:
    """A primary expression with what is applied to it: `f(x)(y).0`."""
    first = p.i
    expr = atom(p)
    if expr is None:
        nested = p.nested.get(p.kinds[first])
        if nested is None:
            power = p.kinds[first] == "*" == p.kinds[first - 1]
            help = "write power(a, b)" if power else _NO_VALUE.get(p.kinds[first]) or _FOREIGN.get(p.texts[first], "")
            raise p.unexpected("an expression", help=help)
        expr = yield nested(p)
    while True:
        kind = p.kinds[p.i]
        if kind == "(" or kind == "[":
            expr = yield _call(p, expr, first)
        elif kind == ".":
            expr = _projection(p, expr, first)
        else:
            return expr


def _projection(p: State, expr: Expr, first: int) -> Expr:
    """`.0`, and `.0.1` (of which the lexer makes one number)."""
    p.i += 1
    token = p.expect("number", "the number of a field")
    return projected(p, expr, p.texts[token], token, first)


_INDEX = "write take(a, 0, axis=0) for an element, strided_slice for a part, a.0 for a field of a tuple"


def _call(p: State, callee: Expr, first: int) -> Task[Expr]:
    """`(a, b, key=value)` after what is called, and before it `[A, B]`, which a constructor of nothing may end with."""
    if p.at("[") and p.kinds[p.i + 1] in ("number", "-", ":"):
        raise p.unexpected("`;` or the end of the expression", help=_INDEX)
    given = types(p, "]", p.i - 1) if p.accept("[") else ()
    opened = p.i
    args: list[Expr] = []
    if given and isinstance(callee, Constructor) and not callee.inputs and not p.at("("):
        return Call(callee, (), None, given, span=p.since(first))
    p.expect("(", "`(` and the arguments")
    written: Written = {}
    stored: Attrs | None = None
    more = not p.accept(")")
    while more:
        if at_attribute(p):
            attribute(p, written)
        elif (record := _stored_attrs(p)) is not None:
            stored = record
        elif written:
            raise p.unexpected("an attribute", opened, "arguments come before attributes")
        else:
            arg = simple(p)
            args.append((yield sequence(p)) if arg is None else arg)
        more = p.more(")", opened)
    if written and isinstance(callee, Op):
        modernize(callee.name, args, written)
    attrs = call_attrs(p, callee, written, stored, opened - 1)
    return Call(callee, args, attrs, given or None, span=p.since(first))


def _stored_attrs(p: State) -> Attrs | None:
    """The record of a bare `meta[relay.attrs.X][0]`."""
    if not p.at("meta") or slot_of(p.texts[p.i])[0] == CONSTANT:
        return None
    value = p.meta.lookup(p, p.i)
    if not isinstance(value, Attrs):
        return None
    p.i += 1
    return value


# ---- parentheses


def parentheses(p: State) -> Task[Expr]:
    """`()`, `(a)` or a tuple."""
    opened = p.i
    fields: list[Expr] = []
    p.i += 1
    if p.accept(")"):
        return Tuple((), span=p.since(opened))
    while True:
        field = simple(p)
        fields.append((yield sequence(p)) if field is None else field)
        if len(fields) == 1 and p.accept(")"):
            return fields[0]
        if not p.more(")", opened):
            return Tuple(fields, span=p.since(opened))
