"""CanonicalizeOps: operators that are combinations of simpler ones are written as these, and products without copies.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from typing import cast

from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, facets, is_call_to, rewrite
from relaylab.op.base import OpPattern
from relaylab.transform.engine.build import call, expand_to_axis, positive_axis
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import rank_of, type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.simplify.simplify_shapes import axis_order, swaps_last


def _canonical(new: Expr, old: Expr) -> Expr:
    if is_call_to(old, "nn.bias_add"):
        return _bias_add(cast(Call, new), old)
    if is_call_to(old, "nn.dense", "nn.matmul", "nn.batch_matmul"):
        return _in_place(cast(Call, new), old)
    return new


def _bias_add(new: Call, old: Call) -> Expr:
    data, bias = new.args
    rank = rank_of(old.args[0])
    return call("add", data, expand_to_axis(bias, rank, [positive_axis(facets(old).axis, rank)]))


def _in_place(new: Call, old: Call) -> Expr:
    """A product of a right side whose last two axes are exchanged for it: one that says so."""
    right, rank = old.args[1], _rank(old.args[1])
    if not is_call_to(right, "transpose") or min(rank, _rank(old.args[0])) < 2:
        return new
    if not swaps_last(right, rank) or _comes_turned(right.args[0]):
        return new
    record = {**facets(new), "transpose_b": not facets(old).transpose_b}
    name = "nn.matmul" if is_call_to(old, "nn.dense") else cast(Op, old.op).name
    return cast(Expr, call(name, new.args[0], cast(Call, new.args[1]).args[0], **record))


def _comes_turned(x: Expr) -> bool:
    """Whether elements that lie side by side are brought together before: two transpositions are one copy of rows."""
    while isinstance(x, Call) and isinstance(x.op, Op):
        rank = _rank(x)
        if is_call_to(x, "transpose"):
            return axis_order(x, rank)[-1] != rank - 1
        if not x.args or x.op.pattern > OpPattern.INJECTIVE:
            return False
        x = x.args[0]
    return False


def _rank(x: Expr) -> int:
    """The rank of a tensor; 0 for anything else."""
    found = type_of(x)
    return len(found.shape) if isinstance(found, TensorType) else 0


@pass_(level=3, requires=("InferType",), idempotent=True)
class CanonicalizeOps(FunctionPass):
    """Writes `nn.bias_add` as an addition, and a product of a transposed right side as one that takes it as it is."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _canonical, only=("nn.bias_add", "transpose"))
