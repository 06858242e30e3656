"""The quantized dialect, between floats and integers: qnn.quantize, qnn.dequantize, qnn.requantize.

A quantized value q stands for the real number (q - zero_point) * scale; scale and zero point are scalars or, with an
axis, one number per position. `canonicalize` writes an operator with ordinary ones.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Expr, const
from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Opaque, Sample, call_operator, op, sample

CANONICALIZE = "FTVMQnnCanonicalize"


class Quantized(Opaque):
    """An operator of the quantized dialect; passes write it with ordinary operators before code is made."""

    level = 11
    computes = False

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        """The same written with ordinary operators, for typed inputs (the last type is the result's)."""
        return None


def quantized_op(name: str, **facts: Any) -> Any:
    """`op` for an operator of the dialect: also tells the passes how to write it with ordinary operators."""

    def register(cls: type[Quantized]) -> Any:
        builder = op(name, **facts)(cls)
        cls.op.set_attr(CANONICALIZE, lambda attrs, inputs, types: attrs.canonicalize(inputs, types))
        return builder

    return register


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def along(x: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A parameter as an array that broadcasts along `axis`."""
    return x if x.size == 1 else x.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


def along_expr(x: Expr, t: Type, axis: int, rank: int) -> Expr:
    """The same for an expression."""
    if not isinstance(t, TensorType) or not t.shape or rank == 0:
        return x
    return call_operator("expand_dims", x, axis=1, num_newaxis=rank - axis % rank - 1)


def at(x: Any, i: tuple, axis: int) -> Any:
    """The parameter for the element at index `i` as a loop-level expression."""
    if not x.shape:
        return x()
    return x(0) if x.shape == (1,) else x(i[axis % len(i)])


def dequantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int = -1) -> np.ndarray:
    """The real numbers, in float64."""
    return (x.astype("float64") - along(zero, axis, x.ndim)) * along(scale, axis, x.ndim)


def quantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, dtype: str, axis: int = -1) -> np.ndarray:
    """Real numbers as integers: divided, rounded (halves to even), moved and clamped."""
    low, high = limits(dtype)
    return np.clip(np.rint(x / along(scale, axis, x.ndim)) + along(zero, axis, x.ndim), low, high).astype(dtype)


def dequantize_element(b: Any, x: Any, scale: Any, zero: Any) -> Any:
    """The same for one element: a float64 expression."""
    return (b.cast(x, "float64") - b.cast(zero, "float64")) * b.cast(scale, "float64")


def quantize_element(b: Any, x: Any, scale: Any, zero: Any, dtype: str) -> Any:
    """The same for one element: an expression of `dtype`."""
    low, high = limits(dtype)
    q = b.round(x / b.cast(scale, "float64")) + b.cast(zero, "float64")
    return b.cast(b.min(b.max(q, float(low)), float(high)), dtype)


def check_parameters(s: Any, data: Type, axis: int, **parameters: Type) -> None:
    """Scales must be float32 and zero points int32: one number, or one for each position of `axis` of `data`."""
    for name, t in parameters.items():
        kind, found = "float32" if "scale" in name else "int32", rules.tensor(s, t, name)
        if found is not None and (kind != found.dtype or len(found.shape) > 1):
            s.fail(f"`{name}` must be a scalar or a vector of {kind}, not {type_text(found)}")
        if found is not None and found.shape and found.shape[0] != 1 and isinstance(data, TensorType):
            extent = data.shape[rules.axis(s, axis, len(data.shape), f"the axis of `{name}`")]
            rules.equal_dims(s, found.shape[0], extent, f"`{name}` and axis {axis} of {type_text(data)}")


@quantized_op(
    "qnn.quantize",
    inputs=("data", "output_scale", "output_zero_point"),
    attrs_key="Quantize",
    parameters="data output_scale output_zero_point axis out_dtype",
)
class quantize(Quantized):
    """round(data / scale) + zero_point, clamped to the integer type."""

    out_dtype: Dtype
    axis: int = -1
    defaults = {"out_dtype": "int8"}

    def relation(self, s: Any, data: Type, scale: Type, zero: Type) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, output_scale=scale, output_zero_point=zero)
        if found is not None and "float" not in found.dtype:
            s.fail(f"qnn.quantize takes floats, not {found.dtype}")
        return found and rules.integers(s, TensorType(found.shape, self.out_dtype or "int8"), "the result")

    def reference(self, data: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        return quantized(data.astype("float64"), scale.astype("float64"), zero, self.out_dtype or "int8", self.axis)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, scale: Any, zero: Any) -> Any:
        x = b.cast(data(*i), "float64")
        return quantize_element(b, x, at(scale, i, self.axis), at(zero, i, self.axis), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        wide = "float64" if types[0].dtype == "float64" else "float32"  # type: ignore[attr-defined]
        scale, zero = _placed(inputs[1:], types[1:], self.axis, types[0])
        data, scale = (x if t.dtype == wide else x.astype(wide) for x, t in zip((inputs[0], scale), types))  # type: ignore[attr-defined]
        moved = call_operator("round", data / scale) + zero.astype(wide)
        low, high = limits(self.out_dtype or "int8")
        return call_operator("clip", moved, a_min=low, a_max=high).astype(self.out_dtype or "int8")

    @classmethod
    def samples(cls) -> list[Sample]:
        scale, zero = np.float32(0.05), np.int32(3)
        each = np.array([0.1, 0.02, 0.3], "float32"), np.array([0, 4, -2], "int32")
        return [
            sample((3, 4), scale, zero, out_dtype="int8"),
            sample((2, 3, 4), *each, axis=1, out_dtype="uint8", low=-1, high=6),
        ]


def _placed(inputs: list[Expr], types: list[Type], axis: int, data: Type) -> list[Expr]:
    rank = len(data.shape)  # type: ignore[attr-defined]
    return [along_expr(x, t, axis, rank) for x, t in zip(inputs, types)]


@quantized_op("qnn.dequantize", inputs=("data", "input_scale", "input_zero_point"), attrs_key="Dequantize")
class dequantize(Quantized):
    """(data - zero_point) * scale, as float32."""

    axis: int = -1

    def relation(self, s: Any, data: Type, scale: Type, zero: Type) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, input_scale=scale, input_zero_point=zero)
        return found and TensorType(rules.integers(s, found, "data").shape, "float32")

    def reference(self, data: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        return dequantized(data, scale.astype("float64"), zero, self.axis).astype("float32")

    def lower(self, b: Any, out: Any, i: tuple, data: Any, scale: Any, zero: Any) -> Any:
        return b.cast(dequantize_element(b, data(*i), at(scale, i, self.axis), at(zero, i, self.axis)), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        scale, zero = _placed(inputs[1:], types[1:], self.axis, types[0])
        return (inputs[0].astype("int32") - zero).astype("float32") * scale  # type: ignore[attr-defined]

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((2, 3), "int8")
        each = np.array([0.1, 0.02, 0.3], "float32"), np.array([0, 4, -2], "int32")
        return [
            sample(data, np.float32(0.5), np.int32(-3), low=-128, high=127),
            sample(data, *each, low=-128, high=127),
        ]


@quantized_op(
    "qnn.requantize",
    inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    attrs_key="Requantize",
)
class requantize(Quantized):
    """Integers of one scale as integers of another: (data - zero) * scale / new_scale, rounded half up ("UPWARD", the
    default) or half away from 0 ("TONEAREST"), moved and clamped.
    """

    axis: int = -1
    rounding: str = "None"
    compute_dtype: str = "None"
    out_dtype: Dtype = None
    defaults = {"out_dtype": "int8"}
    roundings: ClassVar[tuple[str, ...]] = ("None", "UPWARD", "TONEAREST")

    def relation(self, s: Any, data: Type, scale: Type, zero: Type, new_scale: Type, new_zero: Type) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, input_scale=scale, input_zero_point=zero)
        check_parameters(s, data, self.axis, output_scale=new_scale, output_zero_point=new_zero)
        if self.rounding not in self.roundings:
            s.fail(f'rounding must be UPWARD or TONEAREST, not "{self.rounding}"')
        shape = found and rules.integers(s, found, "data").shape
        return found and rules.integers(s, TensorType(shape, self.out_dtype or "int8"), "the result")

    def reference(self, data: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        scale, zero, new_scale, new_zero = (along(p, self.axis, data.ndim) for p in parameters)
        value = (data.astype("float64") - zero) * (scale.astype("float64") / new_scale.astype("float64"))
        whole = np.floor(value + 0.5)
        if self.rounding == "TONEAREST":
            whole = np.copysign(np.floor(np.abs(value) + 0.5), value)
        dtype = self.out_dtype or "int8"
        return np.clip(whole + new_zero, *limits(dtype)).astype(dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, *parameters: Any) -> Any:
        scale, zero, new_scale, new_zero = (b.cast(at(p, i, self.axis), "float64") for p in parameters)
        value = (b.cast(data(*i), "float64") - zero) * (scale / new_scale)
        whole = b.floor(value + 0.5)
        if self.rounding == "TONEAREST":
            whole = b.select(value < 0.0, -b.floor(0.5 - value), whole)
        low, high = limits(out.dtype)
        return b.cast(b.min(b.max(whole + new_zero, float(low)), float(high)), out.dtype)

    def canonicalize(self, inputs: list[Expr], types: list[Type]) -> Expr | None:
        scale, zero, new_scale, new_zero = _placed(inputs[1:], types[1:], self.axis, types[0])
        value = (inputs[0].astype("int32") - zero).astype("float64")  # type: ignore[attr-defined]
        value = value * (scale.astype("float64") / new_scale.astype("float64"))  # type: ignore[attr-defined]
        half = const(0.5, "float64")
        whole = call_operator("floor", value + half)
        if self.rounding == "TONEAREST":
            whole = call_operator("sign", value) * call_operator("floor", call_operator("abs", value) + half)
        low, high = limits(self.out_dtype or "int8")
        moved = whole + new_zero.astype("float64")  # type: ignore[attr-defined]
        return call_operator("clip", moved, a_min=low, a_max=high).astype(self.out_dtype or "int8")

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((2, 3), "int32")
        one = (np.float32(0.5), np.int32(0), np.float32(2.0), np.int32(3))
        each = (np.array([0.5, 0.25, 1.0], "float32"), np.int32(1), np.float32(2.0), np.int32(0))
        return [
            sample(data, *one, low=-700, high=700),
            sample(data, *one, rounding="TONEAREST", out_dtype="int32", low=-50, high=50),
            sample(data, *each, axis=1, out_dtype="uint8", low=-50, high=900),
        ]
