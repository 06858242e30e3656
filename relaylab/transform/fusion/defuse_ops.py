"""DefuseOps: the bodies of kernels come back into the program."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, IRModule, rewrite, walk
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.purity import acts, changes_state
from relaylab.transform.engine.renewal import inlined


@pass_(level=3, requires=("InferType",), idempotent=True)
class DefuseOps(FunctionPass):
    """Replaces every call of a function written in place by the function's body: what FuseOps did is undone."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        ordered = any(map(acts, walk((func,)))) and changes_state(mod)

        def inline(new: Expr, old: Expr) -> Expr:
            if isinstance(new, Call) and isinstance(new.op, Function) and len(new.op.params) == len(new.args):
                return inlined(new.op, new, ordered)
            return new

        return rewrite(func, inline)
