"""Rewriting forward: from the arguments of calls to their results, with values that become expressions only when asked.

A rule gets a call and what stands for its arguments, expressions or `Pending` values; what it returns stands for the
call. Where no rule answers, pending values become expressions and the call stays. Relay calls it ForwardRewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, Tuple, TupleGetItem
from relaylab.ir.module import IRModule
from relaylab.ir.trail import derived, made_from
from relaylab.ir.visit import children, rebuild, walk
from relaylab.transform.engine.renewal import as_function, copied


class Pending:
    """A value that knows more than its expression; `realize` gives the expression that others may use."""

    _made: Expr | None = None

    def make(self) -> Expr:
        """The expression; asked for once."""
        raise NotImplementedError

    def realize(self) -> Expr:
        """The expression, the same at each use."""
        if self._made is None:
            self._made = self.make()
        return self._made


class PendingFields(Pending):
    """A tuple of which some fields are pending."""

    def __init__(self, node: Tuple, values: Sequence[Value]):
        self.node, self.values = node, list(values)

    def make(self) -> Expr:
        return derived(rebuild(self.node, [realized(v) for v in self.values]), self.node)


Value: TypeAlias = "Expr | Pending"
CallRule: TypeAlias = "Callable[[Call, list[Value]], Value | None]"


def realized(value: Value) -> Expr:
    """A value as an expression."""
    return value.realize() if isinstance(value, Pending) else value


def again(node: Call, args: Sequence[Value]) -> Call:
    """The call with other arguments."""
    return copied(Call(node.op, tuple(map(realized, args)), node.attrs, (), span=node.span), node)


def is_entry(func: Function, mod: IRModule) -> bool:
    """Whether `func` is the `main` of its module, the only function that is quantized."""
    return "main" in mod and mod["main"] is func


def forwarded(func: Function, rule: CallRule) -> Function:
    """`func` rewritten from its leaves to its result by a rule for calls."""
    known: dict[Expr, Value] = {}
    for node in walk((func,)):
        with made_from(node):
            known[node] = _forward(node, known, rule)
    return as_function(realized(known[func]))


def _forward(node: Expr, known: dict[Expr, Value], rule: CallRule) -> Value:
    if isinstance(node, TupleGetItem) and isinstance(fields := known[node.tuple_value], PendingFields):
        return fields.values[node.index]
    if isinstance(node, Tuple) and any(isinstance(known[f], Pending) for f in node.fields):
        return PendingFields(node, [known[f] for f in node.fields])
    if isinstance(node, Call):
        found = rule(node, [known[a] for a in node.args])
        if found is not None:
            return derived(found, node) if isinstance(found, Expr) else found
    return derived(rebuild(node, [realized(known[c]) for c in children(node)]), node)
