"""Constraint generation: one walk over a program that gives every node a type, with unknowns where it must.

The walk keeps its own stack, so a chain or a nest of lets may be as long as it likes. A `let`
types its value before its body, so that the body sees a polymorphic function as what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from relaylab.analysis.infer import calls, nodes
from relaylab.analysis.infer.report import ErrorReport
from relaylab.analysis.infer.solver import FAILED, Conflict, FailedType, Solver
from relaylab.analysis.kind import apply_headers, kind_fault
from relaylab.ir.expr import Call, Expr, Function, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, IncompleteType, TensorType, Type, is_complete
from relaylab.ir.visit import children
from relaylab.support.errors import RelayTypeError, kind_of
from relaylab.support.table import did_you_mean


class Typer:
    """Types for the nodes of one or several functions of a module.

    `types` holds the type of each node met, `type_args` those of calls; `unsettled` are the typed
    nodes whose types may have to be found again because of what they call. `tainted` says that
    some type is `FAILED`, so that operators must look for it.
    """

    def __init__(
        self, mod: IRModule | None, report: ErrorReport, globals_: dict[str, Type], unsettled: Container[Expr] = ()
    ):
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
        known = node.inferred
        if known is not None and node not in self.unsettled and not isinstance(node, (Var, GlobalVar)):
            self.types[node] = known
            return
        enter = nodes.ENTER.get(type(node))
        if enter is not None:
            enter(self, node)
        else:
            self.stack.append((self.finish, node))
            self.stack += [(self.visit, c) for c in children(node)[::-1] if c not in self.types]

    def finish(self, node: Expr) -> None:
        """Give `node` its type, those of its parts being there."""
        finish = nodes.FINISH.get(type(node))
        if finish is None:
            raise RelayTypeError(
                f"{kind_of(node)} is no part of a program",
                code="type.unknown-node",
                help="build programs of calls, lets, tuples and the other kinds of relay.expr",
            )
        self.types[node] = finish(self, node)

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
            self.types[var] = (
                IncompleteType()
                if stated is None
                else stated
                if type(stated) is TensorType
                else self.annotation(stated, var)
            )
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
            found = self.fail(
                "unknown-global",
                f"there is no function @{gv.name_hint} in the module",
                gv,
                did_you_mean(gv.name_hint, names),
            )
        self.tainted = self.tainted or isinstance(found, FailedType)
        return found
