"""Moments over axes: mean and variance."""

from __future__ import annotations

import math

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import TensorType
from relaylab.loop.scalar import SCALAR_OPS, is_float
from relaylab.op import rules
from relaylab.op.base import Input, Sample, arg, attr, element, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.tensor.reduce import Reduction


def divided(total: np.ndarray, count: int | np.ndarray, dtype: str) -> np.ndarray:
    """`total / count`, truncated for integers, for which the mean of nothing is 0."""
    with np.errstate(all="ignore"):
        if total.dtype.kind == "f":
            return np.asarray(total / np.asarray(count, "float64")).astype(dtype)
        wide = _wide(dtype)
        return np.asarray(SCALAR_OPS["div"].meaning(total.astype(wide), np.asarray(count, wide))).astype(dtype)


def _wide(dtype: str) -> str:
    """In which type a total is divided: the count of integers may be no value of a narrow one."""
    return dtype if is_float(dtype) or dtype == "uint64" else "int64"


def quotient(b: ElementBuilder, total: Element, count: int | Element, dtype: str) -> Element:
    """The same at the loop level."""
    wide = _wide(dtype)
    return b.cast(b.cast(total, wide) / b.number(count, wide), dtype)


@op("mean", level=4, attrs_key="Reduce")
class mean(Reduction):
    """Arithmetic mean over axes; integers are summed in their own type and divided towards 0."""

    data: Input = arg("the tensor that is reduced", dtype="any but bool")
    source = "numpy.mean"

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        return rules.numbers(s, super().result_type(s, data))

    def reference(self, data: np.ndarray) -> np.ndarray:
        axes = self.axes(data.ndim)
        wide = "float64" if data.dtype.kind == "f" else data.dtype
        total = np.sum(data, axis=axes, keepdims=self.keepdims, dtype=wide)
        return divided(total, math.prod(data.shape[d] for d in axes), data.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        extents = self.extents(data)
        return quotient(b, b.sum(extents, self.reader(data, i)), math.prod(extents), out.dtype)

    @classmethod
    def more(cls, d: TensorType) -> list[Sample]:
        whole = sample(TensorType((2, 5), "int32"), axis=1, low=-50, high=50)
        return [*super().more(d), whole, sample(TensorType((3, 100), "int8"), axis=-1)]


@op("variance", level=4, attrs_key="Variance")
class variance(Reduction):
    """Variance over axes given the mean (with its axes kept): the mean of squared differences; `unbiased` divides
    by n - 1. That of integers is computed in int64.
    """

    extra = {
        "with_mean": "the mean with the reduced axes kept, if known; shape that broadcasts to data; dtype that of data"
    }
    source = "numpy.var"

    data: Input = arg("the tensor that is reduced", dtype="any but bool")
    mean: Input = arg("its mean, with the reduced axes kept", "any that broadcasts to that of data", "that of data")
    unbiased: bool = attr(False, "whether the sum of squares is divided by n - 1, not by the number n of elements")

    def result_type(self, s: TypeSolver, data: TensorType, mean: TensorType) -> TensorType:
        rules.same_dtype(s, rules.numbers(s, data), mean)
        rules.broadcasts_to(s, mean, data.shape)
        return TensorType(self.reduced(s, data), data.dtype)

    def divisor(self, extents: list[int]) -> int:
        """What the sum of squares is divided by."""
        return math.prod(extents) - self.unbiased

    def reference(self, data: np.ndarray, mean: np.ndarray) -> np.ndarray:
        axes = self.axes(data.ndim)
        wide = "float64" if data.dtype.kind == "f" else "int64"
        squares = (data.astype(wide) - mean.astype(wide)) ** 2
        total = np.sum(squares, axis=axes, keepdims=self.keepdims)
        return divided(total, self.divisor([data.shape[d] for d in axes]), data.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, mean: Readable) -> Element:
        extents = self.extents(data)

        def square(*k: Element) -> Element:
            at = self.index(len(data.shape), i, k)
            x, middle = (v if is_float(v.dtype) else b.cast(v, "int64") for v in (data(*at), element(mean, at)))
            return (x - middle) * (x - middle)

        return quotient(b, b.sum(extents, square), self.divisor(extents), out.dtype)

    @classmethod
    def build(
        cls,
        data: Expr,
        axis: object = None,
        keepdims: bool = False,
        exclude: bool = False,
        unbiased: bool = False,
        with_mean: object = None,
    ) -> Expr:
        center = mean(data, axis, True, exclude) if with_mean is None else with_mean
        return cls.call(data, center, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 4), (1, 1, 1)),
            sample((2, 3, 4), (2, 1, 4), axis=1, unbiased=True),
            sample((2, 3, 4), (1, 3, 1), axis=(0, -1), keepdims=True),
            sample((2, 3), (1, 3), axis=1, exclude=True),
            sample((2, 3, 4), (1, 4), axis=1),
        ]
