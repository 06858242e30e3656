"""What of a program becomes a box, and which group it is in: the scopes, aliases and inlined kernels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from relaylab.ir import Call, Constant, Constructor, Expr, Function, GlobalVar, If, Let, Match, Op, Var, free_vars
from relaylab.ir.scope import Scope, scopes
from relaylab.ir.visit import post_order, users

Key = tuple[Expr, int]
"""A group: the node that opens the scope and which of its scopes it is."""

ATOMS = (Var, Constant, GlobalVar, Op, Constructor)
FEW = 4
"""A function with more parameters than this draws only its first one as a node; the others are operand rows."""


@dataclass(slots=True)
class BoxPlan:
    """One function (or expression) analysed for drawing; `name` is what it is called in ids."""

    root: Expr
    name: str
    params: str = "rows"
    inputs: Collection[str] | None = None
    order: list[Expr] = field(init=False)
    homes: dict[Expr, Scope] = field(init=False)
    uses: dict[Expr, list[Expr]] = field(init=False)
    inlined: dict[Call, Function] = field(init=False)
    kernels: dict[Function, Call] = field(init=False)
    alias: dict[Var, Expr] = field(init=False)
    bound: dict[Var, Let] = field(init=False)
    drawn_vars: set[Var] = field(init=False)
    spine: set[Let] = field(init=False)
    _groups: dict[Scope, Key | None] = field(init=False)
    _resolved: dict[Expr, Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order = post_order(self.root)
        self.homes = scopes(self.root, self.order)
        self.uses = users(self.root, self.order)
        calls = [c for c in self.order if isinstance(c, Call) and self._is_kernel(c)]
        self.inlined = {c: c.op for c in calls if isinstance(c.op, Function)}
        self.kernels = {f: c for c, f in self.inlined.items()}
        self.bound = {e.var: e for e in self.order if isinstance(e, Let)}
        self.alias = {v: e.value for v, e in self.bound.items()}
        for call, func in self.inlined.items():
            self.alias.update(zip(func.params, call.args))
        self.drawn_vars = self._drawn_vars()
        self.spine = self._spine()
        self._groups = {}

    # -- kernels, variables, lets ----------------------------------------------------------------

    def _is_kernel(self, call: Call) -> bool:
        """Whether the call's function is called here only and can be drawn as a box in the flow of values."""
        func = call.op
        if not isinstance(func, Function) or len(self.uses[func]) != 1 or len(func.params) != len(call.args):
            return False
        return not isinstance(func.body, ATOMS) and self.homes[func.body].owner is func

    def _drawn_vars(self) -> set[Var]:
        if self.params == "hide":
            return set()
        functions = [e for e in self.order if isinstance(e, Function) and e not in self.kernels]
        lists = [f.params for f in functions]
        if not isinstance(self.root, Function):
            lists.append(tuple(free_vars(self.root)))
        return {v for params in lists for i, v in enumerate(params) if self._is_input(v, i, len(params))}

    def _is_input(self, var: Var, index: int, count: int) -> bool:
        if self.params == "nodes":
            return True
        if self.inputs is not None:
            return var.name_hint in self.inputs
        return index == 0 or count <= FEW

    def _spine(self) -> set[Let]:
        """The lets that are the body of a function, a branch, a clause or such a let: no box of their own."""
        spine: set[Let] = set()
        heads = [self.root]
        for e in self.order:
            heads += (
                [e.body] if isinstance(e, Function) else [e.true_branch, e.false_branch] if isinstance(e, If) else []
            )
            heads += [c.rhs for c in e.clauses] if isinstance(e, Match) else []
        for head in heads:
            while isinstance(head, Let) and head not in spine:
                spine.add(head)
                head = head.body
        return spine

    # -- values ----------------------------------------------------------------------------------

    def resolve(self, expr: Expr) -> Expr:
        """Where the value of `expr` really comes from: through lets, bound variables and inlined calls."""
        way: list[Expr] = []
        at = expr
        while at not in self._resolved and (beyond := self._beyond(at)) is not None:
            way.append(at)
            at = beyond
        source = self._resolved.get(at, at)
        for passed in way:
            self._resolved[passed] = source
        return source

    def _beyond(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Let):
            return expr.body
        if isinstance(expr, Call) and expr in self.inlined:
            return self.inlined[expr].body
        if isinstance(expr, Var) and expr in self.alias:
            return None if self.is_plain_let(self.bound.get(expr)) else self.alias[expr]
        return None

    def is_plain_let(self, let: Let | None) -> bool:
        """Whether a let binds a variable or constant, so that it needs a box of its own to be seen."""
        return let is not None and isinstance(let.value, ATOMS)

    def is_box(self, expr: Expr) -> bool:
        """Whether the node is drawn as a box."""
        if isinstance(expr, Let):
            return self.is_plain_let(expr)
        if isinstance(expr, Var):
            return expr in self.drawn_vars
        if isinstance(expr, Constant):
            return self.params == "nodes"
        return not (isinstance(expr, ATOMS) or expr in self.inlined or expr in self.kernels)

    # -- groups ----------------------------------------------------------------------------------

    def group(self, expr: Expr) -> Key | None:
        """The group that a node is in; the function node itself stands inside its own box."""
        if isinstance(expr, Function):
            return (expr, 0)
        return self.scope_group(self.homes[expr])

    def outside(self, key: Key) -> Key | None:
        """The group around a group."""
        return self.scope_group(self.homes[key[0]])

    def scope_group(self, scope: Scope) -> Key | None:
        """The group that draws a scope; the scopes of a chain of lets are those around the chain."""
        way = []
        while scope not in self._groups:
            way.append(scope)
            if scope.owner is None:
                self._groups[scope] = None
            elif not (isinstance(scope.owner, Let) and scope.owner in self.spine):
                self._groups[scope] = (scope.owner, scope.slot)
            else:
                assert scope.parent is not None
                scope = scope.parent
        for passed in way:
            self._groups[passed] = self._groups[scope]
        return self._groups[scope]
