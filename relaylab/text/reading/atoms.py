"""Expressions that hold no expressions: variables, literals, operators, constructors.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from relaylab.ir.expr import Call, Constant, Expr, TupleGetItem, Var
from relaylab.ir.op import OPERATORS
from relaylab.text.reading import holes
from relaylab.text.reading.attributes import global_name, number
from relaylab.text.reading.metadata import CONSTANT, slot_of
from relaylab.text.reading.older import in_words, renamed
from relaylab.text.reading.state import State
from relaylab.text.scalars import BadNumber, scalar_array, special_number, whole

PLACEHOLDER = Var("error")
"""Stands for what could not be read, so that the rest of the text can be checked too."""
_AFTER_ATOM = frozenset((",", ")", ";", "}"))


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
    head, fields = _known_part(p, name)
    var = p.names.variable(head)
    if var is not None:
        return projected(p, var, fields, p.i - 1, p.i - 1)
    name = head
    close = p.near(name, [*p.names.variables.known, *p.names.free])
    help = close or f"bind it, make it a parameter, or declare it before: free_var {name}: T;"
    if (divided := name.partition("/")[0]) != name and p.names.variable(divided) is not None:
        help = f"`/` is a letter of names: a division has spaces, {divided} / …"
    p.report("parse.unbound-variable", f"{name} is not bound here", p.span(p.i - 1), help)
    p.names.free[name] = Var(name[1:])
    return p.names.free[name]


def _known_part(p: State, name: str) -> tuple[str, str]:
    """`%x` and `0.1` of `%x.0.1`, unless that is the name of a variable."""
    head, fields = name, ""
    while "." in head and p.names.variable(head) is None:
        before, _, last = head.rpartition(".")
        if not last.isdigit() and p.names.variable(before) is None:
            break
        head, fields = before, f"{last}.{fields}" if fields else last
    return head, fields


def projected(p: State, expr: Expr, fields: str, token: int, first: int) -> Expr:
    """`expr.0.1` for the `0.1` in a token, where the expression begins at `first`."""
    for part in fields.split("."):
        if not part.isdigit():
            help = "shape_of(%x) gives the shape" if part == "shape" else "fields are counted from 0: %x.0"
            raise p.stop("parse.bad-projection", f"`{fields}` is not the number of a field", token, help)
        try:
            expr = TupleGetItem(expr, whole(part), span=p.since(first))
        except BadNumber as bad:
            raise p.stop(bad.args[0], bad.args[1], token, bad.args[2]) from None
    return expr


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
    return Constant(scalar_array(value, dtype), span=p.since(first))


def _bool(p: State) -> Expr:
    p.i += 1
    return Constant(scalar_array(p.texts[p.i - 1] == "True", "bool"), span=p.span(p.i - 1))


def _meta(p: State) -> Expr:
    key, index = slot_of(p.texts[p.i])
    if key == CONSTANT and not p.meta.holds(key):
        p.i += 1
        return holes.constant(p, index)
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
        return ctor if ctor.inputs or p.at("(") or p.at("[") else Call(ctor, (), span=p.since(first))
    op = OPERATORS.get(renamed(name))
    if op is not None:
        return op
    return _unknown_name(p, name, first)


def _unknown_name(p: State, name: str, first: int) -> Expr:
    near = p.near(name, [*OPERATORS, *p.names.constructors])
    if p.names.variable(f"%{name}") is not None:
        near = f"write `%{name}`: variables begin with `%`"
    elif p.at(":"):
        near = f"an attribute is written {name}=…"
    elif name in p.names.globals:
        near = f"write `@{name}`: functions begin with `@`"
    help = in_words(name) or near or "variables begin with `%`, functions with `@`"
    p.report("parse.unknown-operator", f"there is no operator or constructor named `{name}`", p.since(first), help)
    return PLACEHOLDER


_ATOMS = {
    "local": _local, "graph": _graph, "global": _global, "number": _number, "-": _number,
    "bool": _bool, "meta": _meta, "name": _name,
}  # fmt: skip
