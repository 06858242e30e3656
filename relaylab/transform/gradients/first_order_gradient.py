"""FirstOrderGradient: reverse-mode differentiation of dataflow programs (Griewank and Walther, 2008)."""

from __future__ import annotations

import relaylab.transform.gradients.rules_boxes
import relaylab.transform.gradients.rules_conv
import relaylab.transform.gradients.rules_images
import relaylab.transform.gradients.rules_moves
import relaylab.transform.gradients.rules_nn
import relaylab.transform.gradients.rules_places
import relaylab.transform.gradients.rules_samples
import relaylab.transform.gradients.rules_scatter
import relaylab.transform.gradients.rules_sums  # noqa: F401  (registers derivatives)
from relaylab.analysis.callgraph import CallGraph
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, Tuple, TupleGetItem, Var
from relaylab.ir.free import bound_by, global_vars
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.trail import derived
from relaylab.ir.visit import children, operators_in, walk
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.purity import acts
from relaylab.transform.engine.renewal import as_function, copied, inlined, rewrite_function
from relaylab.transform.gradients.higher_order_gradient import higher_order_gradient
from relaylab.transform.gradients.reverse import reverse
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

NOT_DATAFLOW = "gradient.not-dataflow"
_DATAFLOW = (Var, Constant, Tuple, TupleGetItem, Call, Op)


def _called(func: Function, mod: IRModule | None) -> list[Function]:
    """The functions of the module that a function leads to."""
    names = [] if mod is None else [gv for gv in global_vars(func) if gv in mod.functions]
    return [mod.functions[gv] for gv in CallGraph(mod).reachable(*names)] if mod is not None and names else []


def _has_ordered(func: Function) -> bool:
    return any(op.definition.stateful and op.definition.ordered for op in operators_in(func))


class _Inliner:
    """Puts functions written in place where they are called. What they capture is not looked at for each call again."""

    def __init__(self, func: Function):
        self.inner: dict[Expr, frozenset[Expr]] = {p: frozenset() for p in func.params}

    def __call__(self, new: Expr, old: Expr) -> Expr:
        self._note(new)
        if not (isinstance(new, Call) and isinstance(new.op, Function)):
            return new
        after = inlined(new.op, new, keep=lambda n: not self.inner[n])
        for node in walk((after,), lambda n: () if n in self.inner else children(n)):
            self._note(node)
        return after

    def _note(self, node: Expr) -> None:
        """What keeps a node within the function that it stands in: variables that this binds, and effects."""
        if node in self.inner:
            return
        parts = children(node)
        found = {node} if isinstance(node, Var) or acts(node) else set[Expr]()
        self.inner[node] = frozenset(found.union(*(self.inner[c] for c in parts)).difference(bound_by(node)))


def _as_dataflow(func: Function, mod: IRModule | None) -> Function:
    """`func` without lets and without calls of functions written in place; anything else is refused."""
    if any(_has_ordered(f) for f in (func, *_called(func, mod))):
        raise RelayValueError(
            "the gradient of a dataflow program does not keep the order of effects, and an operator has one",
            code=NOT_DATAFLOW,
            help='gradient(…, mode="higher_order") keeps it',
        )

    graph = as_function(to_gnf(func))
    plain = typed(rewrite_function(graph, _Inliner(graph)), mod)
    for node in walk((plain.body,)):
        called = isinstance(node, Call) and not isinstance(node.op, Op)
        if called or not isinstance(node, _DATAFLOW):
            what = "a call of a function" if called else f"{kind_of(node)}"
            raise RelayValueError(
                f"the gradient of {what} is not defined",
                code=NOT_DATAFLOW,
                help="inline or rewrite it to operators first",
            )
    return plain


def _with_gradients(func: Function) -> Expr:
    """The tuple of the result and the gradients of the parameters."""
    return derived(Tuple([func.body, copied(Tuple(reverse(func)), func)]), func.body)


def first_order_gradient(func: Function, mod: IRModule | None = None) -> Function:
    """The function of `func`'s result and a tuple of the gradients of its parameters, in A-normal form."""
    plain = _as_dataflow(func, mod)
    both = Function(plain.params, _with_gradients(plain), None, (), plain.attrs)
    return derived(name_values(derived(both, func)), func)


def gradient(expr: Expr, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """The function computing the result and the gradients of `expr`: a function, or the name of one of `mod`.

    A dataflow program stays one. With control flow, closures, cells, data or calls of functions of `mod` the result is
    written with cells (`mode="higher_order"`; converted functions are put into `mod`), or refused
    (`mode="first_order"`). Raises `RelayValueError` for operators whose gradient is not known.
    """
    if mode not in ("higher_order", "first_order"):
        raise RelayValueError(f'mode is "higher_order" or "first_order", not {mode!r}', code="gradient.bad-mode")
    if isinstance(expr, GlobalVar) and mod is not None:
        expr = mod[expr]
    if not isinstance(expr, Function):
        raise RelayTypeError(
            f"the gradient is taken of a function, not of {kind_of(expr)}", code="gradient.not-a-function"
        )
    try:
        return typed(first_order_gradient(expr, mod), mod)
    except RelayValueError as refused:
        if refused.code != NOT_DATAFLOW or mode == "first_order":
            raise
    return typed(higher_order_gradient(expr, mod), mod)


@pass_(level=0, preserves=False)
class FirstOrderGradient(ModulePass):
    """Makes every function return its result and the gradients of its parameters."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({gv: first_order_gradient(f, mod) for gv, f in mod.functions.items()})
