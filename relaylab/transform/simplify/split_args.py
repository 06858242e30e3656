"""SplitArgs: a concatenation of more tensors than a kernel may have arguments is done in parts."""

from __future__ import annotations

from typing import Annotated

from relaylab.ir import Call, Expr, Function, IRModule, Tuple, facets, is_call_to, rewrite
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass


def _split(new: Expr, limit: int) -> Expr:
    if not is_call_to(new, "concatenate") or not isinstance(new, Call) or not isinstance(new.args[0], Tuple):
        return new
    fields = new.args[0].fields
    if len(fields) <= limit:
        return new
    axis = facets(new).axis
    parts = [fields[i : i + limit] for i in range(0, len(fields), limit)]
    joined = [call("annotation.stop_fusion", call("concatenate", Tuple(part), axis=axis)) for part in parts]
    return _split(call("concatenate", Tuple(joined), axis=axis), limit)


@pass_(level=1, requires=("InferType",), idempotent=True, example={"max_function_args": 4})
class SplitArgs(FunctionPass):
    """Splits concatenations so that no kernel has more than `max_function_args` tensors; negative: no limit."""

    max_function_args: Annotated[int, "The most tensors that a kernel reads and writes; negative: no limit."]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        limit = max(2, self.max_function_args - 1)
        return func if self.max_function_args < 0 else rewrite(func, lambda new, old: _split(new, limit))
