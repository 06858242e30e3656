"""ChangeBatch: the same network for another number of examples at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from relaylab.ir import Expr, Function, FunctionWithFields, IRModule, TensorType, Var
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import rewrite_function


def _with_batch(param: Var, axis: int, batch_size: int) -> Var:
    typ = param.type_annotation
    if not isinstance(typ, TensorType) or not -len(typ.shape) <= axis < len(typ.shape):
        raise RelayValueError(f"%{param.name_hint} has no dimension {axis} for the batch", code="batch.no-axis")
    at = axis % len(typ.shape)
    shape = (*typ.shape[:at], batch_size, *typ.shape[at + 1 :])
    return derived(Var(param.name_hint, TensorType(shape, typ.dtype), span=param.span), param)


def change_batch(func: Function, axes: Mapping[str, int], batch_size: int) -> Function:
    """`func` with dimension `axes[name]` of each named parameter made `batch_size`."""
    params = {p: _with_batch(p, axes[p.name_hint], batch_size) for p in func.params if p.name_hint in axes}
    if all(new.type_annotation == old.type_annotation for old, new in params.items()):
        return func
    changed = rewrite_function(func, lambda new, old: new, memo={**params})
    return derived(FunctionWithFields(changed, ret_type=None), func)


@pass_(level=1, idempotent=True, example={"data": {}})
class ChangeBatch(FunctionPass):
    """Changes the batch dimension of parameters, given as {variable or name: axis}, to `batch_size`."""

    data: Annotated[Mapping[Var | str, int], "For each parameter, or its name, its batch axis."]
    batch_size: Annotated[int, "The extent that the axis gets."] = 16

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        axes = {key if isinstance(key, str) else key.name_hint: axis for key, axis in self.data.items()}
        return change_batch(func, axes, self.batch_size)
