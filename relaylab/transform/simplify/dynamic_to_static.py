"""DynamicToStatic: operators whose shape is an argument become ordinary ones once it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, FunctionWithFields, IRModule, Op, facets, is_dynamic, op_name
from relaylab.ir.trail import derived
from relaylab.op.base import Operator
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, rewrite_function
from relaylab.transform.simplify.fold_constant import ConstantFolder, typed_if_told

LIMIT = 100
"""How often folding may make further shapes known before the pass gives up."""


def _ints(expr: Constant) -> list[int]:
    return [int(v) for v in np.asarray(expr.data).reshape(-1)]


def _int(expr: Constant) -> int:
    return _ints(expr)[0]


def _float(expr: Constant) -> float:
    return float(np.asarray(expr.data).reshape(-1)[0])


def _floats(expr: Constant) -> list[float]:
    return [float(v) for v in np.asarray(expr.data).reshape(-1)]


def _pairs(expr: Constant) -> list[list[int]]:
    return np.asarray(expr.data).astype(int).tolist()


Reader = Callable[[Constant], Any]

# for each operator: how many leading arguments stay, and which attribute each of the others becomes
STATIC: dict[str, tuple[int, dict[str, Reader]]] = {
    "broadcast_to": (1, {"shape": _ints}),
    "full": (1, {"shape": _ints}),
    "image.resize2d": (1, {"size": _ints, "roi": _floats}),
    "nn.pad": (1, {"pad_width": _pairs}),
    "nn.upsampling": (1, {"scale_h": _float, "scale_w": _float}),
    "nn.upsampling3d": (1, {"scale_d": _float, "scale_h": _float, "scale_w": _float}),
    "one_hot": (3, {"depth": _int}),
    "ones": (0, {"shape": _ints}),
    "reshape": (1, {"newshape": _ints}),
    "squeeze": (1, {"axis": _ints}),
    "strided_slice": (1, {"begin": _ints, "end": _ints, "strides": _ints}),
    "tile": (1, {"reps": _ints}),
    "topk": (1, {"k": _int}),
    "zeros": (0, {"shape": _ints}),
    "expand_dims": (1, {"axis": _int}),
}


def _static(call: Expr) -> Expr:
    """The ordinary call for a call of a `dyn.` operator; the call itself if its shape is not known."""
    name = op_name(call).removeprefix("dyn.")
    if name == op_name(call) or not isinstance(call, Call):
        return call
    if name == "sparse_to_dense":
        return _sparse_to_dense(call)
    if name not in STATIC:
        return call
    kept, attributes = STATIC[name]
    given = call.args[kept : kept + len(attributes)]
    known = [a for a in given if isinstance(a, Constant)]
    if len(known) < len(given):
        return call
    target = cast(type[Operator], Op.get(name).definition)
    attrs = {k: v for k, v in facets(call).items() if k in target.fields}
    attrs.update({attr: read(arg) for (attr, read), arg in zip(attributes.items(), known)})
    rest = call.args[kept + len(attributes) :]
    return target.call(*call.args[:kept], *rest, **attrs)


def _sparse_to_dense(call: Call) -> Expr:
    indices, values, default, shape = call.args
    if not isinstance(shape, Constant):
        return call
    return cast(type[Operator], Op.get("sparse_to_dense").definition).call(
        indices, values, default, output_shape=_ints(shape)
    )


def _without_dynamic_result(func: Function) -> Function:
    """Let inference find the result's type anew where it was not known."""
    dynamic = func.ret_type is not None and is_dynamic(func.ret_type)
    return derived(FunctionWithFields(func, ret_type=None), func) if dynamic else func


def to_static(func: Function, mod: IRModule) -> Function:
    """`func` with shapes folded and dynamic operators replaced, again and again while that makes further ones known."""
    for _ in range(LIMIT):
        before = typed(func, mod)
        after = rewrite_function(as_function(ConstantFolder()(before)), lambda new, old: _static(new))
        if after is before:
            return before
        func = _without_dynamic_result(after)
    return func


@pass_(level=2, idempotent=True)
class DynamicToStatic(FunctionPass):
    """Replaces `dyn.` operators by ordinary ones where folding constants tells their shapes."""

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        # a shape of unknown length, which has no type, may be known when it is folded
        folder, mod = ConstantFolder(), typed_if_told(mod)
        folded = {gv: f if f.inferred is not None else as_function(folder(f)) for gv, f in mod.functions.items()}
        return super().apply(mod.with_functions(folded), ctx)

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return to_static(func, mod)
