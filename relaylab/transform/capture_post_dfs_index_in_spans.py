"""CapturePostDfsIndexInSpans: every node says its number in post-order and that of its dominator."""

from __future__ import annotations

from relaylab.analysis.dominators import post_dominators
from relaylab.ir import Constant, Constructor, Expr, Function, GlobalVar, IRModule, Op, Var, children, walk
from relaylab.ir.base import placed
from relaylab.ir.node import set_field
from relaylab.ir.trail import derived
from relaylab.ir.visit import remake
from relaylab.support.source import AnySpan, SourceName, Span
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function

_NAMES = (Op, GlobalVar, Constructor)


def _spans(func: Function) -> dict[Expr, AnySpan]:
    number = {node: i for i, node in enumerate(walk((func,)))}
    above = post_dominators(func)
    above[func.body] = func
    spans: dict[Expr, AnySpan] = {}
    for node, i in number.items():
        dominator = above.get(node)
        name = SourceName(f"index:{i}:{-1 if dominator is None else number[dominator]}")
        spans[node] = Span(name, 0, 0, 0, 0)
    return spans


def _placed(node: Expr, parts: list[Expr], span: AnySpan) -> Expr:
    """Another node like this with these parts, in another place."""
    match node:
        case Var():
            return placed(Var(node.name_hint, node.type_annotation, span=span), node.device)
        case Constant():
            return Constant(node.data, span=span)
        case _:
            new = remake(node, parts)
            set_field(new, "span", span)
            return new


@pass_(level=0, idempotent=True)
class CapturePostDfsIndexInSpans(FunctionPass):
    """Makes the span of every node `index:N:D`, its number in post-order and that of its dominator.

    The dominator is the node that all its uses go through; -1 stands for none.
    """

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        spans = _spans(func)
        if all(node.span == span for node, span in spans.items() if not isinstance(node, _NAMES)):
            return func
        memo: dict[Expr, Expr] = {}
        for node, span in spans.items():
            kept = isinstance(node, _NAMES)
            memo[node] = node if kept else derived(_placed(node, [memo[c] for c in children(node)], span), node)
        return as_function(memo[func])
