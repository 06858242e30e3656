"""Values that only a call brings: sizes, places and counts which ONNX has as inputs, given when the program runs."""

import numpy as np
import pytest
from onnx_tools import compare, evaluated, imported, model, reference, run

from relaylab import relay
from relaylab.ir.op import op_name
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayError

helper = pytest.importorskip("onnx").helper
node = helper.make_node
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


OPERATORS = {
    "HannWindow": (node("HannWindow", ["n"], ["y"], periodic=0), 17, {"n": np.array(6, "int64")}),
    "CenterCropPad": (node("CenterCropPad", ["x", "to"], ["y"]), 18, {"x": floats(4, 7), "to": ints(6, 3)}),
    "Split": (node("Split", ["x", "sizes"], ["y", "z"], axis=1), 18, {"x": floats(2, 7), "sizes": ints(5, 2)}),
    "Split nothing": (node("Split", ["x", "sizes"], ["y", "z"]), 18, {"x": floats(3), "sizes": ints(0, 3)}),
    "OneHot": (
        node("OneHot", ["i", "depth", "values"], ["y"], axis=1),
        11,
        {"i": ints(1, -2, 9), "depth": np.array(4, "int64"), "values": floats(2)},
    ),
    "Pad": (
        node("Pad", ["x", "pads", "value"], ["y"]),
        18,
        {"x": floats(2, 3), "pads": ints(1, 0, -1, 2), "value": np.array(2.5, "float32")},
    ),
    "Pad bool": (
        node("Pad", ["x", "pads", "value"], ["y"]),
        18,
        {"x": np.eye(2, dtype="bool"), "pads": ints(1, 0, 0, 2), "value": np.array(True)},
    ),
    "CumSum": (node("CumSum", ["x", "axis"], ["y"], exclusive=1), 14, {"x": floats(5), "axis": np.array(0, "int64")}),
}


@pytest.mark.parametrize("made", OPERATORS.values(), ids=OPERATORS)
def test_operators_take_them_when_they_run(made):
    one, opset, feed = made
    proto = model([one], feed, list(one.output), opset=opset)
    for executor in ("debug", "vm"):
        values = {"pads": feed["pads"]} if "pads" in feed else {}
        compare(run(imported(proto, values=values), feed, executor), reference(proto, feed))


@pytest.mark.parametrize("back", [0, 1])
def test_a_batch_of_signals_is_open(back):
    signal = {"x": floats(3, 6, 2 if back else 1)}
    made = model(
        [node("DFT", ["x"], ["y"], axis=1, inverse=back)], signal, ["y"], shapes={"x": ["n", *signal["x"].shape[1:]]}
    )
    mod = imported(made)
    assert "?" not in str(mod["main"].ret_type)
    for n in (3, 1):
        compare(run(mod, {"x": signal["x"][:n]}, "vm"), reference(made, {"x": signal["x"][:n]}))


def test_what_a_definition_cannot_do_either_is_the_converters_error():
    feed = {"theta": floats(1, 2, 3), "size": ints(1, 1, 2, 3)}
    with pytest.raises(RelayError, match="AffineGrid: `size` must be known when the model is loaded"):
        imported(model([node("AffineGrid", ["theta", "size"], ["y"])], feed, ["y"], opset=20))


def test_pieces_that_do_not_make_the_whole_are_refused():
    proto = model([node("Split", ["x", "sizes"], ["y", "z"])], {"x": floats(7), "sizes": ints(5, 2)}, ["y", "z"])
    for wrong in (ints(5, 1), ints(5, 3), ints(-1, 8)):
        for executor in ("debug", "vm"):
            with pytest.raises(RelayError):
                run(imported(proto), {"x": floats(7), "sizes": wrong}, executor)


@pytest.mark.parametrize("length", [7, 8, 3, 1, 0])
def test_pieces_of_an_open_extent_may_be_uneven(length):
    proto = model(
        [node("Split", ["x"], list("abcd"), axis=1, num_outputs=4)],
        {"x": floats(2, 8)},
        list("abcd"),
        opset=18,
        shapes={"x": [2, "n"]},
    )
    for executor in ("debug", "vm"):
        got = run(imported(proto), {"x": (x := floats(2, length))}, executor)
        each = -(-length // 4)
        compare(got, [x[:, k * each : (k + 1) * each] for k in range(4)])


def written(past, update, places, axis, circular):
    """The definition: every piece of `update` along the axis at its batch's place."""
    out = past.copy()
    for b, first in enumerate(places):
        for t in range(update.shape[axis]):
            at = (first + t) % past.shape[axis] if circular else first + t
            to, source = np.moveaxis(out[b], axis - 1, 0), np.moveaxis(update[b], axis - 1, 0)
            to[at] = source[t]
    return out


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [2, 1])
def test_a_cache_is_written_at_places_that_a_call_brings(mode, axis):
    """TensorScatter, as decoders of opset 24 keep their caches; batch, length and room may be open."""
    shapes = {"past": ["b", 2, "room", 4], "update": ["b", 2, "n", 4], "at": ["b"]}
    feeds = [
        {"past": floats(b, 2, room, 4), "update": floats(b, 2, n, 4), "at": ints(*at)}
        for b, room, n, at in [(2, 6, 2, (0, 4)), (1, 6, 1, (5,)), (3, 5, 3, (2, 1, 0))]
    ]
    if axis == 1:
        shapes = {k: [s[0], s[2], s[1], s[3]] if len(s) == 4 else s for k, s in shapes.items()}
        feeds = [{k: a.swapaxes(1, 2) if a.ndim == 4 else a for k, a in f.items()} for f in feeds]
    if mode == "circular":
        feeds[0]["at"] = ints(5, 4)
    write = node("TensorScatter", ["past", "update", "at"], ["y"], axis=axis, mode=mode)
    opened, fixed = model([write], feeds[0], ["y"], opset=24, shapes=shapes), model([write], feeds[0], ["y"], opset=24)
    vm = relay.vm.VirtualMachine(relay.vm.compile(imported(opened), "llvm"))
    for feed in feeds:
        expected = written(feed["past"], feed["update"], feed["at"], axis, mode == "circular")
        compare(run(imported(opened), feed), [expected])
        compare([vm.invoke("main", **feed).numpy()], [expected])
    assert vm.exe.specializations.open is not None, vm.exe.stats
    compare(run(imported(fixed), feeds[0], "graph"), evaluated(fixed, feeds[0]))


def test_a_loop_whose_rows_have_no_shape_is_refused_when_it_is_read():
    """Its first row, of no element, could not be made when it runs."""
    body = helper.make_graph(
        [node("Add", ["s", "x"], ["t"]), node("Identity", ["t"], ["row"])],
        "body",
        [helper.make_tensor_value_info(n, 1, None) for n in "sx"],
        [helper.make_tensor_value_info(n, 1, None) for n in ("t", "row")],
    )
    feed = {"first": floats(3), "xs": floats(4, 3)}
    scan = node("Scan", ["first", "xs"], ["last", "rows"], body=body, num_scan_inputs=1)
    two = model([scan], feed, ["last", "rows"], shapes={"first": ["n"], "xs": ["steps", "m"]})
    with pytest.raises(RelayError, match="the shapes of what a loop collects must be known"):
        imported(two)
    one = model([scan], feed, ["last", "rows"], shapes={"first": ["n"], "xs": ["steps", "n"]})
    compare(run(imported(one), feed, "vm"), reference(one, feed))


@pytest.mark.parametrize("most", [None, 0, 2])
@pytest.mark.parametrize("known", [True, False])
def test_at_most_no_boxes_are_none(most, known):
    """ONNX: "default to 0, which means no output"."""
    corners, sizes = RNG.random((1, 6, 2)).astype("float32"), RNG.random((1, 6, 2)).astype("float32") / 4
    feed = {"boxes": np.concatenate([corners, corners + sizes], 2), "scores": RNG.random((1, 2, 6)).astype("float32")}
    names = ["boxes", "scores"] if most is None else ["boxes", "scores", "most"]
    one = node("NonMaxSuppression", names, ["y"])
    given = {} if most is None else {"most": ints(most)}
    proto = model([one], feed | ({} if known else given), ["y"], given if known else {})
    feed |= {} if known else given
    expected = [np.array([[0, c, k] for c in range(2) for k in _kept(feed, c, most or 0)], "int64").reshape(-1, 3)]
    for executor in ("debug", "vm"):
        compare(run(imported(proto), feed, executor), expected)


def _kept(feed, c, most):
    """The boxes of a class, the best first, that touch no better one: the overlap is 0."""
    kept = []
    for k in np.argsort(-feed["scores"][0, c]):
        box = feed["boxes"][0, k]
        apart = [(box[:2] >= (other := feed["boxes"][0, j])[2:]).any() or (other[:2] >= box[2:]).any() for j in kept]
        kept += [k] if all(apart) and len(kept) < most else []
    return kept


def grown_rows():
    """Rows of a product, one more at each turn of a loop whose state they are; which rows, data decides."""
    body = helper.make_graph(
        [
            node("Gather", ["product", "turn"], ["row"]),
            node("Unsqueeze", ["row", "zero"], ["one"]),
            node("Concat", ["s", "one"], ["t"], axis=0),
            node("Identity", ["alive"], ["again"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("turn", 7, []), ("alive", 9, []), ("s", 1, None))],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("again", 9, []), ("t", 1, None))],
    )
    feed = {"x": floats(6, 3), "w": floats(3, 4), "zero": ints(0), "none": floats(0, 4)}
    nodes = [
        node("MatMul", ["x", "w"], ["all"]),
        node("Greater", ["first", "bound"], ["keeps"]),
        node("ReduceMax", ["all"], ["first"], axes=[1], keepdims=0),
        node("NonZero", ["keeps"], ["at"]),
        node("Squeeze", ["at", "zero"], ["places"]),
        node("Gather", ["all", "places"], ["product"]),
        node("Shape", ["places"], ["count"]),
        node("Squeeze", ["count", "zero"], ["turns"]),
        node("Loop", ["turns", "yes", "none"], ["rows"], body=body),
        node("Relu", ["rows"], ["y"]),
    ]
    nodes.insert(1, nodes.pop(2))
    constants = {"w": feed["w"], "zero": feed["zero"], "none": feed["none"], "bound": np.float32(0.5), "yes": np.True_}
    return model(nodes, {"x": feed["x"]}, ["y"], constants=constants, opset=17), {"x": feed["x"]}


def test_turns_of_a_loop_compute_nothing_that_is_around_it():
    """What the body of a Loop reads of the graph around it was computed in every turn: a network 100 times."""
    proto, feed = grown_rows()
    mod = imported(proto)
    functions = [n for n in walk((mod["main"].body,)) if isinstance(n, relay.Function)]
    inside = {op_name(n) for f in functions for n in walk((f.body,))}
    assert functions and not inside & {"nn.dense", "nn.matmul", "nn.batch_matmul", "argwhere", "max"}
    wanted = reference(proto, feed)
    compare(run(mod, feed, "debug"), wanted)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    compare([vm.invoke("main", feed["x"]).numpy()], wanted)


def test_a_loop_that_grows_is_a_step_of_one_form():
    """Its sizes are others at every turn, so it is evaluated; what is around it is compiled."""
    proto, feed = grown_rows()
    vm = relay.vm.VirtualMachine(relay.vm.compile(imported(proto), "llvm"))
    compare([vm.invoke("main", feed["x"]).numpy()], reference(proto, feed))
    form = vm.exe.specializations.open
    assert form is not None and "argwhere" in form.found and "loop" in form.found, vm.exe.stats
    compare([v.numpy() for v in form.run([feed["x"]])], reference(proto, feed))
