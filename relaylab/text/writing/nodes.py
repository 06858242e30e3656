"""What each kind of node looks like, once the printer knows what stands for its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab import ir
from relaylab.support.trampoline import Task
from relaylab.text.reading.metadata import CONSTANT
from relaylab.text.scalars import scalar_text
from relaylab.text.writing.attribute_text import call_attributes
from relaylab.text.writing.doc import IN, NL, OUT, Doc, braces, joined
from relaylab.text.writing.naming import global_text

if TYPE_CHECKING:
    from relaylab.text.writing.printer import Printer

# ---- nodes that hold no scopes: their parts are known already


def _call(p: Printer, e: ir.Call) -> Doc:
    args = [p.place(a) for a in e.args]
    args += call_attributes(e.attrs, e.op, p.meta, p.stored)
    callee = p.place(e.op)
    given = e.type_args if e in p.given or (e.inferred is None and not isinstance(e.op, ir.Op)) else ()
    types = f"[{', '.join(map(p.types.text, given))}]" if given else ""
    if not args and isinstance(e.op, ir.Constructor) and not e.op.inputs:
        return [callee, types]
    return [callee, types, "(", *joined(args), ")"]


def _tuple(p: Printer, e: ir.Tuple) -> Doc:
    fields = [p.place(f) for f in e.fields]
    return ["(", fields[0], ",)"] if len(fields) == 1 else ["(", *joined(fields), ")"]


def _projection(p: Printer, e: ir.TupleGetItem) -> Doc:
    value = p.place(e.tuple_value)
    if type(e.tuple_value) is ir.Constant or (p.dotted and type(e.tuple_value) is ir.Var):
        value = ["(", value, ")"]  # or else the dot would be part of the number, or of another name
    return [value, f".{e.index}"]


def _constant(p: Printer, e: ir.Constant) -> Doc:
    text = scalar_text(e.data) if e.data.ndim == 0 else None
    return p.meta.reference(CONSTANT, e) if text is None else text


def _variable(p: Printer, e: ir.Var) -> Doc:
    return p.variable(e)


def _global_var(p: Printer, e: ir.GlobalVar) -> Doc:
    return global_text(e.name_hint)


def _op(p: Printer, e: ir.Op) -> Doc:
    return e.name


def _constructor(p: Printer, e: ir.Constructor) -> Doc:
    return e.name_hint


def unknown(p: Printer, e: ir.Expr) -> Doc:
    return f"<{type(e).__name__}>"


FLAT: dict[type, Callable[..., Doc]] = {
    ir.Call: _call,
    ir.Tuple: _tuple,
    ir.TupleGetItem: _projection,
    ir.Constant: _constant,
    ir.Var: _variable,
    ir.GlobalVar: _global_var,
    ir.Op: _op,
    ir.Constructor: _constructor,
}

# ---- nodes that hold scopes, or whose parts are written one after the other


def _part(p: Printer, e: ir.Expr) -> Task[Doc]:
    """What stands for a part that is evaluated where it stands."""
    yield p.expand(e)
    return p.place(e)


def _let(p: Printer, e: ir.Let) -> Task[Doc]:
    """A chain of lets; what a value needs is written before its `let`."""
    parts = [(yield _binding(p, e)), NL]
    outer, p.lines = p.lines, []
    body = e.body
    while type(body) is ir.Let and body not in p.raw and p.left.get(body, 0) <= 1:
        line = yield _binding(p, body)
        p.lines += [line, NL]
        body = body.body
    yield p.expand(body)
    parts += [p.lines, p.place(body, inline=True)]
    p.lines = outer
    return parts


def _binding(p: Printer, e: ir.Let) -> Task[Doc]:
    """`let %x: T = value;`"""
    name = p.bind(e.var)
    yield p.expand(e.value)
    if type(e.value) is ir.Let and e.value not in p.placed:
        p.raw[e.value] = parentheses(p.raw[e.value])
    value = p.place(e.value, inline=True)
    return [(e, ["let ", name, " = ", value, ";"]), *p.info(e)]


def parentheses(raw: Doc) -> Doc:
    """A let that does not end a scope."""
    return ["(", IN, NL, raw, OUT, NL, ")"]


def _if(p: Printer, e: ir.If) -> Task[Doc]:
    cond = yield _part(p, e.cond)
    first = yield p.scope(e.true_branch)
    second = yield p.scope(e.false_branch)
    return ["if (", cond, ") ", braces(first), " else ", braces(second)]


def _match(p: Printer, e: ir.Match) -> Task[Doc]:
    data = yield _part(p, e.data)
    clauses: list[Doc] = []
    for c in e.clauses:
        clauses.append([(yield clause(p, c)), ","])
    return ["match (" if e.complete else "match? (", data, ") ", braces(joined(clauses, NL))]


def clause(p: Printer, c: ir.Clause) -> Task[Doc]:
    """`pattern => { … }`"""
    lhs = pattern(p, c.lhs)
    return [lhs, " => ", braces((yield p.scope(c.rhs)))]


def pattern(p: Printer, lhs: ir.Pattern) -> Doc:
    """A pattern with the variables that it binds."""
    match lhs:
        case ir.PatternVar():
            return p.bind(lhs.var)
        case ir.PatternConstructor():
            inside = joined([pattern(p, part) for part in lhs.patterns])
            return [lhs.constructor.name_hint, "(", *inside, ")"] if inside else lhs.constructor.name_hint
        case ir.PatternTuple():
            inside = joined([pattern(p, part) for part in lhs.patterns])
            return ["(", *inside, ",)" if len(inside) == 1 else ")"]
        case _:
            return "_"


def _ref(p: Printer, e: ir.RefCreate | ir.RefRead) -> Task[Doc]:
    inside = yield _part(p, ir.children(e)[0])
    return ["ref(" if isinstance(e, ir.RefCreate) else "ref_read(", inside, ")"]


def _ref_write(p: Printer, e: ir.RefWrite) -> Task[Doc]:
    ref = yield _part(p, e.ref)
    value = yield _part(p, e.value)
    return ["ref_write(", ref, ", ", value, ")"]


def _function(p: Printer, e: ir.Function) -> Task[Doc]:
    return p.function(e)


NESTED: dict[type, Callable[..., Task[Doc]]] = {
    ir.Function: _function,
    ir.Let: _let,
    ir.If: _if,
    ir.Match: _match,
    ir.RefCreate: _ref,
    ir.RefRead: _ref,
    ir.RefWrite: _ref_write,
}
