"""DivToMul: dividing by a constant is multiplying with its reciprocal."""

from __future__ import annotations

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, IRModule, op_name, rewrite
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass


def _multiplied(new: Expr, old: Expr) -> Expr:
    if op_name(new) != "divide" or not isinstance(new, Call) or not isinstance(new.args[1], Constant):
        return new
    divisor = new.args[1].data.numpy()
    if divisor.dtype.kind != "f":
        return new
    with np.errstate(all="ignore"):
        reciprocal = (1 / divisor).astype(divisor.dtype)
    if not np.isfinite(reciprocal).all() or not reciprocal.all():  # the quotient would be lost
        return new
    return call("multiply", new.args[0], Constant(np.asarray(reciprocal)))


@pass_(level=0, requires=("InferType",), idempotent=True)
class DivToMul(FunctionPass):
    """Replaces divisions by constant floats by multiplications with the reciprocals, which round differently."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _multiplied)
