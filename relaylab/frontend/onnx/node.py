"""One node of an ONNX graph: its names, its attributes as Python values, and its place for error messages.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from relaylab.frontend.onnx.model import array_of
from relaylab.support.errors import RelayValueError
from relaylab.support.source import SourceName, Span

if TYPE_CHECKING:
    from onnx import NodeProto

LARGEST = 1 << 26
"""How many elements a constant may have that the model only describes."""

_READ = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 10: "graphs"}
"""Which field of an AttributeProto holds the value, by its type."""


class OnnxNode:
    """A NodeProto as converters see it. Attributes are read with `get`, `ints`, `need`; unread ones are refused."""

    def __init__(self, proto: NodeProto, number: int, version: int, graph: str):
        self.proto, self.version = proto, version
        self.op_type: str = proto.op_type
        self.domain: str = "" if proto.domain == "ai.onnx" else proto.domain
        self.inputs: list[str] = list(proto.input)
        self.outputs: list[str] = list(proto.output)
        made = next((o for o in self.outputs if o), "")
        self.name: str = proto.name or made or f"node {number}"
        self.place = f"{self.op_type} `{self.name}` (node {number} of {graph})"
        self.span = Span(SourceName(self.name), 0, 0, 0, 0)
        self.scope: dict[str, Any] = {}
        """What names mean here: graphs in attributes see the values around them."""
        self._attributes = {a.name: a for a in proto.attribute}
        self._read: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute's value: int, float, str, an array, a GraphProto, or a list of them."""
        self._read.add(name)
        if name not in self._attributes:
            return default
        proto = self._attributes[name]
        if proto.type not in _READ:
            raise self.error(f"the attribute `{name}` has a type that is not read here", code="import.attribute")
        value = getattr(proto, _READ[proto.type])
        if proto.type == 3:
            return _text(value)
        if proto.type == 4:
            return array_of(value, f"the attribute `{name}` of {self.place}")
        return [_text(v) for v in value] if proto.type == 8 else list(value) if proto.type in (6, 7, 10) else value

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int] | None:
        """A list of integers; a single one counts as a list."""
        value = self.get(name, default)
        if value is None:
            return None
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(v, int) for v in values):
            raise self.error(f"the attribute `{name}` must be integers", code="import.attribute")
        return list(values)

    def need(self, name: str) -> Any:
        """An attribute that must be given."""
        value = self.get(name)
        if value is None:
            raise self.error(f"the attribute `{name}` is missing", code="import.attribute")
        return value

    def choice(self, name: str, default: str, known: Collection[str]) -> str:
        """A string attribute with one of the `known` values."""
        value = self.get(name, default)
        if value not in known:
            raise self.error(
                f"{name}={value!r} is not imported; known are {', '.join(map(repr, known))}", code="import.attribute"
            )
        return value

    def bound(self, *extents: int) -> None:
        """Refuse to make a constant of that shape now if it is too large (or has no shape)."""
        if min(extents, default=0) < 0 or math.prod(extents) > LARGEST:
            raise self.error(
                f"a constant of the shape {list(extents)}",
                code="import.shape",
                help=f"{LARGEST} elements at most are made while a model is read",
            )

    def unread(self, unused: frozenset[str]) -> list[str]:
        """The attributes that nobody looked at."""
        return [name for name in self._attributes if name not in self._read | unused]

    def error(self, message: str, code: str = "import.node", help: str = "") -> RelayValueError:
        """An error about this node."""
        return RelayValueError(f"{self.op_type}: {message}", code=code, place=f"  --> {self.place}", help=help)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
