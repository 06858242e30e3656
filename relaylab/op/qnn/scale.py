"""The quantized dialect, between floats and integers: qnn.quantize, qnn.dequantize, qnn.requantize.

A quantized value q stands for the real number (q - zero_point) * scale; scale and zero point are scalars or, with an
axis, one number per position. `canonicalize` writes an operator with ordinary ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar, TypeVar

import numpy as np

from relaylab.ir.expr import Expr, ExprWithOp
from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.builder import OperatorBuilder
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.qnn.arithmetic import (
    ARRAYS,
    EXPRS,
    N,
    Numbers,
    along,
    along_expr,
    as_type,
    real,
    requantized,
    requantized_float,
    saturated,
    whole,
)
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError

CANONICALIZE = "FTVMQnnCanonicalize"
SOURCE = (
    "the QNN dialect of Relay; Jacob et al., Quantization and Training of Neural Networks for Efficient "
    "Integer-Arithmetic-Only Inference, CVPR 2018"
)
ROUNDINGS = ("UPWARD", "TONEAREST")
COMPUTED = ("int64", "float32", "float64")
SHAPE = "() or (1,), or one number per position of its axis"


def scale_of(tensor: str, shape: str = SHAPE, more: str = "") -> Input:
    """The description of an input that is the scale of a quantized tensor."""
    return arg(f"the real number that one step of {tensor} stands for{more}", shape, "float32")


def zero_of(tensor: str, shape: str = SHAPE) -> Input:
    """The description of an input that is the zero point of a quantized tensor."""
    return arg(f"the integer that stands for 0 in {tensor}", shape, "int32")


class Quantized(Opaque):
    """An operator of the quantized dialect; passes write it with ordinary operators before code is made."""

    level = 11
    computes = False
    source = SOURCE

    def canonicalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        """The same written with ordinary operators, for typed inputs (the last type is the result's)."""
        return None


def tail(i: Index, x: Readable) -> Index:
    """The last positions of an index, as many as `x` has axes."""
    return i[len(i) - len(x.shape) :]


def at(x: Any, i: Index, axis: int) -> Any:
    """The parameter for the element at index `i` as a loop-level expression."""
    if not x.shape:
        return x()
    return x(0) if x.shape == (1,) else x(i[axis % len(i)])


class Computed(Quantized):
    """An operator that computes element by element: `compute` says once what reference, loops and program do.

    The first `tensors` inputs are quantized tensors or real numbers, the others scales and zero points.
    """

    tensors: ClassVar[int] = 1

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        """The result, of `dtype`, for tensors of data type `given` and parameters that broadcast with them."""
        raise NotImplementedError

    def lies(self) -> Iterable[tuple[int | None, int]]:
        """Of which tensor (None: the result) and along which axis each parameter is."""
        return repeat((None, -1))

    def result(self, given: str) -> str:
        """The data type of the result."""
        return given

    def reference(self, *arrays: np.ndarray) -> np.ndarray:
        tensors, given = arrays[: self.tensors], arrays[0].dtype.name
        rank = lambda k: 1 if k is None else tensors[k].ndim
        parameters = [along(p, axis, rank(k)) for p, (k, axis) in zip(arrays[self.tensors :], self.lies())]
        with np.errstate(all="ignore"):
            return np.asarray(self.compute(ARRAYS, given, self.result(given), *tensors, *parameters))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, *ins: Readable) -> Element:
        tensors = ins[: self.tensors]
        where = [tuple(b.index(0) if int(n) == 1 else j for n, j in zip(x.shape, tail(i, x))) for x in tensors]
        place = lambda k: i if k is None else where[k]
        parameters = [at(p, place(k), axis) for p, (k, axis) in zip(ins[self.tensors :], self.lies())]
        values = [x(*w) for x, w in zip(tensors, where)]
        return self.compute(b, tensors[0].dtype, out.dtype, *values, *parameters)

    def canonicalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        rank = lambda k: len(types[-1].shape[-1:] if k is None else types[k].shape)
        parameters = [
            along_expr(p, axis, rank(k), t.shape)
            for p, t, (k, axis) in zip(inputs[self.tensors :], types[self.tensors :], self.lies())
        ]
        given = types[0].dtype
        return self.compute(EXPRS, given, self.result(given), *inputs[: self.tensors], *parameters)


D = TypeVar("D", bound=Quantized)


def quantized_op(name: str, **facts: Any) -> Callable[[type[D]], OperatorBuilder[D]]:
    """`op` for an operator of the dialect: also tells the passes how to write it with ordinary operators."""

    def register(cls: type[D]) -> OperatorBuilder[D]:
        builder = op(name, **facts)(cls)
        cls.op.set_attr(CANONICALIZE, lambda attrs, inputs, types: attrs.canonicalize(inputs, types))
        return builder

    return register


def check_parameters(s: TypeSolver, data: Type, axis: int, **parameters: Type) -> None:
    """Scales must be float32 and zero points int32: one number, or one for each position of `axis` of `data`."""
    for name, t in parameters.items():
        kind, found = "float32" if "scale" in name else "int32", rules.tensor(s, t, name)
        if found is not None and (kind != found.dtype or len(found.shape) > 1):
            s.fail(f"`{name}` must be a scalar or a vector of {kind}, not {type_text(found)}")
        if found is not None and found.shape and found.shape[0] != 1 and isinstance(data, TensorType):
            extent = data.shape[rules.axis(s, axis, len(data.shape), f"the axis of `{name}`")]
            rules.equal_dims(s, found.shape[0], extent, f"`{name}` and axis {axis} of {type_text(data)}")


@checked
@dataclass(frozen=True)
class RequantizeConfig:
    """How requantizations that do not say it round, and in which type they compute; see `requantize_config`."""

    rounding: str = "UPWARD"
    compute_dtype: str = "int64"

    def __enter__(self) -> RequantizeConfig:
        _CONFIGS.set((*_CONFIGS.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _CONFIGS.set(_CONFIGS.get()[:-1])


_CONFIGS: ContextVar[tuple[RequantizeConfig, ...]] = ContextVar("requantize_config", default=(RequantizeConfig(),))


def current_requantize_config() -> RequantizeConfig:
    """The configuration of the innermost block, or that without one: UPWARD, int64."""
    return _CONFIGS.get()[-1]


def requantize_config(rounding: str = "None", compute_dtype: str = "None") -> RequantizeConfig:
    """Within `with`, how requantizations with rounding or compute_dtype "None" do it: "UPWARD" or "TONEAREST" (halves
    away from 0), in "int64" (fixed-point), "float32" or "float64"; "None" here is what holds outside.

    That is asked when a program is interpreted or lowered (`QnnCanonicalizeOps`, `relay.build`); where QnnLegalize is
    disabled the attributes alone count. `RelayValueError` for other values.
    """
    kinds = {"rounding": (rounding, ROUNDINGS), "compute_dtype": (compute_dtype, COMPUTED)}
    for name, (value, known) in kinds.items():
        if value not in ("None", *known):
            raise RelayValueError(f"{name} is one of {', '.join(known)}, not {value!r}", code="qnn.requantize-config")
    return replace(current_requantize_config(), **{n: v for n, (v, _) in kinds.items() if v != "None"})


@quantized_op("qnn.quantize", attrs_key="Quantize", parameters="data output_scale output_zero_point axis out_dtype")
class quantize(Computed):
    """round(data / scale) + zero_point, clamped to the integer type; divided in float32, or float64 if data is."""

    data: Input = arg("the real numbers", "any", "floats")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    out_dtype: Dtype = attr(doc="the integer type of the result")
    axis: int = attr(-1, "the axis of data along which scales and zero points lie, if they are vectors")
    yields = "the shape of data, of `out_dtype`"
    defaults = {"out_dtype": "int8"}

    def relation(self, s: TypeSolver, data: Type, scale: Type, zero: Type) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, output_scale=scale, output_zero_point=zero)
        if found is not None and "float" not in found.dtype:
            s.fail(f"qnn.quantize takes floats, not {found.dtype}")
        return found and rules.integers(s, TensorType(found.shape, self.out_dtype or "int8"), "the result")

    def lies(self) -> Iterable[tuple[int | None, int]]:
        return repeat((0, self.axis))

    def result(self, given: str) -> str:
        return self.out_dtype or "int8"

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        x, scale, zero = values
        wide = "float64" if given == "float64" else "float32"
        return whole(b, as_type(b, x, given, wide), scale, zero, dtype, wide)

    @classmethod
    def samples(cls) -> list[Sample]:
        scale, zero = np.float32(0.05), np.int32(3)
        each = np.array([0.1, 0.02, 0.3], "float32"), np.array([0, 4, -2], "int32")
        return [
            sample((3, 4), scale, zero, out_dtype="int8"),
            sample((2, 3, 4), *each, axis=1, out_dtype="uint8", low=-1, high=6),
        ]


@quantized_op("qnn.dequantize", attrs_key="Dequantize")
class dequantize(Computed):
    """(data - zero_point) * scale, as float32."""

    data: Input = arg("the quantized tensor", "any", "integers")
    input_scale: Input = scale_of("data")
    input_zero_point: Input = zero_of("data")
    axis: int = attr(-1, "the axis of data along which scales and zero points lie, if they are vectors")
    yields = "the shape of data, float32"

    def relation(self, s: TypeSolver, data: Type, scale: Type, zero: Type) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, input_scale=scale, input_zero_point=zero)
        return found and TensorType(rules.integers(s, found, "data").shape, "float32")

    def lies(self) -> Iterable[tuple[int | None, int]]:
        return repeat((0, self.axis))

    def result(self, given: str) -> str:
        return "float32"

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        return real(b, *values)

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((2, 3), "int8")
        each = np.array([0.1, 0.02, 0.3], "float32"), np.array([0, 4, -2], "int32")
        return [
            sample(data, np.float32(0.5), np.int32(-3), low=-128, high=127),
            sample(data, *each, low=-128, high=127),
        ]


@quantized_op("qnn.requantize", attrs_key="Requantize")
class requantize(Computed):
    """Integers of one scale as integers of another: (data - zero) * scale / new_scale, rounded half up ("UPWARD", the
    default) or half away from 0 ("TONEAREST"), moved and clamped. The ratio is a fixed-point number of 31 bits, or
    a float with all that follows (`compute_dtype`).
    """

    data: Input = arg("the quantized tensor", "any", "integers")
    input_scale: Input = scale_of("data")
    input_zero_point: Input = zero_of("data")
    output_scale: Input = scale_of("the result")
    output_zero_point: Input = zero_of("the result")
    axis: int = attr(-1, "the axis of data along which scales and zero points lie, if they are vectors")
    rounding: str = attr("None", 'where halves go: "UPWARD" or "TONEAREST" (away from 0); "None" is UPWARD')
    compute_dtype: str = attr("None", 'in which type: "int64", "float32" or "float64"; "None" is int64')
    out_dtype: Dtype = attr(None, "the integer type of the result; None: int8")
    yields = "the shape of data, of `out_dtype`"
    defaults = {"out_dtype": "int8"}

    def relation(
        self, s: TypeSolver, data: Type, scale: Type, zero: Type, new_scale: Type, new_zero: Type
    ) -> Type | None:
        found = rules.tensor(s, data)
        check_parameters(s, data, self.axis, input_scale=scale, input_zero_point=zero)
        check_parameters(s, data, self.axis, output_scale=new_scale, output_zero_point=new_zero)
        if self.rounding not in ("None", *ROUNDINGS):
            s.fail(f'rounding must be UPWARD or TONEAREST, not "{self.rounding}"')
        if self.compute_dtype not in ("None", *COMPUTED):
            s.fail(f'compute_dtype must be one of {", ".join(COMPUTED)}, not "{self.compute_dtype}"')
        if found is None:
            return None
        shape = rules.integers(s, found, "data").shape
        return rules.integers(s, TensorType(shape, self.out_dtype or "int8"), "the result")

    def lies(self) -> Iterable[tuple[int | None, int]]:
        return repeat((0, self.axis))

    def result(self, given: str) -> str:
        return self.out_dtype or "int8"

    def compute(self, b: Numbers, given: str, dtype: str, *values: N) -> N:
        # kernels are kept beyond a `with`: they know the attributes only
        config = current_requantize_config() if b is ARRAYS or b is EXPRS else RequantizeConfig()
        rounding = config.rounding if self.rounding == "None" else self.rounding
        kind = config.compute_dtype if self.compute_dtype == "None" else self.compute_dtype
        if kind == "int64":
            return saturated(b, requantized(b, *values, rounding=rounding), dtype)
        exact = "float64" if np.dtype(dtype).itemsize > 2 else kind  # in which the limits are numbers
        moved = requantized_float(b, *values, rounding=rounding, wide=kind)
        return saturated(b, as_type(b, moved, kind, exact), dtype, exact)

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((2, 3), "int32")
        one = (np.float32(0.5), np.int32(0), np.float32(2.0), np.int32(3))
        each = (np.array([0.5, 0.25, 1.0], "float32"), np.int32(1), np.float32(2.0), np.int32(0))
        return [
            sample(data, *one, low=-700, high=700),
            sample(data, *one, rounding="TONEAREST", out_dtype="int32", low=-50, high=50),
            sample(data, *one, rounding="TONEAREST", compute_dtype="float64", low=-50, high=50),
            sample(data, *each, axis=1, out_dtype="uint8", low=-50, high=900),
        ]
