"""EliminateCommonSubexpr: what is computed twice from the same values is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from relaylab.ir import Call, Expr, Function, Op, TupleGetItem, rewrite
from relaylab.transform.build import is_scalar_constant
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _value_number(arg: Expr) -> Hashable:
    """What an argument is compared by: its identity, or the value of a scalar constant."""
    if is_scalar_constant(arg):
        return (arg.data.dtype.name, arg.data.tobytes())  # type: ignore[attr-defined]
    return arg


def _key(node: Expr) -> Hashable | None:
    if isinstance(node, TupleGetItem):
        return ("projection", node.tuple_value, node.index)
    if isinstance(node, Call) and isinstance(node.op, Op) and node.args and not node.op.definition.stateful:
        return (node.op, node.attrs, *map(_value_number, node.args))
    return None


def merge_equal(func: Function, skip: Callable[[Expr], bool] | None) -> Function:
    """`func` with calls of the same operator on the same arguments merged, except those for which `skip` holds."""
    first: dict[Hashable, Expr] = {}

    def merge(new: Expr, old: Expr) -> Expr:
        key = _key(new)
        if key is None or (skip is not None and isinstance(new, Call) and skip(new)):
            return new
        return first.setdefault(key, new)

    return rewrite(func, merge)  # type: ignore[return-value]


@register_pass(idempotent=True)
def EliminateCommonSubexpr(fskip: Callable[[Expr], bool] | None = None) -> Pass:
    """Merges calls with the same operator, attributes and arguments; `fskip` says which to leave alone."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return merge_equal(func, fskip)

    return FunctionPass(PassInfo(3, "EliminateCommonSubexpr", ("InferType",)), run)
