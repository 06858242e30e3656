"""Simulated quantisation in floats: what quantised arithmetic would lose."""

from __future__ import annotations

import numpy as np

from relaylab.ir.expr import Call, Expr
from relaylab.ir.leaves import const
from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import SCALAR_OPS
from relaylab.op import rules
from relaylab.op.base import Elementwise, Input, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.qnn.arithmetic import ARRAYS, along, limits, steps
from relaylab.op.qnn.scale import SOURCE, at, check_parameters, scale_of, zero_of
from relaylab.support.errors import RelayValueError

CODES = {1: "int8", 2: "uint8", 3: "int32"}
"""What the data type operand of the simulating operators means; 0 switches them off."""

TYPE = 'the simulated type: "int8", "uint8", "int32" or "disable", or an int32 scalar with its code (1, 2, 3; 0)'


def coded(dtype: str | Expr) -> Expr:
    """A simulated data type as the operators take it; `RelayValueError` for others."""
    if isinstance(dtype, Expr):
        return dtype
    codes = {"disable": 0, **{name: k for k, name in CODES.items()}}
    if dtype not in codes:
        raise RelayValueError(f"{dtype!r} cannot be simulated", code="qnn.simulated-dtype", help=", ".join(codes))
    return const(codes[dtype], "int32")


class Simulated(Elementwise):
    """A quantisation step in floats; the data type is a scalar operand."""

    axis: int = attr(-1, "the axis of data along which scales and zero points lie, if they are vectors")
    level = 11
    source = SOURCE

    @staticmethod
    def wide(dtype: str) -> str:
        """The data type in which the arithmetic is done."""
        return "float64" if dtype == "float64" else "float32"

    def relation(self, s: TypeSolver, data: Type, code: Type, scale: Type, zero: Type) -> Type | None:
        if (found := rules.tensor(s, code, self.inputs[1])) is not None:
            rules.integers(s, rules.scalar(s, found, self.inputs[1]), self.inputs[1])
        data_type = rules.tensor(s, s.unify(data, s.out))
        check_parameters(s, data_type or data, self.axis, **dict(zip(self.inputs[2:], (scale, zero))))
        return data_type and rules.floats(s, data_type)

    @classmethod
    def samples(cls) -> list[Sample]:
        code = lambda k: np.array(k, "int32")
        each = np.array([0.1, 0.02, 0.3], "float32"), np.array([0, 4, -2], "int32")
        return [sample((4, 3), code(k), np.float32(0.05), np.int32(3), low=-9, high=9) for k in (0, 1, 2, 3)] + [
            sample((4, 3), code(1), *each)
        ]


@op("qnn.simulated_quantize", attrs_key="SimulatedQuantize")
class simulated_quantize(Simulated):
    """qnn.quantize with its result kept in floats."""

    data: Input = arg("the real numbers", "any", "floats")
    out_dtype: Input = arg("the simulated type: 1 int8, 2 uint8, 3 int32; 0 leaves data as it is", "()", "int32")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    extra = {"out_dtype": TYPE}

    @classmethod
    def build(
        cls, data: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1, out_dtype: str | Expr = "int8"
    ) -> Call:
        return cls.call(data, coded(out_dtype), output_scale, output_zero_point, axis=axis)

    def reference(self, data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        if int(code.reshape(())) not in CODES:
            return data
        low, high = limits(CODES[int(code.reshape(()))])
        wide, (step, shift) = self.wide(data.dtype.name), (along(p, self.axis, data.ndim) for p in (scale, zero))
        moved = steps(ARRAYS, data.astype(wide), step, wide) + shift.astype(wide)
        return np.asarray(np.clip(moved, low, high)).astype(data.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, code: Readable, scale: Readable, zero: Readable
    ) -> Element:
        x, kind = data(*i), b.load_index(code(*[0] * len(code.shape)))
        wide = self.wide(out.dtype)
        q = steps(b, b.cast(x, wide), at(scale, i, self.axis), wide) + b.cast(at(zero, i, self.axis), wide)
        value = x
        for number, dtype in CODES.items():
            low, high = map(float, limits(dtype))
            value = b.select(b.eq(kind, number), b.cast(b.min(b.max(q, low), high), out.dtype), value)
        return value


@op("qnn.simulated_dequantize", attrs_key="Dequantize")
class simulated_dequantize(Simulated):
    """qnn.dequantize of integers kept in floats."""

    data: Input = arg("integers, kept in floats", "any", "floats")
    in_dtype: Input = arg("the simulated type: 1 int8, 2 uint8, 3 int32; 0 leaves data as it is", "()", "int32")
    input_scale: Input = scale_of("data")
    input_zero_point: Input = zero_of("data")
    extra = {"in_dtype": TYPE}

    @classmethod
    def build(
        cls, data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, in_dtype: str | Expr = "int8"
    ) -> Call:
        return cls.call(data, coded(in_dtype), input_scale, input_zero_point, axis=axis)

    def reference(self, data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        if int(code.reshape(())) not in CODES:
            return data
        real = (data.astype("float64") - along(zero, self.axis, data.ndim)) * along(scale, self.axis, data.ndim)
        return real.astype(data.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, code: Readable, scale: Readable, zero: Readable
    ) -> Element:
        x, kind = data(*i), b.load_index(code(*[0] * len(code.shape)))
        factor, shift = (b.cast(at(p, i, self.axis), "float64") for p in (scale, zero))
        real = b.cast((b.cast(x, "float64") - shift) * factor, out.dtype)
        return b.select(b.all_of(kind >= 1, kind <= 3), real, x)


@op("relay.op.annotation.simulated_quantize", level=11, attrs_key="SimulatedQuantize")
class annotated_quantize(Elementwise):
    """round(clip(data / dom_scale, clip_min, clip_max)) * dom_scale: quantisation as the quantize pass simulates it."""

    data: Input = arg("the real numbers", "any", "floats")
    dom_scale: Input = arg("the real number that one step stands for", "()", "float32")
    clip_min: Input = arg("the least number of steps", "()", "float32")
    clip_max: Input = arg("the greatest number of steps", "()", "float32")
    kind: int = attr(
        doc="what data is to the network: 0 anything, 1 an input, 2 a weight, 3 an activation; for reading"
    )
    sign: bool = attr(True, "whether the integers would have a sign; for reading")
    rounding: str = attr("round", 'how steps are made whole: "round" to the nearest, halves away from 0; else down')
    source = "the quantize pass of Relay; Jacob et al., 2018"

    def relation(self, s: TypeSolver, data: Type, *parameters: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        for p in parameters:
            s.unify(p, TensorType((), "float32"))
        return rules.floats(s, found)

    def reference(self, data: np.ndarray, scale: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        rounding = SCALAR_OPS["round" if self.rounding == "round" else "floor"].meaning
        return (rounding(np.clip(data / scale, low, high)) * scale).astype(data.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, scale: Readable, low: Readable, high: Readable
    ) -> Element:
        rounding = b.round if self.rounding == "round" else b.floor
        step = b.cast(scale(), out.dtype)
        value = data(*i) / step
        return rounding(b.min(b.max(value, b.cast(low(), out.dtype)), b.cast(high(), out.dtype))) * step

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), np.float32(0.25), np.float32(-5), np.float32(4), kind=1)]
