"""GPT-2's step with a cache of open length, as exporters write it: the program of both engines is one ONNX model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from relaylab.bench.onnx_graph import OnnxGraph, Shape

if TYPE_CHECKING:
    from onnx import ModelProto

PAST = "past_"
"""What the names of inputs begin with that a step gets from the one before."""


def model(layers: int = 4, hidden: int = 256, heads: int = 8, vocabulary: int = 1000, places: int = 1024) -> ModelProto:
    """Logits of one token and the caches after it, for `ids` (1, 1) and each layer's cache (1, heads, past, size)."""
    g, size = OnnxGraph(), hidden // heads
    cache = [f"{PAST}{part}{k}" for k in range(layers) for part in ("key", "value")]
    count = g.call("Gather", g.call("Shape", cache[0]), g.constant([[2]], "int64"))
    words = g.weight(vocabulary, hidden)
    x = g.call("Add", g.call("Gather", words, "ids"), g.call("Gather", g.weight(places, hidden), count))
    present: list[str] = []
    for k in range(layers):
        y = g.norm(x, hidden)
        query, key, value = (g.heads(g.linear(y, hidden, hidden), heads, size) for _ in range(3))
        key, value = (g.call("Concat", p, new, axis=2) for p, new in zip(cache[2 * k : 2 * k + 2], (key, value)))
        present += [key, value]
        scores = g.call("MatMul", query, g.call("Transpose", key, perm=[0, 1, 3, 2]))
        scores = g.call("Div", scores, g.constant(math.sqrt(size), "float32"))
        x = g.call("Add", x, g.linear(g.mixed(scores, value, hidden), hidden, hidden))
        wide = g.gelu(g.linear(g.norm(x, hidden), hidden, 4 * hidden))
        x = g.call("Add", x, g.linear(wide, 4 * hidden, hidden))
    logits = g.call("MatMul", g.norm(x, hidden), g.call("Transpose", words, perm=[1, 0]))
    sizes: dict[str, Shape] = {"ids": (1, 1), **dict.fromkeys(cache, (1, heads, "past", size))}
    return g.model(sizes, logits, *present, whole=["ids"])


def feed(program: ModelProto, past: int) -> dict[str, np.ndarray]:
    """Inputs of a step after so many tokens."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for info in program.graph.input:
        shape = [d.dim_value if d.HasField("dim_value") else past for d in info.type.tensor_type.shape.dim]
        drawn = rng.standard_normal(shape).astype("float32")
        found[info.name] = np.full(shape, 7, "int64") if info.name == "ids" else drawn
    return found
