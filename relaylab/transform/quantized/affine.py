"""Rules of FakeQuantizationToInteger as programs register them: functions of a call and a map of affine types."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, cast

import numpy as np

from relaylab.ir.base import Expr
from relaylab.ir.declare import Each, One, field, node
from relaylab.ir.expr import Call, Constant, Tuple, TupleWrapper
from relaylab.ir.leaves import const
from relaylab.ir.node import Node
from relaylab.ir.op import Op, op_name
from relaylab.ir.types import dtype_name
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.infer_type import dtype_of, shape_of, typed
from relaylab.transform.quantized.fake_quantization_rules import (
    RULES,
    Known,
    QuantizedValue,
    integer_rule,
    is_one,
    refuse,
    rescaled,
    two,
)

TypeMap = MutableMapping[Expr, "AffineType"]
"""What integer expressions stand for."""
AffineRule = Callable[[Expr, TypeMap], Sequence[Any]]


class AffineType(Node):
    """The base of what an integer expression can stand for."""

    __slots__ = ()


@node
class TensorAffineType(AffineType):
    """Integers q that stand for (q - zero_point) * scale, of a data type; scales along `axis`."""

    scale: Expr = field(converter=One(Expr, "the scale"))
    """The scale: one number, or one for each channel."""
    zero_point: Expr = field(converter=One(Expr, "the zero point"))
    """The integer that stands for 0."""
    dtype: str = field(converter=dtype_name)
    """The data type of the integers."""
    axis: int = field(default=-1, converter=int)
    """The axis of the channels."""


@node
class TupleAffineType(AffineType):
    """The affine types of the fields of a tuple."""

    types: tuple[AffineType, ...] = field(converter=Each(AffineType, "the fields of a TupleAffineType"))
    """One for each field."""


def _affine(q: QuantizedValue) -> TensorAffineType:
    return TensorAffineType(q.scale, q.zero, q.dtype, q.axis)


def _put(known: Known, types: TypeMap) -> Expr:
    """The expression of what is known of an argument; its affine type goes into `types`."""
    if isinstance(known, QuantizedValue):
        types[known.value] = _affine(known)
        return known.value
    if isinstance(known, list):
        fields = [_put(k, types) for k in known]
        made = Tuple(fields)
        if all(f in types for f in fields):
            types[made] = TupleAffineType([types[f] for f in fields])
        return made
    return known


def _take(expr: Expr, types: TypeMap) -> Known:
    """What is known of an expression, the inverse of `_put`."""
    found = types.get(expr)
    if isinstance(found, TensorAffineType):
        return QuantizedValue(typed(expr), found.scale, found.zero_point, found.dtype, found.axis)
    return [_take(f, types) for f in expr.fields] if isinstance(expr, Tuple) else expr


def registered(node: Call, args: list[Any], goal: QuantizedValue | None, optional: bool) -> QuantizedValue | None:
    """What a function that a program registered with the operator makes of a call; None if there is none."""
    keys = ("FTVMFakeQuantizationToInteger", *(("FTVMOptionalFakeQuantizationToInteger",) if optional else ()))
    found = next((f for key in keys if isinstance(node.op, Op) and (f := node.op.get_attr(key))), None)
    if found is None:
        return None
    types: TypeMap = {}
    call = Call(node.op, [_put(a, types) for a in args], node.attrs, (), span=node.span)
    if goal is not None:
        types[call] = _affine(goal)
    try:
        out, affine = cast(AffineRule, found)(call, types)
    except (NotImplementedError, AssertionError, KeyError) as error:
        raise refuse(node, str(error) or f"its registered rule refuses it ({type(error).__name__})") from None
    if isinstance(out, TupleWrapper):
        out = out.astuple()
    if not isinstance(out, Expr) or not isinstance(affine, TensorAffineType):
        raise RelayTypeError(
            f"the rule for {op_name(node)} gave {type(out).__name__} and {type(affine).__name__}",
            code="quantize.rule",
            help="return [expression, TensorAffineType(scale, zero_point, dtype, axis)]",
        )
    return QuantizedValue(typed(out), affine.scale, affine.zero_point, affine.dtype, affine.axis)


def rule(name: str) -> AffineRule:
    """The rule that FakeQuantizationToInteger has for an operator, as a function of a call and a map of types."""

    def apply(expr: Expr, type_map: TypeMap) -> list[Any]:
        call = cast(Call, expr)
        goal = type_map.get(call)
        wanted = (
            QuantizedValue(call, goal.scale, goal.zero_point, goal.dtype, goal.axis)
            if isinstance(goal, TensorAffineType)
            else None
        )
        found = RULES[name](call, [_take(a, type_map) for a in call.args], wanted)
        return [found.value, _affine(found)]

    apply.__doc__ = f"The integer form of {name} and its affine type, for a call and a map of affine types."
    return apply


def dequantize(expr: Call, type_map: TypeMap) -> list[Any]:
    """The integers that a `qnn.dequantize` reads."""
    value, scale, zero = expr.args
    return [value, type_map.get(expr) or TensorAffineType(scale, zero, dtype_of(typed(value)))]


def quantize(expr: Call, type_map: TypeMap) -> list[Any]:
    """The integers that a `qnn.quantize` gives, from its argument on other integers."""
    source, goal = _take(expr.args[0], type_map), type_map[expr]
    if not isinstance(source, QuantizedValue) or not isinstance(goal, TensorAffineType):
        raise refuse(expr, "its argument is no tensor of integers")
    return [rescaled(source, QuantizedValue(expr, goal.scale, goal.zero_point, goal.dtype, goal.axis)), goal]


def get_zeros(scale: Expr) -> Expr:
    """An int32 zero for each scale."""
    return const(np.zeros(infer_shape(scale), "int32"))


def infer_shape(expr: Expr) -> tuple[int, ...]:
    """The shape of an expression."""
    return tuple(map(int, shape_of(typed(expr))))


def approx_equal(x: Expr, y: Expr) -> bool:
    """Whether two scales or zero points are the same numbers, up to rounding; of unknown ones, the same expression."""
    if isinstance(x, Constant) and isinstance(y, Constant):
        return x.data.shape == y.data.shape and bool(np.allclose(x.data, y.data))
    return x is y


def get_binary_types(expr: Call, type_map: TypeMap) -> tuple[Expr, Expr, TensorAffineType, TensorAffineType]:
    """The arguments of a binary operator and their affine types; a constant gets those of the other argument."""
    a, b = two(expr, [_take(arg, type_map) for arg in expr.args])
    return a.value, b.value, _affine(a), _affine(b)


def register_unary_identity(op_name: str) -> None:
    """FakeQuantizationToInteger moves the operator onto the integers, whose scale stays."""
    integer_rule(op_name)(RULES["reshape"])


def register_unary_qnn(op_name: str, op: Callable[..., Expr]) -> None:
    """`op(x, scale, zero_point, out_scale, out_zero_point)` computes the operator on integers."""

    def unary(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
        (x,) = args
        if goal is None or not isinstance(x, QuantizedValue) or not is_one(x.scale):
            raise refuse(node, "it needs one scale and a qnn.quantize after it")
        value = op(x.value, x.scale, x.zero, goal.scale, goal.zero)
        return QuantizedValue(typed(value), goal.scale, goal.zero, x.dtype, x.axis, clamped=True)

    integer_rule(op_name)(unary)


def register_binary_qnn(op_name: str, op: Callable[..., Expr]) -> None:
    """`op(left, right, left_type, right_type, out_type)` computes the operator on integers."""

    def binary(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
        a, b = two(node, args)
        if goal is None:
            raise refuse(node, "its scale is not known without a qnn.quantize after it")
        value = op(a.value, b.value, _affine(a), _affine(b), _affine(goal))
        return QuantizedValue(typed(value), goal.scale, goal.zero, goal.dtype, goal.axis, clamped=True)

    integer_rule(op_name)(binary)


def register_binary_identity(op_name: str, op: Callable[..., Expr]) -> None:
    """`op(left, right)` computes the operator on integers of one scale: that of the result."""

    def binary(node: Call, args: list[Any], goal: QuantizedValue | None) -> QuantizedValue:
        a, b = two(node, args)
        if goal is None:
            raise refuse(node, "its scale is not known without a qnn.quantize after it")
        value = op(rescaled(a, goal), rescaled(b, goal))
        return QuantizedValue(typed(value), goal.scale, goal.zero, goal.dtype, goal.axis, clamped=True)

    integer_rule(op_name)(binary)


NAMES = {
    "adaptive_avgpool1d": "nn.adaptive_avg_pool1d", "avgpool2d": "nn.avg_pool2d", "bias_add": "nn.bias_add",
    "batch_matmul": "nn.batch_matmul", "broadcast_to": "broadcast_to", "clip": "clip", "concat": "concatenate",
    "conv2d": "nn.conv2d", "conv2d_transpose": "nn.conv2d_transpose", "dense": "nn.dense",
    "global_avgpool2d": "nn.global_avg_pool2d", "leaky_relu": "nn.leaky_relu", "mean": "mean", "pad": "nn.pad",
    "relu": "nn.relu", "split": "split", "topk": "topk",
}  # fmt: skip
"""What TVM calls the rules of operators."""
__all__ = sorted(
    {*NAMES, "AffineType", "TensorAffineType", "TupleAffineType", "approx_equal", "dequantize", "get_binary_types"}
    | {"get_zeros", "infer_shape", "quantize", *(name for name in globals() if name.startswith("register_"))}
)


def __getattr__(name: str) -> AffineRule:
    if name in NAMES and NAMES[name] in RULES:
        return rule(NAMES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
