"""What all expressions have: a type, once inference has run, a place, and a device if the program names one.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from relaylab.ir.declare import field, node
from relaylab.ir.display import Printed, node_text
from relaylab.ir.node import Node, expect, set_field
from relaylab.ir.trail import default_span
from relaylab.ir.types import Type
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.hook import Hook
from relaylab.support.source import AnySpan, MergedSpan, Span


class _Place:
    """The span of a new node: the one given, or else the line of Python that makes it."""

    kind = (Span, MergedSpan)
    inline = "{check}() if {value} is None else {value} if isinstance({value}, {kind}) else {check}({value})"

    def __call__(self, span: AnySpan | None = None) -> AnySpan | None:
        return default_span() if span is None else expect(span, self.kind, "the span of an expression")


@runtime_checkable
class NumberedDevice(Protocol):
    """A device as `tvm.cpu(0)` gives it."""

    @property
    def device_type(self) -> int: ...

    @property
    def device_id(self) -> int: ...


@Hook
def named_target(text: str, /) -> object:
    """The target that a text names, which the compat room knows."""
    return text


@Hook
def named_device(name: str, /) -> NumberedDevice:
    """The device that a name means, which the compat room knows."""
    raise RelayValueError(f"there is no device kind `{name}`", code="ir.device")


UNKNOWN_DEVICE = -1
"""The kind and the number of a device that is left open; kinds are as DLPack numbers them."""


@checked
class VirtualDevice:
    """Where a value lives: a kind of device, its number, what code for it is made for, a kind of memory.

    What is not given is left open: device type -1, number -1, no target, no memory.
    """

    def __init__(self, device: NumberedDevice | int | None = None, target: object = None, memory_scope: str = ""):
        numbered = device if isinstance(device, NumberedDevice) else None
        kind = numbered.device_type if numbered else UNKNOWN_DEVICE if device is None else device
        self.device_type = kind if isinstance(kind, int) else UNKNOWN_DEVICE
        self.virtual_device_id = numbered.device_id if numbered else UNKNOWN_DEVICE
        self.target = named_target(target) if isinstance(target, str) else target
        self.memory_scope = memory_scope

    @property
    def device_type_int(self) -> int:
        """The kind of device as DLPack numbers it; -1 if it is left open."""
        return self.device_type

    @property
    def is_open(self) -> bool:
        """Whether nothing is said."""
        return self._key() == (UNKNOWN_DEVICE, UNKNOWN_DEVICE, None, "")

    def _key(self) -> tuple[object, ...]:
        return self.device_type, self.virtual_device_id, self.target, self.memory_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VirtualDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [f"device_type={self.device_type}"] if self.device_type != UNKNOWN_DEVICE else []
        parts += [f"virtual_device_id={self.virtual_device_id}"] if self.virtual_device_id >= 0 else []
        parts += [f"target={self.target!r}"] if self.target is not None else []
        parts += [f"memory_scope='{self.memory_scope}'"] if self.memory_scope else []
        return f"VirtualDevice({', '.join(parts) or '?'})"


UNCONSTRAINED = VirtualDevice()


def virtual_device(value: object) -> VirtualDevice:
    """The virtual device that a device, a name or a kind of devices stands for; None leaves it open."""
    if isinstance(value, VirtualDevice):
        return value
    if value is None or isinstance(value, (int, NumberedDevice)):
        return VirtualDevice(value)
    if isinstance(value, str):
        return VirtualDevice(named_device(value))
    raise RelayValueError(f"expected a device or its name, not {kind_of(value)}", code="ir.device")


@checked
@node
class Expr(Node, Printed):
    """The base of all expressions: the type that inference found, and the place that the node comes from."""

    _fields = ()  # what a node consists of: neither its type nor its place

    inferred: Type | None = field(init=False)
    """The type, if InferType has run on the node."""
    device: VirtualDevice | None = field(init=False)
    """Where the value lives; only variables and functions (for their results) say it."""
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

    @property
    def _checked_type_(self) -> Type | None:
        """The same as TVM's programs look for it: None before InferType."""
        return self.inferred

    @property
    def virtual_device_(self) -> VirtualDevice:
        """Where the value lives, of a function its result: `VirtualDevice(?)` where nothing says it."""
        return self.device or UNCONSTRAINED

    def __repr__(self) -> str:
        return node_text(self)


_TRUTHS = frozenset(
    ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    + ("logical_and", "logical_or", "logical_xor", "logical_not", "all", "any", "isnan", "isinf", "isfinite")
)


def python_truth(op: Expr) -> bool:
    """What `if`, `and` and `not` of Python get of a call: an error where the operator's results are truths."""
    if getattr(op, "name", "") not in _TRUTHS:
        return True
    raise RelayTypeError(
        "a comparison is neither true nor false: it has a value when the program runs",
        code="ir.no-truth",
        help="relay.If(condition, then, otherwise) decides then; `x is not None` asks whether there is an expression",
    )


def no_items(expr: Expr, index: int) -> Expr:
    """What `x[0]`, a loop and unpacking get of an expression that is not written as a tuple."""
    raise RelayTypeError(
        "an expression has no items: Python does not know its value",
        code="ir.no-items",
        help="relay.TupleGetItem(x, 0) is a field of a tuple; relay.take and relay.strided_slice are parts of a tensor",
    )


def set_type(expr: Expr, found: Type | None) -> None:
    """`found` is the type of `expr` (for inference, and for passes that build what is typed already)."""
    set_field(expr, "inferred", found)


E = TypeVar("E", bound=Expr)


def placed(expr: E, device: VirtualDevice | None) -> E:
    """`expr`, a node just made, with the device on which its value lives."""
    if device is not None and not device.is_open:
        set_field(expr, "device", device)
    return expr
