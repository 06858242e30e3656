"""ChangeBatch: the same network for another number of examples at a time."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.ir import Expr, Function, FunctionWithFields, TensorType, Var, rewrite
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayValueError
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _with_batch(param: Var, axis: int, batch_size: int) -> Var:
    typ = param.type_annotation
    if not isinstance(typ, TensorType) or not -len(typ.shape) <= axis < len(typ.shape):
        raise RelayValueError(f"%{param.name_hint} has no dimension {axis} for the batch", code="batch.no-axis")
    shape = list(typ.shape)
    shape[axis] = batch_size
    return derived(Var(param.name_hint, TensorType(shape, typ.dtype), param.span), param)  # type: ignore[return-value]


def change_batch(func: Function, axes: Mapping[str, int], batch_size: int) -> Function:
    """`func` with dimension `axes[name]` of each named parameter made `batch_size`."""
    memo: dict[Expr, Expr] = {
        p: _with_batch(p, axes[p.name_hint], batch_size) for p in func.params if p.name_hint in axes
    }
    if not memo or all(new.type_annotation == old.type_annotation for old, new in memo.items()):
        return func
    changed = rewrite(func, lambda new, old: new, memo=memo)
    return derived(FunctionWithFields(changed, ret_type=None), func)  # type: ignore[arg-type, return-value]


@register_pass(data={}, idempotent=True)
def ChangeBatch(data: Mapping[Var | str, int], batch_size: int = 16) -> Pass:
    """Changes the batch dimension of parameters, given as {variable or name: axis}, to `batch_size`."""
    axes = {key if isinstance(key, str) else key.name_hint: int(axis) for key, axis in data.items()}

    def run(func: Function, mod: object, ctx: object) -> Function:
        return change_batch(func, axes, int(batch_size))

    return FunctionPass(PassInfo(1, "ChangeBatch"), run)
