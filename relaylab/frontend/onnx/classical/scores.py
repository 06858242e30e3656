"""What the classifiers and regressors of ai.onnx.ml share: labels, and what is done to scores at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.ir import Constant, Expr
from relaylab.op import nn

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What may be done to scores, by the numbers that `TreeEnsemble` has for it."""
_NOTHING = 1e-7
"""What SOFTMAX_ZERO takes for zero."""
_WINITZKI = 0.147


def floats(g: Graph, x: Expr) -> Expr:
    """Data as floats: those of 64 bits stay so."""
    return g.converted(x, "float64" if g.dtype(x) == "float64" else "float32")


def rows_of(g: Graph, x: Expr) -> Expr:
    """Data as a matrix of floats; a vector is one row."""
    return floats(g, op.expand_dims(x, 0) if g.rank(x) == 1 else x)


def labels_of(node: OnnxNode, numbers: str) -> np.ndarray | None:
    """The labels of the classes (int64) from the attribute `numbers`, or None; for texts their places among them."""
    texts, given = node.get("classlabels_strings"), node.ints(numbers)
    if texts:
        return np.arange(len(texts))
    return np.array(given, "int64") if given else None


def chosen(labels: np.ndarray | None, places: Expr) -> Expr:
    """The labels at places (integers), as int64."""
    if labels is None or (labels == np.arange(len(labels))).all():
        return op.cast(places, "int64")
    return op.take(Constant(labels.astype("int64")), places, axis=0)


def either(labels: Sequence[int] | np.ndarray, condition: Expr) -> Expr:
    """The second of two labels where a condition holds, else the first one: int64."""
    return op.where(condition, *(Constant(np.array(labels[k], "int64")) for k in (1, 0)))


def transformed(g: Graph, scores: Expr, kind: str) -> Expr:
    """Scores `(rows, classes)` after the transformation `kind`, one of `TRANSFORMS`."""
    if kind == "SOFTMAX":
        return nn.softmax(scores, axis=-1)
    if kind == "LOGISTIC":
        return op.sigmoid(scores)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(g, scores)
    return probit(g, scores) if kind == "PROBIT" else scores


def _softmax_zero(g: Graph, scores: Expr) -> Expr:
    """A softmax over what is not zero; zeros stay."""
    top = op.max(scores, axis=-1, keepdims=True)
    kept = op.greater(op.abs(scores), g.const(_NOTHING, scores))
    raised = op.where(kept, op.exp(op.subtract(scores, top)), op.multiply(scores, op.exp(op.negative(top))))
    total = op.sum(raised, axis=-1, keepdims=True)
    return op.where(op.equal(total, g.const(0, total)), g.const(0.5, total), op.divide(raised, total))


def probit(g: Graph, scores: Expr) -> Expr:
    """The quantile of the normal distribution as engines have it: Winitzki's formula (2008) for the inverse of erf."""
    c = lambda value: g.const(value, scores)
    x = op.subtract(op.multiply(c(2), scores), c(1))
    log = op.log(op.multiply(op.subtract(c(1), x), op.add(c(1), x)))
    v = op.add(op.multiply(c(0.5), log), c(2 / (math.pi * _WINITZKI)))
    root = op.sqrt(op.subtract(op.multiply(v, v), op.divide(log, c(_WINITZKI))))
    return op.multiply(c(math.sqrt(2)), op.multiply(op.sign(x), op.sqrt(op.subtract(root, v))))


def of_two(g: Graph, score: Expr, kind: str, probability: bool) -> Expr:
    """`(rows, 2)` from the score `(rows, 1)` of the second of two classes, a `probability` or a distance."""
    if kind == "PROBIT" or (kind == "NONE" and probability):
        return transformed(g, op.concatenate([op.subtract(g.const(1, score), score), score], axis=1), kind)
    return transformed(g, op.concatenate([op.negative(score), score], axis=1), kind)
