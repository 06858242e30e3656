"""Operators that onnx defines by others, and forms of operators and of control flow that few exporters write."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import compare, helper, imported, model, node_model, onnx, reference, run

from relaylab import relay
from relaylab.support.errors import RelayError

RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def i(*values):
    return np.array(values, "int64")


HEADS = {"q": f(2, 4, 3, 8), "k": f(2, 2, 5, 8), "v": f(2, 2, 5, 6)}
PAST = {**HEADS, "mask": f(3, 9), "pk": f(2, 2, 4, 8), "pv": f(2, 2, 4, 6)}
ROIS = np.array([[0, 0, 4, 4], [1.5, 2, 9, 9], [2, 2, 2.3, 2.4], [-3, -2, 3, 20]], "float32")
MELS = {"n": i(80), "l": i(400), "r": i(16000), "a": np.array([20], "float32"), "b": np.array([8000], "float32")}
MELS = {name: value.reshape(()) for name, value in MELS.items()}
DEFORM = {"x": f(2, 4, 7, 6), "w": f(6, 2, 3, 1), "o": f(2, 12, 5, 6), "b": f(6), "m": f(2, 6, 5, 6)}
CASES = [
    ("Attention", HEADS, {"opset": 23, "is_causal": 1, "softcap": 2.0}),
    ("Attention", PAST, {"opset": 23, "outputs": 3, "scale": 0.3}),
    ("RotaryEmbedding", {"x": f(2, 4, 3, 8), "c": f(2, 3, 4), "s": f(2, 3, 4)}, {"opset": 23, "interleaved": 1}),
    *[("RoiAlign", {"x": f(2, 3, 9, 7), "r": ROIS, "b": i(0, 1, 1, 0)},
       {"coordinate_transformation_mode": c, "mode": m, "sampling_ratio": 2, "output_height": 3, "spatial_scale": 0.8})
      for c, m in (("half_pixel", "avg"), ("half_pixel", "max"), ("output_half_pixel", "max"))],
    ("DeformConv", DEFORM, {"opset": 19, "group": 2, "offset_group": 2}),
    ("Col2Im", {"x": f(1, 16, 16), "i": i(5, 4, 5), "k": i(2, 2, 2)},
     {"opset": 18, "strides": [2, 2, 1], "constants": ("i", "k")}),
    ("Col2Im", {"x": f(2, 6, 6), "i": i(7), "k": i(3)}, {"opset": 18, "pads": [1, 0], "constants": ("i", "k")}),
    *[("Col2Im", {"x": f(2, 2 * k * j, n), "i": i(*size), "k": i(k, j)},
       {"opset": 18, "strides": steps, "pads": [0, 1] * 2, "constants": ("i", "k")} if steps != [k, j] else
       {"opset": 18, "strides": steps, "constants": ("i", "k")})
      for size, k, j, steps, n in (((6, 4), 3, 2, [1, 2], 12), ((6, 8), 3, 2, [3, 2], 8), ((7, 6), 5, 5, [2, 1], 8))],
    ("MelWeightMatrix", MELS, {"constants": tuple(MELS)}),
    *[("STFT", {"x": f(2, 30, parts), "s": i(4).reshape(()), "w": f(10)}, {"constants": ("s",), "onesided": one})
      for parts, one in ((1, 1), (2, 0))],
    ("DFT", {"x": f(1, 6, 2), "n": i(10).reshape(())}, {"constants": ("n",), "onesided": 1, "inverse": 1}),
    *[("MaxPool", {"x": f(2, 3, 7, 6)}, {"outputs": 2, "opset": 12, **more}) for more in (
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [2, 2], "dilations": [2, 1], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "storage_order": 1, "pads": [1, 1, 1, 1]})],
    *[("Unique", {"x": RNG.integers(0, 2, (6, 2, 2)).astype("float32")}, {"outputs": 4, "axis": a, "sorted": s})
      for a, s in ((0, 1), (-1, 0))],
    ("Dropout", {"x": f(3), "r": np.float32(0), "t": np.array(True)}, {"constants": ("r", "t"), "outputs": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "more"), CASES, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(CASES)])
def test_as_another_runtime_says(name, inputs, more):
    pytest.importorskip("onnxruntime", reason="onnx's own evaluator differs in some forms")
    proto, free = node_model(name, inputs, **more)
    compare(run(imported(proto), free), reference(proto, free))


@pytest.mark.parametrize("n", [7, 12, 64, 105, 256])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("parts, inverse, onesided", [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 1, 0)])
def test_a_transform_is_that_of_numpy(n, axis, parts, inverse, onesided):
    """By one matrix or, of many points, by two small ones."""
    x = f(2, n, 3, parts) if axis == 1 else f(2, 3, n, parts)
    points = x[..., 0] + 1j * x[..., 1] if parts == 2 else x[..., 0]
    want = (np.fft.ifft if inverse else np.fft.fft)(points, axis=axis)
    want = np.take(want, range(n // 2 + 1), axis) if onesided else want
    proto, free = node_model("DFT", {"x": x}, opset=17, axis=axis, inverse=inverse, onesided=onesided)
    (got,) = run(imported(proto), free)
    np.testing.assert_allclose(got, np.stack([want.real, want.imag], -1), rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("n, step", [(7, 2), (12, 4), (100, 25), (512, 128)])
@pytest.mark.parametrize("onesided", [0, 1])
def test_a_short_time_transform_is_that_of_numpy(n, step, onesided):
    x, window = f(2, n + 5 * step, 1), f(n)
    frames = np.stack([x[:, k * step : k * step + n, 0] * window for k in range(6)], axis=1)
    want = (np.fft.rfft if onesided else np.fft.fft)(frames)
    feed = {"x": x, "s": np.array(step), "w": window}
    proto, free = node_model("STFT", feed, opset=17, constants=("s",), onesided=onesided)
    (got,) = run(imported(proto), free)
    np.testing.assert_allclose(got, np.stack([want.real, want.imag], -1), rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("size, rows_first", [((9, 10), False), ((4, 10), True), ((10, 14), True), ((5, 10), True)])
def test_of_an_image_that_grows_a_row_is_gathered_once(size, rows_first):
    x = f(2, 3, 5, 7)
    down, along = (np.arange(n) * m // n for n, m in zip(size, x.shape[2:]))
    more = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    feed = {"x": x, "r": None, "s": None, "n": i(2, 3, *size)}
    proto, free = node_model("Resize", feed, constants=("n",), opset=19, **more)
    mod = imported(proto)
    assert ("stop_fusion" not in str(mod)) == rows_first
    np.testing.assert_array_equal(run(mod, free)[0], x[:, :, down][:, :, :, along])
    layers = relay.var("x", shape=x.shape)
    how = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
    mod = relay.IRModule.from_expr(relay.image.resize2d(layers, size, **how))
    np.testing.assert_array_equal(run(mod, {"x": x})[0], x[:, :, down][:, :, :, along])


@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 4)), (None, (4, 5)), (0, (2,))])
@pytest.mark.parametrize("name", ["Add", "Sub", "Pow"])
def test_before_opset_7_axes_are_said(name, axis, shape):
    a, b = np.abs(f(2, 3, 4, 5)), f(*shape)
    more = {} if axis is None else {"axis": axis}
    proto, free = node_model(name, {"a": a, "b": b}, opset=6, broadcast=1, **more)
    wanted = b.reshape(*shape, *[1] * (4 - (axis or 0) - len(shape))) if axis is not None else b
    compare(run(imported(proto), free), [{"Add": np.add, "Sub": np.subtract, "Pow": np.power}[name](a, wanted)])


@pytest.mark.parametrize("opset", [9, 13])
def test_before_opset_14_outputs_say_that_a_norm_trains(opset):
    made = helper.make_node("BatchNormalization", [*"xsbmv"], ["y", "m1", "v1", "m2", "v2"], momentum=0.8)
    feed = {"x": f(2, 3, 4, 4), "s": f(3), "b": f(3), "m": f(3), "v": abs(f(3))}
    mod = imported(model([made], feed, ["y", "m1", "v1"], opset=opset))
    mean, var = feed["x"].mean((0, 2, 3)), feed["x"].var((0, 2, 3))
    whole = lambda v: v.reshape(3, 1, 1)
    y = (feed["x"] - whole(mean)) / np.sqrt(whole(var) + 1e-5) * whole(feed["s"]) + whole(feed["b"])
    compare(run(mod, feed), [y, 0.8 * feed["m"] + 0.2 * mean, 0.8 * feed["v"] + 0.2 * var])


def test_bodies_keep_the_name_of_their_node_and_compile():
    node = helper.make_node("SwiGLU", ["a", "b"], ["y"], name="gate", alpha=1.5)
    inputs = {"a": f(3, 4), "b": f(3, 4)}
    mod = imported(model([node], inputs, ["y"], opset=28))
    spans: set[str] = set()
    relay.analysis.post_order_visit(
        mod["main"], lambda e: spans.add(str(e.span)) if isinstance(e, relay.Call) else None
    )
    assert spans == {"gate"}
    a, b = inputs.values()
    np.testing.assert_allclose(relay.build(mod, "llvm").run(**inputs), a * b / (1 + np.exp(-1.5 * a)), rtol=1e-5)


def test_faults_in_operators_with_a_body():
    for inputs, more, code in (
        ({"a": f(2)}, {}, "import.arity"),
        ({"a": f(2), "b": f(2)}, {"betta": 1.0}, "import.attribute"),
        ({"a": None, "b": f(2)}, {}, "import.arity"),
        ({"a": f(2), "b": f(3)}, {}, "type.operator"),
        ({"a": f(2), "b": f(2)}, {"outputs": 2}, "import.output"),
    ):
        with pytest.raises(RelayError) as info:
            imported(node_model("SwiGLU", inputs, opset=28, **more)[0])
        assert info.value.code == code and "SwiGLU `out0` (node 0 of the graph)" in info.value.place, info.value


def branch(node, shape=(2,)):
    return helper.make_graph([node], "b", [], [helper.make_tensor_value_info("r", 1, shape)])


def test_a_branch_that_is_never_taken_need_not_be_known():
    unknown = branch(helper.make_node("Telepathy", ["x"], ["r"]))
    known = branch(helper.make_node("Neg", ["x"], ["r"]))
    choose = helper.make_node("If", ["c"], ["y"], then_branch=unknown, else_branch=known)
    inputs = {"x": f(2)}
    compare(run(imported(model([choose], inputs, ["y"], {"c": np.array(False)})), inputs), [-inputs["x"]])
    for fixed in (True, None):
        free = {**inputs} if fixed else {**inputs, "c": np.array(True)}
        with pytest.raises(RelayError, match="Telepathy") as info:
            imported(model([choose], free, ["y"], {"c": np.array(True)} if fixed else None))
        assert info.value.code == "import.unsupported"


def test_a_branch_that_cannot_be_typed_says_how_to_decide():
    wrong = branch(helper.make_node("MatMul", ["x", "w"], ["r"], name="product"))
    known = branch(helper.make_node("Neg", ["x"], ["r"]))
    choose = helper.make_node("If", ["c"], ["y"], name="which", then_branch=wrong, else_branch=known)
    proto = model([choose], {"x": f(2), "c": np.array(False)}, ["y"], {"w": f(3, 4)})
    with pytest.raises(RelayError) as info:
        imported(proto)
    assert "MatMul `product` (node 0 of `then_branch` of which)" in info.value.place
    assert "If `which` (node 0 of the graph)" in info.value.place and "values=" in info.value.help
    inputs = {"x": f(2)}
    compare(run(imported(proto, values={"c": False}), inputs), [-inputs["x"]])


def test_branches_of_one_element_may_differ_in_rank():
    scalar = branch(helper.make_node("ReduceSum", ["x"], ["r"], keepdims=0), ())
    vector = branch(helper.make_node("ReduceMax", ["x"], ["r"]), (1,))
    choose = helper.make_node("If", ["c"], ["y"], then_branch=scalar, else_branch=vector)
    for c in (True, False):
        inputs = {"x": f(2), "c": np.array(c)}
        x = inputs["x"]
        compare(run(imported(model([choose], inputs, ["y"])), inputs), [np.array([x.sum() if c else x.max()])])


GROWS = """<ir_version: 8, opset_import: ["": 17]>
main (float[1, 2] x, int64 n, bool c) => (float[K, 2] s, float[M] rows) {
    s, rows = Loop (n, c, x) <body = b (int64 i, bool before, float[J, 2] a) => (bool go, float[L, 2] longer, float r) {
        end = Constant <value = int64[1] {-1}> ()
        zero = Constant <value = int64[1] {0}> ()
        far = Constant <value = int64[1] {1000}> ()
        last = Slice (a, end, far, zero)
        one = Constant <value = float {1.0}> ()
        next = Add (last, one)
        longer = Concat <axis = 0> (a, next)
        r = ReduceSum <keepdims = 0> (longer)
        limit = Constant <value = float {40.0}> ()
        go = Less (r, limit)
    }>
}"""


@pytest.mark.parametrize("most", [0, 3, 100])
def test_loops_whose_length_depends_on_data_grow_and_collect(most):
    pytest.importorskip("onnxruntime", reason="onnx's own evaluator does not run it")
    proto = onnx.parser.parse_model(GROWS)
    inputs = {"x": f(1, 2), "n": np.array(most), "c": np.array(True)}
    compare(run(imported(proto), inputs, "vm"), reference(proto, inputs))


def test_weights_larger_than_what_is_made_while_reading():
    fill = helper.make_tensor("v", 1, [1], [0.5])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["w"], value=fill),
        helper.make_node("Gather", ["w", "x"], ["y"]),
    ]
    mod = imported(model(nodes, {"x": i(3)}, ["y"], {"s": i(1 << 26, 2)}))
    assert str(mod["main"].ret_type) == "Tensor[(1, 2), float32]"
    with pytest.raises(RelayError, match="a constant of the shape"):
        imported(model(nodes, {"x": i(3)}, ["y"], {"s": i(1 << 40, 2)}))


def test_functions_of_a_model_in_another_opset():
    """onnx leaves them where they are: ReduceMean has its axes as an attribute in 17, as an input in 18."""
    inner = helper.make_function(
        "own", "centred", ["v"], ["out"],
        [helper.make_node("ReduceMean", ["v"], ["m"], axes=[1]), helper.make_node("Sub", ["v", "m"], ["out"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    scaled = helper.make_node("LeakyRelu", ["c"], ["out"])
    slope = scaled.attribute.add(name="alpha", type=1)
    slope.ref_attr_name = "slope"
    outer = helper.make_function(
        "own", "outer", ["v"], ["out"], [helper.make_node("centred", ["v"], ["c"], domain="own"), scaled],
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], attributes=["slope"],
    )  # fmt: skip
    x = np.array([[1.0, 2.0, 6.0], [0.0, -3.0, 3.0]], "float32")
    proto = model([helper.make_node("outer", ["x"], ["y"], domain="own", slope=0.5)], {"x": x}, ["y"], opset=18)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.extend([inner, outer])
    centred = x - x.mean(1, keepdims=True)
    np.testing.assert_allclose(run(imported(proto), {"x": x})[0], np.where(centred > 0, centred, 0.5 * centred))


def test_a_transform_of_as_many_points_as_data_says_is_refused() -> None:
    nodes = [
        helper.make_node("NonZero", ["m"], ["places"]),
        helper.make_node("Shape", ["places"], ["shape"], start=1, end=2),
        helper.make_node("Squeeze", ["shape"], ["n"]),
        helper.make_node("Constant", [], ["axis"], value_int=1),
        helper.make_node("DFT", ["x", "n", "axis"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, "n", 1]), ("m", [5]))]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, None)])
    with pytest.raises(RelayError, match="only data says") as caught:
        relay.frontend.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    assert caught.value.code == "import.dynamic"
