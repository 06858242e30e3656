"""Broken, hostile and unsupported models: an error that says where and why, never a traceback of the insides."""

from __future__ import annotations

import os

import numpy as np
import pytest
from onnx_tools import helper, model, node_model, numpy_helper, onnx

from relaylab import relay
from relaylab.frontend.onnx import importer
from relaylab.support.errors import RelayError

X = np.ones((2, 3), "float32")


def refused(proto, **options) -> RelayError:
    with pytest.raises(RelayError) as info:
        relay.frontend.from_onnx(proto, **options)
    return info.value


def test_all_unknown_operators_are_named_at_once():
    body = helper.make_graph(
        [helper.make_node("Inner", [], ["i"])], "b", [], [helper.make_tensor_value_info("i", 1, [])]
    )
    nodes = [
        helper.make_node("Reluu", ["x"], ["a"], name="first"),
        helper.make_node("If", ["c"], ["b"], then_branch=body, else_branch=body),
        helper.make_node("Gelu", ["a"], ["y"]),
        helper.make_node("Reluu", ["y"], ["z"]),
    ]
    error = refused(model(nodes, {"x": X, "c": np.array(True)}, ["z"]))
    assert error.code == "import.unsupported" and "Reluu, Gelu, Inner" in error.message
    assert "Reluu `first` (node 0 of the graph)" in error.place and error.place.count("-->") == 3
    assert "did you mean `Relu`" in error.help and "from opset 20" in error.help


@pytest.mark.parametrize("data", [b"", b"\x00" * 64, b"hello, world", bytes(range(256)) * 8])
def test_garbage(data, tmp_path):
    assert refused(data).code == "import.garbage"
    (tmp_path / "x.onnx").write_bytes(data)
    assert "x.onnx" in refused(tmp_path / "x.onnx").message


def test_truncated_models_at_every_length():
    whole = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": X}).SerializeToString()
    for end in range(0, len(whole), 3):
        try:
            relay.frontend.from_onnx(whole[:end])
        except RelayError:
            continue


def test_models_with_any_byte_changed():
    whole = bytearray(
        model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": X}).SerializeToString()
    )
    for at in range(len(whole)):
        broken = bytes(whole[:at]) + bytes([whole[at] ^ 0x15]) + bytes(whole[at + 1 :])
        try:
            relay.frontend.from_onnx(broken)
        except RelayError:
            continue


@pytest.mark.parametrize("source", [3, None, ["x"], "/no/such/file.onnx", "nul\x00"])
def test_what_is_no_model(source):
    assert refused(source).code in ("import.model", "import.unreadable")


def weights(change):
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": X})
    change(proto.graph.initializer[0])
    return proto


CHANGES = {
    "dims": lambda t: t.dims.append(7),
    "negative": lambda t: t.dims.__setitem__(0, -2),
    "huge": lambda t: t.dims.__setitem__(0, 2**40),
    "short": lambda t: setattr(t, "raw_data", t.raw_data[:-1]),
    "type": lambda t: setattr(t, "data_type", 8),
    "no-type": lambda t: setattr(t, "data_type", 0),
    "unknown-type": lambda t: setattr(t, "data_type", 99),
}


@pytest.mark.parametrize("name", CHANGES)
def test_tensors_that_do_not_fit_themselves(name):
    error = refused(weights(CHANGES[name]))
    assert error.code in ("import.tensor", "import.dtype") and "`w`" in error.message


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "missing.bin", "a/../../secret", "\x00", "", ".", "circle", "pipe"]
)
def test_external_data_outside_the_folder_is_not_read(location, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"\x00" * 24)
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")

    def outside(t):
        t.ClearField("raw_data")
        t.data_location = onnx.TensorProto.EXTERNAL
        t.external_data.add(key="location", value=location)

    (folder / "m.onnx").write_bytes(weights(outside).SerializeToString())
    assert refused(folder / "m.onnx").code == "import.external"
    assert refused(weights(outside)).code == "import.external"


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret").write_bytes(b"\x00" * 24)
    (tmp_path / "model" / "link").symlink_to(tmp_path / "secret")

    def linked(t):
        t.ClearField("raw_data")
        t.data_location = onnx.TensorProto.EXTERNAL
        t.external_data.add(key="location", value="link")

    (tmp_path / "model" / "m.onnx").write_bytes(weights(linked).SerializeToString())
    assert refused(tmp_path / "model" / "m.onnx").code == "import.external"


def test_cycles_and_missing_values():
    cycle = model([helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])], {"x": X}, ["b"])
    error = refused(cycle)
    assert error.code == "import.no-value" and "cycle" in error.help
    error = refused(model([helper.make_node("Relu", ["xx"], ["y"])], {"x": X}, ["y"]))
    assert "did you mean `x`" in error.help and "Relu `y`" in error.place
    assert refused(model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["z"])).code == "import.no-value"


def test_errors_name_the_node():
    for proto, _ in (
        node_model("Add", {"a": np.ones((2, 3), "f"), "b": np.ones((4, 5), "f")}),
        node_model("MatMul", {"a": X, "b": X}),
        node_model("Add", {"a": X, "b": X.astype("int64")}), node_model("Conv", {"x": X, "w": X}),
        node_model("Relu", {"a": X, "b": X}),
        node_model("Add", {"a": X}), node_model("Transpose", {"x": X}, perm=[0, 0]),
        node_model("Softmax", {"x": X}, axis=9),
        node_model("Reshape", {"x": X, "s": np.array([7])}, constants=("s",)),
        node_model("Concat", {"a": X, "b": np.ones(2, "f")}, axis=0),
        node_model("Relu", {"x": X}, outputs=2), node_model("Relu", {"x": X}, slope=0.1),
        node_model("Cast", {"x": X}, to=8), node_model("Cast", {"x": X}),
        node_model("Gather", {"x": X, "i": np.array(5)}, constants=("i",)),
        node_model("Slice", {"x": X, "b": np.array([0]), "e": np.array([1, 2])}, constants=("b", "e")),
        node_model("ConstantOfShape", {"s": np.array([2**40, 2**20])}, constants=("s",)),
        node_model("Range", {"a": np.array(0), "b": np.array(2**50), "c": np.array(1)}, constants=tuple("abc")),
        node_model("LSTM", {"x": X, "w": X, "r": X}),
        node_model("MaxPool", {"x": np.ones((1, 1, 4, 4), "f")}, kernel_shape=[0, 2]),
        node_model("Split", {"x": X}, outputs=2, opset=11, split=[1, 5]), node_model("Resize", {"x": X}),
        node_model("Einsum", {"x": X}, equation="ijk->i"), node_model("Concat", {}, axis=0),
        node_model("Concat", {"x": X}), node_model("Relu", {"x": None}),
        node_model("If", {"c": np.array(True)}, then_branch=3),
        node_model("Split", {"x": X}, outputs=2, opset=13, axis=1), node_model("LRN", {"x": X}, size=0),
        node_model("GroupNormalization", {"x": X, "s": X[0], "b": X[0]}, opset=21, num_groups=0),
        node_model("Reshape", {"x": X}, opset=1, shape=[-2]),
        *[node_model("ConvTranspose", {"x": np.ones((1, 1, 4, 4), "f"), "w": np.ones((1, 1, 2, 2), "f")}, **more)
          for more in ({"pads": [0, 1]}, {"kernel_shape": [3, 3]}, {"strides": [1]}, {"output_shape": [9]})],
        *[node_model("Resize", {"x": X, "r": None, "s": np.array([1, v], "f")}, constants=("s",))
          for v in (-1, np.nan, np.inf)],
    ):  # fmt: skip
        node = proto.graph.node[0]
        error = refused(proto)
        assert f"{node.op_type} `out0` (node 0 of the graph)" in error.place, error
        assert node.op_type in error.message


def test_inputs_that_cannot_be():
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"])
    assert "did you mean `x`" in refused(proto, shape={"xx": (1, 2)}).help
    assert refused(proto, shape=[(1, 2)]).code == "call.wrong-kind"
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -4
    assert refused(proto).code == "import.input"
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert "has no shape" in refused(proto).message
    del proto.opset_import[:]
    assert refused(proto, shape={"x": (2, 3)}).code == "import.opset"


HUGE = {
    "Resize": ({"x": X, "r": None, "f": None, "s": np.array([2**30, 2**30])}, {"mode": "linear"}),
    "HannWindow": ({"s": np.array(2**40)}, {}),
    "Pad": ({"x": X, "s": np.array([2**40, 0, 0, 0])}, {"mode": "wrap", "opset": 19}),
    "Range": ({"x": np.float32(0), "s": np.float32(np.inf), "d": np.float32(1)}, {"constants": tuple("xsd")}),
    "SplitToSequence": ({"x": np.ones(2**13, "f"), "s": np.array(1)}, {}),
    "MaxPool": ({"s": np.ones((1, 1, 4, 4), "f")}, {"outputs": 2, "kernel_shape": [2**31] * 2, "pads": [2**31] * 4}),
    "AffineGrid": ({"x": np.ones((1, 2, 3), "f"), "s": np.array([1, 1, 2**30, 2**30])}, {"opset": 20}),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_no_huge_constants_are_made(name):
    inputs, more = HUGE[name]
    assert refused(node_model(name, inputs, **{"constants": ("s",), **more})[0]).code == "import.shape"


def test_a_name_is_given_once():
    for out in "xa":
        nodes = [helper.make_node(kind, ["x"], [name]) for kind, name in (("Relu", "a"), ("Neg", out))]
        error = refused(model(nodes, {"x": X}, ["a"]))
        assert error.code == "import.duplicate" and f"`{out}`" in error.message and "node 1 of the graph" in error.place


@pytest.mark.parametrize("reader", ["Add", "Shape", "If", "SequenceConstruct", "Loop"])
def test_sequences_are_no_tensors(reader):
    ins = {"Add": ["s", "x"], "Loop": ["n", "", "s"]}.get(reader, ["s"])
    scalars = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", 7), ("c", 9))]
    grow = [helper.make_node("Identity", ["c"], ["c1"]), helper.make_node("SequenceConstruct", ["x"], ["t1"])]
    t, t1 = (helper.make_tensor_sequence_value_info(name, 1, None) for name in ("t", "t1"))
    body = helper.make_graph(grow, "b", [*scalars, t], [helper.make_tensor_value_info("c1", 9, []), t1])
    given = {"body": body} if reader == "Loop" else {}
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["s"]), helper.make_node(reader, ins, ["y"], **given)]
    error = refused(model(nodes, {"x": X, "n": np.array(2)}, ["y"]))
    assert error.code == "import.not-a-tensor" and f"{reader} `y`" in error.place


def test_places_outside_of_a_sequence():
    for kind in ("SequenceAt", "SequenceErase"):
        nodes = [helper.make_node("SequenceConstruct", ["x"], ["s"]), helper.make_node(kind, ["s", "at"], ["y"])]
        assert refused(model(nodes, {"x": X}, ["y"], {"at": np.array(1)})).code == "import.index"


def test_empty_sequences_are_no_outputs_and_options_have_their_types():
    assert refused(model([helper.make_node("SequenceEmpty", [], ["y"])], {"x": X}, ["y"])).code == "import.output"
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"])
    assert (
        refused(proto, opset="17").code == "call.wrong-kind" and refused(proto, shape={"x": 5}).code == "import.shape"
    )


def test_deep_and_long_models(monkeypatch):
    nodes = [helper.make_node("Relu", [f"v{k}"], [f"v{k + 1}"]) for k in range(3000)]
    mod, _ = relay.frontend.from_onnx(model(nodes, {"v0": X}, ["v3000"]))
    assert mod["main"].ret_type.concrete_shape == (2, 3)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, [2, 3])]
    )
    for _ in range(20):
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        node.attribute[1].g.CopyFrom(
            helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], list(graph.output))
        )
        graph = helper.make_graph([node], "g", [], list(graph.output))
        nested = model(list(graph.node), {"x": X, "c": np.array(True)}, ["y"])
    assert relay.frontend.from_onnx(nested)[0]["main"].ret_type.concrete_shape == (2, 3)
    monkeypatch.setattr(importer, "MAX_NESTING", 10)
    assert refused(nested).code == "import.nesting"


def test_sparse_initializers():
    values, indices = (
        numpy_helper.from_array(np.array([5], "float32"), "w"),
        numpy_helper.from_array(np.array([4]), "i"),
    )
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    mod, _ = relay.frontend.from_onnx(proto)
    assert relay.create_executor("debug", mod=mod).evaluate()(X).numpy()[1, 1] == 6
    proto.graph.sparse_initializer[0].dims[0] = 1
    assert refused(proto).code == "import.tensor"


def test_names_that_are_no_text_are_refused():
    """Protobuf gives texts that are not UTF-8 as bytes."""
    node = helper.make_node("Relu", ["x"], ["y"])
    data = model([node], {"x": np.ones(2, "float32")}, ["y"]).SerializeToString()
    for name in (b"Relu", b"main"):
        with pytest.raises(RelayError, match="is not UTF-8") as caught:
            relay.frontend.from_onnx(data.replace(name, b"\xce" + name[1:]))
        assert caught.value.code == "import.garbage"


def test_sparse_tensors_are_bounded():
    values, places = (
        numpy_helper.from_array(np.ones(1, "float32"), "s"),
        numpy_helper.from_array(np.zeros(1, "int64"), "p"),
    )
    graph = helper.make_graph(
        [helper.make_node("Relu", ["s"], ["y"])], "main", [], [helper.make_empty_tensor_value_info("y")],
        sparse_initializer=[helper.make_sparse_tensor(values, places, [1 << 20, 1 << 20])],
    )  # fmt: skip
    with pytest.raises(RelayError, match="has the shape") as caught:
        relay.frontend.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert caught.value.code == "import.tensor"
