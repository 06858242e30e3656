"""Activation functions, softmax and their fast forms."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.op import rules
from relaylab.op.base import Broadcast, Elementwise, Input, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length, place
from relaylab.op.tensor.unary import UnaryScalar
from relaylab.op.tensor.unary import exp as _exp


@op("nn.relu", level=1)
class relu(Elementwise):
    """Rectified linear unit: max(x, 0)."""

    source = "Nair and Hinton, Rectified linear units improve restricted Boltzmann machines, 2010; ONNX Relu"

    def reference(self, data: np.ndarray) -> np.ndarray:
        # numpy's maximum of two zeros may be either
        return np.where(data < 0, data.dtype.type(0), data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.max(x, 0)

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample(TensorType((3, 4), "int8"), low=-128, high=127)]


@op("nn.leaky_relu", level=3, attrs_key="LeakyRelu")
class leaky_relu(Elementwise):
    """Leaky rectified linear unit: x where x > 0, else alpha * x."""

    defaults = {"alpha": 0.01}

    data: Input = arg("the tensor whose elements are taken one by one", dtype="floats")
    alpha: float = attr(0.25, "the slope where data is not above 0")
    source = (
        "Maas, Hannun and Ng, Rectifier nonlinearities improve neural network acoustic models, 2013; ONNX LeakyRelu"
    )

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, s.unify(data, s.out))
        return found and rules.floats(s, found)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.where(data > 0, data, data * data.dtype.type(self.alpha))

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.select(x > 0, x, x * self.alpha)

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample((2, 3), alpha=0.5)]


@op("nn.prelu", level=3, attrs_key="PRelu")
class prelu(Broadcast):
    """Leaky rectified linear unit with one slope per position of `axis`: x where x > 0, else alpha[c] * x."""

    data: Input = arg("the tensor whose elements are taken one by one", dtype="any but bool")
    alpha: Input = arg(
        "one slope per position of `axis`; typed by data if untyped", "(data.shape[axis],)", "that of data"
    )
    axis: int = attr(1, "the axis of data along which the slopes lie; negative ones count from the end")
    yields = "the shape of data, and its dtype"
    source = "He, Zhang, Ren and Sun, Delving deep into rectifiers, 2015"

    def relation(self, s: TypeSolver, data: Type, alpha: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        axis = rules.axis(s, self.axis, len(found.shape), "axis of nn.prelu")
        s.unify(alpha, TensorType((found.shape[axis],), found.dtype))
        return rules.numbers(s, found)

    def reference(self, data: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        slope = alpha.reshape([-1 if d == self.axis % data.ndim else 1 for d in range(data.ndim)])
        return np.where(data > 0, data, data * slope)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, alpha: Readable) -> Element:
        x = data(*i)
        return b.select(x > 0, x, x * alpha(i[self.axis % len(i)]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), (3,)), sample((2, 3, 4), (4,), axis=-1), sample((5,), (5,), axis=0)]


class AlongAxis(OutElementwiseFusable):
    """A function of all elements along one axis; the shape stays."""

    axis: int = attr(-1, "the axis along which the function is taken; negative ones count from the end")
    data: Input = arg("the tensor, whose lines along `axis` are taken one by one", dtype="floats")
    yields = "the shape of data, and its dtype"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, s.unify(data, s.out))
        if found is not None:
            rules.axis(s, self.axis, len(rules.floats(s, found).shape), f"axis of {self.op_name}")
        return found

    def shifted(self, data: np.ndarray) -> np.ndarray:
        """`data` in float64 less its largest element along the axis."""
        wide = data.astype("float64")
        return wide - wide.max(axis=self.axis, keepdims=True, initial=-np.inf)

    def reader(self, b: ElementBuilder, i: Index, data: Readable) -> tuple[Any, Any, int]:
        """A reader along the axis, the largest element there, and the extent."""
        axis = self.axis % len(i)
        extent = length(data.shape[axis])
        read = lambda k: data(*place(i, axis, k))
        return read, b.rmax(extent, read), extent

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 5), low=-30, high=30),
            sample((2, 3, 4), axis=1),
            sample((7,), axis=0),
            sample((2, 1, 3), axis=-2),
            sample(TensorType((2, 6), "float16")),
            sample(TensorType((2, 6), "bfloat16")),
        ]


@op("nn.softmax", level=1, attrs_key="Softmax")
class softmax(AlongAxis):
    """exp(x) / sum(exp(x)) along an axis, with the largest x subtracted first."""

    source = "Bridle, Training stochastic model recognition algorithms as networks, 1990; ONNX Softmax"

    def reference(self, data: np.ndarray) -> np.ndarray:
        e = np.exp(self.shifted(data))
        return (e / e.sum(axis=self.axis, keepdims=True)).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        read, top, extent = self.reader(b, i, data)
        here, total = b.exp(data(*i) - top), b.sum(extent, lambda k: b.exp(read(k) - top))
        # One division for the row, and a rounding more; a float of 16 bits has no reciprocal of a large sum.
        return here * (1 / total) if out.dtype in ("float32", "float64") else here / total


@op("nn.fast_softmax", level=1, attrs_key="Softmax")
class fast_softmax(softmax.definition):
    """Softmax for which the exponential may be approximated; computed like nn.softmax."""

    source = "TVM 0.10, the pass FastMath, for nn.softmax"


@op("nn.log_softmax", level=1, attrs_key="Softmax")
class log_softmax(AlongAxis):
    """x - log(sum(exp(x))) along an axis, with the largest x subtracted first."""

    source = "Blanchard et al., Accurately computing the log-sum-exp and softmax functions, 2021; ONNX LogSoftmax"

    def reference(self, data: np.ndarray) -> np.ndarray:
        x = self.shifted(data)
        return (x - np.log(np.exp(x).sum(axis=self.axis, keepdims=True))).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        read, top, extent = self.reader(b, i, data)
        return data(*i) - top - b.log(b.sum(extent, lambda k: b.exp(read(k) - top)))


@op("fast_exp", level=1)
class fast_exp(_exp.definition):
    """Exponential that may be approximated; computed like exp."""

    source = "TVM 0.10, the pass FastMath, for exp"


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """The polynomial with these coefficients, highest power first, at `x`."""
    value = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        value = value * x + c
    return value


class Rational(UnaryScalar):
    """x * p(x^2) / q(x^2) on a clipped range; other types than float32 are computed exactly."""

    limit: ClassVar[float]
    top: ClassVar[tuple[float, ...]]
    bottom: ClassVar[tuple[float, ...]]

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        if x.dtype != "float32":
            return super().scalar(b, x)
        x = b.min(b.max(x, -self.limit), self.limit)
        square = x * x
        return x * _horner(square, self.top) / _horner(square, self.bottom)


@op("fast_tanh", level=1)
class fast_tanh(Rational):
    """Hyperbolic tangent by a rational approximation on -9 .. 9 (absolute error below 1e-6 in float32)."""

    source = "the coefficients of Eigen's and TVM's tanh of float32; TVM 0.10, the pass FastMath, for tanh"
    function = "tanh"
    limit = 9.0
    top = (
        *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
        *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    )
    bottom = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


@op("fast_erf", level=1)
class fast_erf(Rational):
    """Error function by a rational approximation on -4 .. 4 (absolute error below 1e-6 in float32)."""

    source = "the coefficients of Eigen's and TVM's erf of float32; TVM 0.10, the pass FastMath, for erf"
    function = "erf"
    limit = 4.0
    top = (
        *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
        *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
    )
    bottom = (
        *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
        *(-7.37332916720468e-03, -1.42647390514189e-02),
    )
