"""The records of attributes by the names that TVM gives them: `isinstance(call.attrs, Conv2DAttrs)`.

A class stands for the records of all operators with its type key; called, it makes one, as `make_node` does.
"""

from __future__ import annotations

from typing import cast

from relaylab.compat.registry import make_node
from relaylab.ir import OPERATORS, Attrs

WITHOUT_OPERATOR = ("ShapeFunc", "TupleGetItem")
"""Records of operators that only TVM's compiler makes: no call has them."""


class AttrsKind(type):
    """The type of the classes here: what they are follows from the type key."""

    type_key: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Attrs) and value.type_key == cls.type_key

    def __call__(cls, **fields: object) -> Attrs:
        return cast(Attrs, make_node(cls.type_key, **fields))

    @property
    def operators(cls) -> list[str]:
        """The operators whose calls have such a record."""
        return sorted(name for name, op in OPERATORS.items() if op.attrs_type_key == cls.type_key)


def _kind(key: str) -> AttrsKind:
    name = key.removeprefix("relay.attrs.")
    doc = f"The attributes of the operators with the type key `{key}`."
    return AttrsKind(name, (), {"type_key": key, "__doc__": doc, "__module__": __name__})


_KEYS = {op.attrs_type_key for op in OPERATORS.values()} | {f"relay.attrs.{name}Attrs" for name in WITHOUT_OPERATOR}
_KINDS = {kind.__name__: kind for kind in map(_kind, sorted(_KEYS - {""}))}
globals().update(_KINDS)
__all__ = sorted(_KINDS)
