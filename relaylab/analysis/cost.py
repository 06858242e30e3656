"""What each node costs: multiply-accumulates, bytes read, bytes written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import cast

from relaylab.ir.expr import Call, Expr, Function
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.types import TensorType, TupleType, Type, dtype_name
from relaylab.ir.visit import children, walk
from relaylab.support.errors import RelayValueError

_BITS = {"bool": 8, "bfloat16": 16}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one evaluation of a node; bytes of operands and results that have a static size."""

    macs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.macs + other.macs, self.bytes_read + other.bytes_read, self.bytes_written + other.bytes_written
        )

    @property
    def intensity(self) -> float:
        """Multiply-accumulates per byte moved."""
        moved = self.bytes_read + self.bytes_written
        return self.macs / moved if moved else 0.0


@cache
def dtype_bytes(dtype: str) -> int:
    """The size of one element in bytes."""
    dtype = dtype_name(dtype)
    return (_BITS.get(dtype) or int("".join(filter(str.isdigit, dtype)))) // 8


def type_bytes(t: Type) -> int | None:
    """The size of a tensor, or of all tensors of a tuple, in bytes; None if it is not known before run time."""
    if isinstance(t, TupleType):
        sizes = [n for f in t.fields if (n := type_bytes(f)) is not None]
        return sum(sizes) if len(sizes) == len(t.fields) else None
    if not isinstance(t, TensorType) or t.is_dynamic:
        return None
    return math.prod(cast("tuple[int, ...]", t.shape)) * dtype_bytes(t.dtype)


def call_macs(call: Call) -> int:
    """The multiply-accumulates of one call of an operator, by its own account."""
    return int(facets(call).macs([_type(a) for a in call.args], _type(call)))


def _type(node: Expr) -> Type:
    if node.inferred is None:
        raise RelayValueError(
            f"the cost of {op_name(node) or 'a program'} needs types",
            code="type.not-inferred",
            help="run relay.transform.InferType() first",
        )
    return node.inferred


def node_cost(node: Expr) -> Cost:
    """The cost of a call in a typed program; of a fused function, the work inside and the traffic outside. Zero for
    other nodes.
    """
    if not isinstance(node, Call):
        return Cost()
    read = sum(type_bytes(_type(a)) or 0 for a in node.args)
    written = type_bytes(_type(node)) or 0
    if isinstance(node.op, Op):
        return Cost(call_macs(node), read, written)
    inside = walk((node.op.body,)) if isinstance(node.op, Function) else ()
    return Cost(sum(call_macs(n) for n in inside if isinstance(n, Call) and op_name(n)), read, written)


def costs(expr: Expr) -> dict[Expr, Cost]:
    """The cost of every call of a typed program that is not inside a fused function."""

    def below(node: Expr) -> tuple[Expr, ...]:
        return () if isinstance(node, Function) and node.is_primitive else children(node)

    return {n: node_cost(n) for n in walk((expr,), below) if isinstance(n, Call)}
