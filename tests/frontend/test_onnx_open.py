"""ONNX models with open sizes: imported as they are, run for several lengths, held against onnxruntime."""

from importlib.util import find_spec

import numpy as np
import pytest
from onnx_tools import compare, imported, model, reference, run

from relaylab import relay
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayError

helper = pytest.importorskip("onnx").helper
node = helper.make_node
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


def sizes(name, of, *axes):
    """Nodes that give vectors `name0`, … of the extents of a tensor along these axes."""
    nodes = [node("Shape", [of], [f"{name}_shape"])]
    for axis in axes:
        nodes.append(node("Gather", [f"{name}_shape", f"at{axis}"], [f"{name}_{axis}"]))
        nodes.append(node("Unsqueeze", [f"{name}_{axis}", "at0v"], [f"{name}{axis}"]))
    return nodes


PLACES = {**{f"at{k}": np.array(k, "int64") for k in range(4)}, "at0v": ints(0)}


def attention():
    """A causal attention with cache: heads by Reshape and Transpose, scores of rank 4, a mask by Range."""
    constants = {
        "w": floats(8, 24), "heads": ints(2, 4), "width": ints(8), "one": np.array(1, "int64"), "parts": ints(8, 8, 8),
        "zero": np.array(0, "int64"), "low": np.array(-1e9, "float32"), "rows": ints(1), "none": np.array(0, "float32"),
    }  # fmt: skip
    nodes = [
        *sizes("x", "x", 0, 1),
        node("MatMul", ["x", "w"], ["qkv"]),
        node("Split", ["qkv", "parts"], list("qkv"), axis=2),
    ]
    nodes += [
        node("Concat", ["x0", "x1", "heads"], ["split"], axis=0),
        node("Concat", ["x0", "x1", "width"], ["join"], axis=0),
    ]
    for name, perm in zip("qkv", ([0, 2, 1, 3], [0, 2, 1, 3], [0, 2, 1, 3])):
        nodes += [
            node("Reshape", [name, "split"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [f"{name}2"], perm=perm),
        ]
    nodes += [
        node("Concat", ["past", "k2"], ["k3"], axis=2), node("Transpose", ["k3"], ["k4"], perm=[0, 1, 3, 2]),
        node("Concat", ["past", "v2"], ["v3"], axis=2), node("MatMul", ["q2", "k4"], ["scores"]),
        *sizes("all", "k3", 2), node("Range", ["zero", "all_2", "one"], ["columns"]),
        node("Sub", ["all_2", "x_1"], ["before"]), node("Range", ["before", "all_2", "one"], ["own"]),
        node("Unsqueeze", ["own", "rows"], ["ownc"]), node("LessOrEqual", ["columns", "ownc"], ["seen"]),
        node("Where", ["seen", "none", "low"], ["mask"]), node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1), node("MatMul", ["p", "v3"], ["o"]),
        node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]), node("Reshape", ["o1", "join"], ["y"]),
    ]  # fmt: skip
    shapes = {"x": ["batch", "length", 8], "past": ["batch", 2, "past", 4]}
    feeds = [{"x": floats(b, n, 8), "past": floats(b, 2, p, 4)} for b, n, p in [(1, 5, 0), (2, 1, 7), (1, 3, 2)]]
    return model(nodes, feeds[0], ["y", "k3"], {**constants, **PLACES}, shapes=shapes), feeds


def spread():
    """Expand to a computed shape, tiles, a tensor filled and a slice with computed ends."""
    nodes = [
        *sizes("x", "x", 0, 1), node("Concat", ["x0", "x1", "three"], ["to"], axis=0),
        node("Unsqueeze", ["x", "last"], ["xu"]), node("Expand", ["xu", "to"], ["e"]),
        node("ConstantOfShape", ["to"], ["c"]), node("Add", ["e", "c"], ["ec"]),
        node("Concat", ["at1v", "x0", "at1v"], ["reps"], axis=0), node("Tile", ["ec", "reps"], ["t"]),
        node("Div", ["x1", "two"], ["half"]), node("Slice", ["t", "at0v", "half", "at1v"], ["y"]),
        node("Equal", ["to", "minus"], ["q"]), node("Where", ["q", "ones", "to"], ["w"]),
        node("Expand", ["xu", "w"], ["z"]),
    ]  # fmt: skip
    constants = {
        "three": ints(3),
        "last": ints(2),
        "two": ints(2),
        "at1v": ints(1),
        "minus": ints(-1),
        "ones": ints(1, 1, 1),
    }
    feeds = [{"x": floats(*s)} for s in [(2, 5), (1, 1), (3, 4)]]
    return model(nodes, feeds[0], ["y", "z"], {**constants, **PLACES}, shapes={"x": ["n", "m"]}), feeds


@pytest.mark.parametrize("made", [attention, spread])
@pytest.mark.parametrize("executor", ["vm", "debug"])
def test_open_models_give_what_onnxruntime_gives(made, executor):
    proto, feeds = made()
    mod = imported(proto)
    run = relay.create_executor(executor, mod=mod).evaluate()
    for feed in feeds:
        got = run(*(feed[p.name_hint] for p in mod["main"].params))
        compare([v.numpy() for v in got], reference(proto, feed))


def test_open_models_are_compiled_whole():
    proto, feeds = attention()
    mod = imported(proto)
    assert "?" not in str(mod["main"].ret_type)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for feed in feeds:
        vm.invoke("main", feed["x"], feed["past"])
    assert vm.exe.specializations.open is not None and not vm.exe.specializations.forms
    with pytest.raises(RelayError, match="the size `batch` is 1 in axis 0 of the input `x` and 2 in axis 0"):
        vm.invoke("main", feeds[0]["x"], floats(2, 2, 7, 4))


ALONE = [
    *[(node(kind, ["a"], ["y"], axis=1), 11, {"a": floats(2, 3, 4)}) for kind in ("Softmax", "LogSoftmax")],
    (node("Hardmax", ["a"], ["y"], axis=2), 11, {"a": floats(2, 3, 4)}),
    (node("Flatten", ["a"], ["y"], axis=2), 17, {"a": floats(2, 3, 4, 1)}),
    (node("EyeLike", ["a"], ["y"], k=1), 17, {"a": floats(3, 4)}),
    (node("Pad", ["a"], ["y"], pads=[1, -2, -1, 0]), 10, {"a": floats(4, 5)}),
    (node("MatMul", ["a", "b"], ["y"]), 17, {"a": floats(2, 1, 2, 3), "b": floats(4, 3, 2)}),
    (node("GatherElements", ["a", "b"], ["y"], axis=1), 17, {"a": floats(3, 4), "b": np.array([[-1, 2, -2]])}),
    (
        node(
            "AveragePool",
            ["a"],
            ["y"],
            kernel_shape=[3, 2],
            strides=[2, 2],
            pads=[1, 0, 1, 0],
            ceil_mode=1,
            count_include_pad=1,
        ),
        19,
        {"a": floats(1, 2, 6, 5)},
    ),
]


@pytest.mark.parametrize(("made", "opset", "feed"), ALONE, ids=[made.op_type for made, *_ in ALONE])
def test_one_operator_of_open_sizes(made, opset, feed):
    if made.op_type in ("Softmax", "LogSoftmax"):
        pytest.importorskip("onnxruntime", reason="ONNX's own evaluator knows their newest form only")
    least = 4 if "Pool" in made.op_type else 2
    open_ = {name: [f"{name}{k}" if k < least else d for k, d in enumerate(a.shape)] for name, a in feed.items()}
    proto = model([made], feed, ["y"], opset=opset, shapes=open_)
    for executor in ("debug", "vm"):
        got = relay.create_executor(executor, mod=imported(proto)).evaluate()(*feed.values())
        compare([got.numpy()], reference(proto, feed))


@pytest.mark.parametrize(("kind", "axis"), [("Softmax", 1), ("LogSoftmax", 1), ("Softmax", 0)])
def test_a_softmax_over_several_axes_of_what_data_chooses(kind, axis):
    """Before opset 13 all axes from one on count as one; here the first has as many as the data decides."""
    nodes = [node("Compress", ["a", "chosen"], ["c"], axis=0), node(kind, ["c"], ["y"], axis=axis)]
    feed = {"a": floats(5, 3, 4), "chosen": np.array([True, False, True, True, False])}
    kept = feed["a"][feed["chosen"]].astype("float64")
    want = np.exp(kept) / np.exp(kept).sum(tuple(range(axis, 3)), keepdims=True)
    for executor in ("debug", "vm"):
        mod = imported(model(nodes, feed, ["y"], opset=11))
        got = relay.create_executor(executor, mod=mod).evaluate()(*feed.values()).numpy()
        np.testing.assert_allclose(got, np.log(want) if "Log" in kind else want, rtol=1e-5)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("kernel", "stride", "pads"), [(2, 2, (0, 1)), (3, 3, (1, 1)), (2, 3, (1, 1)), (3, 2, (0, 2))])
def test_windows_of_an_open_extent_are_rounded_up(kind, kernel, stride, pads):
    """A last window counts if it begins before the padding behind does: onnxruntime is the judge where it is there."""
    made = node(kind, ["a"], ["y"], kernel_shape=[kernel], strides=[stride], pads=list(pads), ceil_mode=1)
    shapes = {"a": [1, 2, "n"]}
    feed = {"a": floats(1, 2, 4)}
    vm = relay.vm.VirtualMachine(relay.vm.compile(imported(model([made], feed, ["y"], shapes=shapes)), "llvm"))
    for n in range(3, 13):
        feed = {"a": floats(1, 2, n)}
        got, proto = [vm.invoke("main", feed["a"]).numpy()], model([made], feed, ["y"], opset=19)
        compare(got, run(imported(proto), feed))
        if find_spec("onnxruntime"):  # ONNX's own evaluator does not leave a window out
            compare(got, reference(proto, feed))


def test_sizes_without_names_are_expanded():
    feed = {"x": floats(2, 6), "to": ints(3, 4, 1)}
    nodes = [node("Reshape", ["x", "to"], ["parts"]), node("Expand", ["parts", "wide"], ["y"])]
    proto = model(nodes, feed, ["y"], {"wide": ints(1, 1, 5)}, shapes={"x": ["n", "m"]})
    got = relay.create_executor("vm", mod=imported(proto)).evaluate()(*feed.values())
    compare([got.numpy()], reference(proto, feed))


def resized(by, mode="nearest", shape=(None, 3, "h", "w"), **attributes):
    """Resize: of open images by factors, to the size of another one, or to a size that is an input."""
    x, data = floats(1, 3, 3, 5)[(slice(None),) * len(shape) if len(shape) == 4 else (0,)], {}
    feed, nodes, last = {"x": x}, [], ["x", "", "scales"]
    if by == "other":
        feed["other"], last[2:] = floats(1, 3, 7, 10), ["", "size"]
        nodes += [node("Shape", ["other"], ["back"], start=2), node("Shape", ["x"], ["front"], end=2)]
        nodes.append(node("Concat", ["front", "back"], ["size"], axis=0))
    elif by == "input":
        feed["size"], last[2:] = ints(1, 3, 4, 9), ["", "size"]
    else:
        data["scales"] = np.array(by, "float32")
    shapes = {"x": shape, "other": (None, 3, "h2", "w2")}
    return model(
        [*nodes, node("Resize", last, ["y"], mode=mode, **attributes)], feed, ["y"], data, opset=18, shapes=shapes
    ), feed


RESIZED = {
    "nearest": lambda: resized([1, 1, 2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "nearest half": lambda: resized([1, 1, 2, 2]),
    "linear": lambda: resized([1, 1, 2, 4], "linear"),
    "cubic": lambda: resized([1, 1, 3, 2], "cubic"),
    "corners": lambda: resized([1, 1, 2, 2], "linear", coordinate_transformation_mode="align_corners"),
    "batch": lambda: resized([1, 1, 1.5, 2.3], "linear", ("n", 3, 3, 5)),
    "signal": lambda: resized([1, 1, 3], "linear", ("n", 3, "w")),
    "other": lambda: resized("other", "linear"),
    "other nearest": lambda: resized("other"),
    "input": lambda: resized("input", "linear"),
}


@pytest.mark.parametrize("made", RESIZED.values(), ids=RESIZED)
def test_images_of_open_sizes_are_resized(made):
    proto, feed = made()
    for executor in ("debug", "vm"):
        got = relay.create_executor(executor, mod=imported(proto)).evaluate()(*feed.values())
        compare([got.numpy()], reference(proto, feed))


def test_pyramids_of_open_images():
    """What is added, and joined, is of one size: twice a size is never 1, which would broadcast."""
    x, w = floats(1, 2, 8, 12), floats(2, 2, 1, 1)
    nodes = [
        node("Conv", ["x", "w"], ["a"], strides=[2, 2]),
        node("Conv", ["a", "w"], ["b"], strides=[2, 2]),
        node("Resize", ["b", "", "two"], ["c"]),
        node("Add", ["a", "c"], ["d"]),
        node("Resize", ["d", "", "two"], ["e"]),
        node("Concat", ["x", "e"], ["y"], axis=1),
    ]
    proto = model(
        nodes, {"x": x}, ["y"], {"w": w, "two": np.array([1, 1, 2, 2], "float32")}, shapes={"x": (1, 2, "h", "w")}
    )
    mod = imported(proto)
    assert "?" not in str(mod["main"].ret_type)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for image in (x, floats(1, 2, 4, 4)):
        compare([machine.invoke("main", image).numpy()], reference(proto, {"x": image}))
    with pytest.raises(RelayError):
        machine.invoke("main", floats(1, 2, 5, 4))


@pytest.mark.parametrize(
    "method, mode",
    [
        ("linear", {"antialias": 1}),
        ("linear", {"coordinate_transformation_mode": "half_pixel_symmetric"}),
        ("cubic", {"exclude_outside": 1}),
    ],
)
def test_resizes_that_need_sizes_say_so(method, mode):
    with pytest.raises(RelayError, match="the shape must be known here"):
        imported(resized([1, 1, 1.5, 2] if method == "cubic" else [1, 1, 2, 2], method, **mode)[0])


@pytest.mark.parametrize("mode", ["constant", "reflect"])
@pytest.mark.parametrize("axes", [True, False])
def test_images_are_padded_to_whole_windows(mode, axes):
    """What a remainder of an open size leaves, as attention in windows has it; the sizes keep their names."""
    x = floats(1, 6, 7, 2)
    nodes = [
        *sizes("x", "x", 1, 2),
        node("Concat", ["x1", "x2"], ["hw"], axis=0),
        node("Mod", ["hw", "four"], ["over"]),
        node("Sub", ["four", "over"], ["left"]),
        node("Mod", ["left", "four"], ["more"]),
        node(
            "Concat", ["zeros", "more"] if axes else ["zero", "zeros", "zero", "zero", "more", "zero"], ["pads"], axis=0
        ),
        node("Pad", ["x", "pads", "", "axes"] if axes else ["x", "pads"], ["y"], mode=mode),
    ]
    constants = {
        "four": ints(4, 4),
        "zeros": ints(0, 0),
        "zero": ints(0),
        **PLACES,
        **({"axes": ints(1, 2)} if axes else {}),
    }
    proto = model(nodes, {"x": x}, ["y"], constants, opset=18, shapes={"x": (1, "h", "w", 2)})
    mod = imported(proto)
    assert "?" not in str(mod["main"].ret_type)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for image in (x, floats(1, 8, 5, 2), floats(1, 4, 12, 2)):
        compare([machine.invoke("main", image).numpy()], reference(proto, {"x": image}))


def test_question_marks_and_negative_sizes_are_no_names():
    proto = model([node("Relu", ["x"], ["y"])], {"x": floats(1, 2, 3)}, ["y"], shapes={"x": (-1, "?", "?")})
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    mod = imported(proto)
    for shape in ((1, 2, 3), (4, 5, 6)):
        assert relay.create_executor("vm", mod=mod).evaluate()(floats(*shape)).shape == shape


def test_counts_of_values_are_computed_with():
    """What only values decide has no name: two such sizes may differ."""
    nodes = [node("NonZero", [x], [f"n{x}"]) for x in "ab"]
    nodes += [part for x in "ab" for part in sizes(x, f"n{x}", 1)]
    nodes += [node("Concat", ["c1", f"{x}1"], [f"to{x}"], axis=0) for x in "ab"]
    nodes += [node("Equal", ["toa", "tob"], ["e"]), node("Expand", ["one", "toa"], ["y"])]
    nodes = [*sizes("c", "c", 1), *nodes]
    feed = {"a": np.eye(3, 4, dtype="float32"), "b": np.eye(4, dtype="float32"), "c": floats(2, 5)}
    proto = model(nodes, feed, ["e", "y"], {**PLACES, "one": floats(1, 1)}, shapes={"c": ["n", "m"]})
    for executor in ("debug", "vm"):
        got = relay.create_executor(executor, mod=imported(proto)).evaluate()(*feed.values())
        compare([v.numpy() for v in got], reference(proto, feed))


def test_one_name_is_one_size():
    proto = model(
        [node("Add", ["a", "b"], ["y"])], dict.fromkeys("ab", floats(3)), ["y"], shapes=dict.fromkeys("ab", ["n"])
    )
    main = imported(proto)["main"]
    assert main.params[0].checked_type.shape == main.params[1].checked_type.shape == main.ret_type.shape
    unnamed = model(
        [node("Add", ["a", "b"], ["y"])], dict.fromkeys("ab", floats(3)), ["y"], shapes=dict.fromkeys("ab", [None])
    )
    main = imported(unnamed)["main"]
    assert main.params[0].checked_type.shape != main.params[1].checked_type.shape
    fixed = imported(proto, shape={"a": (4,), "b": (4,)})["main"]
    assert fixed.ret_type.concrete_shape == (4,)


def test_values_of_inputs_can_be_given():
    x, axes = floats(2, 3, 4), ints(0, 2)
    proto = model([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], {"x": x, "axes": axes}, ["y"])
    with pytest.raises(RelayError, match="values="):
        imported(proto)
    mod = imported(proto, values={"axes": [0, 2]})
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    np.testing.assert_allclose(relay.create_executor("graph", mod=mod).evaluate()(x).numpy(), x.sum((0, 2)), rtol=1e-5)
    for values, code in [
        ({"axis": axes}, "import.input"),
        ({"axes": ints(0, 1, 2)}, "import.shape"),
        ({"axes": x}, "import.shape"),
    ]:
        with pytest.raises(RelayError) as caught:
            imported(proto, values=values)
        assert caught.value.code == code


def recurrent(kind, direction, gates):
    """A recurrent layer over open steps and batches, with lengths of its own for each sequence."""
    ways = 2 if direction == "bidirectional" else 1
    constants = {"w": floats(ways, gates * 4, 3), "r": floats(ways, gates * 4, 4), "b": floats(ways, 2 * gates * 4)}
    nodes = [node(kind, ["x", "w", "r", "b", "lens"], ["y", "last"], hidden_size=4, direction=direction)]
    feeds = [
        {"x": floats(n, b, 3), "lens": np.array(lens, "int32")}
        for n, b, lens in [(4, 2, [4, 2]), (1, 1, [1]), (3, 1, [2])]
    ]
    return model(
        nodes, feeds[0], ["y", "last"], constants, shapes={"x": ["steps", "batch", 3], "lens": ["batch"]}
    ), feeds


def scanned():
    """Running sums from the front, and of the rows from behind."""
    body = helper.make_graph(
        [node("Add", ["s", "row"], ["t"]), node("Identity", ["t"], ["out"]), node("Mul", ["back", "back"], ["square"])],
        "body",
        [helper.make_tensor_value_info(n, 1, [2]) for n in ("s", "row", "back")],
        [helper.make_tensor_value_info(n, 1, [2]) for n in ("t", "out", "square")],
    )
    options = {
        "num_scan_inputs": 2,
        "scan_input_directions": [0, 1],
        "scan_output_directions": [0, 1],
        "scan_output_axes": [0, 1],
    }
    feeds = [{"s0": floats(2), "x": floats(n, 2), "z": floats(n, 2)} for n in (3, 1, 6)]
    scan = node("Scan", ["s0", "x", "z"], ["last", "rows", "squares"], body=body, **options)
    return model([scan], feeds[0], ["last", "rows", "squares"], shapes={"x": ["n", 2], "z": ["n", 2]}), feeds


LOOPS = {
    "lstm": lambda: recurrent("LSTM", "forward", 4),
    "gru": lambda: recurrent("GRU", "bidirectional", 3),
    "rnn": lambda: recurrent("RNN", "reverse", 1),
    "scan": scanned,
}


@pytest.mark.parametrize("made", LOOPS.values(), ids=LOOPS)
def test_loops_over_open_sizes(made):
    proto, feeds = made()
    mod = imported(proto)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    debug = relay.create_executor("debug", mod=mod).evaluate()
    for feed in feeds:
        values = [feed[p.name_hint] for p in mod["main"].params]
        wanted = reference(proto, feed)
        compare([v.numpy() for v in vm.invoke("main", *values)], wanted)
        compare([v.numpy() for v in debug(*values)], wanted)
    assert vm.exe.specializations.open is not None and vm.exe.specializations.open.repeats


@pytest.mark.parametrize("made", LOOPS.values(), ids=LOOPS)
def test_turns_compute_nothing_that_all_of_them_share(made):
    main = imported(made()[0])["main"]
    functions = [n for n in walk((main.body,)) if isinstance(n, relay.Function)]
    assert functions and not any(set(main.params) & set(relay.analysis.free_vars(f)) for f in functions)


WHOLE = [*sizes("x", "x", 1), node("TopK", ["x", "x1"], ["y", "z"], axis=1, largest=0)]
ORDERED = {
    "sort": (WHOLE, lambda n, m: {"x": floats(n, m)}, ["y", "z"]),
    "topk": ([node("TopK", ["x", "two"], ["y", "z"], axis=1)], lambda n, m: {"x": floats(n, m + 2)}, ["y", "z"]),
    "cumsum": ([node("CumSum", ["x", "at1"], ["y"], reverse=1)], lambda n, m: {"x": floats(n, m)}, ["y"]),
    "elements": ([node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)],
                 lambda n, m: {"x": floats(n, 9), "i": np.tile(np.arange(m) - 4, (n, 1)), "u": floats(n, m)}, ["y"]),
    "slices": ([node("ScatterND", ["x", "i", "u"], ["y"])],
               lambda n, m: {"x": floats(40, n), "i": np.arange(m)[:, None] - 20, "u": floats(m, n)}, ["y"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_what_orders_and_scatters_is_compiled_once_for_all_sizes(name):
    nodes, made, outputs = ORDERED[name]
    feeds = [made(n, m) for n, m in ((2, 3), (1, 1), (5, 8), (33, 7))]
    shapes = {
        k: [f"{k}{d}" if feeds[1][k].shape[d] != n else n for d, n in enumerate(x.shape)] for k, x in feeds[0].items()
    }
    proto = model(nodes, feeds[0], outputs, {**PLACES, "two": ints(2)}, shapes=shapes)
    vm = relay.vm.VirtualMachine(relay.vm.compile(imported(proto), "llvm"))
    for feed in feeds:
        got = vm.invoke("main", *feed.values())
        compare([v.numpy() for v in (got if len(outputs) > 1 else [got])], reference(proto, feed))
    assert vm.exe.specializations.open is not None and not vm.exe.specializations.forms
