"""The quantized dialect, element by element.

Functions of one tensor are applied to the real numbers, which are quantized again; sums, differences, products and what
is joined are computed on integers (`relaylab.op.qnn.arithmetic`).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import ClassVar

import numpy as np

from relaylab.ir.expr import Constant, Expr, ExprWithOp
from relaylab.ir.leaves import const
from relaylab.ir.types import TensorType, TupleType, Type, type_parts
from relaylab.op import rules
from relaylab.op.base import Input, Sample, arg, attr, call_operator, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import place
from relaylab.op.qnn.arithmetic import (
    ARRAYS,
    EXPRS,
    N,
    Numbers,
    along,
    along_expr,
    centred,
    function,
    limits,
    product_scale,
    real,
    requantized,
    saturated,
    times,
    whole,
)
from relaylab.op.qnn.scale import Computed, Quantized, at, check_parameters, quantized_op, scale_of, zero_of
from relaylab.op.tensor.join import concatenate as join

EACH = "() or (1,), or one number per position of the last axis"


class Unary(Computed):
    """A function of one quantized tensor, in float32; of 8-bit integers with known parameters it is a table."""

    x: Input = arg("the quantized tensor", "any", "integers")
    scale: Input = scale_of("x")
    zero_point: Input = zero_of("x")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    yields = "shape and dtype of x"
    function: ClassVar[str] = ""
    low: ClassVar[int] = -128

    def relation(self, s: TypeSolver, x: Type, scale: Type, zero: Type, new_scale: Type, new_zero: Type) -> Type | None:
        found = rules.tensor(s, x, "x")
        check_parameters(s, x, -1, scale=scale, zero_point=zero, output_scale=new_scale, output_zero_point=new_zero)
        return found and rules.integers(s, found, "x")

    def of_real(self, b: Numbers, x: N) -> N:
        """The function of real numbers."""
        return function(b, self.function, x)

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        x, scale, zero, new_scale, new_zero = values
        return whole(b, self.of_real(b, real(b, x, scale, zero)), new_scale, new_zero, dtype)

    def canonicalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        parameters = [p.data.numpy() for p in inputs[1:] if isinstance(p, Constant) and p.data.size == 1]
        if len(parameters) < 4 or np.dtype(types[0].dtype).itemsize > 1:
            return super().canonicalize(inputs, types)
        low, high = limits(types[0].dtype)
        table = self.reference(np.arange(low, high + 1).astype(types[0].dtype), *parameters)
        return call_operator("take", const(table), centred(EXPRS, inputs[0], const(low, "int32"), "int32"))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = TensorType((3, 5), "int8")
        parameters = np.float32(0.0301), np.int32(cls.low), np.float32(0.0217), np.int32(-3)
        return [sample(x, *parameters, low=max(cls.low + 1, -127), high=127)]


@quantized_op("qnn.abs")
class abs(Unary):
    """Absolute value of quantized numbers."""

    function, low = "abs", 3


@quantized_op("qnn.exp")
class exp(Unary):
    """Exponential of quantized numbers."""

    function = "exp"


@quantized_op("qnn.log")
class log(Unary):
    """Natural logarithm of quantized numbers."""

    function = "log"


@quantized_op("qnn.sqrt")
class sqrt(Unary):
    """Square root of quantized numbers."""

    function = "sqrt"


@quantized_op("qnn.rsqrt")
class rsqrt(Unary):
    """Reciprocal square root of quantized numbers."""

    function = "rsqrt"


@quantized_op("qnn.erf")
class erf(Unary):
    """Error function of quantized numbers."""

    function = "erf"


@quantized_op("qnn.tanh")
class tanh(Unary):
    """Hyperbolic tangent of quantized numbers."""

    function = "tanh"


@quantized_op("qnn.sigmoid")
class sigmoid(Unary):
    """Logistic function of quantized numbers."""

    function = "sigmoid"


@quantized_op("qnn.hardswish")
class hardswish(Unary):
    """x * clip(x + 3, 0, 6) / 6 of quantized numbers. Howard et al., 2019."""

    def of_real(self, b: Numbers, x: N) -> N:
        number = lambda v: b.const(v, "float32")
        return x * b.min(b.max(x + number(3.0), number(0.0)), number(6.0)) / number(6.0)


@quantized_op("qnn.leaky_relu", attrs_key="LeakyRelu")
class leaky_relu(Unary):
    """Leaky rectified linear unit of quantized numbers: requantized, then alpha * x in fixed point where x < 0."""

    x: Input = arg("the quantized tensor", "any", "integers")
    input_scale: Input = scale_of("x")
    input_zero_point: Input = zero_of("x")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    alpha: float = attr(0.25, "the slope below 0")
    parameters = "x alpha input_scale input_zero_point output_scale output_zero_point"
    low = -5

    def relation(self, s: TypeSolver, *types: Type) -> Type | None:
        if not isfinite(self.alpha):
            s.fail(f"`alpha` of qnn.leaky_relu must be a number, not {self.alpha}")
        return super().relation(s, *types)

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        q, zero = requantized(b, *values), b.cast(values[-1], "int64")
        return saturated(b, b.select(q < zero, times(b, q, self.alpha) + times(b, zero, 1 - self.alpha), q), dtype)


class Binary(Computed):
    """A function of two quantized tensors, which broadcast; both have one data type, which the result keeps."""

    lhs: Input = arg("the left operand", "any", "integers")
    rhs: Input = arg("the right operand, whose shape broadcasts with that of the left one", "any", "that of lhs")
    lhs_scale: Input = scale_of("lhs")
    lhs_zero_point: Input = zero_of("lhs")
    rhs_scale: Input = scale_of("rhs")
    rhs_zero_point: Input = zero_of("rhs")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    lhs_axis: int = attr(-1, "the axis of lhs along which its scales and zero points lie, if they are vectors")
    rhs_axis: int = attr(-1, "the axis of rhs along which its scales and zero points lie, if they are vectors")
    yields = "the shapes of lhs and rhs broadcast as numpy's are, their dtype"
    tensors = 2

    def relation(self, s: TypeSolver, lhs: Type, rhs: Type, *parameters: Type) -> Type | None:
        a, c = rules.tensor(s, lhs, "lhs"), rules.tensor(s, rhs, "rhs")
        if a is None or c is None:
            return None
        out = TensorType(rules.broadcast(s, a, c), rules.same_dtype(s, rules.integers(s, a, "lhs"), c))
        for side, axis, first in ((a, self.lhs_axis, 2), (c, self.rhs_axis, 4), (out, -1, 6)):
            check_parameters(s, side, axis, **dict(zip(self.inputs[first : first + 2], parameters[first - 2 : first])))
        return out

    def lies(self) -> Iterable[tuple[int | None, int]]:
        return ((0, self.lhs_axis),) * 2 + ((1, self.rhs_axis),) * 2 + ((None, -1),) * 2

    def aligned(self, b: Numbers, *values: N) -> tuple[N, N, N]:
        """Both sides and the zero point at the scale of the result, int64."""
        (x, y), left, right, to = values[:2], values[2:4], values[4:6], values[6:]
        return requantized(b, x, *left, *to), requantized(b, y, *right, *to), b.cast(to[1], "int64")

    @classmethod
    def samples(cls) -> list[Sample]:
        parameters = np.float32(0.031), np.int32(2), np.float32(0.017), np.int32(-5), np.float32(0.057), np.int32(1)
        int8, uint8 = (lambda *s: TensorType(s, "int8")), (lambda *s: TensorType(s, "uint8"))
        return [
            sample(int8(2, 3), int8(2, 3), *parameters, low=-128, high=127),
            sample(uint8(2, 1, 3), uint8(4, 1), *parameters, low=0, high=255),
        ]


@quantized_op("qnn.add", attrs_key="Broadcast")
class add(Binary):
    """Sum of quantized tensors, each requantized to the scale of the result (halves go up)."""

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        x, y, zero = self.aligned(b, *values)
        return saturated(b, x + y - zero, dtype)


@quantized_op("qnn.subtract", attrs_key="Broadcast")
class subtract(Binary):
    """Difference of quantized tensors, each requantized to the scale of the result (halves go up)."""

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        x, y, zero = self.aligned(b, *values)
        return saturated(b, x - y + zero, dtype)


@quantized_op("qnn.mul", attrs_key="Broadcast")
class mul(Binary):
    """Product of quantized tensors, element by element: that of the integers, requantized (halves go up)."""

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        x, y, x_scale, x_zero, y_scale, y_zero, *to = values
        product = centred(b, x, x_zero, "int64") * centred(b, y, y_zero, "int64")
        scale = product_scale(x_scale, y_scale)
        return saturated(b, requantized(b, product, scale, b.const(0, "int32"), *to), dtype)


@quantized_op("qnn.concatenate", attrs_key="Concatenate")
class concatenate(Quantized):
    """Quantized tensors, each with its scale and zero point, brought to one scale and joined along an axis."""

    data: Input = arg("a tuple of quantized tensors", "equal but along `axis`", "one integer type")
    input_scales: Input = arg("a tuple with the scale of each tensor", EACH, "float32")
    input_zero_points: Input = arg("a tuple with the zero point of each tensor", EACH, "int32")
    output_scale: Input = scale_of("the result", "() or (1,)")
    output_zero_point: Input = zero_of("the result", "() or (1,)")
    axis: int = attr(0, "the axis along which the tensors are joined; negative ones count from the end")
    required = "axis"
    yields = "the shape of the tensors with the sum of their extents along `axis`, their dtype"

    def relation(self, s: TypeSolver, data: Type, scales: Type, zeros: Type, scale: Type, zero: Type) -> Type | None:
        fields = rules.tensors(s, data)
        for t, name in ((scales, "input_scales"), (zeros, "input_zero_points")):
            if isinstance(t, TupleType) and fields is not None and len(t.fields) != len(fields):
                s.fail(f"`{name}` has {len(t.fields)} fields for {len(fields)} tensors")
        each = [dict(enumerate(getattr(t, "fields", ()))) for t in (scales, zeros)]
        for k, t in enumerate(fields or ()):
            mine = {name: group[k] for name, group in zip(self.inputs[1:3], each) if k in group}
            check_parameters(s, rules.integers(s, t, f"data[{k}]"), -1, **mine)
        joined = join.definition(axis=self.axis).relation(s, data)
        for t, name in ((scale, "output_scale"), (zero, "output_zero_point")):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, found, name)
        if joined is not None:
            check_parameters(s, joined, -1, output_scale=scale, output_zero_point=zero)
        return joined

    def part(self, b: Numbers, dtype: str, *values: N) -> N:
        """One of the tensors at the scale of the result."""
        return saturated(b, requantized(b, *values), dtype)

    def reference(self, data: tuple, scales: tuple, zeros: tuple, *to: np.ndarray) -> np.ndarray:
        to = tuple(along(p, -1, 1) for p in to)
        own = [[along(p, -1, 1) for p in pair] for pair in zip(scales, zeros)]
        with np.errstate(all="ignore"):
            parts = [self.part(ARRAYS, x.dtype.name, x, *pair, *to) for x, pair in zip(data, own)]
        return np.concatenate(parts, self.axis)

    def lower(
        self,
        b: ElementBuilder,
        out: OutSpec,
        i: Index,
        data: tuple[Readable, ...],
        scales: tuple[Readable, ...],
        zeros: tuple[Readable, ...],
        *to: Readable,
    ) -> Element:
        axis, value, end = self.axis % len(i), b.const(0, out.dtype), sum(int(x.shape[self.axis]) for x in data)
        for x, *pair in reversed(list(zip(data, scales, zeros))):
            begin = end - int(x.shape[axis])
            inside, where = b.all_of(i[axis] >= begin, i[axis] < end), place(i, axis, i[axis] - begin)
            own = lambda x=x, ps=(*pair, *to), w=where: self.part(b, out.dtype, x(*w), *(at(p, w, -1) for p in ps))
            value, end = b.guard(inside, own, value), begin
        return value

    def canonicalize(self, inputs: list[ExprWithOp], types: list[Type]) -> Expr | None:
        groups = [getattr(x, "fields", None) for x in inputs[:3]]
        if None in groups:
            return None
        flat = lambda p, t: along_expr(p, -1, 1, t.shape)
        to = [flat(p, t) for p, t in zip(inputs[3:], types[3:])]
        parts = []
        for fields in zip(*groups, *map(type_parts, types[:3])):
            x, scale, zero, *kinds = fields
            parts.append(self.part(EXPRS, kinds[0].dtype, x, flat(scale, kinds[1]), flat(zero, kinds[2]), *to))
        return call_operator("concatenate", parts, axis=self.axis)

    @classmethod
    def samples(cls) -> list[Sample]:
        int8 = lambda *s: TensorType(s, "int8")
        scales, zeros = [np.float32(0.03), np.float32(0.07)], [np.int32(1), np.int32(-2)]
        return [
            sample([int8(2, 3), int8(2, 1)], scales, zeros, np.float32(0.051), np.int32(4), axis=1, low=-128, high=127)
        ]
