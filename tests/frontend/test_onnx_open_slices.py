"""Slices, ranges, splits and places of ONNX models that sizes decide, held against onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError

onnx = pytest.importorskip("onnx")
helper, reference = onnx.helper, pytest.importorskip("onnx.reference")
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((1, 16, 3)).astype("float32")
CONSTANTS = {
    "zero": [0], "one": [1], "two": [2], "three": [3], "last": [-1], "far": [2**62], "first": 0, "step": 1, "four": [4],
    "minus": [-5], "seven": [7], "sixteen": [16],
}  # fmt: skip


def n(op: str, ins: str, out: str, **attrs):
    return helper.make_node(op, ins.split(), out.split(), **attrs)


SIZE = n("Shape", "x", "n", start=1, end=2)
CASES = {
    "a table": [SIZE, n("Slice", "table zero n one", "t"), n("Add", "x t", "y")],
    "a table from a size on": [
        SIZE, n("Add", "n two", "m"), n("Slice", "table two m one", "t"), n("Add", "x t", "y"),
    ],
    "the end of a table": [
        SIZE, n("Sub", "sixteen n", "m"), n("Max", "m zero", "k"), n("Slice", "table k far one", "t"),
        n("Add", "x t", "y"),
    ],
    "as many as there are of one row": [
        SIZE, n("Sub", "one n", "m"), n("Max", "m zero", "k"), n("Slice", "row k far one", "t"), n("Add", "x t", "y"),
    ],
    "differences": [
        SIZE, n("Slice", "x zero one one", "a"), n("Concat", "a x", "b", axis=1), n("Add", "n one", "m"),
        n("Slice", "b one m one", "c"), n("Slice", "b zero n one", "d"), n("Sub", "c d", "y"),
    ],
    "another order": [n("Einsum", "x", "y", equation="abc->cab")],
    "the last": [n("Slice", "x last far one", "y")],
    "windows": [
        SIZE, n("Add", "n minus", "m"), n("Div", "m two", "k"), n("Add", "k four", "c"), n("Squeeze", "c", "s"),
        n("Range", "first s step", "r"), n("Cast", "r", "y", to=1),
    ],
    "a remainder": [
        SIZE, n("Neg", "n", "m"), n("Mod", "m four", "k"), n("Add", "k n", "c"), n("Squeeze", "c", "s"),
        n("Range", "first s step", "r"), n("Cast", "r", "y", to=1),
    ],
    "a split": [
        SIZE, n("Concat", "two n", "parts", axis=0), n("Concat", "x0 x", "b", axis=1),
        n("Split", "b parts", "p q", axis=1), n("Mul", "q q", "y"),
    ],
    "added at places": [
        n("Cast", "x", "i64", to=7), n("Mul", "i64 zero", "at"),
        n("ScatterElements", "x at x", "y", axis=1, reduction="add"),
    ],
    "the largest at places": [
        n("Cast", "x", "i64", to=7), n("Mul", "i64 zero", "at"),
        n("ScatterElements", "x at x", "y", axis=1, reduction="max"),
    ],
}  # fmt: skip


def model_of(name: str):
    nodes = CASES[name]
    words = {i for node in nodes for i in node.input}
    given = [onnx.numpy_helper.from_array(np.array(v, "int64"), k) for k, v in CONSTANTS.items() if k in words]
    given += [
        onnx.numpy_helper.from_array(a, k)
        for k, a in (("table", TABLE), ("x0", TABLE[:, :2]), ("row", TABLE[:, :1]))
        if k in words
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [1, "n", 3])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_around_the_middle_of_a_table() -> None:
    """Relative positions: so many on both sides; of more than the table has there is nothing."""
    nodes = [
        SIZE, n("Sub", "eight n", "from"), n("Add", "seven n", "to"),
        n("Slice", "table from to one", "t"), n("Mul", "t t", "y"),
    ]  # fmt: skip
    given = {"eight": np.array([8]), "seven": np.array([7]), "one": np.array([1]), "table": TABLE}
    initial = [onnx.numpy_helper.from_array(v, k) for k, v in given.items()]
    inputs = [helper.make_tensor_value_info("x", 1, [1, "n", 3])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    mod, _ = relay.frontend.from_onnx(model)
    assert str(mod["main"].ret_type) == "Tensor[(1, 2 * n - 1, 3), float32]"
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for length in (3, 8, 1):
        (want,) = reference.ReferenceEvaluator(model).run(None, {"x": TABLE[:, :length]})
        np.testing.assert_allclose(vm.invoke("main", TABLE[:, :length]).numpy(), want)
    with pytest.raises(RelayError):
        vm.invoke("main", TABLE[:, :12])


@pytest.mark.parametrize("name", CASES)
def test_one_form_for_all_lengths(name: str) -> None:
    model = model_of(name)
    mod, params = relay.frontend.from_onnx(model)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    judge = reference.ReferenceEvaluator(model)
    for length in (6, 5, 9, 14):
        x = RNG.standard_normal((1, length, 3)).astype("float32")
        (want,) = judge.run(None, {"x": x})
        got = vm.invoke("main", x).numpy()
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    assert "one form for all sizes" in vm.exe.stats, vm.exe.stats


def test_a_table_that_is_too_short_is_refused() -> None:
    mod, params = relay.frontend.from_onnx(model_of("a table"))
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    vm.invoke("main", np.zeros((1, 16, 3), "float32"))
    with pytest.raises(RelayError, match="there are not"):
        vm.invoke("main", np.zeros((1, 17, 3), "float32"))


@pytest.mark.parametrize("begin, end", [("zero", "one"), ("last", "far")])
def test_one_element_of_an_axis_without_any_is_none(begin: str, end: str) -> None:
    """The form for all sizes has one; of an empty sequence there is none, as in onnxruntime."""
    nodes = [n("Slice", f"x {begin} {end} one", "s"), n("Relu", "s", "r"), n("Concat", "r x", "y", axis=1)]
    inputs = [helper.make_tensor_value_info("x", 1, [1, "n", 3])]
    given = [onnx.numpy_helper.from_array(np.array(CONSTANTS[k], "int64"), k) for k in (begin, end, "one")]
    outputs = [helper.make_empty_tensor_value_info(k) for k in "ry"]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, given), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    mod, params = relay.frontend.from_onnx(model)
    for lengths in ((4, 0, 1, 0), (0, 3)):
        vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
        for length in lengths:
            x = RNG.standard_normal((1, length, 3)).astype("float32")
            got = vm.invoke("main", x)
            for g, w in zip(got, reference.ReferenceEvaluator(model).run(None, {"x": x})):
                np.testing.assert_array_equal(g.numpy(), w)
        assert vm.exe.specializations.open is not None


def test_what_data_leaves_unknown_is_flattened_and_grows() -> None:
    """Regions that a detector keeps, of an image that it cuts: no extent is known when the model is read."""
    nodes = [
        n("Compress", "x rows", "kept", axis=0), n("Compress", "kept columns", "cut", axis=3), n("Relu", "cut", "r"),
        n("Flatten", "r", "flat", axis=3),
        helper.make_node("Resize", ["r", "", "scales"], ["y"], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", 1, ["b", 2, 3, "n"])]
    inputs += [helper.make_tensor_value_info(k, 9, [d]) for k, d in (("rows", "b"), ("columns", "n"))]
    given = [onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], "float32"), "scales")]
    outputs = [helper.make_empty_tensor_value_info(k) for k in ("flat", "y")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    mod, params = relay.frontend.from_onnx(model)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for b, width in ((3, 4), (2, 5)):
        x = RNG.standard_normal((b, 2, 3, width)).astype("float32")
        rows, columns = np.arange(b) != 1, np.arange(width) % 2 == 0
        got = vm.invoke("main", x, rows, columns)
        for g, w in zip(got, reference.ReferenceEvaluator(model).run(None, {"x": x, "rows": rows, "columns": columns})):
            np.testing.assert_array_equal(g.numpy(), w)
