"""FirstOrderGradient: reverse-mode differentiation of dataflow programs (Griewank and Walther, 2008)."""

from __future__ import annotations

from typing import TypeAlias, cast

import relaylab.transform.gradients.rules_moves
import relaylab.transform.gradients.rules_nn  # noqa: F401  (registers derivatives)
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.trail import derived, made_from
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import fields_of, type_of, typed
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import as_function, copied, inlined, rewrite_function
from relaylab.transform.gradients.higher_order_gradient import higher_order_gradient
from relaylab.transform.gradients.rules import gradient_rule
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

Gradient: TypeAlias = "Expr | list[Gradient | None]"
"""The gradient of a value; of a tuple a list, with None for the fields that nobody used."""
NOT_DATAFLOW = "gradient.not-dataflow"
_DATAFLOW = (Var, Constant, Tuple, TupleGetItem, Call, Op)


def _as_dataflow(func: Function, mod: IRModule | None) -> Function:
    """`func` without lets and without calls of functions written in place; anything else is refused."""

    def inline(new: Expr, old: Expr) -> Expr:
        return inlined(new.op, new) if isinstance(new, Call) and isinstance(new.op, Function) else new

    plain = typed(rewrite_function(as_function(to_gnf(func)), inline), mod)
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


class _Reverse:
    """Adds up, from the result back to the parameters, what each value contributes."""

    def __init__(self, func: Function):
        self.func = func
        self.grads: dict[Expr, Gradient] = {}

    def run(self) -> Expr:
        """The tuple of the result and the gradients of the parameters."""
        order = [n for n in walk((self.func.body,)) if not isinstance(n, Op)]
        self.grads[self.func.body] = _filled("ones_like", self.func.body, type_of(self.func.body))
        # post-order backwards: all readers of a value have added their part before it passes the sum on
        for node in reversed(order):
            if node in self.grads:
                with made_from(node):
                    self._pass_on(node, self.grads[node])
        params = [self._of(p) for p in self.func.params]
        return derived(Tuple([self.func.body, copied(Tuple(params), self.func)]), self.func.body)

    def _of(self, param: Expr) -> Expr:
        found = self.grads.get(param)
        return _expr(_filled("zeros_like", param, type_of(param)) if found is None else found)

    def _add(self, node: Expr, grad: Gradient) -> None:
        self.grads[node] = grad if node not in self.grads else _sum(self.grads[node], grad)

    def _pass_on(self, node: Expr, grad: Gradient) -> None:
        match node:
            case Call():
                for arg, g in zip(node.args, gradient_rule(node)(node, node, _complete(grad, node)), strict=True):
                    self._add(arg, copied(g, node) if isinstance(g, Expr) else g)
            case Tuple():
                for field, g in zip(node.fields, cast(list, grad)):
                    if g is not None:
                        self._add(field, g)
            case TupleGetItem():
                parts: list[Gradient | None] = [None] * len(fields_of(node.tuple_value))
                parts[node.index] = grad
                self._add(node.tuple_value, parts)


def _filled(op: str, like: Expr, t: Type | None) -> Gradient:
    """Zeros or ones of the type of a value; a list for a tuple."""
    if isinstance(t, TupleType):
        return [_filled(op, TupleGetItem(like, i), f) for i, f in enumerate(t.fields)]
    if not isinstance(t, TensorType):
        raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")
    return copied(call(op, like), like)


def _complete(grad: Gradient, node: Call) -> Gradient:
    """The gradient of a tuple with zeros for the fields that nobody used."""
    if not isinstance(grad, list):
        return grad
    fields = fields_of(node)
    return [
        _filled("zeros_like", TupleGetItem(node, i), f) if g is None else g
        for i, (g, f) in enumerate(zip(grad, fields))
    ]


def _sum(a: Gradient, b: Gradient) -> Gradient:
    if isinstance(a, list) and isinstance(b, list):
        return [y if x is None else x if y is None else _sum(x, y) for x, y in zip(a, b)]
    return call("add", _expr(a), _expr(b))


def _expr(grad: Gradient | None) -> Expr:
    return Tuple(map(_expr, grad)) if isinstance(grad, list) else cast(Expr, grad)


def first_order_gradient(func: Function, mod: IRModule | None = None) -> Function:
    """The function of `func`'s result and a tuple of the gradients of its parameters, in A-normal form."""
    plain = _as_dataflow(func, mod)
    both = Function(plain.params, _Reverse(plain).run(), None, (), plain.attrs)
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
