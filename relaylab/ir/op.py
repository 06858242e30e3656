"""Operators as nodes of programs, and the (here still empty) table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard, cast

from relaylab.ir.attrs import Attrs, Field
from relaylab.ir.declare import field, node
from relaylab.ir.expr import Call, Callee, Expr
from relaylab.ir.node import set_field
from relaylab.support.errors import RelayAttributeError, RelayError, kind_of
from relaylab.support.table import Table


class Definition(Protocol):
    """What a program's nodes ask of the class that defines an operator (the op room writes such classes)."""

    __doc__: str | None

    @property
    def attrs_key(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Field]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def level(self) -> int: ...
    @property
    def pattern(self) -> int: ...
    @property
    def stateful(self) -> bool: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def computes(self) -> bool: ...
    @property
    def reshapes(self) -> bool: ...
    @property
    def waivers(self) -> Mapping[str, str]: ...
    @property
    def takes_any(self) -> bool: ...
    @property
    def refuses_values(self) -> bool: ...
    def is_procedure(self) -> bool: ...
    def call(self, *args: object, **attrs: object) -> Call: ...
    def __call__(self, **attrs: Any) -> Attrs: ...


class RegisteredDefinition(Protocol):
    """What a program may say of an operator that it has registered."""

    inputs: tuple[str, ...]
    level: int
    named: tuple[str, ...]

    def set_relation(self, name: str, function: Callable[..., object] | None) -> None: ...
    def set_key(self, key: str) -> None: ...


class OpInput(str):
    """The name of an input of an operator, with its meaning: `name`, `type_info` and `description`, as TVM has them."""

    __slots__ = ("description",)
    type_info = "Tensor"

    def __new__(cls, name: str, description: str = "") -> OpInput:
        new = super().__new__(cls, name)
        new.description = description
        return new

    @property
    def name(self) -> str:
        return str(self)


@node
class Op(Callee):
    """An operator: one object per name, made when the operator is registered."""

    name: str = field()
    """The name in programs, with its dots."""
    definition: Definition = field()
    """The class with all its facets; its instances are the attributes of calls."""
    default: Attrs | None = field(init=False)
    """The attributes of a call that writes none, made when they are first needed."""

    def __init__(self, name: str, definition: Definition | None = None):
        if definition is None:
            raise RelayError(
                f"an Op cannot be constructed: `{name}`", code="op.construct", help=f'write relay.op.get("{name}")'
            )
        set_field(self, "name", name)
        set_field(self, "definition", definition)
        for unset in ("default", "inferred", "span"):  # an operator comes from no line of a program
            set_field(self, unset, None)

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
    def arguments(self) -> tuple[OpInput, ...]:
        """The names of the inputs in their order, each with what is said of it."""
        said: Mapping[str, Any] = getattr(self.definition, "described", {})
        return tuple(OpInput(name, getattr(said.get(name), "doc", "")) for name in self.definition.inputs)

    @property
    def support_level(self) -> int:
        return self.definition.level

    @property
    def pattern(self) -> int:
        """How FuseOps treats the operator (an `OpPattern`)."""
        return cast(int, EXTRA_ATTRS.get((self.name, "TOpPattern"), self.definition.pattern))

    def get_attr(self, attr_name: str) -> object:
        """A registered fact of the operator (`TOpPattern`, or one set by `set_attr`); None if unset."""
        if attr_name == "TOpPattern":
            return self.pattern
        return EXTRA_ATTRS.get((self.name, attr_name))

    def has_attr(self, attr_name: str) -> bool:
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name: str, value: object, plevel: int = 10) -> None:
        """Register a fact about the operator for a pass of one's own; one of a lower level does not replace another."""
        if plevel >= _LEVELS.get((self.name, attr_name), plevel):
            EXTRA_ATTRS[self.name, attr_name] = value
            _LEVELS[self.name, attr_name] = plevel

    def reset_attr(self, attr_name: str) -> None:
        EXTRA_ATTRS.pop((self.name, attr_name), None)
        _LEVELS.pop((self.name, attr_name), None)

    # ---- what a program says of an operator that it has registered (`op.custom.register`)

    def _registered(self) -> RegisteredDefinition:
        if not self.definition.takes_any:
            raise RelayError(
                f"{self.name} is one of relaylab's operators: its inputs and types are fixed",
                code="op.fixed",
                help="register an operator of your own",
            )
        return cast(RegisteredDefinition, self.definition)

    def set_num_inputs(self, n: int) -> None:
        """How many inputs the operator takes."""
        made = self._registered()
        made.inputs = (*made.inputs[:n], *(f"data_{k}" for k in range(len(made.inputs), n)))

    def add_argument(self, name: str, type: str = "Tensor", description: str = "") -> None:
        """The name of the next input, what kind of value it is and what it means."""
        made = self._registered()
        named: list[str] = [*made.named, name]
        made.named = tuple(named)
        made.inputs = (*named, *made.inputs[len(named) :])

    def add_type_rel(self, rel_name: str, type_rel_func: Callable[..., object] | None = None) -> None:
        """The type of a call: `type_rel_func(types, attrs)` gives it, or None while too little is known.

        Without a function `rel_name` is one of Identity, Broadcast and BroadcastComp.
        """
        self._registered().set_relation(rel_name, type_rel_func)

    def set_support_level(self, level: int) -> None:
        """How well known the operator is: 1 for the core, 10 for the rest."""
        self._registered().level = level

    def set_attrs_type_key(self, key: str) -> None:
        """The kind of its attributes: `DictAttrs`, any names and values."""
        self._registered().set_key(key)

    def facets(self, attrs: Attrs | None) -> Any:
        """The record on which the facets are methods: `attrs`, adapted if it was made for a sister operator."""
        if cast(object, type(attrs)) is self.definition:
            return attrs
        if attrs is None:
            if self.default is None:
                set_field(self, "default", self.definition())
            return self.default
        known = {k: v for k, v in attrs.items() if self.definition.takes_any or k in self.definition.fields}
        return self.definition(**known)


OPERATORS: Table[Op] = Table("operator")
EXTRA_ATTRS: dict[tuple[str, str], object] = {}
_LEVELS: dict[tuple[str, str], int] = {}


def facets(call: Call) -> Any:
    """The facets of the operator that `call` calls, with the call's attributes."""
    if not isinstance(call.op, Op):
        raise RelayAttributeError(f"a call of {kind_of(call.op)} has no operator facets", code="op.not-an-op")
    return call.op.facets(call.attrs)


def op_name(expr: Expr) -> str:
    """The name of the operator that `expr` calls, or an empty string."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def is_call_to(expr: Expr, *names: str) -> TypeGuard[Call]:
    """Whether `expr` is a call of one of the named operators."""
    return op_name(expr) in names
