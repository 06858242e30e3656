"""Reverse mode over dataflow (Griewank and Walther, 2008): of a function, and of what an operator expands to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.ir.trail import made_from
from relaylab.ir.types import TensorType, TupleType, Type, type_leaves
from relaylab.ir.visit import substitute, walk
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.infer_type import fields_of, type_of, typed
from relaylab.transform.engine.renewal import copied
from relaylab.transform.gradients.rules import GradientRule, gradient_rule

Gradient: TypeAlias = "Expr | list[Gradient | None]"
"""The gradient of a value; of a tuple a list, with None for the fields that nobody used."""


class _Reverse:
    """Adds up, from the result back to the parameters, what each value contributes."""

    def __init__(self, func: Function, seed: Gradient):
        self.func = func
        self.grads: dict[Expr, Gradient] = {func.body: seed}
        self.floats = _holds_floats(type_of(func.body))

    def run(self) -> list[Expr]:
        order = [n for n in walk((self.func.body,)) if not isinstance(n, Op)]
        # post-order backwards: all readers of a value have added their part before it passes the sum on
        for node in reversed(order):
            if node in self.grads:
                with made_from(node):
                    self._pass_on(node, self.grads[node])
        return [self._of(p) for p in self.func.params]

    def _of(self, param: Expr) -> Expr:
        return _expr(_complete(self.grads.get(param), param, type_of(param)))

    def _add(self, node: Expr, grad: Gradient) -> None:
        self.grads[node] = grad if node not in self.grads else _sum(self.grads[node], grad)

    def _pass_on(self, node: Expr, grad: Gradient) -> None:
        match node:
            case Call():
                if self.floats and not _holds_floats(type_of(node)):
                    return  # floats do not depend smoothly on whole numbers and truth values
                whole = _complete(grad, node, type_of(node))
                for arg, g in zip(node.args, gradient_rule(node)(node, node, whole), strict=True):
                    self._add(arg, copied(g, node) if isinstance(g, Expr) else g)
            case Tuple():
                for field, g in zip(node.fields, cast(list, grad)):
                    if g is not None:
                        self._add(field, g)
            case TupleGetItem():
                parts: list[Gradient | None] = [None] * len(fields_of(node.tuple_value))
                parts[node.index] = grad
                self._add(node.tuple_value, parts)


def reverse(func: Function) -> list[Expr]:
    """The gradients of the parameters of a typed function of operators, for a gradient of its result of ones."""
    return _Reverse(func, _filled("ones_like", func.body, type_of(func.body))).run()


def expanded(expand: Callable[[Call], Expr]) -> GradientRule:
    """The rule of an operator from an expression of other operators with the same value: `expand` gets the call
    with variables for its arguments, typed. Of a tuple the gradient is a list.
    """

    def rule(c: Call, y: Expr, g: Expr | list[Expr]) -> Sequence[Expr]:
        parts = g if isinstance(g, list) else [g]
        made = type_of(c)
        fields = made.fields if isinstance(made, TupleType) else [made]
        seeds = [Var(f"g{k}", t) for k, t in enumerate(fields)]
        params = [Var(f"x{k}", type_of(a)) for k, a in enumerate(c.args)]
        plain = typed(Function(params, typed(Call(c.op, params, c.attrs))))
        func = typed(Function(plain.params, expand(cast(Call, plain.body))))
        grads = _Reverse(func, list(seeds) if isinstance(g, list) else seeds[0]).run()
        binds: dict[Var, Expr] = {**dict(zip(func.params, c.args)), **dict(zip(seeds, parts, strict=True))}
        return [substitute(d, binds) for d in grads]

    return rule


def _holds_floats(t: Type | None) -> bool:
    parts = [p for p in type_leaves(t) if isinstance(p, TensorType)] if t is not None else []
    return any(p.dtype.startswith(("float", "bfloat")) for p in parts)


def _filled(op: str, like: Expr, t: Type | None) -> Gradient:
    """Zeros or ones of the type of a value; a list for a tuple."""
    if isinstance(t, TupleType):
        return [_filled(op, TupleGetItem(like, i), f) for i, f in enumerate(t.fields)]
    if not isinstance(t, TensorType):
        raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")
    return copied(call(op, like), like)


def _complete(grad: Gradient | None, value: Expr, t: Type | None) -> Gradient:
    """The gradient of a value with zeros for the fields that nobody used."""
    if grad is None:
        return _filled("zeros_like", value, t)
    if not isinstance(grad, list) or not isinstance(t, TupleType):
        return grad
    return [_complete(g, TupleGetItem(value, i), f) for i, (g, f) in enumerate(zip(grad, t.fields))]


def _sum(a: Gradient, b: Gradient) -> Gradient:
    if isinstance(a, list) and isinstance(b, list):
        return [y if x is None else x if y is None else _sum(x, y) for x, y in zip(a, b)]
    return call("add", _expr(a), _expr(b))


def _expr(grad: Gradient | None) -> Expr:
    return Tuple(map(_expr, grad)) if isinstance(grad, list) else cast(Expr, grad)
