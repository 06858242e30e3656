"""DynamicToStatic: operators whose shape is an argument become ordinary ones once it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylab.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FunctionWithFields,
    IRModule,
    Op,
    facets,
    is_dynamic,
    op_name,
    rewrite,
)
from relaylab.ir.trail import derived
from relaylab.transform.fold_constant import ConstantFolder
from relaylab.transform.infer_type import typed
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

LIMIT = 100
"""How often folding may make further shapes known before the pass gives up."""


def _ints(expr: Expr) -> list[int]:
    return [int(v) for v in np.asarray(expr.data).reshape(-1)]  # type: ignore[attr-defined]


def _int(expr: Expr) -> int:
    return _ints(expr)[0]


def _float(expr: Expr) -> float:
    return float(np.asarray(expr.data).reshape(-1)[0])  # type: ignore[attr-defined]


def _floats(expr: Expr) -> list[float]:
    return [float(v) for v in np.asarray(expr.data).reshape(-1)]  # type: ignore[attr-defined]


def _pairs(expr: Expr) -> list[list[int]]:
    return np.asarray(expr.data).astype(int).tolist()  # type: ignore[attr-defined]


Reader = Callable[[Expr], Any]

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
    known = call.args[kept : kept + len(attributes)]
    if not all(isinstance(a, Constant) for a in known):
        return call
    target = Op.get(name).definition
    attrs = {k: v for k, v in facets(call).items() if k in target.fields}
    attrs.update({attr: read(arg) for (attr, read), arg in zip(attributes.items(), known)})
    rest = call.args[kept + len(attributes) :]
    return target.call(*call.args[:kept], *rest, **attrs)


def _sparse_to_dense(call: Call) -> Expr:
    indices, values, default, shape = call.args
    if not isinstance(shape, Constant):
        return call
    return Op.get("sparse_to_dense").definition.call(indices, values, default, output_shape=_ints(shape))


def _without_dynamic_result(func: Function) -> Function:
    """Let inference find the result's type anew where it was not known."""
    dynamic = func.ret_type is not None and is_dynamic(func.ret_type)
    return derived(FunctionWithFields(func, ret_type=None), func) if dynamic else func  # type: ignore[return-value]


def to_static(func: Function, mod: IRModule) -> Function:
    """`func` with shapes folded and dynamic operators replaced, again and again while that makes further ones known."""
    for _ in range(LIMIT):
        before = typed(func, mod)
        after = rewrite(ConstantFolder()(before), lambda new, old: _static(new))
        if after is before:
            return before  # type: ignore[return-value]
        func = _without_dynamic_result(after)  # type: ignore[arg-type]
    return func


@register_pass(idempotent=True)
def DynamicToStatic() -> Pass:
    """Replaces `dyn.` operators by ordinary ones where folding constants tells their shapes."""
    return FunctionPass(PassInfo(2, "DynamicToStatic"), lambda func, mod, ctx: to_static(func, mod))
