"""The typing rules, one for each kind of node but calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.analysis.infer import calls, patterns
from relaylab.analysis.infer.solver import FAILED, Constraint, FailedType
from relaylab.analysis.kind import constructor_type
from relaylab.ir.adt import Clause, Constructor, Match
from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, IncompleteType, RefType, TensorType, TupleType, Type
from relaylab.ir.visit import children

if TYPE_CHECKING:
    from relaylab.analysis.infer.typer import Typer

BOOL = TensorType((), "bool")


def place(part: Expr, whole: Expr) -> Expr:
    """Where to show an error about `part`: at `whole` if it is only a name or a constant."""
    return whole if not children(part) else part


# ---- nodes that open scopes


def _enter_function(t: Typer, fn: Function) -> None:
    t.signature(fn)
    t.push(t.finish, fn)
    t.push(t.visit, fn.body)


def _finish_function(t: Typer, fn: Function) -> Type:
    signature = t.signature(fn)
    ret = t.require(signature.ret_type, t.of(fn.body), place(fn.body, fn), "the result of the function")
    return FuncType(signature.arg_types, signature.ret_type if fn.ret_type is not None else ret, fn.type_params)


def _enter_let(t: Typer, let: Let) -> None:
    if isinstance(let.value, Function) and let.value not in t.types and let.value.inferred is None:
        signature = t.signature(let.value)
        stated = let.var.type_annotation
        t.types[let.var] = signature if stated is None else t.declare(let.var)
    t.push(t.finish, let)
    t.push(t.visit, let.body)
    t.push(lambda let: _bind_let(t, let), let)
    t.push(t.visit, let.value)


def _bind_let(t: Typer, let: Let) -> None:
    found = t.of(let.value)
    if let.var.type_annotation is None and (let.var not in t.types or isinstance(let.value, Function)):
        t.types[let.var] = found
    else:
        t.require(t.declare(let.var), found, place(let.value, let), f"the value of %{let.var.name_hint}")


def _enter_match(t: Typer, match: Match) -> None:
    def open_clause(clause: Clause) -> None:
        patterns.bind(t, clause.lhs, t.of(match.data), match)

    t.push(t.finish, match)
    for clause in reversed(match.clauses):
        t.push(t.visit, clause.rhs)
        t.push(open_clause, clause)
    t.push(t.visit, match.data)


def _finish_match(t: Typer, match: Match) -> Type:
    patterns.check_complete(t, match)
    out: Type = IncompleteType()
    for clause in match.clauses:
        out = t.require(out, t.of(clause.rhs), place(clause.rhs, match), "the result of this clause")
    return out


# ---- the other nodes


def _finish_if(t: Typer, node: If) -> Type:
    t.require(BOOL, t.of(node.cond), place(node.cond, node), "the condition of an if")
    return t.require(t.of(node.true_branch), t.of(node.false_branch), node, "the branches of an if must agree")


def _finish_constructor(t: Typer, ctor: Constructor) -> Type:
    found = constructor_type(ctor, t.mod)
    return found or t.fail(
        "unknown-type",
        f"the constructor {ctor.name_hint} belongs to {ctor.belong_to}, which is not in the module",
        ctor,
    )


def _finish_projection(t: Typer, node: TupleGetItem) -> Type:
    of, out = t.of(node.tuple_value), IncompleteType()

    def attempt() -> bool:
        found = t.solver.shallow(of)
        if type(found) is not IncompleteType:
            t.require(out, _field(t, node, found), node, "the field of the tuple")
        return type(found) is not IncompleteType

    if isinstance(known := t.solver.shallow(of), TupleType):
        return _field(t, node, known)
    t.solver.post(Constraint(attempt, (of,)))
    return out


def _field(t: Typer, node: TupleGetItem, found: Type) -> Type:
    if isinstance(found, FailedType):
        return found
    if not isinstance(found, TupleType):
        return t.fail("not-a-tuple", f"a projection needs a tuple, found {t.solver.resolve(found)}", node)
    if node.index >= len(found.fields):
        return t.fail("tuple-index", f"there is no field {node.index} in {t.solver.resolve(found)}", node)
    return found.fields[node.index]


def _content(t: Typer, ref: Expr, site: Expr) -> Type:
    found = t.solver.shallow(t.of(ref))
    if isinstance(found, RefType):
        return found.value
    content = IncompleteType()
    t.require(RefType(content), found, site, "a reference is needed here")
    return content


def _finish_write(t: Typer, node: RefWrite) -> Type:
    t.require(
        _content(t, node.ref, node), t.of(node.value), place(node.value, node), "the value written to the reference"
    )
    return TupleType(())


ENTER: dict[type, Callable] = {Function: _enter_function, Let: _enter_let, Match: _enter_match}
FINISH: dict[type, Callable] = {
    Var: lambda t, var: t.declare(var),
    Constant: lambda t, node: node.type,
    GlobalVar: lambda t, gv: t.global_type(gv),
    Constructor: _finish_constructor,
    Op: lambda t, node: FAILED,
    Call: calls.finish_call,
    Tuple: lambda t, node: TupleType([t.of(f) for f in node.fields]),
    TupleGetItem: _finish_projection,
    Function: _finish_function,
    Let: lambda t, node: t.of(node.body),
    If: _finish_if,
    Match: _finish_match,
    RefCreate: lambda t, node: RefType(t.of(node.value)),
    RefRead: lambda t, node: _content(t, node.ref, node),
    RefWrite: _finish_write,
}
