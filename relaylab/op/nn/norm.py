"""Normalisation with a learned scale and shift: batch, layer, instance and group norm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.ir.expr import Call, TupleWrapper
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Input, Operator, OpPattern, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Body, Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length, place


def along(x: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector as a tensor of `rank` that has it along one axis."""
    return x.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


class Affine(Operator):
    """A normalisation followed by a scale (gamma) and a shift (beta) per position of `axis`."""

    data: Input = arg("what is normalised", "(..., C, ...), with C along `axis`", "floats")
    gamma: Input = arg("the scale per position of `axis`; typed by data if untyped", "(C,)", "that of data")
    beta: Input = arg("the shift per position of `axis`; typed by data if untyped", "(C,)", "that of data")
    axis: int = attr(1, "the axis along which gamma and beta lie; negative ones count from the end")
    epsilon: float = attr(1e-5, "what is added to the variance, against division by 0")
    center: bool = attr(True, "whether beta is added")
    scale: bool = attr(True, "whether the result is multiplied by gamma")
    yields = "the shape of data, and its dtype"

    def affine(self, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """x * gamma + beta."""
        x = x * along(gamma, self.axis, x.ndim) if self.scale else x
        return x + along(beta, self.axis, x.ndim) if self.center else x

    def affine_element(self, x: Element, i: Index, gamma: Readable, beta: Readable) -> Element:
        """x * gamma + beta for the element at index `i`."""
        c = i[self.axis % len(i)]
        x = x * gamma(c) if self.scale else x
        return x + beta(c) if self.center else x

    def vectors(self, s: TypeSolver, data: Type, *vectors: Type) -> TensorType | None:
        """The type of `data`; every vector gets its type from `axis`."""
        found = rules.tensor(s, data)
        if found is None:
            return None
        axis = rules.axis(s, self.axis, len(rules.floats(s, found).shape), f"axis of {self.op_name}")
        for v in vectors:
            s.unify(v, TensorType((found.shape[axis],), found.dtype))
        return found


@op("nn.batch_norm", inputs=("data", "gamma", "beta", "moving_mean", "moving_var"), level=1, attrs_key="BatchNorm")
class batch_norm(Affine):
    """(data - mean) / sqrt(var + epsilon) * gamma + beta per position of `axis`, with given mean and variance
    (inference). Gives a tuple: the result, the mean, the variance.
    """

    moving_mean: Input = arg("the mean per position of `axis`; typed by data if untyped", "(C,)", "that of data")
    moving_var: Input = arg("the variance per position of `axis`; typed by data if untyped", "(C,)", "that of data")
    pattern = OpPattern.OUT_ELEMWISE_FUSABLE
    yields = "a tuple: the shape of data, (C,) and (C,), all of the dtype of data"
    source = "Ioffe and Szegedy, Batch normalization, 2015; ONNX BatchNormalization"

    def relation(self, s: TypeSolver, data: Type, *vectors: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        if not -1 <= self.axis < len(found.shape):
            last = len(found.shape) - 1
            s.fail(
                f"axis {self.axis} of nn.batch_norm is out of range for {type_text(found)}",
                help=f"it can be -1 .. {last}",
            )
        vector = TensorType((rules.floats(s, found).shape[self.axis],), found.dtype)
        for v in vectors:
            s.unify(v, vector)
        return TupleType([found, vector, vector])

    def reference(self, data: np.ndarray, *vectors: np.ndarray) -> tuple[np.ndarray, ...]:
        gamma, beta, mean, var = (v.astype("float64") for v in vectors)
        deviation = np.sqrt(along(var, self.axis, data.ndim) + self.epsilon)
        x = (data - along(mean, self.axis, data.ndim)) / deviation
        return self.affine(x, gamma, beta).astype(data.dtype), vectors[2].copy(), vectors[3].copy()

    def lower(
        self,
        b: ElementBuilder,
        out: OutSpec,
        i: Index,
        data: Readable,
        gamma: Readable,
        beta: Readable,
        mean: Readable,
        var: Readable,
    ) -> Element:
        if out.field:
            return (mean, var)[out.field - 1](*i)
        c = i[self.axis % len(i)]
        return self.affine_element((data(*i) - mean(c)) / b.sqrt(var(c) + self.epsilon), i, gamma, beta)

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        c, positive = (3,), {"low": 0.1, "high": 2.0}
        return [
            sample((2, 3, 4, 5), c, c, c, c, **positive),
            sample((2, 4, 3), c, c, c, c, axis=-1, epsilon=2e-5, scale=False, **positive),
            sample((2, 3), c, c, c, c, center=False, **positive),
        ]


class Moments(Affine):
    """A normalisation by mean and variance over some axes of each sample."""

    def reduced(self, rank: int) -> tuple[int, ...]:
        """The axes over which mean and variance are taken."""
        return (self.axis % rank,)

    def relation(self, s: TypeSolver, data: Type, gamma: Type, beta: Type) -> Type | None:
        return self.vectors(s, data, gamma, beta)

    def reference(self, data: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
        x = standardized(data.astype("float64"), self.reduced(data.ndim), self.epsilon)
        return self.affine(x, gamma, beta).astype(data.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, gamma: Readable, beta: Readable
    ) -> Element:
        axes = self.reduced(len(i))
        extents = [length(data.shape[d]) for d in axes]

        def read(*k: Element) -> Element:
            inner = dict(zip(axes, k))
            return data(*(inner.get(d, j) for d, j in enumerate(i)))

        return self.affine_element(standardize(b, data(*i), read, extents, out.dtype, self.epsilon), i, gamma, beta)


def standardized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) over axes."""
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def standardize(
    b: ElementBuilder, x: Element, read: Body, extents: Sequence[int], dtype: str, epsilon: float
) -> Element:
    """The same for one element: `read` reads the elements over which mean and variance are taken."""
    count = b.number(math.prod(extents), dtype)
    mean = b.sum(extents, read) / count

    def square(*k: Element) -> Element:
        difference = read(*k) - mean
        return difference * difference

    return (x - mean) / b.sqrt(b.sum(extents, square) / count + epsilon)


@op("nn.layer_norm", level=1, attrs_key="LayerNorm")
class layer_norm(Moments):
    """Mean and variance over `axis`, then gamma and beta along it."""

    axis = -1
    source = "Ba, Kiros and Hinton, Layer normalization, 2016; ONNX LayerNormalization"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 8), (8,), (8,)),
            sample((2, 5, 3), (5,), (5,), axis=1, scale=False),
            sample((7,), (7,), (7,), epsilon=1e-3),
        ]


@op("nn.instance_norm", level=1, attrs_key="InstanceNorm")
class instance_norm(Moments):
    """Mean and variance over all axes but the first and `axis`, then gamma and beta."""

    source = "Ulyanov, Vedaldi and Lempitsky, Instance normalization, 2016; ONNX InstanceNormalization"

    def reduced(self, rank: int) -> tuple[int, ...]:
        return tuple(d for d in range(1, rank) if d != self.axis % rank)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4, 5), (3,), (3,)), sample((2, 4, 5, 3), (3,), (3,), axis=-1, center=False)]


@op(
    "nn.group_norm",
    level=1,
    attrs_key="GroupNorm",
    parameters="data gamma beta num_groups axis epsilon center scale",
    required="num_groups",
)
class group_norm(Affine):
    """Mean and variance over each of `num_groups` groups of positions of `axis` and all later axes, then gamma and
    beta.
    """

    num_groups: int = attr(0, "into how many groups the positions of `axis` split")
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True
    source = "Wu and He, Group normalization, 2018; ONNX GroupNormalization"

    def relation(self, s: TypeSolver, data: Type, gamma: Type, beta: Type) -> Type | None:
        found = self.vectors(s, data, gamma, beta)
        if found is None:
            return None
        channels = found.shape[self.axis % len(found.shape)]
        if self.num_groups < 1 or (isinstance(channels, int) and (channels % self.num_groups or not channels)):
            s.fail(f"{channels} channels do not split into {self.num_groups} groups")
        return found

    def reference(self, data: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
        axis, g = self.axis % data.ndim, self.num_groups
        split = data.astype("float64").reshape(*data.shape[:axis], g, data.shape[axis] // g, *data.shape[axis + 1 :])
        axes = tuple(range(axis + 1, split.ndim))
        return self.affine(standardized(split, axes, self.epsilon).reshape(data.shape), gamma, beta).astype(data.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, gamma: Readable, beta: Readable
    ) -> Element:
        axis = self.axis % len(i)
        size = int(data.shape[axis]) // self.num_groups
        others = range(axis + 1, len(i))

        def read(c: Element, *k: Element) -> Element:
            inner = dict(zip(others, k))
            at = tuple(inner.get(d, j) for d, j in enumerate(i))
            return data(*place(at, axis, i[axis] // size * size + c))

        extents = [size, *(int(data.shape[d]) for d in others)]
        return self.affine_element(standardize(b, data(*i), read, extents, out.dtype, self.epsilon), i, gamma, beta)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 4, 3, 5), (4,), (4,), num_groups=2),
            sample((2, 3, 6), (6,), (6,), num_groups=3, axis=-1, scale=False),
        ]
