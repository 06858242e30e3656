"""Recurrent networks over known numbers of steps: all steps share their kernels; the numbers are onnxruntime's."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.frontend import from_onnx
from relaylab.runtime.device import cpu

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def model(kind, steps, sides, lens):
    rng = np.random.default_rng(0)
    h, gates = onnx.helper, GATES[kind]
    stored = {"w": (sides, gates * 8, 5), "r": (sides, gates * 8, 8), "b": (sides, 2 * gates * 8)}
    arrays = {n: rng.standard_normal(s).astype("float32") / 4 for n, s in stored.items()}
    arrays |= {"lens": np.array([steps, 2], "int32")} if lens else {}
    direction = "bidirectional" if sides == 2 else "forward"
    node = h.make_node(
        kind, ["x", "w", "r", "b", *(["lens"] if lens else [])], ["y", "last"], hidden_size=8, direction=direction
    )
    made = lambda name, shape: h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    inits = [onnx.numpy_helper.from_array(v, n) for n, v in arrays.items()]
    outs = [made("y", (steps, sides, 2, 8)), made("last", (sides, 2, 8))]
    graph = h.make_graph([node], "net", [made("x", (steps, 2, 5))], outs, inits)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def run(made, steps):
    mod, params = from_onnx(made)
    lib = relay.build(mod, "llvm", params=params)
    x = np.random.default_rng(1).standard_normal((steps, 2, 5)).astype("float32")
    found = lib["default"](cpu(0)).executor.call({"x": x})
    for got, want in zip(
        found, onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x}), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return len(lib.kernels())


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("kind", GATES)
def test_kernels_do_not_grow_with_the_steps(kind, sides):
    few, many = (run(model(kind, steps, sides, False), steps) for steps in (5, 12))
    assert many == few


@pytest.mark.parametrize("kind", GATES)
def test_sequences_of_other_lengths(kind):
    run(model(kind, 5, 2, True), 5)
