"""Normalisation without learned parameters: l2_normalize, lrn; and dropout."""

from __future__ import annotations

import numpy as np

from relaylab.ir.expr import Call, Expr, TupleWrapper
from relaylab.ir.types import TupleType, Type
from relaylab.op import rules
from relaylab.op.base import Input, Ints, Opaque, OutElementwiseFusable, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import place
from relaylab.op.shapes import normalize_axes


@op("nn.l2_normalize", level=2, attrs_key="L2Normalize", defaults={"axis": None})
class l2_normalize(OutElementwiseFusable):
    """data / sqrt(max(sum(data^2 over axes), eps))."""

    data: Input = arg("what is normalised", dtype="floats")
    eps: float = attr(doc="the least sum of squares that is divided by")
    axis: Ints | None = attr(doc="the axes whose squares are summed; negative ones count from the end, None: all")
    yields = "the shape of data, and its dtype"
    source = "tf.math.l2_normalize; ONNX LpNormalization with p = 2"

    def axes(self, rank: int) -> tuple[int, ...]:
        """The summed axes."""
        return normalize_axes(self.axis or None, rank) or ()

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, s.unify(data, s.out))
        if found is not None:
            rules.axes(s, self.axis or None, rules.floats(s, found))
        return found

    def reference(self, data: np.ndarray) -> np.ndarray:
        total = (data.astype("float64") ** 2).sum(axis=self.axes(data.ndim), keepdims=True)
        return (data / np.sqrt(np.maximum(total, self.eps))).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        axes = self.axes(len(i))

        def square(*k: Element) -> Element:
            inner = dict(zip(axes, k))
            x = data(*(inner.get(d, j) for d, j in enumerate(i)))
            return x * x

        return data(*i) / b.sqrt(b.max(b.sum([data.shape[d] for d in axes], square), self.eps))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 4), eps=1e-3, axis=(1,)),
            sample((2, 3), eps=0.5, axis=None),
            sample((2, 3, 4), eps=1e-6, axis=(-1, 1)),
        ]


@op("nn.lrn", level=2, attrs_key="LRN", defaults={"alpha": 1e-5})
class lrn(Opaque):
    """Local response normalisation: data / (bias + alpha / size * sum of squares of `size` neighbours along
    axis)^beta.
    """

    data: Input = arg("what is normalised", dtype="floats")
    size: int = attr(5, "how many neighbours are summed, the element itself among them; odd")
    axis: int = attr(1, "the axis of the neighbours; negative ones count from the end")
    bias: float = attr(2.0, "what is added to the scaled sum")
    alpha: float = attr(0.0001, "the scale of the sum of squares")
    beta: float = attr(0.75, "the exponent of the divisor")
    yields = "the shape of data, and its dtype"
    source = (
        "Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional networks, 2012; ONNX LRN"
    )

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, s.unify(data, s.out))
        if found is not None:
            rules.axis(s, self.axis, len(rules.floats(s, found).shape), "axis of nn.lrn")
            if self.size < 1 or self.size % 2 == 0:
                s.fail(f"`size` of nn.lrn must be odd and positive, not {self.size}")
        return found

    def reference(self, data: np.ndarray) -> np.ndarray:
        axis, half = self.axis % data.ndim, self.size // 2
        squares = np.moveaxis(data.astype("float64") ** 2, axis, 0)
        sums = [squares[max(c - half, 0) : c + half + 1].sum(axis=0) for c in range(len(squares))]
        norm = self.bias + self.alpha / self.size * np.moveaxis(np.stack(sums) if sums else squares, 0, axis)
        return (data / norm**self.beta).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        axis, half = self.axis % len(i), self.size // 2

        def square(k: Element) -> Element:
            c = i[axis] + k - half
            x = b.guard(b.inside(c, data.shape[axis]), lambda: data(*place(i, axis, c)), b.const(0, out.dtype))
            return x * x

        return data(*i) / b.pow(b.sum(2 * half + 1, square) * (self.alpha / self.size) + self.bias, self.beta)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 6, 3, 2)), sample((1, 4, 4, 5), axis=-1, size=3, alpha=0.5, bias=1.0)]


@op("nn.dropout", level=1, attrs_key="Dropout", stateful=True)
class dropout(Opaque):
    """Dropout as it is at inference: data as it is. Gives a tuple of data and a mask of ones; the builder returns
    the first.
    """

    data: Input = arg("what stays as it is")
    rate: float = attr(0.5, "the share of elements that training would drop; without effect here")
    ordered = False
    yields = "a tuple of two tensors with the shape and dtype of data, of which the builder returns the first"
    source = "Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting, 2014"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and TupleType([found, found])

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        return data.copy(), np.ones_like(data)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return b.const(1, out.dtype) if out.field else data(*i)

    @classmethod
    def returns(cls, call: Call) -> Expr:
        return wrap(call, 2)[0]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3)), sample((5,), rate=0.1)]


def dropout_raw(data: Expr, rate: float = 0.5) -> TupleWrapper:
    """Dropout with its mask: a tuple of two."""
    return wrap(dropout.definition.call(data, rate=rate), 2)
