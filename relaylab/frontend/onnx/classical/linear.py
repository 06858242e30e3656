"""LinearClassifier, LinearRegressor, SVMClassifier, SVMRegressor."""

from __future__ import annotations

from functools import reduce

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.classical.couplings import coupled
from relaylab.frontend.onnx.classical.scores import (
    TRANSFORMS,
    chosen,
    either,
    labels_of,
    of_two,
    probit,
    rows_of,
    transformed,
)
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import CLASSICAL, converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_LEAST = 1e-7
"""The least probability of a pair."""


def _matrix(node: OnnxNode, name: str, rows: int) -> np.ndarray:
    """An attribute of floats as a matrix of so many rows."""
    values = np.array(node.get(name, []), "float64")
    if not rows or not values.size or values.size % rows:
        raise node.error(f"`{name}` has {values.size} values for {rows} rows", code="import.malformed")
    return values.reshape(rows, -1)


def _dense(g: Graph, x: Expr, weight: np.ndarray, bias: np.ndarray | None) -> Expr:
    out = nn.dense(x, g.const(weight, x))
    return out if bias is None or not bias.size else op.add(out, g.const(bias, x))


@converts("LinearRegressor", domain=CLASSICAL)
def linear_regressor(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    x, count = rows_of(g, x), node.get("targets", 1)
    bias = np.array(node.get("intercepts", []), "float64")
    scores = _dense(g, x, _matrix(node, "coefficients", count), bias)
    kind = node.choice("post_transform", "NONE", TRANSFORMS)
    if count > 1:
        return op.cast(transformed(g, scores, kind), "float32")
    return op.cast(probit(g, scores) if kind == "PROBIT" else scores, "float32")


@converts("LinearClassifier", domain=CLASSICAL, unused=("multi_class",))
def linear_classifier(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    x = rows_of(g, x)
    labels, kind = labels_of(node, "classlabels_ints"), node.choice("post_transform", "NONE", TRANSFORMS)
    bias = np.array(node.get("intercepts", []), "float64")
    count = len(bias) or (len(labels) if labels is not None else 1)
    scores = _dense(g, x, _matrix(node, "coefficients", count), bias)
    if count > 1:
        label = chosen(labels, op.argmax(scores, axis=[1]))
        return [label, op.cast(transformed(g, scores, kind), "float32")]
    flat = op.squeeze(scores, axis=[1])
    two = labels if labels is not None and len(labels) == 2 else np.arange(2)
    label = either(two, op.greater(flat, g.const(0, flat)))
    two_columns = labels is not None and len(labels) == 2
    return [label, op.cast(of_two(g, scores, kind, True) if two_columns else transformed(g, scores, kind), "float32")]


def _kernel(g: Graph, node: OnnxNode, x: Expr, vectors: np.ndarray) -> Expr:
    """The kernel of every row with every vector: `(rows, vectors)`."""
    kind = node.choice("kernel_type", "LINEAR", KERNELS)
    gamma, shift, degree = [*(node.get("kernel_params") or []), 0.0, 0.0, 0.0][:3]
    if kind == "RBF":
        apart = op.subtract(op.expand_dims(x, 1), g.const(vectors, x))
        return op.exp(op.multiply(op.sum(op.multiply(apart, apart), axis=[2]), g.const(-gamma, x)))
    products = nn.dense(x, g.const(vectors, x))
    if kind == "LINEAR":
        return products
    scaled = op.add(op.multiply(products, g.const(gamma, x)), g.const(shift, x))
    return op.tanh(scaled) if kind == "SIGMOID" else op.power(scaled, g.const(degree, x))


@converts("SVMRegressor", domain=CLASSICAL, unused=("post_transform",))
def svm_regressor(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Without support vectors the coefficients are those of the features."""
    x, supports = rows_of(g, x), node.get("n_supports", 0)
    coefficients, rho = _matrix(node, "coefficients", 1), np.array(node.get("rho", [0.0]), "float64")
    vectors = _matrix(node, "support_vectors", supports) if supports else coefficients
    kernel = _kernel(g, node, x, vectors)
    out = _dense(g, kernel, coefficients, rho[:1]) if supports else op.add(kernel, g.const(rho[:1], x))
    if node.get("one_class", 0):
        out = op.where(op.greater(out, g.const(0, out)), g.const(1, out), g.const(-1, out))
    return op.cast(out, "float32")


@converts("SVMClassifier", domain=CLASSICAL)
def svm_classifier(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    x = rows_of(g, x)
    labels, kind = labels_of(node, "classlabels_ints"), node.choice("post_transform", "NONE", TRANSFORMS)
    if labels is None:
        raise node.error("it has no labels", code="import.malformed")
    counts, rho = np.array(node.ints("vectors_per_class") or [], "int64"), np.array(node.get("rho", []), "float64")
    a, b = (np.array(node.get(n) or [], "float64") for n in ("prob_a", "prob_b"))
    if not counts.sum():  # as liblinear has it: a row of coefficients for each class
        weights = _matrix(node, "coefficients", len(labels))
        node.get("support_vectors")
        ranked = scores = op.add(_kernel(g, node, x, weights), g.const(rho[:1], x))
    else:
        pairs = _pairs(g, node, x, counts, rho)
        ranked, scores = _votes(g, pairs, len(counts)), op.concatenate(list(pairs.values()), axis=1)
        if len(a):
            scores = coupled(g, _probabilities(g, node, pairs, a, b), len(counts))
    label = chosen(labels, op.argmax(ranked, axis=[1]))
    return [label, op.cast(_finished(g, scores, kind), "float32")]


def _finished(g: Graph, scores: Expr, kind: str) -> Expr:
    """One score is that of the second of two classes."""
    return of_two(g, scores, kind, False) if g.extents(scores, 1)[0] == 1 else transformed(g, scores, kind)


def _pairs(g: Graph, node: OnnxNode, x: Expr, counts: np.ndarray, rho: np.ndarray) -> dict[tuple[int, int], Expr]:
    """For every pair of classes, one before the other, how far a row is on the side of the first: `(rows, 1)`.

    A support vector has a coefficient for every other class than its own.
    """
    total, classes = int(counts.sum()), len(counts)
    kernel = _kernel(g, node, x, _matrix(node, "support_vectors", total))
    given = np.array(node.get("coefficients", []), "float64")
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    if given.size != total * (classes - 1) or len(rho) != len(pairs) or (counts < 0).any():
        raise node.error("coefficients, rho and support vectors do not fit each other", code="import.malformed")
    given, of = given.reshape(classes - 1, total), np.repeat(np.arange(classes), counts)
    weights = np.zeros((len(pairs), total))
    for k, (i, j) in enumerate(pairs):
        weights[k, of == i], weights[k, of == j] = given[j - 1, of == i], given[i, of == j]
    scores = _dense(g, kernel, weights, rho)
    return {pair: op.strided_slice(scores, [k], [k + 1], axes=[1]) for k, pair in enumerate(pairs)}


def _votes(g: Graph, pairs: dict[tuple[int, int], Expr], classes: int) -> Expr:
    """How many pairs each class wins: `(rows, classes)`."""
    won = {pair: op.cast(op.greater(s, g.const(0, s)), "int32") for pair, s in pairs.items()}
    one = Constant(np.array(1, "int32"))
    for i, j in pairs:
        won[j, i] = op.subtract(one, won[i, j])
    each = [reduce(op.add, (v for (i, _), v in won.items() if i == k)) for k in range(classes)]
    return op.concatenate(each, axis=1)


def _probabilities(
    g: Graph, node: OnnxNode, pairs: dict[tuple[int, int], Expr], a: np.ndarray, b: np.ndarray
) -> dict[tuple[int, int], Expr]:
    """Of every two classes how probable the first is (Platt, 1999)."""
    if not len(a) == len(b) == len(pairs):
        raise node.error(f"prob_a and prob_b are not of {len(pairs)} pairs", code="import.malformed")
    found: dict[tuple[int, int], Expr] = {}
    for (i, j), slope, shift in zip(pairs, a, b):
        score = pairs[i, j]
        value = op.sigmoid(op.negative(op.add(op.multiply(score, g.const(slope, score)), g.const(shift, score))))
        found[i, j] = op.clip(value, _LEAST, 1 - _LEAST)
        found[j, i] = op.subtract(g.const(1, score), found[i, j])
    return found
