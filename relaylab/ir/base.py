"""What all expressions have: a type, once inference has run, and a place."""

from __future__ import annotations

from relaylab.ir.declare import field, node
from relaylab.ir.display import Printed, node_text
from relaylab.ir.node import Node, expect, set_field
from relaylab.ir.trail import default_span
from relaylab.ir.types import Type
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.source import AnySpan, MergedSpan, Span


class _Place:
    """The span of a new node: the one given, or else the line of Python that makes it."""

    kind = (Span, MergedSpan)
    inline = "{check}() if {value} is None else {value} if isinstance({value}, {kind}) else {check}({value})"

    def __call__(self, span: AnySpan | None = None) -> AnySpan | None:
        return default_span() if span is None else expect(span, self.kind, "the span of an expression")


@checked
@node
class Expr(Node, Printed):
    """The base of all expressions: the type that inference found, and the place that the node comes from."""

    _fields = ()  # what a node consists of: neither its type nor its place

    inferred: Type | None = field(init=False)
    """The type, if InferType has run on the node."""
    span: AnySpan | None = field(default=None, converter=_Place(), kw_only=True)
    """Where the node comes from, in a text or in Python."""

    @property
    def checked_type(self) -> Type:
        """The type that InferType found; `RelayValueError` if it has not run on this node."""
        if self.inferred is None:
            raise RelayValueError(
                f"this {type(self).__name__} has no type yet",
                code="type.not-inferred",
                help="run relay.transform.InferType() and look at the module that it returns",
            )
        return self.inferred

    def __repr__(self) -> str:
        return node_text(self)


def set_type(expr: Expr, found: Type | None) -> None:
    """`found` is the type of `expr` (for inference, and for passes that build what is typed already)."""
    set_field(expr, "inferred", found)
