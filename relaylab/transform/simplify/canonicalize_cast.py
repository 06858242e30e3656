"""CanonicalizeCast: a widening cast with several users is repeated for each, so that each user can absorb it."""

from __future__ import annotations

from typing import cast

import numpy as np

from relaylab.ir import Call, Expr, Function, IRModule, Op, is_call_to, rebuild, rewrite
from relaylab.op.base import OpPattern
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import dtype_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied

ABSORBING = (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.COMM_REDUCE)  # what a cast is fused into
_BITS = {"bool": 1, "bfloat16": 16}


def bits(dtype: str) -> int:
    """The width of a data type."""
    return _BITS.get(dtype) or np.dtype(dtype).itemsize * 8


class _Repeat:
    """Gives every elementwise user and reduction of a widening cast but the first a cast of its own."""

    def __init__(self) -> None:
        self.used: set[Expr] = set()

    def __call__(self, new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.pattern not in ABSORBING:
            return new
        args = (self._own(arg, was) for arg, was in zip(new.args, cast(Call, old).args))
        return rebuild(new, (new.op, *args))

    def _own(self, arg: Expr, was: Expr) -> Expr:
        if not is_call_to(arg, "cast") or not _widens(was):
            return arg
        if was not in self.used:
            self.used.add(was)
            return arg
        return copied(Call(arg.op, arg.args, arg.attrs, arg.type_args, span=arg.span), arg)


def _widens(was: Expr) -> bool:
    return bits(dtype_of(cast(Call, was).args[0])) < bits(dtype_of(was))


@pass_(level=3, requires=("InferType",), idempotent=True)
class CanonicalizeCast(FunctionPass):
    """Repeats widening casts for each elementwise user and reduction, so that fusion can take them in."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _Repeat(), only=("cast",))
