"""CanonicalizeCast: a widening cast with several users is repeated for each, so that each user can absorb it."""

from __future__ import annotations

import numpy as np

from relaylab.ir import Call, Expr, Function, Op, is_call_to, rebuild, rewrite
from relaylab.op.base import OpPattern
from relaylab.transform.copying import copied
from relaylab.transform.infer_type import type_of
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

_BITS = {"bool": 1, "bfloat16": 16}


def bits(dtype: str) -> int:
    """The width of a data type."""
    return _BITS.get(dtype) or np.dtype(dtype).itemsize * 8


class _Repeat:
    """Gives every elementwise user of a widening cast but the first a cast of its own."""

    def __init__(self) -> None:
        self.used: set[Expr] = set()

    def __call__(self, new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.pattern > OpPattern.BROADCAST:
            return new
        args = (self._own(arg, was) for arg, was in zip(new.args, old.args))
        return rebuild(new, (new.op, *args))

    def _own(self, arg: Expr, was: Expr) -> Expr:
        if not is_call_to(arg, "cast") or not _widens(was):
            return arg
        if was not in self.used:
            self.used.add(was)
            return arg
        return copied(Call(arg.op, arg.args, arg.attrs, arg.type_args, arg.span), arg)  # type: ignore[attr-defined]


def _widens(cast: Expr) -> bool:
    source, target = type_of(cast.args[0]), type_of(cast)  # type: ignore[attr-defined]
    return bits(source.dtype) < bits(target.dtype)  # type: ignore[union-attr]


@register_pass(idempotent=True)
def CanonicalizeCast() -> Pass:
    """Repeats widening casts for each elementwise user, so that fusion can take them in."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _Repeat())  # type: ignore[return-value]

    return FunctionPass(PassInfo(3, "CanonicalizeCast", ("InferType",)), run)
