"""FastMath: transcendental functions give way to their fast approximations."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, IRModule, Op, op_name, rewrite
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass

FAST = {"exp": "fast_exp", "erf": "fast_erf", "tanh": "fast_tanh", "nn.softmax": "nn.fast_softmax"}


def _faster(new: Expr, old: Expr) -> Expr:
    name = FAST.get(op_name(new))
    if name is None or not isinstance(new, Call):
        return new
    attrs = dict(new.attrs.items()) if new.attrs is not None else {}
    return call(name, *new.args, **{k: v for k, v in attrs.items() if k in Op.get(name).definition.fields})


@pass_(level=4, requires=("InferType",), idempotent=True)
class FastMath(FunctionPass):
    """Replaces exp, erf, tanh and softmax by approximations that are faster and less exact."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _faster)
