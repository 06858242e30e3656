"""Operators over opsets, attributes, odd axes and left out inputs, against another runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import compare, node_model, reference, run

from relaylab import relay, transform
from relaylab.runtime import cpu, graph_executor

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)


def f(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


X = f(2, 3, 4, 5)
ROUNDING = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
TIES, PADDING = np.arange(-7, 8, dtype="float32"), ("zeros", "border", "reflection")
IMAGE, KERNEL = f(1, 4, 9, 8), f(6, 4, 3, 3)
# operator, inputs, attributes: `opset`, `outputs`, `constants` (names of inputs that are initializers), `domain`
CASES: list[tuple] = [
    *[(name, {"x": f(2, 3)}, {})
      for name in ("Abs", "Ceil", "Floor", "Exp", "Neg", "Tanh", "Sigmoid", "Sin", "Erf", "Round", "Sign", "Softsign")],
    *[(name, {"a": f(2, 1, 4), "b": f(3, 1)}, {"opset": opset}) for name in ("Add", "Sub", "Mul", "Div")
      for opset in (7, 13, 14)],
    *[(name, {"a": f(2, 4), "b": f(2, 4)}, {"opset": opset}) for name in ("Max", "Min", "Sum", "Mean")
      for opset in (8, 13)],
    *[("Softmax", {"x": X}, {"opset": 13, "axis": a}) for a in (0, 1, -1, 3)],
    ("Clip", {"x": f(3, 4)}, {"opset": 6, "min": -0.5}),
    ("Clip", {"x": f(3, 4), "low": None, "high": np.float32(0.5)}, {"opset": 13}),
    ("Clip", {"x": f(3, 4), "low": np.float32(-1), "high": np.float32(0.5)},
      {"opset": 11, "constants": ("low", "high")}),
    ("Clip", {"x": ints(-5, 0, 7), "low": np.int64(-1), "high": np.int64(3)},
      {"opset": 13, "constants": ("low", "high")}),
    ("Pow", {"x": f(3, low=0.1), "y": np.array(2, "int64")}, {"opset": 15}),
    ("Pow", {"x": ints(1, 2, 3), "y": np.array([2.0, 1.0, 3.0], "float32")}, {"opset": 15}),
    ("Mod", {"a": ints(-7, 7, -7, 7), "b": ints(3, 3, -3, -3)}, {}),
    ("Mod", {"a": f(6), "b": f(6, low=0.3)}, {"fmod": 1}),
    *[("Reshape", {"x": f(2, 3, 4), "s": ints(*s)}, {"constants": ("s",)})
      for s in ((0, -1), (4, 0, 2), (-1,), (2, 1, 12))],
    ("Reshape", {"x": np.zeros((0, 3), "float32"), "s": ints(3, 0)}, {"constants": ("s",), "allowzero": 1}),
    ("Reshape", {"x": f(1, 1), "s": np.zeros(0, "int64")}, {"constants": ("s",)}),
    *[("Transpose", {"x": X}, a) for a in ({}, {"perm": [0, 2, 3, 1]})],
    *[("Flatten", {"x": X}, {"axis": a}) for a in (0, 1, 2, 4, -1)],
    *[("Squeeze", {"x": f(1, 3, 1, 2)}, {"opset": 11, **a}) for a in ({}, {"axes": [0]}, {"axes": [-2]})],
    ("Squeeze", {"x": f(1, 3, 1, 2), "axes": ints(2, 0)}, {"constants": ("axes",)}),
    ("Unsqueeze", {"x": f(2, 3)}, {"opset": 11, "axes": [0, 3]}),
    ("Unsqueeze", {"x": f(2, 3), "axes": ints(-1, 1)}, {"constants": ("axes",)}),
    ("Concat", {"a": f(2, 3), "b": f(2, 1), "c": f(2, 2)}, {"axis": -1}),
    ("Split", {"x": f(2, 6)}, {"opset": 11, "axis": -1, "outputs": 3}),
    ("Split", {"x": f(2, 6)}, {"opset": 11, "axis": 1, "split": [1, 2, 3], "outputs": 3}),
    ("Split", {"x": f(7, 2)}, {"opset": 18, "num_outputs": 3, "outputs": 3}),
    ("Slice", {"x": X}, {"opset": 9, "starts": [1, -3], "ends": [2**31, -1], "axes": [0, 2]}),
    *[("Slice", {"x": X, "b": ints(*b), "e": ints(*e), "a": ints(*a), "s": ints(*s)}, {"constants": tuple("beas")})
      for b, e, a, s in [((0, 1), (2**63 - 1, -1), (1, -1), (1, 2)), ((-1,), (-(2**63),), (2,), (-1,)),
                         ((3,), (0,), (3,), (-2,)), ((5,), (9,), (2,), (1,))]],
    ("Slice", {"x": X, "b": ints(1), "e": ints(3)}, {"constants": ("b", "e")}),
    ("Pad", {"x": f(2, 3)}, {"opset": 10, "pads": [0, 1, 2, 0], "value": 1.5}),
    *[("Pad", {"x": f(4, 5), "p": ints(1, 2, 0, 1)}, {"constants": ("p",), "mode": m})
      for m in ("constant", "reflect", "edge")],
    ("Pad", {"x": f(4, 5), "p": ints(-1, 2, 0, -1)}, {"constants": ("p",)}),
    ("Pad", {"x": ints(1, 2), "p": ints(1, 1), "v": np.int64(7)}, {"constants": ("p", "v")}),
    ("Expand", {"x": f(3, 1), "s": ints(2, 1, 4)}, {"constants": ("s",)}),
    ("Tile", {"x": f(2, 3), "r": ints(2, 1)}, {"constants": ("r",)}),
    *[("Gather", {"x": X, "i": i}, {"axis": a}) for a in (0, 2, -1)
      for i in (ints(0, -1), np.array([[1], [0]]), np.int64(1))],
    ("GatherElements", {"x": f(3, 3), "i": np.array([[0, -1], [2, 1]])}, {"axis": 1}),
    *[("GatherND", {"x": f(2, 3, 4), "i": i}, {"opset": 13, "batch_dims": b})
      for b, i in ((0, np.array([[0, 1], [1, -1]])), (1, np.array([[0], [2]])))],
    ("ScatterElements", {"x": f(3, 3), "i": np.array([[1, 0, 2], [0, 2, 1]]), "u": f(2, 3)}, {"axis": 0}),
    ("ScatterND", {"x": f(4, 3), "i": np.array([[3], [-4]]), "u": f(2, 3)}, {}),
    ("OneHot", {"i": ints(0, 2, -1), "d": ints(4), "v": np.array([0, 5], "float32")}, {"axis": 0, "constants": ("d",)}),
    *[("ReduceMean", {"x": X}, {"opset": 13, "keepdims": k, **a}) for k in (0, 1)
      for a in ({}, {"axes": [1]}, {"axes": [-1, 0]})],
    *[(n, {"x": f(2, 3, 4, low=0.2)}, {"opset": 13, "axes": [1]})
      for n in "ReduceMax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare".split()],
    ("ReduceSum", {"x": X, "axes": ints(1, -1)}, {"constants": ("axes",), "keepdims": 0}),
    ("ReduceSum", {"x": X, "axes": np.zeros(0, "int64")}, {"constants": ("axes",), "noop_with_empty_axes": 1}),
    *[("ArgMax", {"x": f(3, 4)}, {"axis": a, "keepdims": k}) for a, k in ((0, 1), (-1, 0))],
    ("TopK", {"x": f(3, 6), "k": ints(2)}, {"outputs": 2, "axis": -1, "largest": 0, "constants": ("k",)}),
    *[("CumSum", {"x": f(3, 4), "axis": np.int32(1)}, {"constants": ("axis",), "exclusive": e, "reverse": r})
      for e in (0, 1) for r in (0, 1)],
    *[("MatMul", {"a": f(*a), "b": f(*b)}, {})
      for a, b in [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
      ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((2, 5, 2, 3), (2, 5, 3, 4))]],
    *[("Gemm", {"a": f(*a), "b": f(*b), "c": c}, {"transA": t, "transB": u, "alpha": 0.5, "beta": 2.0})
      for a, b, c, t, u in [((2, 3), (3, 4), f(4), 0, 0), ((3, 2), (4, 3), f(2, 1), 1, 1),
                            ((2, 3), (3, 1), f(1), 0, 0), ((2, 3), (3, 4), None, 0, 0)]],
    *[("Conv", {"x": IMAGE, "w": KERNEL, "b": b}, a) for b in (None, f(6))
      for a in ({}, {"pads": [1, 0, 2, 1], "strides": [2, 1]}, {"dilations": [2, 2]}, {"auto_pad": "VALID"},
                {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER", "strides": [2, 3]})],
    ("Conv", {"x": IMAGE, "w": f(8, 2, 3, 3)}, {"group": 2}),
    ("Conv", {"x": IMAGE, "w": f(4, 1, 3, 3)}, {"group": 4}),
    ("Conv", {"x": f(1, 2, 9), "w": f(3, 2, 3)}, {"pads": [1, 1]}),
    ("Conv", {"x": f(1, 2, 5, 6, 4), "w": f(3, 2, 3, 2, 2)}, {"strides": [2, 1, 1]}),
    *[("ConvTranspose", {"x": f(1, 3, 4, 5), "w": f(3, 2, 3, 3)}, a)
      for a in ({}, {"strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}, {"strides": [2, 3]})],
    *[("MaxPool", {"x": IMAGE}, {"kernel_shape": [3, 3], **a})
      for a in ({}, {"strides": [2, 2], "ceil_mode": 1}, {"pads": [1, 1, 0, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]})],
    *[("AveragePool", {"x": IMAGE}, {"kernel_shape": [3, 2], **a})
      for a in ({}, {"pads": [1, 1, 1, 0], "strides": [2, 2]}, {"pads": [1, 1, 1, 0], "count_include_pad": 1})],
    ("BatchNormalization", {"x": X, "s": f(3), "b": f(3), "m": f(3), "v": f(3, low=0.5)}, {"epsilon": 1e-3}),
    ("InstanceNormalization", {"x": X, "s": f(3), "b": f(3)}, {}),
    *[("LayerNormalization", {"x": X, "s": f(*X.shape[a:]), "b": f(*X.shape[a:])}, {"axis": a}) for a in (-1, 2)],
    *[("LRN", {"x": X}, {"size": s, "alpha": 0.1}) for s in (1, 3)],
    *[("DepthToSpace", {"x": f(1, 8, 2, 3)}, {"blocksize": 2, "mode": m}) for m in ("DCR", "CRD")],
    *[("Trilu", {"x": f(3, 4), "k": k}, {"upper": u}) for u in (0, 1) for k in (None, np.int64(-1), np.int64(1))],
    *[("Einsum", {"a": f(2, 3), "b": f(3, 4)}, {"equation": e}) for e in ("ij,jk->ik", "ij, jk -> k", "ij,jk->ki")],
    *[("GridSample", {"x": f(1, 2, 4, 5), "g": np.stack(np.meshgrid(TIES / (5 - a), TIES / 4), -1)[None]},
      {"mode": "nearest", "padding_mode": p, "align_corners": a}) for a in (0, 1) for p in PADDING],
    *[("GridSample", {"x": f(1, 2, 4, 5), "g": f(1, 3, 4, 2, low=-1.5, high=1.5)},
      {"mode": "cubic", "padding_mode": p, "align_corners": a, "opset": 20}) for a in (0, 1) for p in PADDING],
    ("Where", {"c": np.array([[True], [False]]), "x": f(2, 3), "y": f(3)}, {}),
    ("Cast", {"x": f(2, 3) * 5}, {"to": 6}), ("Cast", {"x": np.array([0.0, 0.3, -1.0], "float32")}, {"to": 9}),
    ("Cast", {"x": ints(0, 3)}, {"to": 1}),
    *[("Shape", {"x": X}, a) for a in ({}, {"start": 1}, {"start": -2, "end": -1})],
    ("Range", {"a": np.float32(1), "b": np.float32(3), "c": np.float32(0.7)}, {"constants": tuple("abc")}),
    ("HardSigmoid", {"x": f(5) * 3}, {}), ("HardSwish", {"x": f(5) * 3}, {}), ("Celu", {"x": f(5)}, {"alpha": 0.7}),
    ("PRelu", {"x": X, "s": f(3, 1, 1)}, {}),
    ("QuantizeLinear", {"x": f(3, 4), "s": np.float32(0.03), "z": np.uint8(120)}, {}),
    ("DequantizeLinear",
      {"x": np.arange(6, dtype="int8").reshape(2, 3), "s": f(2, low=0.1), "z": np.array([1, 2], "int8")}, {"axis": 0}),
    ("QLinearMatMul",
      {"a": np.arange(6, dtype="uint8").reshape(2, 3), "as": np.float32(0.1), "az": np.uint8(3),
        "b": np.arange(12, dtype="uint8").reshape(3, 4),
      "bs": np.float32(0.2), "bz": np.uint8(5), "ys": np.float32(0.05), "yz": np.uint8(100)}, {}),
    *[("Flatten", {"x": np.zeros(s, "float32")}, {"axis": a}) for s, a in (((2, 0, 3), 2), ((0,), 0))],
    *[("TopK", {"x": f(3, 6), "k": ints(0)}, {"outputs": 2, "axis": 0, "constants": c}) for c in ((), ("k",))],
    ("Expand", {"x": np.float32(3), "s": ints(0)}, {}), ("Tile", {"x": np.float32(3), "r": ints()}, {}),
    ("Sign", {"x": np.array([np.nan, -2, 0, 3], "float32")}, {}),
    ("BatchNormalization", {"x": f(2, 3, 4), **{n: f(3, 4, low=0.1) for n in "sbmv"}}, {"opset": 7, "spatial": 0}),
    ("SimplifiedLayerNormalization", {"x": f(2, 3, 4), "s": f(3, 4)}, {"axis": 1}),
    *[("Resize", {"x": f(1, 1, n), "s": np.array([1, 1, s], "float32")},
      {"opset": 10, "mode": "nearest", "constants": ("s",)}) for n, s in ((17, 0.6), (19, 1.1))],
]  # fmt: skip
# where ONNX's own evaluator gives another type, scale or extent
OTHERWISE: list[tuple] = [
    ("LayerNormalization", {"x": f(2, 5).astype("float64"), **{n: f(5).astype("float64") for n in "sb"}},
      {"outputs": 3}),
    ("DynamicQuantizeLinear", {"x": np.zeros(3, "float32")}, {"outputs": 3}),
    *[("Resize", {"x": f(1, 1, 20), "r": None, "s": np.array([1, 1, 2.3], "float32")},
      {"constants": ("s",), "coordinate_transformation_mode": m, "nearest_mode": r})
      for m in ("asymmetric", "half_pixel") for r in ROUNDING],
]  # fmt: skip
NAMES = [f"{name}-{k}" for k, (name, *_) in enumerate(CASES)]


def built(case):
    name, inputs, more = case
    return node_model(name, inputs, **more)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_as_onnx_says(case):
    proto, inputs = built(case)
    mod, _ = relay.frontend.from_onnx(proto)
    compare(run(mod, inputs), reference(proto, inputs))


@pytest.mark.parametrize("case", OTHERWISE, ids=[f"{name}-{k}" for k, (name, *_) in enumerate(OTHERWISE)])
def test_as_onnxruntime_says(case):
    pytest.importorskip("onnxruntime", reason="ONNX's own evaluator gives something else")
    test_as_onnx_says(case)


@pytest.mark.parametrize(
    "case",
    [
        c
        for c in CASES
        if c[0] in ("Conv", "Gemm", "MatMul", "MaxPool", "AveragePool", "ConvTranspose", "LayerNormalization")
    ][::3],
    ids=lambda c: c[0],
)
def test_compiled(case):
    proto, inputs = built(case)
    mod, params = relay.frontend.from_onnx(proto)
    with transform.PassContext(opt_level=3):
        module = graph_executor.GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    compare([module.get_output(k).numpy() for k in range(module.get_num_outputs())], reference(proto, inputs), 1e-4)


HALF = [
    ("RMSNormalization", (64,), "s", {"opset": 23}),
    ("SimplifiedLayerNormalization", (64,), "s", {}),
    ("LayerNormalization", (64,), "s", {"outputs": 3}),
    ("LayerNormalization", (64,), "sb", {}),
    ("InstanceNormalization", (4, 16), "sb", {}),
    ("GroupNormalization", (4, 16), "sb", {"opset": 21, "num_groups": 2}),
]


@pytest.mark.parametrize(("name", "shape", "vectors", "more"), HALF, ids=[name for name, *_ in HALF])
def test_squares_of_16_bits_do_not_overflow(name, shape, vectors, more):
    """As of float32: ONNX's own evaluator computes in 16 bits, and squares are infinite there."""
    half = {n: v.astype("float16") for n, v in {"x": f(2, *shape) * 1500, **{n: f(shape[0]) for n in vectors}}.items()}
    proto, inputs = node_model(name, half, **more)
    want = reference(*node_model(name, {n: v.astype("float32") for n, v in half.items()}, **more))
    mod = relay.frontend.from_onnx(proto)[0]
    for executor in ("debug", "graph"):
        compare(run(mod, inputs, executor), [want[0].astype("float16"), *want[1:]], 1e-3)


def recurrent(kind: str, gates: int, directions: int, **more):
    steps, batch, size, hidden = 4, 2, 3, 5
    inputs = {
        "x": f(steps, batch, size),
        "w": f(directions, gates * hidden, size),
        "r": f(directions, gates * hidden, hidden),
        "b": f(directions, 2 * gates * hidden),
        "l": more.pop("l", None),
        "h": more.pop("h", None),
    }
    if kind == "LSTM":
        inputs |= {"c": more.pop("c", None), "p": more.pop("p", None)}
    return node_model(
        kind, inputs, outputs=3 if kind == "LSTM" else 2, hidden_size=hidden, constants=("w", "r", "b"), **more
    )


DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
RECURRENT = [(k, g, d, {}) for k, g in (("RNN", 1), ("GRU", 3), ("LSTM", 4)) for d in DIRECTIONS] + [
    ("GRU", 3, "bidirectional", {"linear_before_reset": 1, "h": f(2, 2, 5)}),
    ("LSTM", 4, "bidirectional", {"h": f(2, 2, 5), "c": f(2, 2, 5), "p": f(2, 15)}),
    ("LSTM", 4, "reverse", {"l": np.array([4, 2], "int32")}),
    ("GRU", 3, "bidirectional", {"l": np.array([1, 3], "int32")}),
    ("RNN", 1, "forward", {"activations": ["Relu"], "clip": 0.7}),
    ("GRU", 3, "forward", {"activations": ["Elu", "Affine"], "activation_alpha": [0.8, 0.3], "activation_beta": [0.4]}),
    ("LSTM", 4, "forward", {"activations": ["HardSigmoid", "Softsign", "Tanh"], "input_forget": 0}),
]


@pytest.mark.parametrize(
    ("kind", "gates", "direction", "more"), RECURRENT, ids=[f"{k}-{d}-{'-'.join(m)}" for k, _, d, m in RECURRENT]
)
def test_recurrent(kind, gates, direction, more):
    proto, inputs = recurrent(kind, gates, DIRECTIONS[direction], direction=direction, **dict(more))
    mod, _ = relay.frontend.from_onnx(proto)
    compare(run(mod, inputs), reference(proto, inputs), 1e-4)
