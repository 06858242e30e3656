"""What `from_onnx` does with parameters, shapes, names, control flow and sequences; its command and its `tvm` name."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from onnx_tools import compare, helper, imported, model, node_model, onnx, reference, run

from relaylab.compat import uninstall_tvm
from relaylab import install_as_tvm, relay, study
from relaylab.frontend.onnx import input_shapes, operators
from relaylab.ir import OPERATORS, AnyDim, Constant, If, TensorType
from relaylab.ir.visit import walk
from relaylab.runtime.memory import give_back
from relaylab.support.errors import RelayError

X, W = np.ones((2, 3), "float32"), np.arange(12, dtype="float32").reshape(3, 4)


def dense(**options):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="layer/matmul"), helper.make_node("Relu", ["h"], ["y"])]
    return model(nodes, {"x": X}, ["y"], {"w": W}, **options)


def test_initializers_are_constants_or_parameters():
    mod, params = relay.frontend.from_onnx(dense())
    assert not params and [p.name_hint for p in mod["main"].params] == ["x"]
    loose, params = relay.frontend.from_onnx(dense(), freeze_params=False)
    assert [p.name_hint for p in loose["main"].params] == ["x", "w"] and list(params) == ["w"]
    np.testing.assert_array_equal(params["w"].numpy(), W)
    compare(run(loose, {"x": X, "w": W}), run(mod, {"x": X}))


def test_initializers_that_are_inputs_are_no_parameters_of_main():
    proto = dense()
    proto.graph.input.append(helper.make_tensor_value_info("w", 1, [3, 4]))
    assert [p.name_hint for p in imported(proto)["main"].params] == ["x"]


def test_open_dimensions():
    proto = dense(shapes={"x": ["batch", 3]})
    main = imported(proto)["main"]
    assert isinstance(main.params[0].type_annotation.shape[0], AnyDim)
    assert input_shapes(proto) == {"x": ("batch", 3)}
    assert imported(proto, shape={"x": (5, 3)})["main"].ret_type == TensorType((5, 4))
    for n in (1, 4):
        x = np.ones((n, 3), "float32")
        compare(run(imported(proto), {"x": x}, "vm"), [x @ W])


def reshaped(**options):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    return model(nodes, {"x": np.ones((2, 3, 4), "float32")}, ["y"], constants, **options)


def test_shapes_computed_in_the_model_are_known_when_its_inputs_are():
    for frozen in (True, False):
        mod, params = relay.frontend.from_onnx(reshaped(), freeze_params=frozen)
        assert mod["main"].ret_type == TensorType((2, 12)) and not params
        assert "dyn." not in str(mod) and "shape_of" not in str(mod)


def test_shapes_computed_in_the_model_at_run_time():
    mod = imported(reshaped(shapes={"x": ["n", 3, 4]}))
    assert "dyn." not in mod.astext() and str(mod["main"].ret_type) == "Tensor[(n, 12), float32]"
    for executor in ("debug", "vm"):
        assert run(mod, {"x": np.ones((5, 3, 4), "float32")}, executor)[0].shape == (5, 12)


def test_expressions_have_the_names_of_their_nodes():
    body = imported(dense())["main"].body
    assert str(body.span) == "y" and str(body.args[0].span) == "layer/matmul"


def test_operators_belong_to_all_programs_and_get_no_place():
    imported(dense())
    assert all(op.span is None for op in OPERATORS.values())


def test_the_form_of_products():
    proto = model(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        {"a": np.ones((2, 3, 4), "f"), "b": np.ones((2, 4, 5), "f")},
        ["y"],
    )
    assert "transpose(" in imported(proto).astext()
    assert "transpose(" not in imported(proto, convert_config={"use_nt_batch_matmul": False}).astext()


def branches():
    def graph(name, op_type):
        return helper.make_graph(
            [helper.make_node(op_type, ["x", "x"], [name])], name, [], [helper.make_tensor_value_info(name, 1, [2, 3])]
        )

    return helper.make_node("If", ["c"], ["y"], then_branch=graph("sum", "Add"), else_branch=graph("product", "Mul"))


def test_nodes_in_any_order_are_sorted():
    """A cast of an input at the end of the graph, as converters to float16 leave it; a branch that reads it."""
    out = [helper.make_empty_tensor_value_info("b")]
    branch = lambda op: helper.make_graph([helper.make_node(op, ["c"], ["b"])], op, [], out)
    nodes = [
        helper.make_node("Add", ["r", "f"], ["y"]),
        helper.make_node("If", ["q"], ["f"], then_branch=branch("Abs"), else_branch=branch("Neg")),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Cast", ["x"], ["c"], to=11),
    ]
    free = {"x": np.array([[1, -2, 3]], "f"), "q": np.array(False)}
    (got,) = run(imported(model(nodes, free, ["y"])), free)
    np.testing.assert_array_equal(got, [[0.0, 2, 0]])


def test_if_is_decided_now_or_becomes_an_if():
    proto = model([branches()], {"c": np.array(True), "x": X}, ["y"])
    mod = imported(proto)
    assert isinstance(mod["main"].body, If)
    for c in (True, False):
        compare(run(mod, {"c": np.array(c), "x": X + 2}), [(X + 2) * 2 if c else (X + 2) ** 2])
    known = model([branches()], {"x": X}, ["y"], {"c": np.array(False)})
    assert not isinstance(imported(known)["main"].body, If)


def counting(limit: bool):
    """Doubles `v` until it is 100 or more, or a number of times."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["v", "v"], ["v2"]), helper.make_node("Less", ["v2", "top"], ["go"])]
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", 7, []), value("c", 9, []), value("v", 1, [])],
        [value("go", 9, []), value("v2", 1, [])],
    )
    node = helper.make_node("Loop", ["trips" if limit else "", ""], ["y"], body=body)
    node.input.append("start")
    inputs = {"start": np.float32(3), **({"trips": np.int64(2)} if limit else {})}
    return model([node], {k: np.asarray(v) for k, v in inputs.items()}, ["y"], {"top": np.float32(100).reshape(())})


@pytest.mark.parametrize("limit", [False, True])
def test_loops_that_depend_on_data_run_in_the_interpreter_and_the_virtual_machine(limit):
    inputs = {"start": np.array(3, "float32"), **({"trips": np.array(2)} if limit else {})}
    mod = imported(counting(limit))
    for executor in ("debug", "vm"):
        compare(run(mod, inputs, executor), [np.array(12 if limit else 192, "float32")])


def test_sequences_are_lists_while_a_model_is_read():
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
        helper.make_node("SequenceAt", ["s", "one"], ["a"]),
        helper.make_node("SequenceInsert", ["s", "a", "one"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": W}, ["y"], {"one": np.array(1)})
    compare(run(imported(proto), {"x": W}), [W[:, [0, 1, 1, 2, 3]]])


def test_bodies_see_what_is_around_their_node():
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Mul", ["e", "x"], ["r"])], "b", [info("e", 1, None)], [info("r", 1, None)]
    )
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"]),
        helper.make_node("SequenceMap", ["s"], ["t"], body=body),
        helper.make_node("ConcatFromSequence", ["t"], ["z"], axis=0),
    ]
    given = {"x": W, "y": W + 1}
    proto = model(nodes, given, ["z"])
    compare(run(imported(proto), given), reference(proto, given))


def test_types_were_names_once():
    assert imported(node_model("Cast", {"x": W}, opset=1, to="FLOAT16")[0])["main"].ret_type.dtype == "float16"


def with_functions(*functions):
    """A model that calls `twice` of its own domain; each function is (name, operator that it uses, domain)."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    proto = model([helper.make_node("twice", ["x"], ["y"], domain="own")], {"x": X}, ["y"], domain="own")
    for name, used, domain in functions:
        node = helper.make_node(used, ["a", "a"] if used == "Add" else ["a"], ["b"], domain=domain)
        proto.functions.append(helper.make_function("own", name, ["a"], ["b"], [node], opsets))
    return proto


def test_functions_of_a_model_are_inlined():
    proto = with_functions(("twice", "inner", "own"), ("inner", "Add", ""))
    compare(run(imported(proto), {"x": X}), [X + X])
    with pytest.raises(RelayError, match="functions of the model call each other: inner, twice"):
        imported(with_functions(("twice", "inner", "own"), ("inner", "twice", "own")))


def test_sources_of_a_model(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(dense(), path)
    texts = {str(relay.frontend.from_onnx(source)[0]) for source in (dense(), path, str(path), path.read_bytes())}
    assert len(texts) == 1


def test_external_data_lies_beside_the_model(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save_model(dense(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    compare(run(imported(path), {"x": X}), [X @ W])
    assert "w" not in imported(path)["main"].astext().split("(")[0]


@pytest.mark.parametrize("offset", [0, 4, 5000])
def test_large_external_data_is_mapped(offset, tmp_path):
    """Its pages take memory when they are looked at, and the system may take them back."""
    w, x = np.random.default_rng(0).standard_normal((640, 512), "float32"), np.ones((1, 640), "float32")
    (tmp_path / "weights.bin").write_bytes(bytes(offset) + w.tobytes())
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, ["y"], {"w": w})
    [tensor] = proto.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in {"location": "weights.bin", "offset": offset, "length": w.nbytes}.items():
        tensor.external_data.add(key=key, value=str(value))
    onnx.save(proto, tmp_path / "m.onnx")
    mod = imported(tmp_path / "m.onnx")
    [weights] = [e for e in walk((mod["main"].body,)) if isinstance(e, Constant)]
    base = weights.data.numpy()
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap)
    for executor in ("debug", "graph"):
        compare(run(mod, {"x": x}, executor), [x @ w], 1e-4)
        give_back()  # as builds do: the pages go, and are read again
    np.testing.assert_array_equal(weights.data.numpy(), w.T)


def test_programs_of_commands_may_be_onnx_files(tmp_path):
    path = tmp_path / "layer.onnx"
    onnx.save(dense(shapes={"x": ["batch", 3]}), path)
    program = study.load(str(path))
    assert program.name == "layer" and program.mod["main"].ret_type == TensorType((1, 4))


@pytest.fixture
def tvm():
    yield install_as_tvm()
    uninstall_tvm()


def test_the_tutorial_runs_under_the_name_of_tvm(tvm):
    proto = dense()
    mod, params = tvm.relay.frontend.from_onnx(proto, {"x": X.shape})
    with tvm.transform.PassContext(opt_level=1):
        executor = tvm.relay.build_module.create_executor("graph", mod, tvm.cpu(0), "llvm", params).evaluate()
    compare([executor(tvm.nd.array(X)).numpy()], reference(proto, {"x": X}))


def test_a_formula_of_a_product_with_a_matrix_is_one():
    feed = {"x": np.arange(24, dtype="float32").reshape(2, 3, 4), "w": np.arange(20, dtype="float32").reshape(4, 5)}
    mod = imported(node_model("Einsum", feed, equation="bik,kj->bij")[0])
    assert "nn.dense" in str(mod) or "nn.batch_matmul" in str(mod)
    compare(run(mod, feed), [feed["x"] @ feed["w"]])


def test_many_operators_are_known():
    assert len(operators()) > 200
    with pytest.raises(RelayError, match="convert_config has no key"):
        imported(dense(), convert_config={"nt": True})
