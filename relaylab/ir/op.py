"""Operators as nodes of programs, and the (here still empty) table of them."""

from __future__ import annotations

from typing import Any

from relaylab.ir.attrs import Attrs
from relaylab.ir.expr import Call, Expr, set_
from relaylab.support.errors import RelayAttributeError, RelayError
from relaylab.support.table import Table


class Op(Expr):
    """An operator: one object per name. `definition` is the class with all its facets (an `Attrs` record)."""

    __slots__ = _fields = ("name", "definition", "_default")

    def __init__(self, name: str, definition: Any = None):
        if definition is None:
            raise RelayError(f"an Op cannot be constructed: `{name}`", code="op.construct", help=f'write relay.op.get("{name}")')
        set_(self, "name", name)
        set_(self, "definition", definition)
        set_(self, "_default", None)
        set_(self, "_checked_type", None)
        set_(self, "span", None)

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that name; an unknown one raises and offers the closest names."""
        return OPERATORS.lookup(op_name)

    @staticmethod
    def list_op_names() -> list[str]:
        return sorted(OPERATORS)

    @property
    def description(self) -> str:
        return self.definition.__doc__ or ""

    @property
    def attrs_type_key(self) -> str:
        return f"relay.attrs.{self.definition.attrs_key}Attrs" if self.definition.fields else ""

    @property
    def num_inputs(self) -> int:
        return len(self.definition.inputs)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.definition.inputs

    @property
    def support_level(self) -> int:
        return self.definition.level

    @property
    def pattern(self) -> int:
        """How FuseOps treats the operator (an `OpPattern`)."""
        return self.definition.pattern

    def get_attr(self, attr_name: str) -> Any:
        """A registered fact of the operator (`TOpPattern`, or one set by `set_attr`); None if unset."""
        if attr_name == "TOpPattern":
            return self.definition.pattern
        return EXTRA_ATTRS.get((self.name, attr_name))

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Register a fact about the operator for a pass of one's own."""
        EXTRA_ATTRS[self.name, attr_name] = value

    def reset_attr(self, attr_name: str) -> None:
        EXTRA_ATTRS.pop((self.name, attr_name), None)

    def facets(self, attrs: Attrs | None) -> Any:
        """The record on which the facets are methods: `attrs`, adapted if it was made for a sister operator."""
        if type(attrs) is self.definition:
            return attrs
        if attrs is None:
            if self._default is None:
                set_(self, "_default", self.definition())
            return self._default
        known = {k: v for k, v in attrs.items() if k in self.definition.fields}
        return self.definition(**known)

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)


OPERATORS: Table[Op] = Table("operator")
EXTRA_ATTRS: dict[tuple[str, str], Any] = {}


def facets(call: Call) -> Any:
    """The facets of the operator that `call` calls, with the call's attributes."""
    if not isinstance(call.op, Op):
        raise RelayAttributeError(f"a call of a {type(call.op).__name__} has no operator facets", code="op.not-an-op")
    return call.op.facets(call.attrs)


def op_name(expr: Expr) -> str:
    """The name of the operator that `expr` calls, or an empty string."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def is_call_to(expr: Expr, *names: str) -> bool:
    """Whether `expr` is a call of one of the named operators."""
    return op_name(expr) in names
