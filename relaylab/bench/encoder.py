"""Encoder layers of BERT-base in Relay (Devlin et al., 2018): attention, add and norm, feed-forward, add and norm."""

from __future__ import annotations

import math

from relaylab import relay
from relaylab.ir import Expr, IRModule
from relaylab.runtime.ndarray import NDArray
from relaylab.zoo.attention.bert import EPSILON
from relaylab.zoo.attention.layers import gelu, linear, norm
from relaylab.zoo.init import create_workload

HIDDEN, HEADS, INNER = 768, 12, 3072


def _heads(x: Expr, length: int, axes: tuple[int, int, int]) -> Expr:
    return relay.transpose(relay.reshape(x, (length, HEADS, HIDDEN // HEADS)), axes)


def _attention(x: Expr, name: str, length: int) -> Expr:
    query, key = (_heads(linear(x, f"{name}_{part}", HIDDEN), length, (1, 0, 2)) for part in ("query", "key"))
    value = _heads(linear(x, f"{name}_value", HIDDEN), length, (1, 2, 0))
    scores = relay.nn.batch_matmul(query, key) * relay.const(1 / math.sqrt(HIDDEN // HEADS))
    mixed = relay.nn.batch_matmul(relay.nn.softmax(scores), value)
    return linear(relay.reshape(relay.transpose(mixed, (1, 0, 2)), (length, HIDDEN)), f"{name}_output", HIDDEN)


def get_net(layers: int = 2, length: int = 128) -> relay.Function:
    """The layers as a function of (length, 768) float32 states and their parameters."""
    x = relay.var("data", shape=(length, HIDDEN))
    for k in range(layers):
        x = norm(relay.add(x, _attention(x, f"layer{k}_attention", length)), f"layer{k}_norm1", EPSILON)
        inner = gelu(linear(x, f"layer{k}_inner", INNER))
        x = norm(relay.add(x, linear(inner, f"layer{k}_outer", HIDDEN)), f"layer{k}_norm2", EPSILON)
    return relay.Function(relay.analysis.free_vars(x), x)


def get_workload(layers: int = 2, length: int = 128) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(layers, length))
