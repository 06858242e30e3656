"""A part of a program as a program of its own: what a query selects, with parameters for what flows into it."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping

from relaylab import ir
from relaylab.analysis import free_vars
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.infer_type import InferType
from relaylab.viz.draw.from_ir import view
from relaylab.viz.graph.facts import title
from relaylab.viz.graph.identity import Identities
from relaylab.viz.selection.query import select

FLOW = (ir.Call, ir.Tuple, ir.TupleGetItem, ir.RefCreate, ir.RefRead, ir.RefWrite)
"""Nodes whose operands are values; any other is taken whole, its free variables are what flows in."""
ALONG = (ir.Op, ir.GlobalVar, ir.Constructor, ir.Constant, ir.Function)
"""Operands that come along."""


@checked
def extract(
    program: ir.IRModule | ir.Function, wanted: str | Iterable[str | ir.Expr], function: str = "main"
) -> ir.IRModule:
    """The selected nodes of a function as a module of its own, which can be drawn, compiled and run.

    `wanted` is a query (see `viz.query`), ids of the picture, or expressions of a typed program. What flows in from
    outside is a parameter (a variable keeps its name); constants, other functions and types come along; the results are
    the selected values that are used outside or are the function's result. Raises `RelayValueError` where nothing is
    selected or the type of a parameter is not known. Of several functions in each other (kernels, say) that is meant in
    which most is selected.
    """
    mod = program if isinstance(program, ir.IRModule) else ir.IRModule.from_expr(program)
    given = wanted if isinstance(wanted, str) else tuple(wanted)
    nodes = [] if isinstance(given, str) else [w for w in given if isinstance(w, ir.Expr)]
    if isinstance(given, str) or len(nodes) < len(given):
        mod = InferType()(mod)
        nodes = _named(mod, function, given if isinstance(given, str) else [w for w in given if isinstance(w, str)])
    scopes = [mod[function], *(e for e in ir.post_order(mod[function].body) if isinstance(e, ir.Function))]
    part = max((_Part(scope, nodes) for scope in scopes), key=lambda p: len(p.inside))
    if not part.inside:
        help = "`viz.select(viz.view(mod), query)` shows what a query means"
        raise RelayValueError(f"nothing in @{function} is selected", code="viz.nothing-selected", help=help)
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != function}
    return InferType()(ir.IRModule({ir.GlobalVar("main"): part.function(), **others}, mod.type_definitions))


def _named(mod: ir.IRModule, function: str, wanted: str | Iterable[str]) -> list[ir.Expr]:
    """The expressions of a function that a query or ids mean."""
    identities = Identities()
    shown = view(mod, identities=identities)
    nodes = identities.expressions()
    names = select(shown, wanted) if isinstance(wanted, str) else wanted
    inside = set(ir.post_order(mod[function].body))
    return [nodes[name] for name in names if name in nodes and nodes[name] in inside]


class _Part:
    """What is selected of a function: its nodes in order, what flows in, what leaves."""

    def __init__(self, root: ir.Function, wanted: Iterable[ir.Expr]):
        chosen = {e for e in wanted if not isinstance(e, (ir.Var, ir.Let, *ALONG))}
        self.order = list(ir.walk((root.body,), lambda e: self._below(e, chosen)))
        self.lets: dict[ir.Expr, ir.Expr] = {e.var: e.value for e in self.order if isinstance(e, ir.Let)}
        self.inside = [e for e in self.order if e in chosen]
        self.chosen, self.root = chosen, root

    @staticmethod
    def _below(expr: ir.Expr, chosen: Collection[ir.Expr]) -> tuple[ir.Expr, ...]:
        """What of a program may be selected: nothing in a function, or in an `if` that is selected whole."""
        whole = isinstance(expr, ir.Function) or (expr in chosen and not isinstance(expr, (*FLOW, ir.Let)))
        return tuple(free_vars(expr)) if whole else ir.children(expr)

    def source(self, expr: ir.Expr) -> ir.Expr:
        """The value that a let variable stands for."""
        while expr in self.lets:
            expr = self.lets[expr]
        return expr

    def operands(self, expr: ir.Expr) -> tuple[ir.Expr, ...]:
        """The values that a selected node takes."""
        found = ir.children(expr) if isinstance(expr, FLOW) else tuple(free_vars(expr))
        return tuple(o for o in found if not self.along(o))

    def along(self, expr: ir.Expr) -> bool:
        """Whether an operand comes along: a constant, a name, a function that needs nothing from outside."""
        source = self.source(expr)
        return isinstance(source, ALONG) and not (isinstance(source, ir.Function) and free_vars(source))

    def function(self) -> ir.Function:
        """The selected nodes with parameters."""
        outside = dict.fromkeys(
            s for e in self.inside for o in self.operands(e) if (s := self.source(o)) not in self.chosen
        )
        params = dict(_parameters(outside))
        made: dict[ir.Expr, ir.Expr] = {**params}
        for expr in self.inside:
            made[expr] = self._rebuilt(expr, made)
        results = [made[e] for e in self._results()]
        return ir.Function(list(params.values()), results[0] if len(results) == 1 else ir.Tuple(results))

    def _rebuilt(self, expr: ir.Expr, made: dict[ir.Expr, ir.Expr]) -> ir.Expr:
        if not isinstance(expr, FLOW):
            made.update({v: self._now(v, made) for v in free_vars(expr)})
            return ir.rewrite(expr, lambda new, old: new, memo=made)  # what two of them share stays one
        return ir.rebuild(expr, [self._now(c, made) for c in ir.children(expr)])

    def _now(self, expr: ir.Expr, made: Mapping[ir.Expr, ir.Expr]) -> ir.Expr:
        source = self.source(expr)
        return source if self.along(expr) else made[source]

    def _results(self) -> list[ir.Expr]:
        """The selected values that something else uses, or nothing at all."""
        users: dict[Hashable, list[ir.Expr]] = {}
        for expr in self.order:
            for child in ir.children(expr) if not isinstance(expr, ir.Let) else (expr.body,):
                users.setdefault(self.source(child), []).append(expr)
        return [e for e in self.inside if not users.get(e) or any(u not in self.chosen for u in users[e])]


def _parameters(outside: Iterable[ir.Expr]) -> Iterable[tuple[ir.Expr, ir.Var]]:
    taken: set[str] = set()
    for expr in outside:
        stem = re.sub(r"\W+", "_", title(expr)).strip("_") or "value"
        name = next(n for n in (stem, *(f"{stem}_{k}" for k in range(1, len(taken) + 2))) if n not in taken)
        taken.add(name)
        known = expr.inferred or getattr(expr, "type_annotation", None)
        if known is None:
            raise RelayValueError(
                f"the type of {title(expr)} is not known", code="viz.untyped", help="infer types first"
            )
        yield expr, ir.Var(name, known)
