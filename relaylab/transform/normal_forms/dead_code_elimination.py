"""DeadCodeElimination: bindings that nobody uses go; on request those used once move to their use."""

from __future__ import annotations

from typing import Annotated

from relaylab.ir import Expr, Function, IRModule, Let, Match, Var, children
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.purity import PurityAnalysis
from relaylab.transform.engine.renewal import as_function


class _Uses:
    """How often each pure binding is used by what is alive; a use inside a nested function counts twice."""

    def __init__(self, func: Function, purity: PurityAnalysis, ignore_impurity: bool):
        self.count: dict[Var, int] = {}
        self.value: dict[Var, tuple[Expr, int]] = {}
        self.pure = (lambda e: True) if ignore_impurity else purity.evaluates
        self.seen: set[Expr] = set()
        self._visit(func, 0)

    def _visit(self, root: Expr, depth: int) -> None:
        stack: list[tuple[Expr, int]] = [(root, depth)]
        while stack:
            node, depth = stack.pop()
            if isinstance(node, Var):
                stack.extend(self._use(node, depth))
            elif node not in self.seen:
                self.seen.add(node)
                stack.extend(self._below(node, depth))

    def _use(self, var: Var, depth: int) -> list[tuple[Expr, int]]:
        if var not in self.value:
            return []
        value, home = self.value[var]
        first = self.count[var] == 0
        # a function may run often: a value that moved into it would be computed as often
        self.count[var] += 1 if depth == home else 2
        # looked into only when used: what a dead binding reads is not used by that
        return [(value, home)] if first else []

    def _below(self, node: Expr, depth: int) -> list[tuple[Expr, int]]:
        match node:
            case Let():
                if not self.pure(node.value):
                    return [(node.body, depth), (node.value, depth)]
                self.value[node.var] = (node.value, depth)
                self.count[node.var] = 0
                return [(node.body, depth)]
            case Function():
                return [] if node.is_primitive else [(node.body, depth + 1)]
            case Match():
                return [(node.data, depth), *((c.rhs, depth) for c in node.clauses)]
            case _:
                return [(c, depth) for c in children(node)]


def eliminate(func: Function, purity: PurityAnalysis, inline_once: bool, ignore_impurity: bool) -> Function:
    """`func` without bindings that have no effect and no use; with `inline_once` those used once are put in place."""
    purity.visit(func)
    uses = _Uses(func, purity, ignore_impurity)

    def bind(let: Let, value: Expr, recursive: bool) -> Expr | None:
        count = uses.count.get(let.var)
        if count == 0 or (count == 1 and inline_once and not recursive):
            return value
        return None

    return as_function(
        rewrite_lets(func, lambda new, old: new, bind, lambda n: isinstance(n, Function) and n.is_primitive)
    )


@pass_(level=1, requires=("InferType",), idempotent=True)
class DeadCodeElimination(ModulePass):
    """Removes bindings without use and without effect; `inline_once` also moves those used once to their use."""

    inline_once: Annotated[bool, "Also put a value that is used once in the place of its use."] = False
    ignore_impurity: Annotated[bool, "Also remove bindings with effects."] = False

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        purity = PurityAnalysis(mod)
        return mod.with_functions(
            {gv: eliminate(f, purity, self.inline_once, self.ignore_impurity) for gv, f in mod.functions.items()}
        )
