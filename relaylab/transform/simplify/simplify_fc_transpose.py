"""SimplifyFCTranspose: a dense layer whose weight is transposed in the program takes the transposed weight instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, FunctionWithFields, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.trail import derived
from relaylab.ir.types import TensorType
from relaylab.ir.visit import rewrite, walk
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import tensor_of
from relaylab.transform.engine.manager import FunctionPass


def _is_matrix_transpose(expr: Expr) -> bool:
    axes = facets(expr).axes if is_call_to(expr, "transpose") else (0,)
    return not axes or [a % 2 for a in axes] == [1, 0]


def _transposed(weight: Var) -> Var:
    typ = tensor_of(weight)
    return derived(Var(f"{weight.name_hint}.T", TensorType(typ.shape[::-1], typ.dtype), span=weight.span), weight)


def simplify_fc_transpose(func: Function, names: Sequence[str]) -> Function:
    """`func` with parameters `name.T`, the transposed weights, in the place of those in `names`."""
    new_params = {p: _transposed(p) for p in func.params if p.name_hint in names}
    used: set[Expr] = set()

    def at(new: Expr, old: Expr) -> Expr:
        if not is_call_to(old, "nn.dense") or not isinstance(new, Call) or not _is_matrix_transpose(old.args[1]):
            return new
        weight = new_params.get(cast(Var, cast(Call, old.args[1]).args[0]))
        if weight is None:
            return new
        used.add(weight)
        return Call(new.op, (new.args[0], weight), new.attrs, new.type_args, span=new.span)

    body = rewrite(func.body, at)
    gone = {p for p, new in new_params.items() if new in used} - {n for n in walk((body,)) if isinstance(n, Var)}
    params = [new_params[p] if p in gone else p for p in func.params]
    extra = [new for p, new in new_params.items() if new in used and p not in gone]
    return derived(FunctionWithFields(func, params=[*params, *extra], body=body), func)


@pass_(level=4, requires=("DeadCodeElimination",), example={"target_weight_name": []})
class SimplifyFCTranspose(FunctionPass):
    """Replaces `dense(x, transpose(w))` by `dense(x, w.T)` for the named weights; `w.T` is a new parameter."""

    target_weight_name: Annotated[Sequence[str], "The names of the weights whose transposition is computed before."]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return simplify_fc_transpose(func, self.target_weight_name)
