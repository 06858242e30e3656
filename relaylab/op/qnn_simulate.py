"""Simulated quantisation in floats: what quantised arithmetic would lose."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.op import rules
from relaylab.op.base import Elementwise, Sample, op, sample
from relaylab.op.qnn_scale import along, at, check_parameters, limits

CODES = {1: "int8", 2: "uint8", 3: "int32"}
"""What the data type operand of the simulating operators means; 0 switches them off."""


class Simulated(Elementwise):
    """A quantisation step in floats; the data type is a scalar operand."""

    axis: int = -1
    level = 11

    def relation(self, s: Any, data: Type, code: Type, scale: Type, zero: Type) -> Type | None:
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


@op(
    "qnn.simulated_quantize",
    inputs=("data", "out_dtype", "output_scale", "output_zero_point"),
    attrs_key="SimulatedQuantize",
)
class simulated_quantize(Simulated):
    """qnn.quantize with its result kept in floats."""

    def reference(self, data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        if int(code.reshape(())) not in CODES:
            return data
        low, high = limits(CODES[int(code.reshape(()))])
        value = np.rint(data.astype("float64") / along(scale, self.axis, data.ndim).astype("float64"))
        return np.clip(value + along(zero, self.axis, data.ndim), low, high).astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, code: Any, scale: Any, zero: Any) -> Any:
        x, kind = data(*i), b.load_index(code(*[0] * len(code.shape)))
        q = b.round(b.cast(x, "float64") / b.cast(at(scale, i, self.axis), "float64")) + b.cast(
            at(zero, i, self.axis), "float64"
        )
        value = x
        for number, dtype in CODES.items():
            low, high = map(float, limits(dtype))
            value = b.select(b.eq(kind, number), b.cast(b.min(b.max(q, low), high), out.dtype), value)
        return value


@op("qnn.simulated_dequantize", inputs=("data", "in_dtype", "input_scale", "input_zero_point"), attrs_key="Dequantize")
class simulated_dequantize(Simulated):
    """qnn.dequantize of integers kept in floats."""

    def reference(self, data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        if int(code.reshape(())) not in CODES:
            return data
        real = (data.astype("float64") - along(zero, self.axis, data.ndim)) * along(scale, self.axis, data.ndim)
        return real.astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, code: Any, scale: Any, zero: Any) -> Any:
        x, kind = data(*i), b.load_index(code(*[0] * len(code.shape)))
        scale, zero = (b.cast(at(p, i, self.axis), "float64") for p in (scale, zero))
        real = b.cast((b.cast(x, "float64") - zero) * scale, out.dtype)
        return b.select(b.all_of(kind >= 1, kind <= 3), real, x)


@op(
    "relay.op.annotation.simulated_quantize",
    inputs=("data", "dom_scale", "clip_min", "clip_max"),
    level=11,
    attrs_key="SimulatedQuantize",
)
class annotated_quantize(Elementwise):
    """clip(round(data / dom_scale), clip_min, clip_max) * dom_scale: quantisation as the quantize pass simulates it."""

    kind: int
    sign: bool = True
    rounding: str = "round"

    def relation(self, s: Any, data: Type, *parameters: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        for p in parameters:
            s.unify(p, TensorType((), "float32"))
        return rules.floats(s, found)

    def reference(self, data: np.ndarray, scale: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        rounding = np.rint if self.rounding == "round" else np.floor
        return (np.clip(rounding(data / scale), low, high) * scale).astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, scale: Any, low: Any, high: Any) -> Any:
        rounding = b.round if self.rounding == "round" else b.floor
        step = b.cast(scale(), out.dtype)
        value = rounding(data(*i) / step)
        return b.min(b.max(value, b.cast(low(), out.dtype)), b.cast(high(), out.dtype)) * step

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), np.float32(0.25), np.float32(-5), np.float32(4), kind=1)]
