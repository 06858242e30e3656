"""Quantized tensors: real = scale * (integer - zero point).

Between floats and integers the operators of Relay's quantized dialect are used; results are rounded to the nearest
integer, halves to even, as ONNX asks. Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.model import dtype_of
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators import contract, pool
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.operators.blocks import blocks_of
from relaylab.frontend.onnx.operators.conv import convolution
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import Constant, Expr, const
from relaylab.op import nn, qnn
from relaylab.op.tensor.composite import round_even

_PLAIN = ("saturate", "precision")


def _parameter(g: Graph, v: Expr, dtype: str) -> Expr:
    """A scale or zero point as the dialect takes it: a scalar, or a vector along an axis."""
    shape = g.shape(v)
    v = op.reshape(v, ()) if shape and int(np.prod(shape)) == 1 else v
    return same(g, v, dtype)


def _axis(g: Graph, node: OnnxNode, x: Expr, scale: Expr) -> int:
    if g.rank(scale) > 1:
        raise node.error(
            f"the scale has the shape {g.shape(scale)}; a number, a vector or blocks are imported", code="import.shape"
        )
    axis = node.get("axis", 1)
    return g.axis(axis, g.rank(x)) if int(np.prod(g.shape(scale))) != 1 else -1


def _of_blocks(g: Graph, node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None) -> tuple[Expr, Expr | None] | None:
    """Scales and zero points of blocks along an axis as those of all elements; None if they are of no blocks."""
    size = node.get("block_size", 0)
    if not size:
        return None
    shape, axis = g.shape(x), g.axis(node.get("axis", 1), g.rank(x))
    blocks = [*shape[:axis], -(-shape[axis] // size), *shape[axis + 1 :]]
    for v in (scale, zero):
        if size < 0 or (v is not None and list(g.shape(v)) != blocks):
            raise node.error(f"no blocks of {size} along axis {axis} of {shape}", code="import.shape")
    cut = lambda v: op.strided_slice(op.repeat(v, size, axis), [0], [shape[axis]], [1], axes=[axis])
    return cut(scale), None if zero is None else cut(zero)


@converts("QuantizeLinear", since=10, unused=_PLAIN)
@converts("QuantizeLinear", domain=CONTRIB)
def quantize_linear(g: Graph, node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None = None) -> Expr:
    given = node.get("output_dtype", 0)
    dtype = g.dtype(zero) if zero is not None else dtype_of(given, "the attribute `output_dtype`") if given else "uint8"
    blocks = _of_blocks(g, node, x, scale, zero)
    if blocks is None:
        return quantize(g, x, scale, zero, dtype, _axis(g, node, x, scale))
    by, shift = blocks
    limits = np.iinfo(dtype)
    moved = round_even(op.divide(same(g, x, "float32"), same(g, by, "float32")), "float32")
    moved = moved if shift is None else op.add(moved, same(g, shift, "float32"))
    return op.cast(op.clip(moved, float(limits.min), float(limits.max)), dtype)


def quantize(g: Graph, x: Expr, scale: Expr, zero: Expr | None, dtype: str, axis: int = -1) -> Expr:
    """Floats as integers."""
    shift = const(0, "int32") if zero is None else _parameter(g, zero, "int32")
    scale = _parameter(g, scale, "float32")
    if zero is None and g.rank(scale):
        shift = Constant(np.zeros(g.shape(scale), "int32"))
    return qnn.quantize(same(g, x, "float32"), scale, shift, axis=axis, out_dtype=dtype)


@converts("DequantizeLinear", since=10, unused=_PLAIN)
@converts("DequantizeLinear", domain=CONTRIB)
def dequantize_linear(g: Graph, node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None = None) -> Expr:
    blocks, given = _of_blocks(g, node, x, scale, zero), node.get("output_dtype", 0)
    if blocks is None:
        out = dequantize(g, x, scale, zero, _axis(g, node, x, scale))
    else:
        by, shift = blocks
        centre = op.cast(x, "int32") if shift is None else op.subtract(op.cast(x, "int32"), op.cast(shift, "int32"))
        out = op.multiply(op.cast(centre, "float32"), same(g, by, "float32"))
    out = g.settle(same(g, out, dtype_of(given, "the attribute `output_dtype`") if given else g.dtype(scale)))
    if blocks is not None and isinstance(out, Constant) and g.axis(node.get("axis", 1), g.rank(x)) == 0:
        found = blocks_of(g.known(x, "x"), g.known(scale, "x_scale"), g.value(zero))
        if found is not None:
            g.layers[out] = found.layer
    return out


def dequantize(g: Graph, x: Expr, scale: Expr, zero: Expr | None, axis: int = -1) -> Expr:
    """Integers as floats."""
    scale = _parameter(g, scale, "float32")
    shift = Constant(np.zeros(g.shape(scale), "int32")) if zero is None else _parameter(g, zero, "int32")
    return qnn.dequantize(x, scale, shift, axis=axis)


@converts("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    """Scale and zero point from the extrema of the data, 0 among them."""
    zero, wide = g.const(0, x), g.dtype(x)
    low, high = op.minimum(op.min(x), zero), op.maximum(op.max(x), zero)
    spread = op.subtract(high, low)
    scale = op.where(op.equal(spread, zero), g.const(1, x), op.divide(spread, g.const(255, x)))
    shift = op.clip(round_even(op.divide(op.negative(low), scale), wide), 0.0, 255.0)
    y = op.clip(op.add(round_even(op.divide(x, scale), wide), shift), 0.0, 255.0)
    return [op.cast(y, "uint8"), scale, op.cast(shift, "uint8")]


def centred(g: Graph, x: Expr, zero: Expr | None, axis: int | None = None) -> Expr:
    """The integers as int32 without their zero point, which may be one per position of an axis."""
    x32 = op.cast(x, "int32")
    known = g.value(zero)
    if zero is None or (known is not None and not known.any()):
        return x32
    shift = _parameter(g, zero, "int32")
    if g.rank(shift) == 1 and axis is not None:
        shift = (
            op.expand_dims(shift, 1, num_newaxis=g.rank(x) - 1 - axis % g.rank(x))
            if axis % g.rank(x) < g.rank(x) - 1
            else shift
        )
    return op.subtract(x32, shift)


def requantized(g: Graph, total: Expr, ratio: Expr, zero: Expr, dtype: str) -> Expr:
    """int32 sums times a ratio of scales, as integers around another zero point."""
    limits = np.iinfo(dtype)
    moved = op.add(
        round_even(op.multiply(op.cast(total, "float32"), ratio), "float32"),
        same(g, _parameter(g, zero, "int32"), "float32"),
    )
    return op.cast(op.clip(moved, float(limits.min), float(limits.max)), dtype)


def _ratio(g: Graph, a: Expr, b: Expr, y: Expr, trailing: int = 0) -> Expr:
    """a * b / y, with axes behind it if it is a vector."""
    out = op.divide(op.multiply(_parameter(g, a, "float32"), _parameter(g, b, "float32")), _parameter(g, y, "float32"))
    return op.expand_dims(out, 1, num_newaxis=trailing) if g.rank(out) == 1 and trailing else out


@converts("MatMulInteger", since=10)
@converts("MatMulInteger16", domain=CONTRIB)
def matmul_integer(
    g: Graph, node: OnnxNode, a: Expr, b: Expr, a_zero: Expr | None = None, b_zero: Expr | None = None
) -> Expr:
    return integer_product(g, a, b, a_zero, b_zero)


def integer_product(g: Graph, a: Expr, b: Expr, a_zero: Expr | None, b_zero: Expr | None) -> Expr:
    """An int32 product; the left zero point may be one per row, the right one per column."""
    row = -2 if g.rank(a) > 1 else None
    return contract.product(g, centred(g, a, a_zero, row), centred(g, b, b_zero, -1))


@converts("QLinearMatMul", since=10)
def qlinear_matmul(
    g: Graph,
    node: OnnxNode,
    a: Expr,
    a_scale: Expr,
    a_zero: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero: Expr,
    y_scale: Expr,
    y_zero: Expr,
) -> Expr:
    total = integer_product(g, a, b, a_zero, b_zero)
    return requantized(g, total, _ratio(g, a_scale, b_scale, y_scale), y_zero, g.dtype(y_zero))


def integer_convolution(g: Graph, node: OnnxNode, x: Expr, w: Expr, x_zero: Expr | None, w_zero: Expr | None) -> Expr:
    """An int32 convolution: in the dialect if the zero points are numbers, else of the centred integers."""
    zeros = [np.zeros((), "int32") if z is None else g.value(z) for z in (x_zero, w_zero)]
    shifts = [const(int(z.reshape(-1)[0]), "int32") for z in zeros if z is not None and (z.size == 1 or not z.any())]
    if g.rank(x) == 4 and len(shifts) == 2:

        def build(data: Expr, kernel: Expr, **more: Any) -> Expr:
            x_shift, w_shift = shifts
            return qnn.conv2d(data, kernel, x_shift, w_shift, const(1.0), const(1.0), out_dtype="int32", **more)

        return convolution(g, node, x, w, build=build)
    return convolution(g, node, centred(g, x, x_zero), centred(g, w, w_zero, 0), out_dtype="int32")


@converts("ConvInteger", since=10)
def conv_integer(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, x_zero: Expr | None = None, w_zero: Expr | None = None
) -> Expr:
    return integer_convolution(g, node, x, w, x_zero, w_zero)


@converts("QLinearConv", since=10)
def qlinear_conv(
    g: Graph, node: OnnxNode, x: Expr, x_scale: Expr, x_zero: Expr, w: Expr, w_scale: Expr, w_zero: Expr,
    y_scale: Expr, y_zero: Expr,
    bias: Expr | None = None,
) -> Expr:  # fmt: skip
    total = integer_convolution(g, node, x, w, x_zero, w_zero)
    total = total if bias is None else nn.bias_add(total, bias)
    return requantized(g, total, _ratio(g, x_scale, w_scale, y_scale, g.rank(x) - 2), y_zero, g.dtype(y_zero))


def _through_floats(
    g: Graph, build: Callable[..., Expr], ins: Sequence[tuple[Expr, Expr, Expr | None]], scale: Expr, zero: Expr | None
) -> Expr:
    """An operator on the real numbers that quantized tensors stand for."""
    out = build(*(dequantize(g, *parts) for parts in ins))
    return quantize(g, out, scale, zero, g.dtype(ins[0][0]))


@converts("QLinearAdd", "QLinearMul", domain=CONTRIB)
def qlinear_binary(
    g: Graph, node: OnnxNode, a: Expr, a_scale: Expr, a_zero: Expr | None, b: Expr, b_scale: Expr, b_zero: Expr | None,
    scale: Expr,
    zero: Expr | None = None,
) -> Expr:  # fmt: skip
    build = op.add if node.op_type == "QLinearAdd" else op.multiply
    return _through_floats(g, build, [(a, a_scale, a_zero), (b, b_scale, b_zero)], scale, zero)


@converts("QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool", domain=CONTRIB)
def qlinear_unary(
    g: Graph, node: OnnxNode, x: Expr, x_scale: Expr, x_zero: Expr | None, scale: Expr, zero: Expr | None = None
) -> Expr:
    if node.get("channels_last", 0):
        raise node.error("channels_last is not imported", code="import.attribute")
    builds: dict[str, Callable[[Expr], Expr]] = {
        "QLinearSigmoid": op.sigmoid,
        "QLinearLeakyRelu": lambda v: nn.leaky_relu(v, alpha=node.get("alpha", 0.01)),
        "QLinearAveragePool": lambda v: pool.average_pool(g, node, v),
        "QLinearGlobalAveragePool": lambda v: pool.global_average_pool(g, node, v),
    }
    return _through_floats(g, builds[node.op_type], [(x, x_scale, x_zero)], scale, zero)


@converts("QLinearSoftmax", domain=CONTRIB)
def qlinear_softmax(
    g: Graph, node: OnnxNode, x: Expr, x_scale: Expr, x_zero: Expr | None, scale: Expr, zero: Expr | None = None
) -> Expr:
    """Before opset 13 all axes from `axis` on count as one."""
    axis = g.axis(node.get("axis", -1), g.rank(x))
    if node.get("opset", 13) >= 13 or axis == g.rank(x) - 1:
        build = lambda v: nn.softmax(v, axis=axis)
    else:
        shape = g.shape(x)
        rows = (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        build = lambda v: op.reshape(nn.softmax(op.reshape(v, rows, allowzero=True)), shape, allowzero=True)
    return _through_floats(g, build, [(x, x_scale, x_zero)], scale, zero)


@converts("QLinearWhere", domain=CONTRIB)
def qlinear_where(
    g: Graph, node: OnnxNode, condition: Expr, a: Expr, a_scale: Expr, a_zero: Expr, b: Expr, b_scale: Expr,
    b_zero: Expr, scale: Expr, zero: Expr,
) -> Expr:  # fmt: skip
    build = lambda v, w: op.where(condition, v, w)
    return _through_floats(g, build, [(a, a_scale, a_zero), (b, b_scale, b_zero)], scale, zero)


@converts("QLinearConv", domain=CONTRIB)
def qlinear_conv_last(g: Graph, node: OnnxNode, x: Expr, *ins: Expr) -> Expr:
    """The same with the channels behind, if asked for."""
    rank = g.rank(x)
    if not node.get("channels_last", 0):
        return qlinear_conv(g, node, x, *ins)
    out = qlinear_conv(g, node, op.transpose(x, [0, rank - 1, *range(1, rank - 1)]), *ins)
    return op.transpose(out, [0, *range(2, rank), 1])


@converts("QGemm", domain=CONTRIB)
def qgemm(
    g: Graph, node: OnnxNode, a: Expr, a_scale: Expr, a_zero: Expr | None, b: Expr, b_scale: Expr,
    b_zero: Expr | None = None, c: Expr | None = None, scale: Expr | None = None, zero: Expr | None = None,
) -> Expr:  # fmt: skip
    """Integers that are added have the scale of the product; without a scale of its own the result is floats."""
    a, b = (op.transpose(v, [1, 0]) if node.get(n, 0) else v for v, n in ((a, "transA"), (b, "transB")))
    total = integer_product(g, a, b, a_zero, b_zero)
    total = total if c is None else op.add(total, c)
    factor = op.multiply(_parameter(g, a_scale, "float32"), _parameter(g, b_scale, "float32"))
    factor = op.multiply(factor, const(np.float32(node.get("alpha", 1.0))))
    if scale is None:
        return op.multiply(op.cast(total, "float32"), factor)
    ratio, dtype = op.divide(factor, _parameter(g, scale, "float32")), g.dtype(a if zero is None else zero)
    return requantized(g, total, ratio, const(0, "int32") if zero is None else zero, dtype)


@converts("MatMulIntegerToFloat", domain=CONTRIB)
def matmul_integer_to_float(
    g: Graph, node: OnnxNode, a: Expr, b: Expr, a_scale: Expr, b_scale: Expr, a_zero: Expr | None = None,
    b_zero: Expr | None = None, bias: Expr | None = None,
) -> Expr:  # fmt: skip
    total = op.cast(integer_product(g, a, b, a_zero, b_zero), g.dtype(a_scale))
    by = [_parameter(g, v, g.dtype(v)) for v in (a_scale, b_scale)]
    out = op.multiply(total, op.multiply(*by))
    return out if bias is None else op.add(out, bias)


@converts("DynamicQuantizeMatMul", domain=CONTRIB)
def dynamic_quantize_matmul(
    g: Graph, node: OnnxNode, a: Expr, b: Expr, b_scale: Expr, b_zero: Expr | None = None, bias: Expr | None = None
) -> Expr:
    """The left side is quantized by its own extrema."""
    data, scale, zero = dynamic_quantize_linear(g, node, a)
    return matmul_integer_to_float(g, node, data, b, scale, b_scale, zero, b_zero, bias)


@converts("GatherBlockQuantized", domain=CONTRIB)
def gather_blocks(g: Graph, node: OnnxNode, data: Expr, indices: Expr, scales: Expr, zeros: Expr | None = None) -> Expr:
    """Rows of a table of a few bits, blocks along the last axis; only the rows that are read become floats."""
    bits, block, rank = node.get("bits", 4), node.get("block_size", 128), g.rank(data)
    axes = [g.axis(node.get(name, usual), rank) for name, usual in (("gather_axis", 0), ("quantize_axis", 1))]
    packed = g.dtype(data) == "uint8"  # else they have a type of their own, which is int8 here
    if axes != [0, rank - 1] or bits not in (2, 4, 8) or block < 1:
        raise node.error(f"rows along axis {axes[0]}, blocks along {axes[1]} of {rank}", code="import.attribute")
    width, blocks = g.shape(data)[-1] * (8 // bits if packed else 1), g.shape(scales)[-1]
    if blocks != -(-width // block):
        raise node.error(f"{blocks} scales for {width} numbers in blocks of {block}", code="import.shape")
    at = _spread(g, op.take(data, indices, axis=0), bits if packed else 8, width)
    wide = lambda v: op.strided_slice(op.repeat(v, block, -1), [0], [width], [1], axes=[g.rank(v) - 1])
    shift = const(np.float32(1 << (bits - 1) if packed else 0))
    if zeros is not None:
        found = _spread(g, op.take(zeros, indices, axis=0), bits if packed else 8, blocks)
        shift = same(g, wide(found), "float32")
    by = wide(op.take(scales, indices, axis=0))
    out = op.multiply(op.subtract(op.cast(at, "float32"), shift), same(g, by, "float32"))
    return same(g, out, g.dtype(scales))


def _spread(g: Graph, x: Expr, bits: int, count: int) -> Expr:
    """The first `count` numbers of a few bits in the bytes of the last axis."""
    if bits == 8:
        return x
    shape = g.shape(x)
    moved = op.right_shift(op.expand_dims(x, len(shape)), Constant(np.arange(0, 8, bits, dtype="uint8")))
    parts = op.bitwise_and(moved, const((1 << bits) - 1, "uint8"))
    flat = op.reshape(parts, (*shape[:-1], shape[-1] * 8 // bits), allowzero=True)
    return op.strided_slice(flat, [0], [count], [1], axes=[len(shape) - 1])


@converts("QLinearConcat", domain=CONTRIB)
def qlinear_concat(g: Graph, node: OnnxNode, scale: Expr, zero: Expr, *parts: Expr) -> Expr:
    if len(parts) % 3:
        raise node.error(f"{len(parts)} inputs are no triples of data, scale and zero point", code="import.arity")
    ins = [(parts[k], parts[k + 1], parts[k + 2]) for k in range(0, len(parts), 3)]
    axis = node.need("axis")
    return _through_floats(g, lambda *v: op.concatenate(list(v), axis), ins, scale, zero)
