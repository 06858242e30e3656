"""SimplifyFCTranspose: a dense layer whose weight is transposed in the program takes the transposed weight instead."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Call, Expr, Function, FunctionWithFields, TensorType, Var, facets, is_call_to, rewrite, walk
from relaylab.ir.trail import derived
from relaylab.transform.infer_type import tensor_of
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _is_matrix_transpose(expr: Expr) -> bool:
    axes = facets(expr).axes if is_call_to(expr, "transpose") else (0,)  # type: ignore[arg-type]
    return not axes or [a % 2 for a in axes] == [1, 0]


def _transposed(weight: Var) -> Var:
    typ = tensor_of(weight)
    return derived(Var(f"{weight.name_hint}.T", TensorType(typ.shape[::-1], typ.dtype), weight.span), weight)


def simplify_fc_transpose(func: Function, names: Sequence[str]) -> Function:
    """`func` with parameters `name.T`, the transposed weights, in the place of those in `names`."""
    new_params = {p: _transposed(p) for p in func.params if p.name_hint in names}
    used: set[Expr] = set()

    def at(new: Expr, old: Expr) -> Expr:
        if not is_call_to(old, "nn.dense") or not isinstance(new, Call) or not _is_matrix_transpose(old.args[1]):
            return new
        weight = new_params.get(old.args[1].args[0])  # type: ignore[attr-defined]
        if weight is None:
            return new
        used.add(weight)
        return Call(new.op, (new.args[0], weight), new.attrs, new.type_args, new.span)

    body = rewrite(func.body, at)
    gone = {p for p, new in new_params.items() if new in used} - {n for n in walk((body,)) if isinstance(n, Var)}
    params = [new_params[p] if p in gone else p for p in func.params]
    extra = [new for p, new in new_params.items() if new in used and p not in gone]
    return derived(FunctionWithFields(func, params=[*params, *extra], body=body), func)  # type: ignore[return-value]


@register_pass(target_weight_name=[])
def SimplifyFCTranspose(target_weight_name: Sequence[str]) -> Pass:
    """Replaces `dense(x, transpose(w))` by `dense(x, w.T)` for the named weights; `w.T` is a new parameter."""
    names = [str(n) for n in target_weight_name]

    def run(func: Function, mod: object, ctx: object) -> Function:
        return simplify_fc_transpose(func, names)

    return FunctionPass(PassInfo(4, "SimplifyFCTranspose", ("DeadCodeElimination",)), run)
