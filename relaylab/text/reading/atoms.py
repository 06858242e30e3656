"""Expressions that hold no expressions: variables, literals, operators, constructors."""

from __future__ import annotations

from relaylab.ir.expr import Call, Constant, Expr, Var
from relaylab.ir.op import OPERATORS
from relaylab.support.table import did_you_mean
from relaylab.text.reading.attributes import global_name, number
from relaylab.text.reading.state import State
from relaylab.text.scalars import scalar_array, special_number

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
    return Constant(scalar_array(value, dtype), span=p.since(first))


def _bool(p: State) -> Expr:
    p.i += 1
    return Constant(scalar_array(p.texts[p.i - 1] == "True", "bool"), span=p.span(p.i - 1))


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
