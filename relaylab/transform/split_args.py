"""SplitArgs: a concatenation of more tensors than a kernel may have arguments is done in parts."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, Tuple, is_call_to, rewrite
from relaylab.transform.build import call
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _split(new: Expr, limit: int) -> Expr:
    if not is_call_to(new, "concatenate") or not isinstance(new, Call) or not isinstance(new.args[0], Tuple):
        return new
    fields = new.args[0].fields
    if len(fields) <= limit:
        return new
    axis = new.attrs.axis  # type: ignore[union-attr]
    parts = [fields[i : i + limit] for i in range(0, len(fields), limit)]
    joined = [call("annotation.stop_fusion", call("concatenate", Tuple(part), axis=axis)) for part in parts]
    return _split(call("concatenate", Tuple(joined), axis=axis), limit)


@register_pass(max_function_args=4, idempotent=True)
def SplitArgs(max_function_args: int) -> Pass:
    """Splits concatenations so that no kernel has more than `max_function_args` tensors; negative: no limit."""
    limit = max(2, max_function_args - 1)

    def run(func: Function, mod: object, ctx: object) -> Function:
        return func if max_function_args < 0 else rewrite(func, lambda new, old: _split(new, limit))

    return FunctionPass(PassInfo(1, "SplitArgs", ("InferType",)), run)
