"""CanonicalizeOps: operators that are combinations of simpler ones are written as these."""

from __future__ import annotations

from relaylab.ir import Expr, Function, facets, is_call_to, rewrite
from relaylab.transform.build import call, expand_to_axis, positive_axis
from relaylab.transform.infer_type import rank_of
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _bias_add(new: Expr, old: Expr) -> Expr:
    if not is_call_to(old, "nn.bias_add"):
        return new
    data, bias = new.args  # type: ignore[attr-defined]
    rank = rank_of(old.args[0])  # type: ignore[attr-defined]
    return call("add", data, expand_to_axis(bias, rank, [positive_axis(facets(old).axis, rank)]))


@register_pass(idempotent=True)
def CanonicalizeOps() -> Pass:
    """Writes `nn.bias_add` as an addition of the bias with its shape extended."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _bias_add)  # type: ignore[return-value]

    return FunctionPass(PassInfo(3, "CanonicalizeOps", ("InferType",)), run)
