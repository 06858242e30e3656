"""Models of open sizes whose operators take a share of them, held against onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay

onnx = pytest.importorskip("onnx")
helper, reference = onnx.helper, pytest.importorskip("onnx.reference")
RNG = np.random.default_rng(0)


def n(op: str, ins: str, out: str, **attrs):
    return helper.make_node(op, ins.split(), out.split(), **attrs)


CONSTANTS = {"two": [2], "four": [4], "rest": [-1], "eight": 8, "sides": [0, 2, 0, 0, 1, 0], "one": 1, "square": [3, 3]}
SIZES = [
    n("Shape", "x", "b", start=0, end=1), n("Shape", "x", "n", start=1, end=2),
    n("Mul", "b n", "bn"), n("Mul", "bn four", "all"),
]  # fmt: skip
CASES = {
    "what a batch has": (
        (4,), [*SIZES, n("Div", "all b", "m"), n("Concat", "b m", "to", axis=0), n("Reshape", "x to", "y")],
    ),
    "what a row has": (
        (4,), [*SIZES, n("Mul", "b four", "b4"), n("Div", "all b4", "m"), n("Mod", "all b4", "r"), n("Add", "m r", "k"),
               n("Concat", "b k four", "to", axis=0), n("Reshape", "x to", "y")],
    ),
    "pairs of rows": (
        (4,), [*SIZES, n("Div", "n two", "h"), n("Concat", "rest h two four", "to", axis=0), n("Reshape", "x to", "z"),
               n("Exp", "z", "y")],
    ),
    "the larger half": (
        (), [*SIZES, n("Div", "n two", "h"), n("TopK", "x h", "v i", axis=1), n("Mul", "v v", "y")],
    ),
    "determinants": ((3, 3), [n("Det", "x", "y")]),
    "larger determinants": ((5, 5), [n("Det", "x", "y")]),
    "around three columns": ((3,), [n("Transpose", "x", "t", perm=[0, 2, 1]), n("Pad", "t sides", "y", mode="wrap")]),
    "eight points of a signal": ((1,), [n("DFT", "x eight one", "y")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_for_all_sizes(name: str) -> None:
    last, nodes = CASES[name]
    words = {i for node in nodes for i in node.input}
    given = [onnx.numpy_helper.from_array(np.array(v, "int64"), k) for k, v in CONSTANTS.items() if k in words]
    info = helper.make_tensor_value_info("x", 1, ["batch", "n", *last])
    graph = helper.make_graph(nodes, "g", [info], [helper.make_empty_tensor_value_info("y")], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    mod, params = relay.frontend.from_onnx(model)
    exe = relay.vm.compile(mod, "llvm", params=params)
    judge, vm = reference.ReferenceEvaluator(model), relay.vm.VirtualMachine(exe)
    for batch, length in ((2, 6), (5, 4), (1, 10)):
        x = RNG.standard_normal((batch, length, *last)).astype("float32")
        (want,) = judge.run(None, {"x": x})
        got = vm.invoke("main", x).numpy()
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert exe.specializations.form() is not None
