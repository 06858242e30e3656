"""What onnxruntime's own optimisers write: its fused operators one by one, and whole models that it has rewritten."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import helper, imported, model, node_model, onnx, reference, run

from relaylab.ir import Constant, post_order
from relaylab.support.errors import RelayError

ort = pytest.importorskip("onnxruntime", reason="these operators are onnxruntime's own")
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def u(*shape):
    return RNG.integers(0, 255, shape).astype("uint8")


def i32(*values):
    return np.array(values, "int32")


def s(value):
    return np.array(value, "float32")


def bits(*shape):
    return RNG.integers(0, 2, shape).astype("int32")


SELF = {"x": f(2, 3, 8), "w": f(8, 24), "b": f(24)}
CROSS = {"q": f(2, 3, 8), "k": f(2, 5, 8), "v": f(2, 5, 6)}
SAME = {"q": f(2, 3, 8), "k": f(2, 3, 8), "v": f(2, 3, 8)}
GROUP = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3, "constants": ("n",)}
STEP = {"q": f(2, 1, 64), "k": f(2, 1, 32), "v": f(2, 1, 32), "pk": f(2, 2, 5, 16), "pv": f(2, 2, 5, 16)}
PACKED = {"q": f(1, 2, 128), "k": None, "v": None, "pk": f(1, 2, 12, 16), "pv": f(1, 2, 12, 16)}
TURNS = {"cos": f(20, 8), "sin": f(20, 8)}
LEFT = {"a": u(2, 5), "as": s(0.02), "az": np.uint8(120)}
RIGHT = {"b": u(5, 3), "bs": s([0.01, 0.02, 0.03]), "bz": np.array([130, 3, 4], "uint8")}
WHERE = {"x": u(2, 3), "xs": s(0.05), "xz": np.uint8(100), "y": u(2, 3), "ys": s(0.04), "yz": np.uint8(90),
         "zs": s(0.06), "zz": np.uint8(120)}  # fmt: skip
LAST = {"x": u(1, 5, 5, 2), "xs": s(0.02), "xz": np.uint8(120), "w": u(3, 2, 3, 3), "ws": s(0.01), "wz": np.uint8(130),
        "ys": s(0.1), "yz": np.uint8(128), "b": i32(5, 6, 7)}  # fmt: skip
CASES = [
    *[("Attention", {**SELF, "m": m}, {"num_heads": 2, "unidirectional": k % 2})
      for k, m in enumerate([i32(2, 3), bits(2, 3), i32(2, 3, 0, 1), bits(2, 3, 3)])],
    ("Attention", {**SELF, "m": bits(2, 7), "p": f(2, 2, 2, 4, 4)},
     {"num_heads": 2, "outputs": 2, "mask_filter_value": -5.0, "scale": 0.3}),
    ("Attention", {**SELF, "w": f(8, 22), "b": f(22), "m": None, "p": None, "e": f(2, 2, 3, 3)},
     {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 6]}),
    ("MultiHeadAttention", {**CROSS, "b": f(22), "m": i32(4, 5), "e": f(1, 2, 3, 5)}, {"num_heads": 2}),
    ("MultiHeadAttention", {"q": f(2, 3, 8), "k": f(2, 2, 5, 4), "v": f(2, 2, 5, 4), "b": f(24)}, {"num_heads": 2}),
    ("MultiHeadAttention", {**SAME, "b": f(24), "m": None, "e": None, "pk": f(2, 2, 4, 4), "pv": f(2, 2, 4, 4)},
     {"num_heads": 2, "outputs": 3, "unidirectional": 1}),
    ("QAttention", {"x": u(2, 3, 8), "w": u(8, 24), "b": f(24), "xs": s(0.02), "ws": s(0.01), "m": i32(2, 3),
                    "xz": np.uint8(120), "wz": np.uint8(130)}, {"num_heads": 2, "constants": ("w", "ws", "wz")}),
    *[("RotaryEmbedding", {"x": f(2, 3, 16), "p": p, "c": f(10, 4), "s": f(10, 4)}, {"interleaved": k})
      for k, p in enumerate([np.array([[0, 1, 2], [3, 4, 5]]), np.array([2])])],
    ("GroupQueryAttention", {"q": f(2, 3, 64), "k": f(2, 3, 32), "v": f(2, 3, 32), "pk": None, "pv": None,
                             "e": i32(2, 1), "n": i32(3)[0], **TURNS}, {**GROUP, "do_rotary": 1}),
    ("GroupQueryAttention", {**STEP, "e": i32(5, 3), "n": i32(6)[0], **TURNS}, {**GROUP, "do_rotary": 1}),
    ("GroupQueryAttention", {**PACKED, "e": i32(6), "n": i32(7)[0], **TURNS},
     {**GROUP, "do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 3, "softcap": 2.0, "scale": 0.3}),
    *[("MatMulNBits", {"a": f(3, 40), "b": u(6, 3, 2 * n), "s": f(18), "z": z, "g": None, "c": f(6)},
       {"constants": ("b", "s") if z is None else ("b", "s", "z"), "N": 6, "K": 40, "bits": n, "block_size": 16})
      for n, z in ((2, None), (4, u(12)), (4, f(18)), (8, u(18)))],
    *[("MatMulNBits", {"a": f(*lead, 48), "b": u(70, 3, 8), "s": f(210), "z": z, "g": None, "c": f(70)},
       {"constants": ("b", "s") if z is None else ("b", "s", "z"), "N": 70, "K": 48, "bits": 4, "block_size": 16,
        "accuracy_level": level})
      for lead, z, level in (((1,), None, 0), ((2, 7), u(140), 1), ((13,), f(210), 0), ((4,), u(140), 4))],
    *[("GatherBlockQuantized", {"d": u(6, 5 * n), "i": np.array([[1, 0], [4, 3]]), "s": f(6, 3), "z": z},
       {"constants": ("d", "s") if z is None else ("d", "s", "z"), "bits": n, "block_size": 16})
      for n, z in ((4, None), (4, u(6, 2)), (8, u(6, 3)))],
    ("QGemm", {**LEFT, **RIGHT, "c": i32(5, 6, 7), "ys": s(0.02), "yz": np.uint8(128)}, {}),
    ("QGemm", {**LEFT, **RIGHT, "b": u(3, 5), "c": i32(5, 6, 7)}, {"transB": 1, "alpha": 0.5}),
    ("MatMulIntegerToFloat", {"a": u(2, 5), "b": u(5, 3), "as": s(0.02), "bs": RIGHT["bs"], "az": np.uint8(120),
                              "bz": RIGHT["bz"], "c": f(3)}, {}),
    ("DynamicQuantizeMatMul", {"a": f(2, 5), **RIGHT, "c": f(3)}, {}),
    ("QLinearWhere", {"c": np.array([True, False, True]), **WHERE},
     {"constants": ("xs", "xz", "ys", "yz", "zs", "zz")}),
    ("QLinearConv", LAST, {"constants": tuple(LAST)[1:], "channels_last": 1, "pads": [1, 1, 1, 1]}),
    ("NhwcMaxPool", {"x": u(1, 6, 5, 2)}, {"kernel_shape": [2, 2], "strides": [2, 1]}),
    ("FusedGemm", {"a": f(2, 3), "b": f(4, 3), "c": f(4)},
     {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2}),
    ("FusedMatMul", {"a": f(4, 2, 5, 3), "b": f(6, 2, 5, 4)},
     {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
]  # fmt: skip


def near(got, want, tolerance=1e-4):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        one = 1 if w.dtype.kind in "ui" else 0  # a value between two integers goes to either
        np.testing.assert_allclose(g.astype("float64"), w.astype("float64"), tolerance, max(one, tolerance / 10))


@pytest.mark.parametrize(("name", "inputs", "more"), CASES, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(CASES)])
def test_as_onnxruntime_says(name, inputs, more):
    proto, free = node_model(name, inputs, domain="com.microsoft", **more)
    near(run(imported(proto), free), reference(proto, free))


@pytest.mark.parametrize("opset", [11, 13])
def test_quantized_softmax(opset):
    names, inputs = ["x", "xs", "xz", "ys", "yz"], {"x": u(2, 3, 4)}
    node = helper.make_node("QLinearSoftmax", names, ["y"], domain="com.microsoft", axis=1, opset=opset)
    known = {"xs": s(0.05), "xz": np.uint8(100), "ys": s(1 / 256), "yz": np.uint8(0)}
    proto = model([node], inputs, ["y"], known, domain="com.microsoft")
    near(run(imported(proto), inputs), reference(proto, inputs))


def optimised(proto, path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level, options.optimized_model_filepath = 4, str(path)
    ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path


def block():
    """A convolution with an activation, an encoder layer, a dense layer with an activation."""
    known = {"w": f(4, 3, 3, 3), "q": f(12, 12), "qb": f(12), "g": f(12), "b": f(12), "h": f(5, 48), "hb": f(5)}
    known |= {"shape": np.array([1, 4, 12]), "half": s(0.5), "one": s(1), "root": s(2**0.5), "scale": s(12**-0.5)}
    n = helper.make_node
    nodes = [
        n("Conv", ["x", "w"], ["c0"], strides=[2, 2], pads=[1, 1, 1, 1]), n("LeakyRelu", ["c0"], ["c1"], alpha=0.2),
        n("Reshape", ["c1", "shape"], ["t"]),
        n("MatMul", ["t", "q"], ["p0"]), n("Add", ["p0", "qb"], ["p"]), n("Transpose", ["p"], ["pt"], perm=[0, 2, 1]),
        n("MatMul", ["p", "pt"], ["a0"]), n("Mul", ["a0", "scale"], ["a1"]), n("Softmax", ["a1"], ["a2"]),
        n("MatMul", ["a2", "p"], ["a3"]), n("Add", ["a3", "t"], ["r"]),
        n("LayerNormalization", ["r", "g", "b"], ["l"]),
        n("Add", ["l", "qb"], ["e"]), n("Div", ["e", "root"], ["e0"]), n("Erf", ["e0"], ["e1"]),
        n("Add", ["e1", "one"], ["e2"]),
        n("Mul", ["e", "e2"], ["e3"]), n("Mul", ["e3", "half"], ["e4"]),
        n("Flatten", ["e4"], ["f"]), n("Gemm", ["f", "h", "hb"], ["h0"], transB=1), n("Relu", ["h0"], ["y"]),
    ]  # fmt: skip
    inputs = {"x": f(1, 3, 8, 6)}
    return model(nodes, inputs, ["y"], known), inputs


def test_a_model_that_onnxruntime_has_optimised(tmp_path):
    proto, inputs = block()
    path = optimised(proto, tmp_path / "m.onnx")
    written = {n.op_type for n in onnx.load(path).graph.node if n.domain == "com.microsoft"}
    assert {"FusedConv", "SkipLayerNormalization", "FusedGemm", "FusedMatMul"} <= written
    near(run(imported(path), inputs), reference(proto, inputs))


def test_layouts_of_one_cpu_are_refused_by_name():
    with pytest.raises(RelayError, match=r"com.microsoft.nchwc.Conv") as info:
        imported(node_model("Conv", {"x": f(1, 8, 4, 4), "w": f(8, 8, 1, 1)}, domain="com.microsoft.nchwc")[0])
    assert info.value.code == "import.unsupported" and "ORT_ENABLE_EXTENDED" in info.value.help


@pytest.mark.parametrize(
    ("name", "inputs", "more", "code"),
    [
        ("Attention", {**SELF, "m": bits(2, 1, 3, 3)}, {"num_heads": 2}, "import.shape"),
        ("Attention", SELF, {"num_heads": 3, "qkv_hidden_sizes": [8, 8, 8]}, "import.shape"),
        ("Attention", SELF, {"num_heads": 2, "do_rotary": 1}, "import.attribute"),
        ("MultiHeadAttention", {"q": f(2, 3, 2, 3, 4)}, {"num_heads": 2}, "import.input"),
        ("GroupQueryAttention", {**STEP, "e": i32(5, 3), "n": i32(6)[0]}, {**GROUP, "num_heads": 3}, "import.shape"),
        ("GroupQueryAttention", {**STEP, "e": i32(5, 3), "n": i32(6)[0]}, {**GROUP, "smooth_softmax": 1},
         "import.attribute"),
        ("GroupQueryAttention", {**STEP, "e": i32(5, 3), "n": i32(6)[0]}, {**GROUP, "do_rotary": 1}, "import.arity"),
        ("MatMulNBits", {"a": f(3, 40), "b": u(6, 3, 7), "s": f(18)},
         {"constants": ("b", "s"), "N": 6, "K": 40, "bits": 4, "block_size": 16}, "import.shape"),
        ("FusedGemm", {"a": f(2, 3), "b": f(3, 4)}, {"activation": "Telepathy"}, "import.attribute"),
    ],
)  # fmt: skip
def test_what_is_refused_says_why(name, inputs, more, code):
    with pytest.raises(RelayError) as info:
        imported(node_model(name, inputs, domain="com.microsoft", **more)[0])
    assert info.value.code == code and f"{name} `out0` (node 0 of the graph)" in info.value.place, info.value


FEW = {"INT4": (-8, 8), "UINT4": (0, 16), "INT2": (-2, 2), "UINT2": (0, 4)}


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("raw", [False, True])
def test_weights_of_a_few_bits_are_dequantized(kind, raw):
    """Against the formula: (q - z) s, each scale for a block of 16; packed here bit by bit, the lowest first."""
    number, low, high = getattr(onnx.TensorProto, kind), *FEW[kind]
    q, z, scale, inputs = RNG.integers(low, high, (5, 33)), RNG.integers(low, high, (5, 3)), f(5, 3), {"x": f(2, 5)}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1, block_size=16),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = model(nodes, inputs, ["y"], {"s": scale}, opset=25)
    for name, values in (("q", q), ("z", z)):
        tensor = helper.make_tensor(name, number, values.shape, values.ravel().tolist())
        if raw:
            each = int(kind[-1])
            spread = (values.ravel()[:, None] >> np.arange(each) & 1).astype("uint8").ravel()
            data = np.packbits(spread, bitorder="little").tobytes()
            tensor = onnx.TensorProto(name=name, data_type=number, dims=values.shape, raw_data=data)
        proto.graph.initializer.append(tensor)
    wide = lambda v: np.repeat(v, 16, 1)[:, :33]
    near(run(imported(proto), inputs), [inputs["x"] @ ((q - wide(z)) * wide(scale)).astype("float32")])


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_blocks_of_4_bits_stay_packed(kind):
    """Against the formula, and against what is in the program: the numbers in words, and no matrix of floats."""
    low, high = FEW[kind]
    q, z, scale = RNG.integers(low, high, (32, 40)), RNG.integers(low, high, (2, 40)), f(2, 40)
    inputs = {"x": f(2, 3, 32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = model(nodes, inputs, ["y"], {"s": scale}, opset=21)
    for name, values in (("q", q), ("z", z)):
        tensor = helper.make_tensor(name, getattr(onnx.TensorProto, kind), values.shape, values.ravel().tolist())
        proto.graph.initializer.append(tensor)
    mod = imported(proto)
    wide = lambda v: np.repeat(v, 16, 0)
    near(run(mod, inputs), [inputs["x"] @ ((q - wide(z)) * wide(scale)).astype("float32")])
    sizes = [n.data.numpy().nbytes for n in post_order(mod["main"]) if isinstance(n, Constant)]
    assert "nn.contrib_dense_uint4" in str(mod) and max(sizes) == 32 // 2 * 64  # in panels of 64 columns


def test_weights_of_a_few_bits_that_something_else_reads_are_refused():
    proto = model([helper.make_node("Identity", ["q"], ["y"])], {"x": f(2)}, ["y"], opset=21)
    proto.graph.initializer.append(helper.make_tensor("q", onnx.TensorProto.INT4, [2], [1, 2]))
    with pytest.raises(RelayError, match="INT4") as info:
        imported(proto)
    assert info.value.code == "import.dtype"
    proto.graph.node[0].CopyFrom(helper.make_node("DequantizeLinear", ["q", "s"], ["y"]))
    proto.graph.initializer.append(helper.make_tensor("s", 1, [], [0.5]))
    proto.graph.initializer[0].int32_data.append(0)
    with pytest.raises(RelayError, match="2 bytes for the shape") as info:
        imported(proto)
    assert info.value.code == "import.tensor"


@pytest.mark.parametrize("directions", [1, 2])
def test_a_dynamically_quantized_lstm(directions):
    """On one thread: with more, onnxruntime quantizes parts of the batch on their own."""
    d, step = directions, lambda: np.abs(f(directions)) * 0.02
    weights = {
        "w": u(d, 4, 24),
        "r": u(d, 6, 24),
        "b": f(d, 48),
        "l": None,
        "h": f(d, 3, 6),
        "c": f(d, 3, 6),
        "p": None,
    }
    inputs = {"x": f(5, 3, 4), **weights, "ws": step(), "wz": u(d), "rs": step(), "rz": u(d)}
    more = {"hidden_size": 6, "direction": "bidirectional" if d == 2 else "forward", "outputs": 3}
    fixed = ("w", "r", "ws", "wz", "rs", "rz")
    proto, free = node_model("DynamicQuantizeLSTM", inputs, constants=fixed, domain="com.microsoft", **more)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    near(run(imported(proto), free), session.run(None, free))
