"""The quantized dialect, element by element: the operator applied to the real numbers, quantized again."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Expr, const
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.loop.scalar import SCALAR_OPS
from relaylab.op import rules
from relaylab.op.base import Sample, call_operator, sample
from relaylab.op.indexing import place
from relaylab.op.join import concatenate as join
from relaylab.op.qnn_scale import (
    Quantized,
    at,
    check_parameters,
    dequantize,
    dequantize_element,
    dequantized,
    quantize,
    quantize_element,
    quantized,
    quantized_op,
)

UNARY = ("x", "scale", "zero_point", "output_scale", "output_zero_point")
BINARY = (
    "lhs",
    "rhs",
    "lhs_scale",
    "lhs_zero_point",
    "rhs_scale",
    "rhs_zero_point",
    "output_scale",
    "output_zero_point",
)


def real(data: Expr, scale: Expr, zero: Expr, axis: int = -1) -> Expr:
    """A call of qnn.dequantize."""
    return dequantize.definition.call(data, scale, zero, axis=axis)


def whole(data: Expr, scale: Expr, zero: Expr, dtype: str) -> Expr:
    """A call of qnn.quantize."""
    return quantize.definition.call(data, scale, zero, out_dtype=dtype)


def expand(call: Any, types: list[Type]) -> Expr:
    """A call of the dialect written with ordinary operators."""
    return call.attrs.canonicalize(list(call.args), types)


class Unary(Quantized):
    """A function of one quantized tensor."""

    inputs = UNARY
    function: ClassVar[str] = ""
    low: ClassVar[int] = -128

    def relation(self, s: Any, x: Type, scale: Type, zero: Type, new_scale: Type, new_zero: Type) -> Type | None:
        found = rules.tensor(s, x, "x")
        check_parameters(s, x, -1, scale=scale, zero_point=zero, output_scale=new_scale, output_zero_point=new_zero)
        return found and rules.integers(s, found, "x")

    def apply(self, x: np.ndarray) -> np.ndarray:
        """The function of real numbers."""
        return SCALAR_OPS[self.function].meaning(x)

    def element(self, b: Any, x: Any) -> Any:
        """The same for one element."""
        return getattr(b, self.function)(x)

    def write(self, x: Expr) -> Expr:
        """The same with ordinary operators."""
        return call_operator(self.function, x)

    def reference(
        self, x: np.ndarray, scale: np.ndarray, zero: np.ndarray, new_scale: np.ndarray, new_zero: np.ndarray
    ) -> np.ndarray:
        with np.errstate(all="ignore"):
            value = self.apply(np.asarray(dequantized(x, scale.astype("float64"), zero)))
            return quantized(value, new_scale.astype("float64"), new_zero, x.dtype.name)

    def lower(self, b: Any, out: Any, i: tuple, x: Any, scale: Any, zero: Any, new_scale: Any, new_zero: Any) -> Any:
        value = dequantize_element(b, x(*i), at(scale, i, -1), at(zero, i, -1))
        return quantize_element(b, self.element(b, value), at(new_scale, i, -1), at(new_zero, i, -1), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        x, scale, zero, new_scale, new_zero = inputs
        value = self.write(expand(real(x, scale, zero), types[:3]))
        floats = TensorType(types[0].shape, "float32")  # type: ignore[attr-defined]
        return expand(whole(value, new_scale, new_zero, types[0].dtype), [floats, *types[3:5]])  # type: ignore[attr-defined]

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

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0

    def element(self, b: Any, x: Any) -> Any:
        return x * b.min(b.max(x + 3.0, 0.0), 6.0) / 6.0

    def write(self, x: Expr) -> Expr:
        moved = call_operator("clip", x + const(3.0), a_min=0.0, a_max=6.0)
        return x * moved / const(6.0)


@quantized_op(
    "qnn.leaky_relu",
    inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    attrs_key="LeakyRelu",
)
class leaky_relu(Unary):
    """Leaky rectified linear unit of quantized numbers: x where x > 0, else alpha * x."""

    alpha: float = 0.25
    parameters = "data alpha input_scale input_zero_point output_scale output_zero_point"
    low = -5

    def apply(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, x * self.alpha)

    def element(self, b: Any, x: Any) -> Any:
        return b.select(x > 0.0, x, x * self.alpha)

    def write(self, x: Expr) -> Expr:
        return call_operator("nn.leaky_relu", x, alpha=self.alpha)


class Binary(Quantized):
    """A function of two quantized tensors, which broadcast; both have one data type, which the result keeps."""

    lhs_axis: int = -1
    rhs_axis: int = -1
    inputs = BINARY
    function: ClassVar[str] = ""
    writes: ClassVar[str] = ""

    def relation(self, s: Any, lhs: Type, rhs: Type, *parameters: Type) -> Type | None:
        a, c = rules.tensor(s, lhs, "lhs"), rules.tensor(s, rhs, "rhs")
        if a is None or c is None:
            return None
        out = TensorType(rules.broadcast(s, a, c), rules.same_dtype(s, rules.integers(s, a, "lhs"), c))
        for side, axis, first in ((a, self.lhs_axis, 2), (c, self.rhs_axis, 4), (out, -1, 6)):
            check_parameters(s, side, axis, **dict(zip(BINARY[first : first + 2], parameters[first - 2 : first])))
        return out

    def reference(self, lhs: np.ndarray, rhs: np.ndarray, *p: np.ndarray) -> np.ndarray:
        a = dequantized(lhs, p[0].astype("float64"), p[1], self.lhs_axis)
        c = dequantized(rhs, p[2].astype("float64"), p[3], self.rhs_axis)
        return quantized(SCALAR_OPS[self.function].meaning(a, c), p[4].astype("float64"), p[5], lhs.dtype.name)

    def lower(self, b: Any, out: Any, i: tuple, lhs: Any, rhs: Any, *p: Any) -> Any:
        sides = []
        for x, scale, zero, axis in ((lhs, p[0], p[1], self.lhs_axis), (rhs, p[2], p[3], self.rhs_axis)):
            k = tuple(0 if int(n) == 1 else j for n, j in zip(x.shape, i[len(i) - len(x.shape) :]))
            sides.append(dequantize_element(b, x(*k), at(scale, k, axis), at(zero, k, axis)))
        return quantize_element(b, getattr(b, self.function)(*sides), at(p[4], i, -1), at(p[5], i, -1), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        a = expand(real(inputs[0], inputs[2], inputs[3], self.lhs_axis), [types[0], types[2], types[3]])
        c = expand(real(inputs[1], inputs[4], inputs[5], self.rhs_axis), [types[1], types[4], types[5]])
        result = types[-1]
        floats = TensorType(result.shape, "float32")  # type: ignore[attr-defined]
        value = call_operator(self.writes, a, c)
        return expand(whole(value, inputs[6], inputs[7], result.dtype), [floats, *types[6:8]])  # type: ignore[attr-defined]

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
    """Sum of quantized tensors."""

    function, writes = "add", "add"


@quantized_op("qnn.subtract", attrs_key="Broadcast")
class subtract(Binary):
    """Difference of quantized tensors."""

    function, writes = "sub", "subtract"


@quantized_op("qnn.mul", attrs_key="Broadcast")
class mul(Binary):
    """Product of quantized tensors, element by element."""

    function, writes = "mul", "multiply"


@quantized_op(
    "qnn.concatenate",
    inputs=("data", "input_scales", "input_zero_points", "output_scale", "output_zero_point"),
    attrs_key="Concatenate",
)
class concatenate(Quantized):
    """Quantized tensors, each with its scale and zero point, brought to one scale and joined along an axis."""

    axis: int = 0

    def relation(self, s: Any, data: Type, scales: Type, zeros: Type, scale: Type, zero: Type) -> Type | None:
        fields = rules.tensors(s, data)
        for t, name in ((scales, "input_scales"), (zeros, "input_zero_points")):
            if isinstance(t, TupleType) and fields is not None and len(t.fields) != len(fields):
                s.fail(f"`{name}` has {len(t.fields)} fields for {len(fields)} tensors")
        each = [dict(enumerate(getattr(t, "fields", ()))) for t in (scales, zeros)]
        for k, t in enumerate(fields or ()):
            mine = {name: group[k] for name, group in zip(self.inputs[1:3], each) if k in group}
            check_parameters(s, rules.integers(s, t, f"data[{k}]"), -1, **mine)
        joined = join.definition(axis=self.axis).relation(s, data)
        check_parameters(s, joined, -1, output_scale=scale, output_zero_point=zero)  # type: ignore[arg-type]
        return joined

    def reference(self, data: tuple, scales: tuple, zeros: tuple, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        parts = [dequantized(x, k.astype("float64"), z) for x, k, z in zip(data, scales, zeros)]
        return quantized(np.concatenate(parts, self.axis), scale.astype("float64"), zero, data[0].dtype.name)

    def lower(self, b: Any, out: Any, i: tuple, data: tuple, scales: tuple, zeros: tuple, scale: Any, zero: Any) -> Any:
        axis, value, end = self.axis % len(i), b.const(0.0, "float64"), sum(int(x.shape[self.axis]) for x in data)
        for x, k, z in reversed(list(zip(data, scales, zeros))):
            begin = end - int(x.shape[axis])
            inside, where = b.all_of(i[axis] >= begin, i[axis] < end), place(i, axis, i[axis] - begin)
            value = b.guard(
                inside, lambda x=x, k=k, z=z, w=where: dequantize_element(b, x(*w), at(k, w, -1), at(z, w, -1)), value
            )
            end = begin
        return quantize_element(b, value, at(scale, i, -1), at(zero, i, -1), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        data, scales, zeros = (getattr(x, "fields", None) for x in inputs[:3])
        if data is None or scales is None or zeros is None:
            return None
        kinds = list(zip(*(t.fields for t in types[:3])))  # type: ignore[attr-defined]
        parts = [expand(real(x, k, z), list(t)) for x, k, z, t in zip(data, scales, zeros, kinds)]
        result = types[-1]
        floats = TensorType(result.shape, "float32")  # type: ignore[attr-defined]
        joined = call_operator("concatenate", parts, axis=self.axis)
        return expand(whole(joined, inputs[3], inputs[4], result.dtype), [floats, *types[3:5]])  # type: ignore[attr-defined]

    @classmethod
    def samples(cls) -> list[Sample]:
        int8 = lambda *s: TensorType(s, "int8")
        scales, zeros = [np.float32(0.03), np.float32(0.07)], [np.int32(1), np.int32(-2)]
        return [
            sample([int8(2, 3), int8(2, 1)], scales, zeros, np.float32(0.051), np.int32(4), axis=1, low=-128, high=127)
        ]
