"""The typing rules, one for each kind of node but calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab import ir
from relaylab.analysis.infer import calls, patterns
from relaylab.analysis.infer.solver import FAILED, Constraint, FailedType
from relaylab.analysis.kind import constructor_type

if TYPE_CHECKING:
    from relaylab.analysis.infer.typer import Typer

BOOL = ir.TensorType((), "bool")


def place(part: ir.Expr, whole: ir.Expr) -> ir.Expr:
    """Where to show an error about `part`: at `whole` if it is only a name or a constant."""
    return whole if not ir.children(part) else part


# ---- nodes that open scopes


def _enter_function(t: Typer, fn: ir.Function) -> None:
    t.signature(fn)
    t.push(t.finish, fn)
    t.push(t.visit, fn.body)


def _finish_function(t: Typer, fn: ir.Function) -> ir.Type:
    signature = t.signature(fn)
    ret = t.require(signature.ret_type, t.of(fn.body), place(fn.body, fn), "the result of the function")
    return ir.FuncType(signature.arg_types, signature.ret_type if fn.ret_type is not None else ret, fn.type_params)


def _enter_let(t: Typer, let: ir.Let) -> None:
    if isinstance(let.value, ir.Function) and let.value not in t.types and let.value.inferred is None:
        signature = t.signature(let.value)
        stated = let.var.type_annotation
        t.types[let.var] = signature if stated is None else t.declare(let.var)
    t.push(t.finish, let)
    t.push(t.visit, let.body)
    t.push(lambda let: _bind_let(t, let), let)
    t.push(t.visit, let.value)


def _bind_let(t: Typer, let: ir.Let) -> None:
    found = t.of(let.value)
    if let.var.type_annotation is None and (let.var not in t.types or isinstance(let.value, ir.Function)):
        t.types[let.var] = found
    else:
        t.require(t.declare(let.var), found, place(let.value, let), f"the value of %{let.var.name_hint}")


def _enter_match(t: Typer, match: ir.Match) -> None:
    def open_clause(clause: ir.Clause) -> None:
        patterns.bind(t, clause.lhs, t.of(match.data), match)

    t.push(t.finish, match)
    for clause in reversed(match.clauses):
        t.push(t.visit, clause.rhs)
        t.push(open_clause, clause)
    t.push(t.visit, match.data)


def _finish_match(t: Typer, match: ir.Match) -> ir.Type:
    patterns.check_complete(t, match)
    out: ir.Type = ir.IncompleteType()
    for clause in match.clauses:
        out = t.require(out, t.of(clause.rhs), place(clause.rhs, match), "the result of this clause")
    return out


# ---- the other nodes


def _finish_if(t: Typer, node: ir.If) -> ir.Type:
    t.require(BOOL, t.of(node.cond), place(node.cond, node), "the condition of an if")
    return t.require(t.of(node.true_branch), t.of(node.false_branch), node, "the branches of an if must agree")


def _finish_constructor(t: Typer, ctor: ir.Constructor) -> ir.Type:
    found = constructor_type(ctor, t.mod)
    return found or t.fail(
        "unknown-type",
        f"the constructor {ctor.name_hint} belongs to {ctor.belong_to}, which is not in the module",
        ctor,
    )


def _finish_projection(t: Typer, node: ir.TupleGetItem) -> ir.Type:
    of, out = t.of(node.tuple_value), ir.IncompleteType()

    def attempt() -> bool:
        found = t.solver.shallow(of)
        if type(found) is not ir.IncompleteType:
            t.require(out, _field(t, node, found), node, "the field of the tuple")
        return type(found) is not ir.IncompleteType

    if isinstance(known := t.solver.shallow(of), ir.TupleType):
        return _field(t, node, known)
    t.solver.post(Constraint(attempt, (of,)))
    return out


def _field(t: Typer, node: ir.TupleGetItem, found: ir.Type) -> ir.Type:
    if isinstance(found, FailedType):
        return found
    if not isinstance(found, ir.TupleType):
        return t.fail("not-a-tuple", f"a projection needs a tuple, found {t.solver.resolve(found)}", node)
    if node.index >= len(found.fields):
        return t.fail("tuple-index", f"there is no field {node.index} in {t.solver.resolve(found)}", node)
    return found.fields[node.index]


def _content(t: Typer, ref: ir.Expr, site: ir.Expr) -> ir.Type:
    found = t.solver.shallow(t.of(ref))
    if isinstance(found, ir.RefType):
        return found.value
    content = ir.IncompleteType()
    t.require(ir.RefType(content), found, site, "a reference is needed here")
    return content


def _finish_write(t: Typer, node: ir.RefWrite) -> ir.Type:
    t.require(
        _content(t, node.ref, node), t.of(node.value), place(node.value, node), "the value written to the reference"
    )
    return ir.TupleType(())


ENTER: dict[type, Callable] = {ir.Function: _enter_function, ir.Let: _enter_let, ir.Match: _enter_match}
FINISH: dict[type, Callable] = {
    ir.Var: lambda t, var: t.declare(var),
    ir.Constant: lambda t, node: node.type,
    ir.GlobalVar: lambda t, gv: t.global_type(gv),
    ir.Constructor: _finish_constructor,
    ir.Op: lambda t, node: FAILED,
    ir.Call: calls.finish_call,
    ir.Tuple: lambda t, node: ir.TupleType([t.of(f) for f in node.fields]),
    ir.TupleGetItem: _finish_projection,
    ir.Function: _finish_function,
    ir.Let: lambda t, node: t.of(node.body),
    ir.If: _finish_if,
    ir.Match: _finish_match,
    ir.RefCreate: lambda t, node: ir.RefType(t.of(node.value)),
    ir.RefRead: lambda t, node: _content(t, node.ref, node),
    ir.RefWrite: _finish_write,
}
