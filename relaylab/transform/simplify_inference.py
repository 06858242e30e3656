"""SimplifyInference: normalizations become the arithmetic that they are once nothing is trained.

Batch normalization uses the moving statistics: (x - mean) / sqrt(var + eps) * gamma + beta, written
as x * scale + shift so that both can be folded (Ioffe and Szegedy, 2015). Layer, group and instance
normalization compute the statistics of their argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylab.ir import Call, Expr, Function, TupleGetItem, facets, op_name, rewrite
from relaylab.transform.build import call, expand_to_axis, positive_axis, scalar
from relaylab.transform.infer_type import dtype_of, rank_of, shape_of
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _batch_norm(a: Any, old: Call, data: Expr, gamma: Expr, beta: Expr, mean: Expr, var: Expr) -> Expr:
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
    """`data` with mean 0 and variance 1 along `axes`."""
    mean = call("mean", data, axis=axes, keepdims=True, exclude=False)
    var = call("variance", data, mean, axis=axes, keepdims=True, exclude=False)
    denominator = call("sqrt", call("add", var, scalar(epsilon, dtype)))
    return call("divide", call("subtract", data, mean), denominator)


def _affine(a: Any, out: Expr, gamma: Expr, beta: Expr, rank: int) -> Expr:
    axes = [positive_axis(a.axis, rank)]
    if a.scale:
        out = call("multiply", out, expand_to_axis(gamma, rank, axes))
    if a.center:
        out = call("add", out, expand_to_axis(beta, rank, axes))
    return out


def _layer_norm(a: Any, old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    out = _normalized(data, [a.axis], a.epsilon, dtype_of(old.args[0]))
    return _affine(a, out, gamma, beta, rank_of(old.args[0]))


def _instance_norm(a: Any, old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    rank = rank_of(old.args[0])
    axes = [i for i in range(1, rank) if i != positive_axis(a.axis, rank)]
    return _affine(a, _normalized(data, axes, a.epsilon, dtype_of(old.args[0])), gamma, beta, rank)


def _group_norm(a: Any, old: Call, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    shape = [int(d) for d in shape_of(old.args[0])]
    rank, axis = len(shape), positive_axis(a.axis, len(shape))
    grouped = [*shape[:axis], a.num_groups, shape[axis] // a.num_groups, *shape[axis + 1 :]]
    out = _normalized(
        call("reshape", data, newshape=grouped), list(range(axis + 1, rank + 1)), a.epsilon, dtype_of(old.args[0])
    )
    return _affine(a, call("reshape", out, newshape=shape), gamma, beta, rank)


def _l2_normalize(a: Any, old: Call, data: Expr) -> Expr:
    total = call("sum", call("multiply", data, data), axis=a.axis, keepdims=True, exclude=False)
    return call("divide", data, call("sqrt", call("maximum", total, scalar(a.eps, dtype_of(old.args[0])))))


_CALLS: dict[str, Callable[..., Expr]] = {
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
}


def _simplify(new: Expr, old: Expr) -> Expr:
    if isinstance(old, Call) and op_name(old) in _CALLS:
        return _CALLS[op_name(old)](facets(old), old, *new.args)  # type: ignore[attr-defined]
    if isinstance(old, TupleGetItem) and old.index == 0:
        inner, source = new.tuple_value, old.tuple_value  # type: ignore[attr-defined]
        if op_name(source) == "nn.batch_norm":
            return _batch_norm(facets(source), source, *inner.args)
        if op_name(source) == "nn.dropout":
            return inner.args[0]
    return new


@register_pass(idempotent=True)
def SimplifyInference() -> Pass:
    """Replaces normalizations by arithmetic and drops dropout, for inference."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _simplify)  # type: ignore[return-value]

    return FunctionPass(PassInfo(0, "SimplifyInference", ("InferType",)), run)
