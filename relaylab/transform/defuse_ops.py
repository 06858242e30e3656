"""DefuseOps: the bodies of kernels come back into the program."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, rewrite
from relaylab.transform.copying import inlined
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _inline(new: Expr, old: Expr) -> Expr:
    if isinstance(new, Call) and isinstance(new.op, Function) and len(new.op.params) == len(new.args):
        return inlined(new.op, new.args)
    return new


@register_pass(idempotent=True)
def DefuseOps() -> Pass:
    """Replaces every call of a function written in place by the function's body: what FuseOps did is undone."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _inline)  # type: ignore[return-value]

    return FunctionPass(PassInfo(3, "DefuseOps", ("InferType",)), run)
