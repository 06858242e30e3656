"""Quantized programs of torch (`quantized_decomposed`): real = scale * (integer - zero point).

With one scale, or one for each position of an axis, they are operators of Relay's quantized dialect, as those of ONNX;
with one for each row or group, of which the dialect has none, they are their arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode, dtype_of
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import qnn
from relaylab.op.tensor.composite import round_even

_SPACE = "quantized_decomposed"
_LEAST_OF_ROWS = 1e-5
_EPSILON = float(np.finfo("float32").eps)

Number = Any
"""A number that the program says, or a tensor of one element."""


def _named(*names: str) -> tuple[str, ...]:
    return tuple(f"{_SPACE}.{name}" if "." in name else f"{_SPACE}.{name}.default" for name in names)


def _parameter(g: TorchGraph, v: Number, dtype: str, axis: int | None) -> Expr:
    """A scale or zero point: a scalar, along an axis a vector."""
    if not isinstance(v, Expr):
        return Constant(np.array(v, dtype))
    return g.converted(op.reshape(v, () if axis is None else (-1,)), dtype)


def _known(g: TorchGraph, v: Number) -> float:
    return float(g.known(v, "quant_min").reshape(())) if isinstance(v, Expr) else v


def _within(g: TorchGraph, q: Expr, low: Number, high: Number) -> Expr:
    """Integers within limits that are narrower than those of their type."""
    low, high, most = _known(g, low), _known(g, high), np.iinfo(g.dtype(q))
    return q if low <= most.min and high >= most.max else op.clip(q, low, high)


def _quantized(
    g: TorchGraph, x: Expr, scale: Number, zero: Number, limits: tuple[Number, Number], dtype: str, axis: int | None
) -> Expr:
    by, shift = _parameter(g, scale, "float32", axis), _parameter(g, zero, "int32", axis)
    q = qnn.quantize(g.converted(x, "float32"), by, shift, axis=-1 if axis is None else axis, out_dtype=dtype)
    return _within(g, q, *limits)


def _dequantized(g: TorchGraph, node: AtenNode, q: Expr, scale: Number, zero: Number | None, axis: int | None) -> Expr:
    by = _parameter(g, scale, "float32", axis)
    shift = Constant(np.zeros(g.shape(by), "int32")) if zero is None else _parameter(g, zero, "int32", axis)
    return g.converted(qnn.dequantize(q, by, shift, axis=-1 if axis is None else axis), node.dtype)


@converts(*_named("quantize_per_tensor", "quantize_per_tensor.tensor", "quantize_per_tensor.tensor2"))
def quantize(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Number, zero: Number, low: Number, high: Number, dtype: object
) -> Expr:
    return _quantized(g, x, scale, zero, (low, high), dtype_of(dtype, node.name), None)


@converts(*_named("dequantize_per_tensor", "dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2"))
def dequantize(
    g: TorchGraph, node: AtenNode, q: Expr, scale: Number, zero: Number, low: Number, high: Number, dtype: object,
    out_dtype: object = None,
) -> Expr:  # fmt: skip
    return _dequantized(g, node, q, scale, zero, None)


@converts(*_named("quantize_per_channel"))
def quantize_channels(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Expr, zero: Expr, axis: int, low: int, high: int, dtype: object
) -> Expr:
    return _quantized(g, x, scale, zero, (low, high), dtype_of(dtype, node.name), g.axis(axis, g.rank(x)))


@converts(*_named("dequantize_per_channel"))
def dequantize_channels(
    g: TorchGraph, node: AtenNode, q: Expr, scale: Expr, zero: Expr | None, axis: int, low: int, high: int,
    dtype: object, out_dtype: object = None,
) -> Expr:  # fmt: skip
    return _dequantized(g, node, q, scale, zero, g.axis(axis, g.rank(q)))


@converts(*_named("fake_quant_per_channel"))
def fake_channels(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Expr, zero: Expr, axis: int, low: int, high: int
) -> Expr:
    axis = g.axis(axis, g.rank(x))
    q = _quantized(g, x, scale, zero, (low, high), "int32", axis)
    return _dequantized(g, node, q, scale, zero, axis)


@converts("fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake(g: TorchGraph, node: AtenNode, x: Expr, scale: Number, zero: Number, *more: Number) -> list[Expr]:
    """What quantization leaves of a tensor, as torch rounds it, and where nothing is limited."""
    *enabled, low, high = list(more)
    by, shift = (g.to(op.reshape(v, ()) if isinstance(v, Expr) else v, "float32") for v in (scale, zero))
    out, inside = _faked(g, x, by, shift, _known(g, low), _known(g, high))
    if not enabled:
        return [out, inside]
    on = op.reshape(g.to(enabled[0], "bool"), ())
    return [op.where(on, out, x), op.logical_or(inside, op.logical_not(on))]


@converts("fake_quantize_per_channel_affine_cachemask")
def fake_along(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Expr, zero: Expr, axis: int, low: int, high: int
) -> list[Expr]:
    rest = g.rank(x) - 1 - g.axis(axis, g.rank(x))
    by, shift = (op.expand_dims(g.converted(v, "float32"), 1, rest) for v in (scale, zero))
    return list(_faked(g, x, by, shift, low, high))


def _faked(g: TorchGraph, x: Expr, by: Expr, shift: Expr, low: float, high: float) -> tuple[Expr, Expr]:
    c = lambda v: g.const(v, "float32")
    steps = op.multiply(g.converted(x, "float32"), op.divide(c(1), by))
    q = op.add(round_even(steps, "float32"), shift)
    inside = op.logical_and(op.greater_equal(q, c(low)), op.less_equal(q, c(high)))
    out = op.multiply(op.subtract(op.clip(q, low, high), shift), by)
    return g.converted(out, g.dtype(x)), inside


def _extrema(g: TorchGraph, x: Expr, axis: list[int] | None) -> tuple[Expr, Expr]:
    """The least and the largest value, 0 among them; along an axis, which stays."""
    zero, x = g.const(0, "float32"), g.converted(x, "float32")
    low, high = (join(x, axis=axis, keepdims=axis is not None) for join in (op.min, op.max))
    return op.minimum(low, zero), op.maximum(high, zero)


def _answers(g: TorchGraph, node: AtenNode, scale: Expr, zero: Expr) -> list[Expr]:
    """Scales and zero points in the data types and shapes that torch gives them."""
    found = []
    for value, meta in zip((scale, zero), node.value):
        value = op.reshape(value, (1,)) if len(meta.shape) == 1 and not g.rank(value) else value
        found.append(g.converted(value, dtype_of(meta.dtype, node.name)))
    return found


@converts(*_named("choose_qparams.tensor"))
def choose(g: TorchGraph, node: AtenNode, x: Expr, low: int, high: int, eps: float, dtype: object) -> list[Expr]:
    least, most = _extrema(g, x, None)
    c = lambda v: g.const(v, "float32")
    scale = op.maximum(op.divide(op.subtract(most, least), c(high - low)), c(eps))
    zero = op.subtract(c(low), round_even(op.divide(least, scale), "float32"))
    return _answers(g, node, scale, op.clip(zero, low, high))


@converts(*_named("choose_qparams_symmetric.tensor"))
def choose_symmetric(
    g: TorchGraph, node: AtenNode, x: Expr, low: int, high: int, eps: float, dtype: object
) -> list[Expr]:
    least, most = _extrema(g, x, None)
    c = lambda v: g.const(v, "float32")
    scale = op.divide(op.maximum(op.negative(least), most), c((high - low) / 2))
    middle = (low + high + 1) // 2 if dtype_of(dtype, node.name) == "uint8" else 0
    return _answers(g, node, op.maximum(scale, c(eps)), c(middle))


@converts(*_named("choose_qparams_per_token"))
def choose_of_rows(g: TorchGraph, node: AtenNode, x: Expr, dtype: object) -> list[Expr]:
    """From the largest size in each row; zero points are zero."""
    wide = g.converted(x, "float32")
    most = op.max(op.abs(wide), axis=[-1], keepdims=True)
    limit = float(np.iinfo(dtype_of(dtype, node.name)).max)
    scale = op.divide(op.maximum(most, g.const(_LEAST_OF_ROWS, most)), g.const(limit, most))
    return _answers(g, node, scale, op.zeros_like(scale))


@converts(*_named("choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"))
def choose_of_rows_between(g: TorchGraph, node: AtenNode, x: Expr, dtype: object) -> list[Expr]:
    """From the extrema of each row, the zero point being that of the end which is hit better."""
    least, most = _extrema(g, x, [-1])
    c = lambda v: g.const(v, "float32")
    scale = op.maximum(op.divide(op.subtract(most, least), c(255)), c(_EPSILON))
    down, up = op.divide(least, scale), op.divide(most, scale)
    by_least = op.greater(op.add(op.add(c(-128), down), op.add(c(127), up)), c(0))
    zero = op.where(by_least, op.subtract(c(-128), down), op.subtract(c(127), up))
    return _answers(g, node, scale, round_even(op.clip(zero, -128.0, 127.0), "float32"))


def _rounded(g: TorchGraph, moved: Expr, low: int, high: int, dtype: str) -> Expr:
    return g.converted(op.clip(round_even(moved, "float32"), float(low), float(high)), dtype)


@converts(*_named("quantize_per_token"))
def quantize_rows(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Expr, zero: Expr, low: int, high: int, dtype: object
) -> Expr:
    by, shift = (g.converted(v, "float32") for v in (scale, zero))
    moved = op.add(op.multiply(g.converted(x, "float32"), op.divide(g.const(1, "float32"), by)), shift)
    return _rounded(g, moved, low, high, dtype_of(dtype, node.name))


@converts(*_named("dequantize_per_token"))
def dequantize_rows(
    g: TorchGraph, node: AtenNode, q: Expr, scale: Expr, zero: Expr, low: int, high: int, dtype: object,
    out_dtype: object,
) -> Expr:  # fmt: skip
    by, shift = (g.converted(v, "float32") for v in (scale, zero))
    return g.converted(op.multiply(op.subtract(g.converted(q, "float32"), shift), by), node.dtype)


def _of_groups(g: TorchGraph, v: Expr | None, size: int) -> Expr:
    """What is known for groups along the last axis, for every element."""
    if v is None:
        return g.const(0, "float32")
    return op.repeat(g.converted(v, "float32"), size, g.rank(v) - 1)


@converts(*_named("quantize_per_channel_group"))
def quantize_groups(
    g: TorchGraph, node: AtenNode, x: Expr, scale: Expr, zero: Expr | None, low: int, high: int, dtype: object,
    size: int,
) -> Expr:  # fmt: skip
    moved = op.divide(g.converted(x, "float32"), _of_groups(g, scale, size))
    return _rounded(g, op.add(moved, _of_groups(g, zero, size)), low, high, dtype_of(dtype, node.name))


@converts(*_named("dequantize_per_channel_group"))
def dequantize_groups(
    g: TorchGraph, node: AtenNode, q: Expr, scale: Expr, zero: Expr | None, low: int, high: int, dtype: object,
    size: int, out_dtype: object,
) -> Expr:  # fmt: skip
    centred = op.subtract(g.converted(q, "float32"), _of_groups(g, zero, size))
    return g.converted(op.multiply(centred, _of_groups(g, scale, size)), node.dtype)


@converts(*_named("convert_element_type.no_fuse"))
def convert_element_type(g: TorchGraph, node: AtenNode, x: Expr, dtype: object) -> Expr:
    return g.converted(x, node.dtype)
