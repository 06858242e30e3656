"""Sequences that a loop makes, as long as data says, against onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError

onnx = pytest.importorskip("onnx")
helper, reference = onnx.helper, pytest.importorskip("onnx.reference")
FLOAT, LONG, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def n(op: str, ins: str, out: str, **attrs):
    return helper.make_node(op, ["" if i == "-" else i for i in ins.split()], out.split(), **attrs)


def value(name: str, kind: int, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(before: list, turn: list, after: list, inputs: dict, **constants):
    """A model that loops over the rows of x: `turn` makes `row` of the number i, which is added to the sequence."""
    turn = [*turn, n("SequenceInsert", "s row", "s2"), n("Identity", "alive", "goes")]
    ins = [value("i", LONG, []), value("alive", BOOL, []), helper.make_tensor_sequence_value_info("s", FLOAT, None)]
    outs = [value("goes", BOOL, []), helper.make_tensor_sequence_value_info("s2", FLOAT, None)]
    body = helper.make_graph(turn, "body", ins, outs)
    nodes = [*before, n("SequenceEmpty", "", "none"), n("Loop", "many true none", "rows", body=body), *after]
    constants = {"one": np.array([1]), "zero": np.array([0]), "true": np.array(True), **constants}
    given = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    infos = [value(k, *v) for k, v in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info("y")], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def agree(model, *cases: dict) -> None:
    mod, params = relay.frontend.from_onnx(model)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for inputs in cases:
        want = reference.ReferenceEvaluator(model).run(None, inputs)[0]
        got = machine.invoke("main", **inputs).numpy()
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def x_of(rows: int) -> np.ndarray:
    return np.arange(rows * 3, dtype="float32").reshape(rows, 3)


COUNT = [n("Shape", "x", "size", start=0, end=1), n("Squeeze", "size", "many")]
ROW = [n("Gather", "x i", "r"), n("Mul", "r r", "row")]
SQUARES = {
    "one behind another": n("ConcatFromSequence", "rows", "y", axis=0),
    "along a new axis": n("ConcatFromSequence", "rows", "y", axis=1, new_axis=1),
    "the last": n("SequenceAt", "rows minus", "y"),
    "as many": n("SequenceLength", "rows", "y"),
}


@pytest.mark.parametrize("name", SQUARES)
def test_rows_of_one_shape(name: str) -> None:
    model = model_of(COUNT, ROW, [SQUARES[name]], {"x": (FLOAT, ["n", 3])}, minus=np.array(-1))
    agree(model, *({"x": x_of(k)} for k in (2, 5, 1)))


def test_rows_as_often_as_data_says() -> None:
    """As torch writes `repeat_interleave`."""
    before = [
        *COUNT,
        n("ConstantOfShape", "size", "ones", value=onnx.numpy_helper.from_array(np.array([1]))),
        n("SplitToSequence", "times ones", "each", axis=0),
        n("SplitToSequence", "x ones", "parts", axis=0),
    ]
    turn = [
        n("SequenceAt", "each i", "often"), n("SequenceAt", "parts i", "part"),
        n("Concat", "often three", "shape", axis=0), n("Expand", "part shape", "wide"),
        n("Reshape", "wide threes", "row"),
    ]  # fmt: skip
    after = [n("ConcatFromSequence", "rows", "y", axis=0)]
    inputs = {"x": (FLOAT, ["n", 3]), "times": (LONG, ["n"])}
    model = model_of(before, turn, after, inputs, three=np.array([3]), threes=np.array([-1, 3]))
    cases = ([2, 0, 3], [1], [0, 4])
    agree(model, *({"x": x_of(len(c)), "times": np.array(c)} for c in cases))


def test_a_part_between_two_places() -> None:
    """As torch writes bags: each from its offset to the next one, which are slices x[i : i + 1]."""
    turn = [
        n("Reshape", "i one", "at"), n("Add", "at one", "next"), n("Add", "at two", "end"),
        n("Slice", "offsets at next", "first"), n("Slice", "offsets next end", "last"),
        n("Slice", "x first last", "bag"), n("ReduceSum", "bag zero", "row", keepdims=1),
    ]  # fmt: skip
    before = [n("Shape", "offsets", "size"), n("Sub", "size one", "less"), n("Squeeze", "less", "many")]
    inputs = {"x": (FLOAT, ["n", 3]), "offsets": (LONG, ["m"])}
    after = [n("ConcatFromSequence", "rows", "y", axis=0)]
    model = model_of(before, turn, after, inputs, two=np.array([2]))
    agree(model, {"x": x_of(6), "offsets": np.array([0, 2, 2, 6])}, {"x": x_of(3), "offsets": np.array([0, 3])})


def test_what_reads_such_a_sequence_otherwise_is_refused() -> None:
    model = model_of(
        COUNT, ROW, [n("SequenceErase", "rows", "r2"), n("SequenceAt", "r2 zero", "y")], {"x": (FLOAT, ["n", 3])}
    )
    with pytest.raises(RelayError, match="unknown length"):
        relay.frontend.from_onnx(model)


def test_branches_of_different_extents() -> None:
    def branch(name: str, nodes: list):
        return helper.make_graph(nodes, name, [], [value("out", FLOAT, None)])

    more, less = branch("more", [n("Concat", "x x", "out", axis=0)]), branch("less", [n("Neg", "x", "out")])
    nodes = [n("ReduceSum", "x", "t", keepdims=0), n("Greater", "t nothing", "c")]
    nodes += [n("If", "c", "z", then_branch=more, else_branch=less), n("Add", "z z", "y")]
    given = [onnx.numpy_helper.from_array(np.array(0, "float32"), "nothing")]
    for rows in (2, "n"):
        outs = [helper.make_empty_tensor_value_info("y")]
        graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [rows, 3])], outs, given)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        agree(model, {"x": x_of(2)}, {"x": -x_of(2)})


@pytest.mark.parametrize("rows", [3, "n"])
def test_an_output_that_is_a_sequence_is_a_tuple(rows) -> None:
    """As what tells the classes of several columns gives a table for each."""
    nodes = [n("Exp", "x", "a"), n("Neg", "x", "b"), n("SequenceConstruct", "a b", "s"), n("Abs", "x", "y")]
    outs = [helper.make_tensor_sequence_value_info("s", FLOAT, None), value("y", FLOAT, None)]
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [rows, 2])], outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    mod, params = relay.frontend.from_onnx(model)
    x = np.array([[1, -2], [0, 3], [4, -5]], "float32")
    for kind in ("vm", "debug") if rows == "n" else ("vm", "debug", "graph"):
        (a, b), y = relay.create_executor(kind, mod, target="llvm").evaluate()(x)
        for got, wanted in ((a, np.exp(x)), (b, -x), (y, abs(x))):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
