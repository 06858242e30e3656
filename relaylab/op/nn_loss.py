"""Losses: cross_entropy, cross_entropy_with_logits, nll_loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Opaque, OutElementwiseFusable, Sample, op, sample


class CrossEntropy(Opaque):
    """A scalar from predictions and targets, both (batch, classes)."""

    inputs = ("x", "y")
    parameters = "predictions targets"

    def relation(self, s: Any, predictions: Type, targets: Type) -> Type | None:
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

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        total = -(targets * np.log(predictions.astype("float64"))).sum()
        return np.array(total / len(predictions), predictions.dtype)

    def lower(self, b: Any, out: Any, i: tuple, predictions: Any, targets: Any) -> Any:
        extents = [int(n) for n in predictions.shape]
        total = b.sum(extents, lambda n, c: targets(n, c) * b.log(predictions(n, c)))
        return -total / float(extents[0])

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), (3, 4), low=0.1, high=1.0)]


@op("nn.cross_entropy_with_logits", level=10)
class cross_entropy_with_logits(CrossEntropy):
    """Mean over the batch of -sum(targets * predictions), for predictions that are logarithms already."""

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        total = -(targets * predictions.astype("float64")).sum()
        return np.array(total / len(predictions), predictions.dtype)

    def lower(self, b: Any, out: Any, i: tuple, predictions: Any, targets: Any) -> Any:
        extents = [int(n) for n in predictions.shape]
        return -b.sum(extents, lambda n, c: targets(n, c) * predictions(n, c)) / float(extents[0])

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), (3, 4))]


@op("nn.nll_loss", inputs=("predictions", "targets", "weights"), attrs_key="NLLLoss")
class nll_loss(OutElementwiseFusable):
    """Negative log likelihood: -predictions[n, t, ...] * weights[t] for the class t = targets[n, ...]; classes equal to
    `ignore_index` count 0. `reduction`: "none", "sum", or "mean" (divided by the sum of the weights).
    """

    reduction: str = "mean"
    ignore_index: int
    defaults = {"ignore_index": -100}

    def relation(self, s: Any, predictions: Type, targets: Type, weights: Type) -> Type | None:
        x, y = rules.tensor(s, predictions, "predictions"), rules.tensor(s, targets, "targets")
        if x is None or y is None:
            return None
        rules.floats(s, x, "predictions"), rules.rank(s, rules.integers(s, y, "targets"), len(x.shape) - 1, "targets")
        for n, m in zip((x.shape[0], *x.shape[2:]), y.shape):
            rules.equal_dims(s, n, m, f"{type_text(x)} (without its classes) and {type_text(y)}")
        s.unify(weights, TensorType((x.shape[1],), x.dtype))
        if self.reduction not in ("mean", "sum", "none"):
            s.fail(f'reduction must be mean, sum or none, not "{self.reduction}"')
        return TensorType(y.shape if self.reduction == "none" else (), x.dtype)

    def reference(self, predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
        kept = targets != self.ignore_index
        classes = np.where(kept, targets, 0)
        w = np.where(kept, weights[classes].astype("float64"), 0.0)
        losses = -np.take_along_axis(predictions, classes[:, None].astype("int64"), 1)[:, 0] * w
        if self.reduction == "none":
            return losses.astype(predictions.dtype)
        return np.array(losses.sum() / (w.sum() if self.reduction == "mean" else 1.0), predictions.dtype)

    def lower(self, b: Any, out: Any, i: tuple, predictions: Any, targets: Any, weights: Any) -> Any:
        zero = b.const(0, out.dtype)

        def term(at: tuple, value: Any) -> Any:
            t = b.load_index(targets(*at))
            return b.guard(b.ne(t, self.ignore_index), lambda: value(t) * weights(t), zero)

        loss = lambda *at: term(at, lambda t: -predictions(at[0], t, *at[1:]))
        if self.reduction == "none":
            return loss(*i)
        box = [int(n) for n in targets.shape]
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
