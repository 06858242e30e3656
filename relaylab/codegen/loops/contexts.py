"""Values in lanes, where an expression is evaluated, and how elements lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from relaylab.codegen.llvm.text import Index, IRFunction, Value, lanes, llvm_type, tail_mask, vector
from relaylab.codegen.loops import scalars
from relaylab.loop.expr import INDEX, Axis, Const, ScalarExpr
from relaylab.loop.program import For
from relaylab.loop.scalar import NARROW
from relaylab.support.errors import RelayTypeError


class Ramp(NamedTuple):
    """An index: `base` in lane 0, `step` more in each further lane."""

    base: Index
    step: int = 0


LaneValue = Value | Ramp


@dataclass(frozen=True, slots=True)
class Mask:
    """Which loads happen: all lanes if `scalar` holds (None: yes), and of the lanes those of `lanes` (None: all)."""

    scalar: Value | None = None
    lanes: Value | None = None


EVERYWHERE = Mask()


@dataclass(slots=True)
class VectorContext:
    """Where an expression is evaluated: known values (of axes, registers, loads) in `width` lanes, `mask` are real.

    `real` says how many those are where that is known: the first ones.
    """

    env: dict[ScalarExpr, LaneValue]
    width: int = 1
    mask: Mask = EVERYWHERE
    real: int | None = None

    def within(self, axis: Axis, value: Ramp) -> VectorContext:
        """The same lanes in a turn of a loop."""
        return VectorContext({**self.env, axis: value}, self.width, self.mask, self.real)


def foreign(node: ScalarExpr) -> RelayTypeError:
    """The error for an expression that loops do not have."""
    return RelayTypeError(f"not part of a loop program: {node!r}", code="codegen.not-an-expression")


def zero(node: ScalarExpr) -> bool:
    """Is it the number 0, and not -0.0?"""
    return isinstance(node, Const) and str(node.value) in ("0", "0.0", "False")


def storage_type(dtype: str) -> str:
    """The LLVM type that an element is loaded as: floats of 16 bits as those."""
    return "i16" if dtype in NARROW else llvm_type(dtype)


def from_storage(f: IRFunction, x: Value, dtype: str, halves: bool) -> LaneValue:
    """A loaded value as it is in registers; `halves`: the target has conversions of float16."""
    if dtype == "bool":
        return f.compare("ne", x, 0)
    if dtype in NARROW:
        return scalars.widened(f, x, dtype, halves)
    return as_lane(x, dtype)


def to_storage(f: IRFunction, x: Value, dtype: str, halves: bool) -> Value:
    """A register value as it is stored."""
    if dtype == "bool":
        return f.cast("zext", x, vector("i8", lanes(x.type)))
    if dtype in NARROW:
        return scalars.narrowed(f, x, dtype, halves)
    return scalars.resize(f, x, "i64", True) if dtype == INDEX else x


def first_lanes(count: int, width: int) -> Mask:
    """The first `count` of `width` lanes."""
    return Mask(None, tail_mask(count, width)) if count < width else EVERYWHERE


def as_lane(x: Value, dtype: str) -> LaneValue:
    """A value as a lane value: an index that all lanes agree on stays a sum."""
    return Ramp(x) if dtype == INDEX and lanes(x.type) == 1 else x


def turns_of(loop: For, at: VectorContext) -> list[VectorContext]:
    """The context of every turn of a loop inside a vector."""
    return [at.within(loop.axis, Ramp(k)) for k in range(loop.axis.extent)]
