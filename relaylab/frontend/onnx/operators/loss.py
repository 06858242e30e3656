"""Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn

UNUSED_CLASS = -(2**31)
"""An `ignore_index` that no target has, for nodes that ignore none."""


@converts("NegativeLogLikelihoodLoss", since=12)
def nll_loss(g: Graph, node: OnnxNode, x: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    return likelihood(g, node, x, target, weight)


@converts("SoftmaxCrossEntropyLoss", since=12)
def cross_entropy(g: Graph, node: OnnxNode, x: Expr, target: Expr, weight: Expr | None = None) -> list[Expr]:
    shares = nn.log_softmax(x, axis=1)
    return [likelihood(g, node, shares, target, weight), shares]


def likelihood(g: Graph, node: OnnxNode, x: Expr, target: Expr, weight: Expr | None) -> Expr:
    """The loss for the logarithms `x` (batch, classes, ...) of probabilities."""
    reduction = node.choice("reduction", "mean", ("mean", "sum", "none"))
    weight = weight if weight is not None else Constant(np.ones(g.shape(x)[1], g.dtype(x)))
    return nn.nll_loss(x, target, weight, reduction, node.get("ignore_index", UNUSED_CLASS))
