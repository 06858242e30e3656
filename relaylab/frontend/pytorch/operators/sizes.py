"""Sizes that are computed: numbers where they are known, else scalar expressions of int64 (of float64: quotients)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr

BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Expr, Expr], Any]]] = {
    "add": (operator.add, op.add), "sub": (operator.sub, op.subtract), "mul": (operator.mul, op.multiply),
    "floordiv": (operator.floordiv, op.floor_divide), "mod": (operator.mod, op.floor_mod),
    "sym_max": (max, op.maximum), "sym_min": (min, op.minimum),
    "truediv": (operator.truediv, op.divide), "pow": (operator.pow, op.power),
    "eq": (operator.eq, op.equal), "ne": (operator.ne, op.not_equal), "lt": (operator.lt, op.less),
    "le": (operator.le, op.less_equal), "gt": (operator.gt, op.greater), "ge": (operator.ge, op.greater_equal),
}  # fmt: skip


@converts("sym_size.int")
def sym_size(g: TorchGraph, node: AtenNode, x: Expr, axis: int) -> int | Expr:
    return g.size(x, axis)


@converts("sym_numel.default")
def sym_numel(g: TorchGraph, node: AtenNode, x: Expr) -> int | Expr:
    return math.prod(g.shape(x)) if g.is_static(x) else op.ndarray_size(x, "int64")


@converts("operator.getitem")
def getitem(g: TorchGraph, node: AtenNode, values: list[object], k: int) -> object:
    if values[k] is None:
        source: Any = node.node.args[0]
        raise node.error(f"the result number {k} of {source.name} is not imported", "import.output")
    return values[k]


@converts("operator.neg")
def negative(g: TorchGraph, node: AtenNode, a: Operand) -> Operand:
    return op.negative(a) if isinstance(a, Expr) else -a


def _enter(name: str, plain: Callable[[Any, Any], Any], build: Callable[[Expr, Expr], Any]) -> None:
    @converts(f"operator.{name}")
    def compute(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Operand:
        if isinstance(a, Expr) or isinstance(b, Expr):
            real = name == "truediv" or any(_is_real(g, v) for v in (a, b))
            return build(*(g.to(v, "float64" if real else "int64") for v in (a, b)))
        return plain(a, b)


def _is_real(g: TorchGraph, x: Operand) -> bool:
    return g.dtype(x) == "float64" if isinstance(x, Expr) else isinstance(x, float)


@converts("operator.sym_float")
def real(g: TorchGraph, node: AtenNode, a: Operand) -> Operand:
    return g.to(a, "float64") if isinstance(a, Expr) else float(a)


@converts("operator.trunc", "operator.floor", "operator.ceil", "operator.sym_int")
def whole(g: TorchGraph, node: AtenNode, a: Operand) -> Operand:
    word = node.name.split(".")[-1].replace("sym_int", "trunc")
    if not isinstance(a, Expr):
        return getattr(math, word)(a)
    return op.cast(getattr(op, word)(a), "int64") if _is_real(g, a) else a


for _name, (_plain, _build) in BINARY.items():
    _enter(_name, _plain, _build)


_SCALARS = {"float": "float64", "bfloat": "float64", "bool": "bool"}
"""What Python computes with instead of tensors of a kind; integers are int64."""


@converts("_local_scalar_dense")
def scalar(g: TorchGraph, node: AtenNode, x: Expr) -> Operand:
    """A value that sizes or factors are made of: a number if it is known."""
    return g.to(op.reshape(x, ()), _SCALARS.get(g.dtype(x).rstrip("0123456789"), "int64"))


@converts("sym_stride.int")
def stride(g: TorchGraph, node: AtenNode, x: Expr, axis: int) -> Operand:
    """How far elements are apart in torch's memory: where they lie in order, by the sizes of the axes behind."""
    if isinstance(node.value, int):
        return node.value
    held: Any = node.meta(0)
    if not held.is_contiguous():
        raise node.error("a stride of elements that are not in order", "import.dynamic", "call .contiguous() before")
    apart: Expr = g.const(1, "int64")
    for k in range(g.axis(axis, g.rank(x)) + 1, g.rank(x)):
        apart = op.multiply(apart, g.to(g.size(x, k), "int64"))
    return apart


@converts("sym_storage_offset", "sym_is_contiguous")
def layout(g: TorchGraph, node: AtenNode, x: Expr, more: object = None) -> int:
    """Where and in which order elements are in torch's memory, as torch has found it."""
    if not isinstance(node.value, int):
        raise node.error("the layout in memory depends on open sizes", "import.dynamic", g.remedy)
    return node.value
