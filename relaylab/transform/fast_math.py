"""FastMath: transcendental functions give way to their fast approximations."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, Op, op_name, rewrite
from relaylab.transform.build import call
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

FAST = {"exp": "fast_exp", "erf": "fast_erf", "tanh": "fast_tanh", "nn.softmax": "nn.fast_softmax"}


def _faster(new: Expr, old: Expr) -> Expr:
    name = FAST.get(op_name(new))
    if name is None or not isinstance(new, Call):
        return new
    attrs = dict(new.attrs.items()) if new.attrs is not None else {}  # type: ignore[union-attr]
    return call(name, *new.args, **{k: v for k, v in attrs.items() if k in Op.get(name).definition.fields})


@register_pass(idempotent=True)
def FastMath() -> Pass:
    """Replaces exp, erf, tanh and softmax by approximations that are faster and less exact."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _faster)  # type: ignore[return-value]

    return FunctionPass(PassInfo(4, "FastMath", ("InferType",)), run)
