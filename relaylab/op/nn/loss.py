"""Losses: cross_entropy, cross_entropy_with_logits, nll_loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver


class CrossEntropy(Opaque):
    """A scalar from predictions and targets, both (batch, classes)."""

    x: Input = arg("what was predicted of each class", "(N, classes)", "floats")
    y: Input = arg("the wanted probabilities of the classes", "(N, classes)", "that of predictions")
    parameters = "predictions targets"
    yields = "(), dtype of predictions"
    source = "Good, Rational decisions, 1952; torch.nn.functional.cross_entropy with probabilities as targets"

    def relation(self, s: TypeSolver, predictions: Type, targets: Type) -> Type | None:
        x, y = rules.tensor(s, predictions, "predictions"), rules.tensor(s, targets, "targets")
        if x is None or y is None:
            return None
        rules.rank(s, rules.floats(s, x, "predictions"), 2, "predictions"), rules.rank(s, y, 2, "targets")
        for n, m in zip(x.shape, y.shape):
            rules.equal_dims(s, n, m, f"the shapes of {type_text(x)} and {type_text(y)}")
        return TensorType((), rules.same_dtype(s, x, y))


@op("nn.cross_entropy", level=10)
class cross_entropy(CrossEntropy):
    """Mean over the batch of -sum(targets * log(predictions))."""

    x: Input = arg("the probabilities of the classes", "(N, classes)", "floats")

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        total = -(targets * np.log(predictions.astype("float64"))).sum()
        return np.array(total / len(predictions), predictions.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, predictions: Readable, targets: Readable) -> Element:
        total = b.sum(predictions.shape, lambda n, c: targets(n, c) * b.log(predictions(n, c)))
        return -total / b.number(predictions.shape[0], out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), (3, 4), low=0.1, high=1.0)]


@op("nn.cross_entropy_with_logits", level=10)
class cross_entropy_with_logits(CrossEntropy):
    """Mean over the batch of -sum(targets * predictions), for predictions that are logarithms already."""

    x: Input = arg("the logarithms of the classes' probabilities", "(N, classes)", "floats")

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        total = -(targets * predictions.astype("float64")).sum()
        return np.array(total / len(predictions), predictions.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, predictions: Readable, targets: Readable) -> Element:
        total = b.sum(predictions.shape, lambda n, c: targets(n, c) * predictions(n, c))
        return -total / b.number(predictions.shape[0], out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), (3, 4))]


@op("nn.nll_loss", attrs_key="NLLLoss")
class nll_loss(OutElementwiseFusable):
    """Negative log likelihood: -predictions[n, t, ...] * weights[t] for the class t = targets[n, ...]; classes equal to
    `ignore_index` count 0. `reduction`: "none", "sum", or "mean" (divided by the sum of the weights).
    """

    predictions: Input = arg("the logarithms of the classes' probabilities", "(N, classes, ...)", "floats")
    targets: Input = arg("the wanted classes; one outside stands for the nearest", "(N, ...)", "integers")
    weights: Input = arg(
        "how much each class counts; typed by predictions if untyped", "(classes,)", "that of predictions"
    )
    reduction: str = attr("mean", "what becomes of the losses: mean (weighted), sum, or none (they stay)")
    ignore_index: int = attr(doc="the target that counts nothing")
    yields = "(), or (N, ...) if `reduction` is none; dtype of predictions"
    source = "torch.nn.functional.nll_loss; ONNX NegativeLogLikelihoodLoss"
    defaults = {"ignore_index": -100}

    def relation(self, s: TypeSolver, predictions: Type, targets: Type, weights: Type) -> Type | None:
        x, y = rules.tensor(s, predictions, "predictions"), rules.tensor(s, targets, "targets")
        if x is None or y is None:
            return None
        rules.floats(s, x, "predictions"), rules.rank(s, rules.integers(s, y, "targets"), len(x.shape) - 1, "targets")
        for n, m in zip((x.shape[0], *x.shape[2:]), y.shape):
            rules.equal_dims(s, n, m, f"{type_text(x)} (without its classes) and {type_text(y)}")
        rules.something(s, x.shape[1:2], y, type_text(x))
        s.unify(weights, TensorType((x.shape[1],), x.dtype))
        if self.reduction not in ("mean", "sum", "none"):
            s.fail(f'reduction must be mean, sum or none, not "{self.reduction}"')
        return TensorType(y.shape if self.reduction == "none" else (), x.dtype)

    def reference(self, predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
        kept = targets != self.ignore_index
        classes = np.clip(np.where(kept, targets, 0), 0, len(weights) - 1)
        w = np.where(kept, weights[classes].astype("float64"), 0.0)
        found = np.take_along_axis(predictions, classes[:, None].astype("int64"), 1)[:, 0]
        losses = np.where(kept, -found * w, 0.0)
        if self.reduction == "none":
            return losses.astype(predictions.dtype)
        return np.array(losses.sum() / (w.sum() if self.reduction == "mean" else 1.0), predictions.dtype)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, predictions: Readable, targets: Readable, weights: Readable
    ) -> Element:
        zero = b.const(0, out.dtype)

        def term(at: Index, value: Callable[[Element], Element]) -> Element:
            t = b.load_index(targets(*at))
            return b.guard(b.ne(t, self.ignore_index), lambda: value(t) * weights(t), zero)

        loss = lambda *at: term(at, lambda t: -predictions(at[0], t, *at[1:]))
        if self.reduction == "none":
            return loss(*i)
        box = targets.shape
        total = b.sum(box, loss)
        one = b.const(1, out.dtype)
        return total / b.sum(box, lambda *at: term(at, lambda t: one)) if self.reduction == "mean" else total

    @classmethod
    def samples(cls) -> list[Sample]:
        targets = np.array([0, 3, 1, -100], "int32")
        grid = np.array([[[0, 2], [1, -1]], [[2, 2], [0, 1]]], "int64")
        positive = {"low": 0.1, "high": 2.0}
        return [
            sample((4, 5), targets, (5,), ignore_index=-100, **positive),
            sample((2, 3, 2, 2), grid, (3,), ignore_index=-1, reduction="sum", **positive),
            sample((2, 3, 2, 2), grid, (3,), ignore_index=-1, reduction="none", **positive),
        ]
