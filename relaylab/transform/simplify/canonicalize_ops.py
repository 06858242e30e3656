"""CanonicalizeOps: operators that are combinations of simpler ones are written as these."""

from __future__ import annotations

from typing import cast

from relaylab.ir import Call, Expr, Function, IRModule, facets, is_call_to, rewrite
from relaylab.transform.engine.build import call, expand_to_axis, positive_axis
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import rank_of
from relaylab.transform.engine.manager import FunctionPass


def _bias_add(new: Expr, old: Expr) -> Expr:
    if not is_call_to(old, "nn.bias_add"):
        return new
    data, bias = cast(Call, new).args
    rank = rank_of(old.args[0])
    return call("add", data, expand_to_axis(bias, rank, [positive_axis(facets(old).axis, rank)]))


@pass_(level=3, requires=("InferType",), idempotent=True)
class CanonicalizeOps(FunctionPass):
    """Writes `nn.bias_add` as an addition of the bias with its shape extended."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _bias_add)
