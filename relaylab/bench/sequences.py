"""Networks of sequences in ONNX, of random weights: speech, text, recurrent ones, and control flow."""

from __future__ import annotations

import numpy as np

from relaylab.bench.onnx_graph import OnnxGraph, declared


@declared((1, 1, 4000))
def wavenet(g: OnnxGraph, x: str) -> str:
    """Ten gated convolutions that look back twice as far each (van den Oord et al., 2016)."""
    x, skips = g.conv(x, 1, 64, axes=1), []
    for k in range(10):
        tanh, gate = (g.conv(x, 64, 64, 2, axes=1, dilation=2**k, pads=[2**k, 0]) for _ in range(2))
        y = g.call("Mul", g.call("Tanh", tanh), g.call("Sigmoid", gate))
        skips.append(g.conv(y, 64, 64, axes=1))
        x = g.call("Add", x, g.conv(y, 64, 64, axes=1))
    total = skips[0]
    for skip in skips[1:]:
        total = g.call("Add", total, skip)
    return g.conv(g.call("Relu", g.conv(g.call("Relu", total), 64, 128, axes=1)), 128, 256, axes=1)


@declared((1, 80, 3000))
def whisper(g: OnnxGraph, x: str) -> str:
    """Two of the four layers of Whisper tiny's encoder (Radford et al., 2022): 30 seconds of sound."""
    x = g.gelu(g.conv(x, 80, 384, 3, axes=1))
    x = g.transpose(g.gelu(g.conv(x, 384, 384, 3, 2, axes=1, pads=[1, 1])), 0, 2, 1)
    x = g.call("Add", x, g.weight(1500, 384))
    for _ in range(2):
        x = g.encoder(x, 384, 6, 1500)
    return g.norm(x, 384)


def _root_mean_square(g: OnnxGraph, x: str, hidden: int) -> str:
    mean = g.call("ReduceMean", g.call("Pow", x, g.constant(2, "float32")), axes=[-1])
    root = g.call("Sqrt", g.call("Add", mean, g.constant(1e-6, "float32")))
    return g.call("Mul", g.call("Div", x, root), g.weight(hidden))


@declared((1, 128, 512))
def t5(g: OnnxGraph, x: str) -> str:
    """Two layers of T5-small's encoder (Raffel et al., 2019): scores are shifted by the distance of their places."""
    distance = np.clip(np.arange(128)[None] - np.arange(128)[:, None], -16, 15) + 16
    shift = g.transpose(g.call("Gather", g.weight(32, 8), g.constant(distance, "int64")), 2, 0, 1)
    shift = g.call("Unsqueeze", shift, g.constant([0], "int64"))
    for _ in range(2):
        x = g.call("Add", x, g.attention(_root_mean_square(g, x, 512), 512, 8, 128, bias=False, added=shift))
        wide = g.call("Relu", g.linear(_root_mean_square(g, x, 512), 512, 2048, bias=False))
        x = g.call("Add", x, g.linear(wide, 2048, 512, bias=False))
    return _root_mean_square(g, x, 512)


def _recurrent(g: OnnxGraph, kind: str, x: str, ins: int, hidden: int, gates: int, **attributes: object) -> str:
    sides = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = (
        g.weight(sides, gates * hidden, ins, fan=ins),
        g.weight(sides, gates * hidden, hidden, fan=hidden),
        g.weight(sides, 2 * gates * hidden, fan=hidden),
    )
    y, _ = g.several(kind, x, *weights, count=2, hidden_size=hidden, **attributes)
    return g.reshape(g.transpose(y, 0, 2, 1, 3), -1, 1, sides * hidden)


@declared((50, 1, 128))
def gru(g: OnnxGraph, x: str) -> str:
    """Two layers of 256, 50 steps."""
    x = _recurrent(g, "GRU", x, 128, 256, 3, linear_before_reset=1)
    return _recurrent(g, "GRU", x, 256, 256, 3, linear_before_reset=1)


@declared((50, 1, 128))
def bilstm(g: OnnxGraph, x: str) -> str:
    """Two layers of 128 in both directions, 50 steps."""
    x = _recurrent(g, "LSTM", x, 128, 128, 4, direction="bidirectional")
    return _recurrent(g, "LSTM", x, 256, 128, 4, direction="bidirectional")


@declared((16, 256))
def topk(g: OnnxGraph, x: str) -> str:
    """The 50 best of 4096 classes a row, their shares among zeros: TopK and ScatterND."""
    values, places = g.several("TopK", g.linear(x, 256, 4096), g.constant([50], "int64"), count=2)
    rows = g.constant(np.broadcast_to(np.arange(16)[:, None, None], (16, 50, 1)), "int64")
    at = g.call("Concat", rows, g.call("Unsqueeze", places, g.constant([2], "int64")), axis=2)
    return g.call("ScatterND", g.constant(np.zeros((16, 4096), "float32")), at, g.call("Softmax", values, axis=-1))


@declared((64, 256))
def experts(g: OnnxGraph, x: str) -> str:
    """Eight experts, of which each token takes the best: how many tokens an expert has, data decides (NonZero)."""
    axis, first = g.constant([1], "int64"), g.constant([0], "int64")
    shares = g.call("Softmax", g.linear(x, 256, 8), axis=1)
    best = g.call("ArgMax", shares, axis=1, keepdims=0)
    total = g.scaled(x, 0.0)
    for k in range(8):
        number = g.constant(k, "int64")
        at = g.call("Squeeze", g.call("NonZero", g.call("Equal", best, number)), first)
        mine = g.linear(g.call("Gather", x, at, axis=0), 256, 512)
        mine = g.linear(g.call("Mul", mine, g.call("Sigmoid", mine)), 512, 256)
        share = g.call("Gather", g.call("Gather", shares, at, axis=0), number, axis=1)
        mine = g.call("Mul", mine, g.call("Unsqueeze", share, axis))
        total = g.call("ScatterND", total, g.call("Unsqueeze", at, axis), mine, reduction="add")
    return total


@declared((1, 256))
def loop(g: OnnxGraph, x: str) -> str:
    """Twenty steps of a loop, of which each takes one of two ways by what it has found: Loop and If."""
    from onnx import TensorProto

    h, number = g.helper, g.helper.make_tensor_value_info
    product = g.weight(256, 256)
    value = lambda name: number(name, TensorProto.FLOAT, [1, 256])
    ways = [h.make_graph([h.make_node(kind, ["y"], [kind])], kind, [], [value(kind)]) for kind in ("Tanh", "Sigmoid")]
    zero, still = g.constant(0, "float32"), g.constant(True, "bool")
    body = [
        h.make_node("MatMul", ["state", product], ["y"]),
        h.make_node("ReduceSum", ["y"], ["sum"], keepdims=0),
        h.make_node("Greater", ["sum", zero], ["above"]),
        h.make_node("If", ["above"], ["next"], then_branch=ways[0], else_branch=ways[1]),
        h.make_node("Identity", ["on"], ["go"]),
    ]
    flag = lambda name: number(name, TensorProto.BOOL, [])
    ins = [number("turn", TensorProto.INT64, []), flag("on"), value("state")]
    graph = h.make_graph(body, "body", ins, [flag("go"), value("next")])
    return g.call("Loop", g.constant(20, "int64"), still, x, body=graph)
