"""Constraint generation: one walk over a program that gives every node a type, with unknowns where it must.

The walk keeps its own stack, so a chain or a nest of lets may be as long as it likes. A `let`
types its value before its body, so that the body sees a polymorphic function as what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from relaylab.analysis.infer import calls, patterns
from relaylab.analysis.infer.report import Report
from relaylab.analysis.infer.solver import FAILED, Conflict, Constraint, FailedType, Solver
from relaylab.analysis.kind import apply_headers, constructor_type, kind_fault
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
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, IncompleteType, RefType, TensorType, TupleType, Type, is_complete
from relaylab.ir.visit import children
from relaylab.support.table import did_you_mean

BOOL = TensorType((), "bool")


class Typer:
    """Types for the nodes of one or several functions of a module.

    `tainted` says that some type is `FAILED`, so that operators must look for it.

    `types` holds the type of each node met, `type_args` those of calls; `settled` names the typed
    nodes whose types may have to be found again because of what they call.
    """

    def __init__(self, mod: IRModule | None, report: Report, globals_: dict[str, Type], unsettled: Container[Expr] = ()):
        self.mod, self.report, self.globals, self.unsettled = mod, report, globals_, unsettled
        self.solver = Solver()
        self.types: dict[Expr, Type] = {}
        self.type_args: dict[Call, tuple[Type, ...]] = {}
        self.signatures: dict[Function, FuncType] = {}
        self.stack: list[tuple[Callable[[Any], None], Any]] = []
        self.tainted = False

    def run(self, root: Expr) -> Type:
        """The type of `root`, after giving one to every node below it."""
        self.push(self.visit, root)
        while self.stack:
            action, what = self.stack.pop()
            action(what)
            if self.solver.ready:
                self.solver.settle()
        return self.types[root]

    def push(self, action: Callable[[Any], None], *what: Any) -> None:
        """Do `action` next, on each in turn."""
        self.stack.extend((action, w) for w in reversed(what))

    def visit(self, node: Expr) -> None:
        if node in self.types:
            return
        known = node._checked_type
        if known is not None and node not in self.unsettled and not isinstance(node, (Var, GlobalVar)):
            self.types[node] = known
            return
        enter = _ENTER.get(type(node))
        if enter is not None:
            enter(self, node)
        else:
            self.push(self.finish, node)
            self.push(self.visit, *children(node))

    def finish(self, node: Expr) -> None:
        """Give `node` its type, those of its parts being there."""
        self.types[node] = _FINISH[type(node)](self, node)

    def of(self, node: Expr) -> Type:
        """The type of a part; each use of an operator as a value has its own."""
        return calls.operator_value(self, node) if isinstance(node, Op) else self.types[node]

    # ---- errors

    def require(self, expected: Type, found: Type, site: Expr, what: str) -> Type:
        """Unify, or report at `site` that `what` has another type; the result is what is known afterwards."""
        try:
            return self.solver.unify(expected, found)
        except Conflict as conflict:
            self.mismatch(expected, found, conflict, site, what)
            return expected

    def mismatch(self, expected: Type, found: Type, conflict: Conflict, site: Expr, what: str) -> None:
        wanted, got = self.solver.resolve(expected), self.solver.resolve(found)
        self.report.error("mismatch", f"{what}: expected {wanted}, found {got}", site, help=conflict.detail)

    def fail(self, code: str, message: str, site: Expr, help: str = "") -> Type:
        """Report an error; the type that results fits everything."""
        self.report.error(code, message, site, help=help)
        self.tainted = True
        return FAILED

    # ---- declarations

    def annotation(self, t: Type, site: Expr) -> Type:
        """A type that the program states, in its normal form."""
        t = t if is_complete(t) else apply_headers(t)
        fault = kind_fault(t, self.mod)
        return self.fail("kind", fault, site) if fault else t

    def declare(self, var: Var) -> Type:
        """The type of a variable: what it is annotated with, else an unknown."""
        if var not in self.types:
            stated = var.type_annotation
            self.types[var] = IncompleteType() if stated is None else stated if type(stated) is TensorType else self.annotation(stated, var)
        return self.types[var]

    def signature(self, fn: Function) -> FuncType:
        """The type of a function as far as it is stated; declares the parameters."""
        if fn not in self.signatures:
            params = [self.declare(p) for p in fn.params]
            ret = IncompleteType() if fn.ret_type is None else self.annotation(fn.ret_type, fn)
            self.signatures[fn] = FuncType(params, ret, fn.type_params)
        return self.signatures[fn]

    def global_type(self, gv: GlobalVar) -> Type:
        """The type of a function of the module."""
        found = self.globals.get(gv.name_hint)
        if found is None:
            names = [g.name_hint for g in self.mod.functions] if self.mod is not None else []
            found = self.fail("unknown-global", f"there is no function @{gv.name_hint} in the module", gv, did_you_mean(gv.name_hint, names))
        self.tainted = self.tainted or isinstance(found, FailedType)
        return found


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
    if isinstance(let.value, Function) and let.value not in t.types and let.value._checked_type is None:
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
    return found or t.fail("unknown-type", f"the constructor {ctor.name_hint} belongs to {ctor.belong_to}, which is not in the module", ctor)


def _finish_projection(t: Typer, node: TupleGetItem) -> Type:
    of, out = t.of(node.tuple_value), IncompleteType()

    def attempt() -> bool:
        found = t.solver.shallow(of)
        if type(found) is not IncompleteType:
            t.solver.unify(out, _field(t, node, found))
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
    t.require(_content(t, node.ref, node), t.of(node.value), place(node.value, node), "the value written to the reference")
    return TupleType(())


_ENTER: dict[type, Callable] = {Function: _enter_function, Let: _enter_let, Match: _enter_match}
_FINISH: dict[type, Callable] = {
    Var: Typer.declare,
    Constant: lambda t, node: node.type,
    GlobalVar: Typer.global_type,
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
