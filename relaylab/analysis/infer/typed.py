"""From a solution to a typed program: nodes whose type is known already stay the same objects."""

from __future__ import annotations

from typing import TypeVar, cast

from relaylab.analysis.infer.typer import Typer
from relaylab.ir.adt import Constructor
from relaylab.ir.base import placed
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Var, set_type
from relaylab.ir.node import set_field
from relaylab.ir.op import Op
from relaylab.ir.trail import kept_trail
from relaylab.ir.types import FuncType, IncompleteType, TensorType, Type
from relaylab.ir.visit import children, remake, walk

E = TypeVar("E", bound=Expr)
SHARED = (Op, GlobalVar, Constructor, Constant)
"""Nodes that belong to no program in particular; they are never replaced."""


class Rebuilder:
    """Makes the typed nodes of what a `Typer` has solved; `memo` maps old nodes to them."""

    def __init__(self, typer: Typer):
        self.typer = typer
        self.memo: dict[Expr, Expr] = {}
        self.open: dict[Expr, list[IncompleteType]] = {}

    def rebuild(self, root: Expr) -> Expr:
        """The typed form of `root`."""
        trail = kept_trail()
        for node in walk((root,), self._below):
            new = self.memo[node] = self._typed(node)
            if trail is not None and new is not node:
                trail.record(node, new)
        return self.memo[root]

    def _is_settled(self, node: Expr) -> bool:
        return node.inferred is not None and node not in self.typer.unsettled

    def _below(self, node: Expr) -> tuple[Expr, ...]:
        return () if node in self.memo or self._is_settled(node) else children(node)

    def _typed(self, node: Expr) -> Expr:
        if node in self.memo:
            return self.memo[node]
        if type(node) in SHARED or self._is_settled(node):
            return node
        found = self._resolve(node, self.typer.types[node])
        if type(node) is Var:
            return _typed_var(node, found)
        old = children(node)
        parts = tuple([self.memo[c] for c in old])
        args = self._type_args(node)
        if node.inferred == found and parts == old and args == getattr(node, "type_args", ()):
            return node
        return retyped(node, parts, found, args)

    def _resolve(self, node: Expr, t: Type) -> Type:
        if type(t) is TensorType:
            return t
        t = self.typer.solver.resolve(t)
        unknowns = self.typer.solver.unknowns(t)
        if unknowns:
            self.open[node] = unknowns
        return t

    def _type_args(self, node: Expr) -> tuple[Type, ...]:
        if not isinstance(node, Call):
            return ()
        if node not in self.typer.type_args:
            return node.type_args
        args = self.typer.type_args[node]
        for a in args:
            if type(a) is not TensorType:
                args = tuple([self._resolve(node, a) for a in args])
                break
        return node.type_args if args == node.type_args else args

    def report_open(self, root: Expr) -> None:
        """Report what stayed unknown: once for each unknown, at the expression that should have told."""
        if not self.open:
            return
        reported: set[IncompleteType] = set()
        order = [n for n in walk((root,)) if n in self.open]
        bound = {n.var for n in walk((root,)) if isinstance(n, Let)}
        for node in order:
            if node in bound or reported.issuperset(self.open[node]):
                continue
            if not any(c in self.open for c in children(node)):
                self._report_open(node)
            reported.update(self.open[node])
        if order and not self.typer.report:
            self._report_open(order[0])

    def _report_open(self, node: Expr) -> None:
        self.typer.report.error("unresolved", *_unresolved(node, self.typer.solver.resolve(self.typer.types[node])))


def retyped(node: Expr, parts: tuple[Expr, ...], found: Type, args: tuple[Type, ...]) -> Expr:
    """The typed form of a node, of the typed forms of its parts; `args` are the type arguments of a call."""
    new: Expr
    if isinstance(node, Call):
        new = Call.of_parts(parts[0], parts[1:], node.attrs, args, node.span)
    elif isinstance(node, Function):
        params, ret_type = cast("tuple[Var, ...]", parts[:-1]), cast(FuncType, found).ret_type
        made = Function(params, parts[-1], ret_type, node.type_params, node.attrs, span=node.span)
        new = placed(made, node.device)
    else:
        new = remake(node, parts)
    return _with_type(new, found, node)


def _unresolved(node: Expr, found: Type) -> tuple[str, Expr, str]:
    if isinstance(node, Var):
        return (
            f"the type of %{node.name_hint} cannot be inferred from its uses",
            node,
            f'annotate it: relay.var("{node.name_hint}", shape=(…), dtype=…)',
        )
    known = f": only {found} is known" if not isinstance(found, IncompleteType) else ""
    return (
        f"the type of this expression cannot be inferred{known}",
        node,
        "annotate the variables or the result of the function it is used in",
    )


def _typed_var(var: Var, found: Type) -> Var:
    if var.type_annotation is not None and var.inferred == found:
        return var
    return _with_type(placed(Var(var.name_hint, found, span=var.span), var.device), found, var)


def _with_type(new: E, found: Type, old: Expr) -> E:
    set_type(new, found)
    set_field(new, "span", old.span)
    return new
