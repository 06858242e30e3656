"""Operators of the domain com.microsoft and integer convolutions, against onnxruntime, which defines them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import imported, node_model, reference, run

from relaylab import relay

RNG = np.random.default_rng(0)
CONTRIB = {"domain": "com.microsoft"}


def f(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def u(*shape):
    return RNG.integers(0, 255, shape).astype("uint8")


def quantized(name: str, scale: float, zero: int, *shape: int):
    return {name: u(*shape), f"{name}_scale": np.array(scale, "float32"), f"{name}_zero": np.array(zero, "uint8")}


def result(scale: float, zero: int):
    return {"scale": np.array(scale, "float32"), "zero": np.array(zero, "uint8")}


WORDS = {
    "w": np.array([[1, 2, 3]], "int32"),
    "s": np.array([[0, 1, 0]], "int32"),
    "we": f(5, 4),
    "pe": f(6, 4),
    "se": f(2, 4),
    "g": f(4),
    "b": f(4),
}
CONV = {
    **quantized("x", 0.1, 128, 1, 2, 5, 5),
    "w": u(3, 2, 3, 3),
    "ws": np.array([0.1, 0.2, 0.3], "float32"),
    "wz": np.full(3, 120, "uint8"),
    **result(20.0, 120),
    "b": np.array([1, 2, 3], "int32"),
}
CASES = [
    ("BiasGelu", {"x": f(2, 3, 4), "b": f(4)}, CONTRIB), ("FastGelu", {"x": f(2, 4), "b": f(4)}, CONTRIB),
    ("QuickGelu", {"x": f(2, 4)}, CONTRIB), ("Gelu", {"x": f(2, 4)}, CONTRIB),
    ("SkipLayerNormalization", {"x": f(2, 3, 4), "s": f(2, 3, 4), "g": f(4), "b": f(4), "c": f(4)}, CONTRIB),
    ("SkipSimplifiedLayerNormalization", {"x": f(2, 3, 4), "s": f(2, 3, 4), "g": f(4)}, CONTRIB),
    ("SimplifiedLayerNormalization", {"x": f(2, 4), "s": f(4)}, {}),
    ("EmbedLayerNormalization", WORDS, {**CONTRIB, "outputs": 2}),
    ("Attention", {"x": f(2, 3, 8), "w": f(8, 24), "b": f(24)}, {**CONTRIB, "num_heads": 2}),
    ("Attention", {"x": f(2, 3, 8), "w": f(8, 24), "b": f(24)}, {**CONTRIB, "num_heads": 2, "unidirectional": 1}),
    ("FusedMatMul", {"a": f(2, 3, 4), "b": f(2, 5, 4)}, {**CONTRIB, "transB": 1, "alpha": 0.5}),
    ("FusedConv", {"x": f(1, 2, 5, 5), "w": f(3, 2, 3, 3), "b": f(3)},
      {**CONTRIB, "activation": "LeakyRelu", "activation_params": [0.2]}),
    ("QLinearAdd", {**quantized("a", 0.1, 3, 2, 3), **quantized("b", 0.2, 5, 3), **result(0.3, 7)}, CONTRIB),
    ("QLinearMul", {**quantized("a", 0.1, 3, 2, 3), **quantized("b", 0.2, 5, 3), **result(0.9, 7)}, CONTRIB),
    ("QLinearSigmoid", {**quantized("a", 0.1, 128, 20), **result(0.004, 0)}, CONTRIB),
    ("QLinearLeakyRelu", {**quantized("a", 0.1, 128, 20), **result(0.1, 100)}, {**CONTRIB, "alpha": 0.2}),
    ("QLinearGlobalAveragePool", {**quantized("a", 0.1, 128, 1, 2, 3, 3), **result(0.1, 100)}, CONTRIB),
    ("QLinearAveragePool", {**quantized("a", 0.1, 128, 1, 2, 4, 4), **result(0.1, 100)},
      {**CONTRIB, "kernel_shape": [2, 2]}),
    ("QLinearConcat", {**result(0.1, 100), **quantized("a", 0.1, 128, 2, 3), **quantized("b", 0.2, 5, 2, 3)},
      {**CONTRIB, "axis": 1}),
    ("QLinearConv", CONV, {"constants": ("x_scale", "x_zero", "ws", "wz", "scale", "zero"), "pads": [1, 1, 1, 1]}),
    ("ConvInteger", {"x": u(1, 2, 5, 5), "w": u(3, 2, 3, 3), "z": np.array(128, "uint8")}, {"pads": [1, 1, 1, 1]}),
    ("MatMulInteger", {"x": u(2, 5), "w": u(5, 3), "z": np.array(128, "uint8"), "y": np.array([1, 2, 3], "uint8")}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "more"), CASES, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(CASES)])
def test_as_onnxruntime_says(name, inputs, more):
    pytest.importorskip("onnxruntime", reason="these operators are onnxruntime's own")
    proto, free = node_model(name, inputs, **more)
    for got, want in zip(run(imported(proto), free), reference(proto, free)):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        one = 1 if want.dtype == np.uint8 else 0  # a value between two integers goes to either
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=1e-4, atol=max(one, 1e-5))


def i(*shape, high: int = 2):
    return RNG.integers(0, high, shape).astype("int32")


QKV = {"q": ("b", "s", 8), "k": ("b", "s", 8), "v": ("b", "s", 8)}
PAST = {"pk": ("b", 2, "p", 4), "pv": ("b", 2, "p", 4)}
GROUP = {"q": ("b", "s", 16), "k": ("b", "s", 8), "v": ("b", "s", 8), **PAST}
TURNS = {"cos": f(20, 2), "sin": f(20, 2)}
STEP = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
OPEN = [
    ("Attention", {"x": ("b", "s", 8), "w": f(8, 24), "a": f(24), "m": i}, {"m": ("b", "s")}, {"num_heads": 2}),
    ("Attention", {"x": ("b", "s", 8), "w": f(8, 24), "a": f(24), "m": i}, {"m": ("b",)}, {"num_heads": 2}),
    ("Attention", {"x": ("b", "s", 8), "w": f(8, 24), "a": f(24), "m": None, "p": (2, "b", 2, "p", 4)}, {},
     {"num_heads": 2, "unidirectional": 1, "outputs": 2}),
    ("MultiHeadAttention", {"q": ("b", "s", 8), "k": ("b", "t", 8), "v": ("b", "t", 8), "a": f(24), "m": i},
     {"m": ("b", "t")}, {"num_heads": 2}),
    ("MultiHeadAttention", {**QKV, "a": None, "m": None, "e": None, **PAST}, {},
     {"num_heads": 2, "unidirectional": 1, "outputs": 3}),
    ("RotaryEmbedding", {"x": ("b", "s", 8), "p": np.array([3]), **TURNS}, {}, {"num_heads": 2}),
    ("EmbedLayerNormalization", {"w": i, "t": i, "a": f(9, 4), "p": f(9, 4), "s": f(2, 4),
                                 "g": f(4), "c": f(4), "m": i},
     {"w": ("b", "s"), "t": ("b", "s"), "m": ("b", "s")}, {"outputs": 2}),
    ("GroupQueryAttention", {**GROUP, "e": i, "n": i, **TURNS}, {"e": ("b",), "n": ()}, {**STEP, "outputs": 3}),
    ("GroupQueryAttention", {**GROUP, "pk": None, "pv": None, "e": i, "n": i}, {"e": ("b",), "n": ()},
     {**STEP, "do_rotary": 0, "local_window_size": 2, "outputs": 3}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "inputs", "integers", "more"), OPEN, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(OPEN)]
)
def test_attention_of_open_sizes(name, inputs, integers, more):
    """The same as with numbers for the sizes, which onnxruntime says."""
    open_ = {n: s for n, s in inputs.items() if isinstance(s, tuple)} | integers

    def given(**sizes):
        made = {n: (i if n in integers else f)(*(sizes.get(d, d) for d in s)) for n, s in open_.items()}
        if name.startswith("Group"):  # the last place of each sequence, and how many keys there are
            total = sizes["s"] + (sizes["p"] if inputs["pk"] else 0)
            made |= {"e": np.full(sizes["b"], total - 1, "int32"), "n": np.array(total, "int32")}
        return {n: made.get(n, v) for n, v in inputs.items()}

    fixed = tuple(n for n, v in inputs.items() if isinstance(v, np.ndarray))
    first = {"b": 2, "s": 3, "t": 5, "p": 4}
    proto, _ = node_model(name, given(**first), constants=fixed, **CONTRIB, **more)
    for info in proto.graph.input:
        for d, said in zip(info.type.tensor_type.shape.dim, open_[info.name]):
            d.CopyFrom(type(d)(dim_param=said) if isinstance(said, str) else d)
    machine = relay.vm.VirtualMachine(relay.vm.compile(imported(proto), "llvm"))
    for sizes in (first, {"b": 1, "s": 1, "t": 2, "p": 6}, {"b": 3, "s": 5, "t": 5, "p": 0}):
        proto, free = node_model(name, given(**sizes), constants=fixed, **CONTRIB, **more)
        values = {"n": free["n"]} if "n" in integers else {}
        want = run(imported(proto, values=values), {n: v for n, v in free.items() if n not in values})
        got = machine.invoke("main", *free.values())
        for g, w in zip(got if len(want) > 1 else [got], want, strict=True):
            np.testing.assert_allclose(g.numpy(), w, 1e-4, 1e-5)
