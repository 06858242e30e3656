"""SimplifyInference: normalizations become the arithmetic that they are once nothing is trained.

Batch normalization uses the moving statistics: (x - mean) / sqrt(var + eps) * gamma + beta, written
as x * scale + shift so that both can be folded (Ioffe and Szegedy, 2015). Layer, group and instance
normalization compute the statistics of their argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from relaylab.ir import Call, Expr, Function, IRModule, TupleGetItem, facets, is_call_to, op_name, rewrite
from relaylab.transform.engine.build import call, expand_to_axis, positive_axis, reshaped, scalar
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import dtype_of, rank_of, shape_of, tensor_of
from relaylab.transform.engine.manager import FunctionPass


def _batch_norm(old: Call, data: Expr, gamma: Expr, beta: Expr, mean: Expr, var: Expr) -> Expr:
    a = facets(old)
    dtype, rank = dtype_of(old.args[0]), rank_of(old.args[0])
    scale = call("divide", scalar(1.0, dtype), call("sqrt", call("add", var, scalar(a.epsilon, dtype))))
    if a.scale:
        scale = call("multiply", scale, gamma)
    shift = call("multiply", call("negative", mean), scale)
    if a.center:
        shift = call("add", shift, beta)
    axes = [positive_axis(a.axis, rank)]
    scaled = call("multiply", data, expand_to_axis(scale, rank, axes))
    return call("add", scaled, expand_to_axis(shift, rank, axes))


def _normalized(data: Expr, axes: list[int], epsilon: float, dtype: str) -> Expr:
    """`data` with mean 0 and variance 1 along `axes`; 16 bits do not hold the squares in between."""
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    data = data if wide == dtype else call("cast", data, dtype=wide)
    mean = call("mean", data, axis=axes, keepdims=True, exclude=False)
    var = call("variance", data, mean, axis=axes, keepdims=True, exclude=False)
    out = call("divide", call("subtract", data, mean), call("sqrt", call("add", var, scalar(epsilon, wide))))
    return out if wide == dtype else call("cast", out, dtype=dtype)


def _affine(old: Call, out: Expr, gamma: Expr, beta: Expr) -> Expr:
    a, rank = facets(old), rank_of(old.args[0])
    axes = [positive_axis(a.axis, rank)]
    if a.scale:
        out = call("multiply", out, expand_to_axis(gamma, rank, axes))
    if a.center:
        out = call("add", out, expand_to_axis(beta, rank, axes))
    return out


def _layer_norm(old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    a = facets(old)
    out = _normalized(data, [a.axis], a.epsilon, dtype_of(old.args[0]))
    return _affine(old, out, gamma, beta)


def _instance_norm(old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    a, rank = facets(old), rank_of(old.args[0])
    axes = [i for i in range(1, rank) if i != positive_axis(a.axis, rank)]
    return _affine(old, _normalized(data, axes, a.epsilon, dtype_of(old.args[0])), gamma, beta)


def _group_norm(old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    a = facets(old)
    shape = shape_of(old.args[0])
    rank, axis = len(shape), positive_axis(a.axis, len(shape))
    if tensor_of(old.args[0]).is_dynamic:  # extents stay as they are, but for the axis that is split and joined
        split = call("reshape", data, newshape=[*[0] * axis, -4, a.num_groups, -1, -2])
        join = lambda x: call("reshape", x, newshape=[*[0] * axis, -3, -2])
    else:
        split = reshaped(data, [*shape[:axis], a.num_groups, shape[axis] // a.num_groups, *shape[axis + 1 :]])
        join = lambda x: reshaped(x, shape)
    out = _normalized(split, list(range(axis + 1, rank + 1)), a.epsilon, dtype_of(old.args[0]))
    return _affine(old, join(out), gamma, beta)


def _l2_normalize(old: Call, data: Expr) -> Expr:
    a = facets(old)
    total = call("sum", call("multiply", data, data), axis=a.axis, keepdims=True, exclude=False)
    return call("divide", data, call("sqrt", call("maximum", total, scalar(a.eps, dtype_of(old.args[0])))))


_FIRST_FIELD = ("nn.batch_norm", "nn.dropout")
_CALLS: dict[str, Callable[..., Expr]] = {
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
}


def _simplify(new: Expr, old: Expr) -> Expr:
    if isinstance(old, Call) and op_name(old) in _CALLS:
        return _CALLS[op_name(old)](old, *cast(Call, new).args)
    if isinstance(old, TupleGetItem) and old.index == 0:
        source = old.tuple_value
        if is_call_to(source, *_FIRST_FIELD):
            args = cast(Call, cast(TupleGetItem, new).tuple_value).args
            return args[0] if op_name(source) == "nn.dropout" else _batch_norm(source, *args)
    return new


@pass_(level=0, requires=("InferType",), idempotent=True)
class SimplifyInference(FunctionPass):
    """Replaces normalizations by arithmetic and drops dropout, for inference."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _simplify, only=(*_CALLS, *_FIRST_FIELD))
