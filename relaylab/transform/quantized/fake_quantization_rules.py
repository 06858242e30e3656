"""How FakeQuantizationToInteger computes each operator on the integers themselves.

A quantity is an integer expression q that stands for the real numbers (q - zero) * scale. A rule gets the call, the
quantities of its arguments and the one that the region shall give (`goal`); it returns the quantity of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from relaylab.ir import Call, Constant, Expr, Tuple, TupleGetItem, const, facets
from relaylab.ir.op import op_name
from relaylab.op.qnn.arithmetic import limits
from relaylab.support.table import registered
from relaylab.transform.engine.build import call
from relaylab.transform.engine.infer_type import rank_of, shape_of
from relaylab.transform.quantized.products_of_bytes import units_axis

INT32 = "int32"
PRODUCTS = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedValue:
    """An integer expression, its scale, zero point, data type, and the axis of a scale for each channel.

    `clamped`: its range is already that of the region's result, so it can only be moved about, not computed with.
    """

    value: Any
    scale: Expr
    zero: Expr
    dtype: str
    axis: int = -1
    clamped: bool = False


Known: TypeAlias = "QuantizedValue | Expr | list[Known]"
"""What a node stands for: a quantity, a constant as it is written, those of the fields of a tuple."""


class Unquantized(Exception):
    """An operator or a way of using one that has no form on integers; says which."""


IntegerRule = Callable[[Call, list[Any], QuantizedValue | None], QuantizedValue]
RULES: dict[str, IntegerRule] = {}


def integer_rule(*names: str) -> Callable[[IntegerRule], IntegerRule]:
    """Register a rule for operators (also one of your own)."""
    return registered(RULES, names)


def refuse(node: Expr, why: str) -> Unquantized:
    """What a rule raises where it has no answer."""
    return Unquantized(f"{op_name(node) or type(node).__name__}: {why}")


def is_one(x: Expr) -> bool:
    """Whether a scale or zero point is one number for all."""
    return np.size(x.data) == 1 if isinstance(x, Constant) else not shape_of(x)


def same(a: Expr, b: Expr) -> bool:
    """Whether two scales or zero points are known to be equal."""
    return a is b or (isinstance(a, Constant) and isinstance(b, Constant) and np.array_equal(a.data, b.data))


def times(a: Expr, b: Expr) -> Expr:
    """The product of two scales, computed where they are known."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return const(np.asarray(np.multiply(a.data, b.data), "float32"))
    return call("multiply", a, b)


def again(node: Call, *args: Expr) -> Call:
    """The call with other arguments."""
    return Call(node.op, args, node.attrs, (), span=node.span)


def needed(node: Call, goal: QuantizedValue | None, *args: QuantizedValue | Expr) -> QuantizedValue:
    """The goal, for an operator that gives the region's result; its arguments must still have their own range."""
    if goal is None:
        raise refuse(node, "its scale is not known without a qnn.quantize after it")
    if not _is_single(goal):
        raise refuse(node, "a scale for each channel of the result")
    for arg in args:
        if isinstance(arg, Expr) or arg.clamped:
            raise refuse(node, "an argument was already clamped to the range of the result")
    return goal


def real_part(node: Call, arg: QuantizedValue | Expr) -> QuantizedValue:
    """An argument that must be a quantity with one scale."""
    if isinstance(arg, Expr) or not _is_single(arg):
        raise refuse(node, "an argument has no single scale")
    return arg


def _is_single(x: QuantizedValue) -> bool:
    return is_one(x.scale) and is_one(x.zero)


def real_or_channels(node: Call, arg: QuantizedValue | Expr) -> QuantizedValue:
    """An argument that must be a quantity, with one scale or one for each channel."""
    if isinstance(arg, Expr):
        raise refuse(node, "an argument is not dequantized")
    return arg


def along(parameter: Constant, x: QuantizedValue, rank: int) -> np.ndarray:
    """A known scale or zero point as an array that broadcasts to a tensor of a rank."""
    array = np.asarray(parameter.data)
    if array.size == 1:
        return array.reshape(())
    return array.reshape([-1 if axis == x.axis % rank else 1 for axis in range(rank)])


def rescaled(x: QuantizedValue, to: QuantizedValue) -> Expr:
    """A quantity as integers of another scale."""
    if x.dtype == to.dtype and same(x.scale, to.scale) and same(x.zero, to.zero):
        return x.value
    axis = x.axis if _is_single(to) else to.axis
    if not _is_single(to) and not _is_single(x) and x.axis != to.axis:
        raise Unquantized("qnn.quantize: scales along another axis than those of its argument")
    return call("qnn.requantize", x.value, x.scale, x.zero, to.scale, to.zero, axis=axis, out_dtype=to.dtype)


def quantized_constant(node: Call, value: Expr, like: QuantizedValue, rank: int) -> QuantizedValue:
    """A constant of real numbers as integers of the scale of another argument, which has a rank."""
    if not isinstance(value, Constant) or not isinstance(like.scale, Constant) or not isinstance(like.zero, Constant):
        raise refuse(node, "an argument is neither dequantized nor a constant")
    scale, zero = along(like.scale, like, rank), along(like.zero, like, rank)
    exact = np.rint(np.asarray(value.data, "float64") / scale) + zero
    if exact.ndim > rank:
        raise refuse(node, "a constant of more dimensions beside a scale for each channel")
    low, high = limits(like.dtype)
    if exact.size and (exact.min() < low or exact.max() > high):
        raise refuse(node, f"a constant is beyond the range of {like.dtype}")
    return replace(like, value=const(exact.astype(like.dtype)), clamped=False)


def two(node: Call, args: Sequence[Any]) -> tuple[QuantizedValue, QuantizedValue]:
    """The arguments of a binary operator, a constant in the scale of the other one."""
    a, b = args
    ranks = [rank_of(arg) for arg in node.args]
    if isinstance(a, Expr):
        a = quantized_constant(node, a, real_or_channels(node, b), ranks[1])
    b = quantized_constant(node, b, a, ranks[0]) if isinstance(b, Expr) else b
    return real_or_channels(node, a), real_or_channels(node, b)


@integer_rule("reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "broadcast_to", "max", "min", "split")
@integer_rule("nn.max_pool2d", "nn.batch_flatten", "nn.depth_to_space")
def _moved(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_part(node, args[0])
    return replace(x, value=again(node, x.value))


@integer_rule("topk")
def _topk(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    if facets(node).ret_type != "values":
        raise refuse(node, "it gives indices too")
    return _moved(node, args, goal)


@integer_rule("nn.relu")
def _relu(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_or_channels(node, args[0])
    if isinstance(x.zero, Constant) and not np.any(x.zero.data):
        return replace(x, value=again(node, x.value))
    if is_one(x.zero):
        return replace(x, value=call("maximum", x.value, call("cast", x.zero, dtype=x.dtype)))
    if not isinstance(x.zero, Constant):
        raise refuse(node, "its zero points are not known")
    zero = along(x.zero, x, rank_of(node.args[0]))
    return replace(x, value=call("maximum", x.value, const(zero.astype(x.dtype))))


@integer_rule("clip")
def _clip(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_or_channels(node, args[0])
    if not isinstance(x.scale, Constant) or not isinstance(x.zero, Constant):
        raise refuse(node, "its scale is not known")
    edges, rank = facets(node), rank_of(node.args[0])
    scale, zero = along(x.scale, x, rank).astype("float64"), along(x.zero, x, rank)
    low, high = (np.clip(np.rint(v / scale) + zero, *limits(x.dtype)) for v in (edges.a_min, edges.a_max))
    if low.size == 1:
        return replace(x, value=call("clip", x.value, a_min=float(low), a_max=float(high)))
    above = call("maximum", x.value, const(low.astype(x.dtype)))
    return replace(x, value=call("minimum", above, const(high.astype(x.dtype))))


@integer_rule("nn.pad")
def _pad(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_part(node, args[0])
    if facets(node).pad_mode != "constant":
        return replace(x, value=again(node, x.value, const(0, x.dtype)))
    if isinstance(args[1], Expr):
        return replace(x, value=again(node, x.value, quantized_constant(node, args[1], x, 0).value))
    return replace(x, value=again(node, x.value, rescaled(real_part(node, args[1]), x)))


@integer_rule("nn.avg_pool2d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool1d", "mean")
def _mean(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    """Integers are averaged with eight bits of fraction, and scaled back with the result."""
    x, record = real_part(node, args[0]), facets(node)
    padded = any(getattr(record, "padding", ())) and getattr(record, "count_include_pad", False)
    if padded and (not isinstance(x.zero, Constant) or np.any(x.zero.data)):
        raise refuse(node, "it counts padding, which is not the zero point")
    return _averaged(node, x, needed(node, goal, x), _count(node))


@integer_rule("image.resize2d")
def _resize(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    """Nearest neighbours are moved, others averaged."""
    x, record = real_part(node, args[0]), facets(node)
    if record.coordinate_transformation_mode == "tf_crop_and_resize" or record.out_dtype not in ("", None):
        raise refuse(node, "it gives numbers that are not its argument's, or another data type")
    if record.method == "nearest_neighbor":
        return _moved(node, args, goal)
    return _averaged(node, x, needed(node, goal, x), 2)


def _count(node: Call) -> int:
    """How many numbers an average is of, at most."""
    shape = shape_of(node.args[0])
    if not all(isinstance(n, int) for n in shape):
        raise refuse(node, "the number of its summands is not known")
    return math.prod(shape)


def _averaged(node: Call, x: QuantizedValue, goal: QuantizedValue, count: int) -> QuantizedValue:
    """Averages of integers with up to eight bits of fraction, as many as the sums have room for."""
    low, high = limits(x.dtype)
    room = 2**31 // (max(-low, high) * count)
    if not room:
        raise refuse(node, f"sums of {count} numbers of {x.dtype} may overflow")
    parts = min(256, 2 ** (room.bit_length() - 1))
    fine = call("multiply", call("cast", x.value, dtype=INT32), const(parts, INT32))
    zero = (
        const(x.zero.data * np.int32(parts)) if isinstance(x.zero, Constant) else call("multiply", x.zero, const(parts))
    )
    scale = times(x.scale, const(np.float32(1 / parts)))
    return rescale_to(node, QuantizedValue(again(node, fine), scale, zero, INT32), goal)


def rescale_to(node: Call, x: QuantizedValue, goal: QuantizedValue) -> QuantizedValue:
    """A quantity of the goal's scale."""
    return replace(goal, value=rescaled(x, goal), clamped=True)


@integer_rule("abs", "exp", "log", "sqrt", "rsqrt", "erf", "sigmoid", "tanh")
def _unary(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_part(node, args[0])
    out = _of_type(node, needed(node, goal, x), x)
    value = call(f"qnn.{op_name(node)}", x.value, x.scale, x.zero, out.scale, out.zero)
    return replace(out, value=value, clamped=True)


@integer_rule("nn.leaky_relu")
def _leaky_relu(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x = real_part(node, args[0])
    out = _of_type(node, needed(node, goal, x), x)
    value = call("qnn.leaky_relu", x.value, x.scale, x.zero, out.scale, out.zero, alpha=facets(node).alpha)
    return replace(out, value=value, clamped=True)


def _of_type(node: Call, goal: QuantizedValue, *args: QuantizedValue) -> QuantizedValue:
    if any(x.dtype != goal.dtype for x in args):
        raise refuse(node, f"an argument is not of the result's data type {goal.dtype}")
    return goal


@integer_rule("add", "subtract", "multiply")
def _binary(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    a, b = two(node, _factors(args) if op_name(node) == "multiply" else args)
    out = _of_type(node, needed(node, goal, a, b), a, b)
    axes = {"lhs_axis": a.axis, "rhs_axis": b.axis}
    name = "qnn.mul" if op_name(node) == "multiply" else f"qnn.{op_name(node)}"
    value = call(name, a.value, b.value, a.scale, a.zero, b.scale, b.zero, out.scale, out.zero, **axes)
    return replace(out, value=value, clamped=True)


def _factors(args: Sequence[Known]) -> list[Known]:
    """The factors of a product; a constant gets the finest scale, since it need not share that of the other one."""
    dtype = next((a.dtype for a in args if isinstance(a, QuantizedValue)), INT32)
    low, most = limits(dtype)
    made: list[Known] = []
    for arg in args:
        if isinstance(arg, Constant) and np.any(arg.data) and (low or np.all(arg.data >= 0)):
            scale = np.float32(np.abs(arg.data).max() / most)
            value = const(np.rint(np.asarray(arg.data, "float64") / scale).astype(dtype))
            made.append(QuantizedValue(value, const(scale), const(0, INT32), dtype))
        else:
            made.append(arg)
    return made


@integer_rule("maximum", "minimum")
def _choice(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    a, b = two(node, args)
    out = needed(node, goal, a, b)
    return replace(out, value=again(node, rescaled(a, out), rescaled(b, out)), clamped=True)


@integer_rule("concatenate")
def _concatenate(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    fields = [real_part(node, x) for x in args[0]]
    out = needed(node, goal, *fields)
    return replace(out, value=again(node, Tuple([rescaled(x, out) for x in fields])), clamped=True)


@integer_rule("nn.bias_add")
def _bias_add(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x, bias = args
    if isinstance(x, Expr) or x.dtype != INT32 or x.clamped:
        raise refuse(node, "its data is not the result of a product")
    if not _is_single(x) and facets(node).axis % rank_of(node) != x.axis % rank_of(node):
        raise refuse(node, "the scales of its data lie along another axis")
    if isinstance(bias, Expr):
        if not isinstance(bias, Constant) or not isinstance(x.scale, Constant):
            raise refuse(node, "the bias is neither dequantized nor a constant")
        bias_value: Expr = const(np.rint(np.asarray(bias.data, "float64") / np.asarray(x.scale.data)).astype(INT32))
    else:
        bias_value = rescaled(replace(bias, axis=0), replace(x, axis=0))
    return replace(x, value=again(node, x.value, bias_value))


@integer_rule(*PRODUCTS)
def _product(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
    x, w = real_part(node, args[0]), args[1]
    if isinstance(w, Expr) or x.clamped or w.clamped or INT32 in (x.dtype, w.dtype):
        raise refuse(node, "its arguments are not dequantized small integers")
    name = op_name(node).replace("nn.", "qnn.")
    axis = rank_of(node) - 1 if name in ("qnn.dense", "qnn.batch_matmul") else _channels(node)
    if not _is_single(w):
        units = -1 if name == "qnn.batch_matmul" else units_axis(node)
        if w.axis % rank_of(node.args[1]) != units or shape_of(node.args[1])[units] != shape_of(node)[axis]:
            raise refuse(node, "the scales or zero points of its weight are not one for each channel of the result")
    order = (x.value, w.value, x.zero, w.zero, x.scale, w.scale)
    options = {**dict(facets(node).items()), "out_dtype": INT32}
    return QuantizedValue(call(name, *order, **options), times(x.scale, w.scale), const(0, INT32), INT32, axis)


def _channels(conv: Call) -> int:
    """The axis of the channels of a convolution's result."""
    record = facets(conv)
    return (record.out_layout or record.data_layout).index("C")


def field_of(node: TupleGetItem, x: Known) -> Known:
    """One field of what a tuple or an operator with several results stands for."""
    if isinstance(x, list):
        return x[node.index]
    return x if isinstance(x, Expr) else replace(x, value=TupleGetItem(x.value, node.index))
