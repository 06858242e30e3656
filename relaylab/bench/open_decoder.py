"""GPT-2's step with a cache of open length, as exporters write it: the program of both engines is one ONNX model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

PAST = "past_"
"""What the names of inputs begin with that a step gets from the one before."""


class _Graph:
    """Nodes and weights under construction; every method gives the name of a tensor."""

    def __init__(self) -> None:
        from onnx import helper

        self.helper, self.rng = helper, np.random.default_rng(0)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def call(self, kind: str, *ins: str, count: int = 1, **attributes: object) -> str:
        outs = [f"t{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(self.helper.make_node(kind, list(ins), outs, **attributes))
        return outs[0]

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / math.sqrt(shape[0])).astype("float32"))

    def constant(self, value: object, dtype: str = "") -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype or None)
        return name

    def linear(self, x: str, ins: int, outs: int) -> str:
        return self.call("Add", self.call("MatMul", x, self.weight(ins, outs)), self.weight(outs))

    def norm(self, x: str, hidden: int) -> str:
        return self.call("LayerNormalization", x, self.weight(hidden), self.weight(hidden), axis=-1)

    def heads(self, x: str, count: int, size: int) -> str:
        split = self.call("Reshape", x, self.constant([1, 1, count, size], "int64"))
        return self.call("Transpose", split, perm=[0, 2, 1, 3])


def model(layers: int = 4, hidden: int = 256, heads: int = 8, vocabulary: int = 1000, places: int = 1024) -> ModelProto:
    """Logits of one token and the caches after it, for `ids` (1, 1) and each layer's cache (1, heads, past, size)."""
    from onnx import TensorProto, numpy_helper

    g, size = _Graph(), hidden // heads
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
        mixed = g.call("MatMul", g.call("Softmax", scores, axis=-1), value)
        mixed = g.call("Reshape", g.call("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([1, 1, hidden], "int64"))
        x = g.call("Add", x, g.linear(mixed, hidden, hidden))
        wide = g.linear(g.norm(x, hidden), hidden, 4 * hidden)
        erf = g.call("Erf", g.call("Div", wide, g.constant(math.sqrt(2), "float32")))
        half = g.call("Mul", wide, g.constant(0.5, "float32"))
        wide = g.call("Mul", half, g.call("Add", erf, g.constant(1, "float32")))
        x = g.call("Add", x, g.linear(wide, 4 * hidden, hidden))
    logits = g.call("MatMul", g.norm(x, hidden), g.call("Transpose", words, perm=[1, 0]))
    made = g.helper.make_tensor_value_info
    shape: Sequence[int | str] = [1, heads, "past", size]
    inputs = [made("ids", TensorProto.INT64, [1, 1]), *(made(c, TensorProto.FLOAT, shape) for c in cache)]
    outputs = [made(name, TensorProto.FLOAT, None) for name in (logits, *present)]
    stored = [numpy_helper.from_array(v, n) for n, v in g.weights.items()]
    graph = g.helper.make_graph(g.nodes, "step", inputs, outputs, stored)
    return g.helper.make_model(graph, opset_imports=[g.helper.make_opsetid("", 17)], ir_version=8)


def feed(program: ModelProto, past: int) -> dict[str, np.ndarray]:
    """Inputs of a step after so many tokens."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for info in program.graph.input:
        shape = [d.dim_value if d.HasField("dim_value") else past for d in info.type.tensor_type.shape.dim]
        drawn = rng.standard_normal(shape).astype("float32")
        found[info.name] = np.full(shape, 7, "int64") if info.name == "ids" else drawn
    return found
