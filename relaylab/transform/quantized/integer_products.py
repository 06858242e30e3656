"""IntegerProducts: products of dequantized tensors are computed on the integers, and dequantized once.

A product of dequantized tensors is the product of the integers, times both scales: nothing is rounded on the way, so
the result is nearer to the real one than the product of floats.
Source: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
CVPR 2018, section 2.2.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, facets, is_call_to, op_name, rewrite
from relaylab.transform.engine.build import call, scalar, scalar_value
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.quantized.products_of_bytes import (
    BYTES,
    PRODUCTS,
    MovedTensor,
    integer_attrs,
    moved_from,
    offset_of,
    out_axis,
    static_type,
    sums_words,
    units_axis,
)


def _integers(new: Expr, old: Expr) -> Expr:
    """A product of dequantized tensors as the dequantized product."""
    if not is_call_to(new, *PRODUCTS) or not sums_words(cast(Call, old)):
        return new
    data, weight = (moved_from(a, was) for a, was in zip(new.args, cast(Call, old).args))
    if not is_call_to(data.typed, "qnn.dequantize") or not is_call_to(weight.typed, "qnn.dequantize"):
        return new
    x, step, zero = cast(Call, data.start).args[0], *map(scalar_value, cast(Call, data.start).args[1:])
    w, w_scale, w_zero = cast(Call, weight.start).args
    bytes_ = all((t := static_type(e.args[0])) is not None and t.dtype in BYTES for e in (data.typed, weight.typed))
    if facets(new).out_dtype not in ("", None, "float32"):
        return new
    if not bytes_ or not isinstance(w, Constant) or step is None or zero is None:
        return new
    if not isinstance(w_scale, Constant) or not isinstance(w_zero, Constant):
        return new
    scales, zeros = w_scale.data.numpy(), w_zero.data.numpy()
    if scales.size > 1 or zeros.size > 1:
        axis = _moved_axis(weight, facets(weight.typed).axis, cast("TensorType", type_of(w)))
        if axis != units_axis(new):
            return new
    shape = [1] * w.data.ndim
    shape[facets(weight.typed).axis] = zeros.size
    if offset_of(w.data.numpy().astype("int32") - zeros.astype("int32").reshape(shape), new) is None:
        return new
    product = call(
        op_name(new).replace("nn.", "qnn."),
        data.moved(x),
        weight.moved(w),
        scalar(zero, "int32"),
        w_zero,
        scalar(step, "float32"),
        w_scale,
        **integer_attrs(new),
    )
    scale = np.asarray(scales * np.float32(step), "float32")
    zeros = np.zeros(scale.shape, "int32")
    return call("qnn.dequantize", product, Constant(scale), Constant(zeros), axis=out_axis(new))


def _moved_axis(weight: MovedTensor, axis: int, t: TensorType) -> int | None:
    """Where an axis lies after the moves; None if it is not an axis any more."""
    axis %= len(t.shape)
    for move in reversed(weight.moves):
        if not is_call_to(move, "transpose"):
            return None
        axes = facets(move).axes or tuple(range(len(t.shape)))[::-1]
        axis = [a % len(t.shape) for a in axes].index(axis)
    return axis


@pass_(level=1, requires=("InferType",), idempotent=True)
class IntegerProducts(FunctionPass):
    """Moves `qnn.dequantize` behind convolutions and dense layers of quantized data and constant weights."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _integers, only=("qnn.dequantize",))
