"""EliminateCommonSubexpr: what is computed twice from the same values is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Annotated

from relaylab.ir import Call, Constant, Expr, Function, IRModule, Op, TupleGetItem
from relaylab.transform.engine.build import is_scalar_constant
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import rewrite_function


def _value_number(arg: Expr) -> Hashable:
    """What an argument is compared by: its identity, or the value of a scalar constant."""
    if isinstance(arg, Constant) and is_scalar_constant(arg):
        return (arg.data.dtype.name, arg.data.tobytes())
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

    return rewrite_function(func, merge)


@pass_(level=3, requires=("InferType",), idempotent=True)
class EliminateCommonSubexpr(FunctionPass):
    """Merges calls with the same operator, attributes and arguments; `fskip` says which to leave alone."""

    fskip: Annotated[Callable[[Expr], bool] | None, "The calls for which it holds are left alone."] = None

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return merge_equal(func, self.fskip)
