"""QuantizePartition: where the result of a convolution is kept for others, it is kept in the small integer type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function
from relaylab.ir.module import IRModule
from relaylab.ir.op import op_name
from relaylab.support.table import registered
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied
from relaylab.transform.quantized.forward import Pending, Value, again, forwarded, is_entry


class QPartitionExpr(Pending):
    """A value that is computed in wide integers; whoever uses it from outside gets it in the data type `dtype`."""

    def __init__(self, expr: Expr, dtype: str = "int8"):
        self.expr, self.dtype = expr, dtype

    def make(self) -> Expr:
        kept = call("annotation.stop_fusion", call("annotation.cast_hint", self.expr, dtype=self.dtype))
        return copied(kept, self.expr)


PartitionRule: TypeAlias = "Callable[[Call, list[Value], str], Value | None]"
"""What stands for a call whose arguments are given; the text is the data type in which values are kept."""
PARTITION: dict[str, PartitionRule] = {}


def partition_rule(*names: str) -> Callable[[PartitionRule], PartitionRule]:
    """Register a rule for operators."""
    return registered(PARTITION, names)


@partition_rule("nn.conv2d")
def _product(node: Call, args: list[Value], dtype: str) -> Value | None:
    return QPartitionExpr(again(node, args), dtype)


@partition_rule("clip", "nn.relu", "nn.max_pool2d")
def _within(node: Call, args: list[Value], dtype: str) -> Value | None:
    """What is fused to a product belongs to it."""
    return QPartitionExpr(again(node, [args[0].expr]), dtype) if isinstance(args[0], QPartitionExpr) else None


@partition_rule("add")
def _sum(node: Call, args: list[Value], dtype: str) -> Value | None:
    lhs, rhs = args
    if isinstance(lhs, QPartitionExpr) and isinstance(rhs, Constant):  # what is left of a batch normalization
        return QPartitionExpr(again(node, [lhs.expr, rhs]), dtype)
    both = isinstance(lhs, QPartitionExpr) and isinstance(rhs, QPartitionExpr)  # the first residual connection
    return QPartitionExpr(again(node, args), dtype) if both else None


@partition_rule("multiply")
def _scaled(node: Call, args: list[Value], dtype: str) -> Value | None:
    return QPartitionExpr(again(node, args), dtype) if isinstance(args[0], QPartitionExpr) else None


@pass_(level=1)
class QuantizePartition(FunctionPass):
    """Marks where values cross from one part of a quantized program to the next: there they are kept as `dtype_input`.

    The marks, annotation.cast_hint and annotation.stop_fusion, are read by the passes of quantization that follow.
    """

    dtype_input: Annotated[str, "The data type in which values are kept between parts."] = "int8"

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        if not is_entry(func, mod):
            return func

        def at(node: Call, args: list[Value]) -> Value | None:
            rule = PARTITION.get(op_name(node))
            return rule(node, args, self.dtype_input) if rule else None

        return forwarded(func, at)
