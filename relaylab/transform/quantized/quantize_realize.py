"""QuantizeRealize: what was simulated in floats is computed on integers.

A value of the program is an integer expression and the real number that one step stands for (`dom_scale`); integers of
one scale become those of another by a shift where the ratio is a power of two, else by a fixed-point number
(Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, CVPR 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function
from relaylab.ir.leaves import const
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to, op_name
from relaylab.op.qnn.arithmetic import EXPRS, limits, requantized
from relaylab.op.qnn.scale import ROUNDINGS
from relaylab.support.errors import RelayValueError
from relaylab.support.table import registered
from relaylab.transform.engine.build import call, scalar
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.quantized.forward import Pending, PendingFields, Value, again, forwarded
from relaylab.transform.quantized.quantize_annotate import SIMULATED, QAnnotateKind


class QRealizeIntExpr(Pending):
    """Whole numbers `data`, of type `dtype`, that stand for `dom_scale` times themselves."""

    def __init__(self, data: Expr, dom_scale: float, dtype: str):
        self.data, self.dom_scale, self.dtype = data, float(np.float32(dom_scale)), dtype
        self._casts = {dtype: data}

    def make(self) -> Expr:
        return call("multiply", self.cast("float32"), scalar(self.dom_scale, "float32"))

    def cast(self, dtype: str) -> Expr:
        """The whole numbers as another type."""
        if dtype not in self._casts:
            self._casts[dtype] = call("cast", self.data, dtype=dtype)
        return self._casts[dtype]


@dataclass(frozen=True)
class IntegerArithmetic:
    """In which types and how the program computes."""

    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    round_for_shift: bool = True
    rounding: str = "UPWARD"

    def of(self, arg: Expr) -> str:
        """The data type of an argument of a product: a matrix of two inputs is no weight."""
        weight = is_call_to(arg, SIMULATED) and facets(arg)["kind"] == QAnnotateKind.WEIGHT
        return self.dtype_weight if weight else self.dtype_input

    def rescaled(self, value: QRealizeIntExpr, scale: float, limit: tuple[float, float] | None = None) -> Expr:
        """Whole numbers of `dtype_activation` or of their own type, of another scale, perhaps with limits."""
        ratio, data, dtype = value.dom_scale / scale, value.data, value.dtype
        clipped = lambda e: e if limit is None else call("clip", e, a_min=limit[0], a_max=limit[1])
        mantissa, exponent = math.frexp(ratio)
        if ratio == 1.0:
            return clipped(data)
        if mantissa == 0.5 and abs(exponent - 1) < 31 and "float" not in dtype:
            return clipped(self._shifted(data, exponent - 1, dtype))
        zero, one = scalar(0, "int32"), lambda s: const(np.float32(s), "float32")
        moved = requantized(EXPRS, data, one(value.dom_scale), zero, one(scale), zero, self.rounding)
        least, most = limits(dtype) if "int" in dtype else limits(self.dtype_activation)
        low, high = limit or (least, most)
        return call("cast", call("clip", moved, a_min=max(low, least), a_max=min(high, most)), dtype=dtype)

    def _shifted(self, data: Expr, left: int, dtype: str) -> Expr:
        if left > 0:
            return call("left_shift", data, scalar(left, dtype))
        if self.round_for_shift:
            data = call("add", data, scalar(1 << (-left - 1), dtype))
        return call("right_shift", data, scalar(-left, dtype))

    def unified(self, values: Sequence[QRealizeIntExpr]) -> tuple[list[Expr], float]:
        """Whole numbers of one scale and of `dtype_activation`."""
        scales = [v.dom_scale for v in values]
        scale = min(scales) if len(scales) == 2 else max(scales)
        wide = [QRealizeIntExpr(v.cast(self.dtype_activation), v.dom_scale, self.dtype_activation) for v in values]
        return [self.rescaled(v, scale) for v in wide], scale


RealizeRule: TypeAlias = "Callable[[Call, list[Value], IntegerArithmetic], Value | None]"
REALIZE: dict[str, RealizeRule] = {}


def realize_rule(*names: str) -> Callable[[RealizeRule], RealizeRule]:
    """Register a rule for operators."""
    return registered(REALIZE, names)


def _whole(args: Sequence[Value]) -> list[QRealizeIntExpr] | None:
    """The arguments, if all of them are whole numbers."""
    found = [a for a in args if isinstance(a, QRealizeIntExpr)]
    return found if len(found) == len(args) else None


def _with(node: Call, args: Sequence[Expr], **attrs: object) -> Call:
    return Call(node.op, tuple(args), facets(node).replace(**attrs), (), span=node.span)


@realize_rule(SIMULATED)
def _quantized(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if not all(isinstance(a, Constant) for a in node.args[1:]):
        text = "the scales of a simulated quantization are not known"
        raise RelayValueError(text, code="quantize.not-calibrated", help="run QuantizeCalibrate first")
    if facets(node)["rounding"] != "round":
        text = f"a simulated quantization with rounding {facets(node)['rounding']!r} has no form on integers"
        raise RelayValueError(text, code="quantize.rounding", help='only "round" has one')
    scale, low, high = (float(a.data.numpy()) for a in node.args[1:] if isinstance(a, Constant))
    data = args[0]
    if isinstance(data, QRealizeIntExpr):
        return QRealizeIntExpr(how.rescaled(data, scale, (low, high)), scale, data.dtype)
    if isinstance(data, Pending):
        data = data.realize()
    steps = call("multiply", data, scalar(float(np.float32(1) / np.float32(scale)), "float32"))
    return QRealizeIntExpr(call("clip", call("round", steps), a_min=low, a_max=high), scale, "float32")


@realize_rule("nn.conv2d", "nn.contrib_conv2d_NCHWc", "nn.conv1d", "nn.dense", "nn.batch_matmul")
def _product(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    new = _with(node, [v.cast(how.of(a)) for v, a in zip(found, node.args)], out_dtype=how.dtype_activation)
    return QRealizeIntExpr(new, found[0].dom_scale * found[1].dom_scale, how.dtype_activation)


@realize_rule("multiply")
def _scaled(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    new = again(node, [v.cast(how.dtype_activation) for v in found])
    return QRealizeIntExpr(new, found[0].dom_scale * found[1].dom_scale, how.dtype_activation)


@realize_rule("add")
def _sum(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    parts, scale = how.unified(found)
    return QRealizeIntExpr(again(node, parts), scale, how.dtype_activation)


@realize_rule("concatenate")
def _joined(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    fields = args[0]
    if not isinstance(fields, PendingFields) or (found := _whole(fields.values)) is None:
        return None
    parts, scale = how.unified(found)
    return QRealizeIntExpr(again(node, [PendingFields(fields.node, parts)]), scale, how.dtype_activation)


@realize_rule("clip")
def _clipped(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    value = found[0]
    low, high = (float(np.trunc(facets(node)[k] / value.dom_scale)) for k in ("a_min", "a_max"))
    return QRealizeIntExpr(_with(node, [value.data], a_min=low, a_max=high), value.dom_scale, value.dtype)


@realize_rule("nn.relu", "reshape", "strided_slice", "nn.batch_flatten", "transpose", "annotation.stop_fusion")
def _moved(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    return QRealizeIntExpr(again(node, [found[0].data]), found[0].dom_scale, found[0].dtype)


def _pooled(node: Call, args: list[Value], dtype: str) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    return QRealizeIntExpr(again(node, [found[0].cast(dtype)]), found[0].dom_scale, dtype)


@realize_rule("nn.max_pool1d", "nn.max_pool2d")
def _greatest(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    return _pooled(node, args, how.dtype_input)


@realize_rule("nn.avg_pool2d")
def _mean(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    return _pooled(node, args, how.dtype_activation)


@realize_rule("annotation.cast_hint")
def _kept(node: Call, args: list[Value], how: IntegerArithmetic) -> Value | None:
    if (found := _whole(args)) is None:
        return None
    dtype = facets(node)["dtype"]
    return QRealizeIntExpr(found[0].cast(dtype), found[0].dom_scale, dtype)


@pass_(level=1, preserves=False)
class QuantizeRealize(FunctionPass):
    """Computes on integers what simulated quantizations describe; their scales must be constants.

    Raises `RelayValueError` where they are not, or where a simulation rounds otherwise than to the nearest.
    """

    dtype_input: Annotated[str, "The data type of inputs of products."] = "int8"
    dtype_weight: Annotated[str, "The data type of weights."] = "int8"
    dtype_activation: Annotated[str, "The data type in which products are added up."] = "int32"
    round_for_shift: Annotated[bool, "Shifts to the right round to the nearest; else down."] = True
    rounding: Annotated[str, 'Where halves of fixed-point products go: "UPWARD" or "TONEAREST" (away from 0).'] = (
        "UPWARD"
    )

    def __post_init__(self) -> None:
        if self.rounding not in ROUNDINGS:
            text = f"rounding is one of {', '.join(ROUNDINGS)}, not {self.rounding!r}"
            raise RelayValueError(text, code="quantize.option")

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        how = IntegerArithmetic(
            self.dtype_input, self.dtype_weight, self.dtype_activation, self.round_for_shift, self.rounding
        )

        def at(node: Call, args: list[Value]) -> Value | None:
            rule = REALIZE.get(op_name(node))
            return rule(node, args, how) if rule else None

        return forwarded(func, at)
