"""Yes-or-no questions about expressions."""

from __future__ import annotations

from relaylab.ir.expr import Call, Constant, Expr, Tuple, Var
from relaylab.ir.op import is_call_to
from relaylab.ir.scope import lifted
from relaylab.ir.visit import children, walk


def check_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or a tuple of constants."""
    return all(
        isinstance(n, Constant)
        for n in walk((expr,), lambda n: children(n) if isinstance(n, Tuple) else ())
        if not isinstance(n, Tuple)
    )


def check_basic_block_normal_form(expr: Expr) -> bool:
    """Whether every shared expression that crosses a scope is bound by a `let` (census §9.1)."""
    return not lifted(expr)


def search_fc_transpose(expr: Expr) -> list[str]:
    """The names of the weights in `nn.dense(x, transpose(w, [1, 0]))`, in the order of their uses."""
    found: dict[str, None] = {}
    for node in walk((expr,)):
        if isinstance(node, Call) and is_call_to(node, "nn.dense"):
            found.update(dict.fromkeys(_transposed_var(node.args[1])))
    return list(found)


def _transposed_var(weight: Expr) -> tuple[str, ...]:
    """The name of `w` in `transpose(w, [1, 0])`, or nothing."""
    if not (isinstance(weight, Call) and is_call_to(weight, "transpose") and isinstance(weight.args[0], Var)):
        return ()
    axes = weight.attrs.get("axes") if weight.attrs is not None else None
    return (weight.args[0].name_hint,) if axes is None or tuple(axes) in ((), (1, 0)) else ()
