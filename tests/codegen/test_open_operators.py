"""Operators of boxes, of experts and of packed weights over open extents: one form for all lengths, next to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from test_procedures import floats
from test_specializations import forms, machine

from relaylab import relay
from relaylab.ir import OPERATORS
from relaylab.ir.dims import SizeVar
from relaylab.op.base import call_operator
from relaylab.op.nn.prepared.dense_uint4 import packed
from relaylab.support.errors import RelayError

RNG = np.random.default_rng(11)


def opened(name: str, shapes: dict[str, tuple], dtypes: dict[str, str] | None = None, **attrs) -> relay.Function:
    params = [relay.var(k, shape=shape, dtype=(dtypes or {}).get(k, "float32")) for k, shape in shapes.items()]
    return relay.Function(params, call_operator(name, *params, **attrs))


def reference(name: str, arrays: list, **attrs) -> list[np.ndarray]:
    found = OPERATORS[name].definition(**attrs).reference(*map(np.asarray, arrays))
    return list(found) if isinstance(found, tuple) else [found]


def compare(vm, arrays: list, wanted: list[np.ndarray]) -> None:
    got = vm.invoke("main", *arrays)
    got = [got] if len(wanted) == 1 else list(got)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(
            mine.numpy(), theirs, rtol=2e-4, atol=2e-4, err_msg=str([np.shape(a) for a in arrays])
        )


def one_form(vm) -> bool:
    return forms(vm).open is not None and not forms(vm).forms


def boxes_of(n: int) -> np.ndarray:
    corners = RNG.uniform(0, 10, (n, 2))
    return np.concatenate([corners, corners + RNG.uniform(0.5, 3, (n, 2))], 1).astype("float32")


def kept(boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float) -> list[int]:
    """The greedy suppression of a class."""
    order = [k for k in np.argsort(-scores, kind="stable") if scores[k] > least]
    found: list[int] = []
    area = lambda b: (b[2] - b[0]) * (b[3] - b[1])
    for k in order:
        if len(found) == most:
            break
        shared = [
            np.prod(np.maximum(np.minimum(boxes[k, 2:], boxes[f, 2:]) - np.maximum(boxes[k, :2], boxes[f, :2]), 0))
            for f in found
        ]
        if all(s / (area(boxes[k]) + area(boxes[f]) - s) < iou for s, f in zip(shared, found)):
            found.append(int(k))
    return found


@pytest.mark.parametrize("most", [3, 2000])
def test_suppression_of_any_number_of_boxes(most):
    n = SizeVar("n")
    shapes = {"boxes": (1, n, 4), "scores": (1, 2, n), "most": (), "iou": (), "least": ()}
    vm = machine(opened("vision.all_class_non_max_suppression", shapes, {"most": "int32"}), open=True)
    for count in (5, 0, 1, 33, 130, 1500, 2):
        boxes, scores = boxes_of(count), RNG.random((2, count)).astype("float32")
        rows = [(0, c, k) for c in range(2) for k in kept(boxes, scores[c], most, 0.3, 0.2)]
        wanted = np.zeros((2 * count, 3), "int64")
        wanted[: len(rows)] = np.array(rows).reshape(-1, 3)
        limits = [np.array(most, "int32"), np.array(0.3, "float32"), np.array(0.2, "float32")]
        compare(vm, [boxes[None], scores[None], *limits], [wanted, np.array([len(rows)])])
    assert one_form(vm)


def test_valid_boxes_and_their_suppression():
    n = SizeVar("n")
    x = relay.var("x", shape=(2, n, 6))
    counts, rows, at = relay.vision.get_valid_counts(x, 0.3)
    chosen = relay.vision.non_max_suppression(rows, counts, at, iou_threshold=0.4, return_indices=False)
    vm = machine(relay.Function([x], chosen), open=True)
    for count in (4, 0, 1, 70, 300):
        data = np.concatenate([RNG.integers(-1, 2, (2, count, 1)), RNG.random((2, count, 1))], 2).astype("float32")
        data = np.concatenate([data, np.stack([boxes_of(count) for _ in range(2)])], 2)
        found = reference("vision.get_valid_counts", [data, np.float32(0.3)])
        limits = [np.array(-1, "int32"), np.array(0.4, "float32")]
        given = [found[1], found[0], found[2], *limits]
        compare(vm, [data], reference("vision.non_max_suppression", given, return_indices=False))
    assert one_form(vm)


@pytest.mark.parametrize("columns", [70, 64, 5])
def test_rows_of_experts(columns):
    n = SizeVar("n")
    shapes = {"x": (n, 16), "w": (3, 16, columns), "ends": (3,)}
    vm = machine(opened("nn.grouped_matmul", shapes, {"ends": "int64"}), open=True)
    weight = floats(3, 16, columns)
    for count in (7, 0, 1, 40, 6):
        x, ends = floats(count, 16), np.array([count // 3, count // 2, count])
        parts = np.split(x, ends[:2])
        compare(vm, [x, weight, ends], [np.concatenate([part @ w for part, w in zip(parts, weight)])])
    assert one_form(vm)


@pytest.mark.parametrize("rounded", [False, True])
def test_rows_of_packed_weights(rounded):
    n = SizeVar("n")
    shapes = {"x": (2, n, 32), "w": (2, 4, 16), "scales": (2, 2, 16), "zeros": (1, 1, 1)}
    attrs = {"units": 20, "rounded": rounded}
    vm = machine(opened("nn.contrib_dense_uint4", shapes, {"w": "int32", "zeros": "uint8"}, **attrs), open=True)
    weight = packed(RNG.integers(0, 16, (20, 32)), 16)
    scales = RNG.uniform(0.1, 0.9, (2, 2, 16)).astype("float32")
    for count in (4, 0, 1, 3, 17):
        given = [floats(2, count, 32), weight, scales, np.full((1, 1, 1), 8, "uint8")]
        compare(vm, given, reference("nn.contrib_dense_uint4", given, **attrs))
    assert one_form(vm)


@pytest.mark.parametrize("rounded", [False, True])
def test_rows_that_are_left_of_tiles(rounded):
    """Of four rows for each of n tiles of three leave n % 3: none of 2^24, the largest n, and two of two."""
    shapes = {"x": (SizeVar("n"), 4, 16), "w": (1, 2, 8), "scales": (1, 1, 8), "zeros": (1, 1, 1)}
    attrs = {"units": 5, "rounded": rounded}
    vm = machine(opened("nn.contrib_dense_uint4", shapes, {"w": "int32", "zeros": "uint8"}, **attrs), open=True)
    weight, scales = packed(RNG.integers(0, 16, (5, 16)), 8), RNG.uniform(0.1, 0.9, (1, 1, 8)).astype("float32")
    for count in (2, 5, 1, 3, 11):
        given = [floats(count, 4, 16), weight, scales, np.full((1, 1, 1), 8, "uint8")]
        compare(vm, given, reference("nn.contrib_dense_uint4", given, **attrs))
    assert one_form(vm)


@pytest.mark.parametrize("name", ["vision.roi_align", "vision.roi_pool"])
def test_regions_of_images_of_any_size(name):
    n, h, w = (SizeVar(k) for k in "nhw")
    attrs = {"pooled_size": (2, 3), "spatial_scale": 0.5}
    vm = machine(opened(name, {"x": (2, 3, h, w), "rois": (n, 5)}, **attrs), open=True)
    for count, high, wide in ((2, 8, 9), (0, 8, 9), (5, 1, 1), (9, 20, 13)):
        rois = np.concatenate([RNG.integers(0, 2, (count, 1)), RNG.uniform(0, 2 * high, (count, 4))], 1)
        given = [floats(2, 3, high, wide), rois.astype("float32")]
        compare(vm, given, reference(name, given, **attrs))
    assert one_form(vm)


def test_one_value_for_any_number_of_places():
    """Two sizes may be one and many: the second of them is then read once."""
    n, m = SizeVar("n"), SizeVar("m")
    shapes = {"at": (n,), "values": (m,), "default": ()}
    vm = machine(opened("sparse_to_dense", shapes, {"at": "int64"}, output_shape=(9,)), open=True)
    for count, many in ((4, 4), (4, 1), (1, 1), (0, 0)):
        given = [RNG.permutation(9)[:count], floats(many), np.array(0.5, "float32")]
        compare(vm, given, reference("sparse_to_dense", given, output_shape=(9,)))
    assert one_form(vm)


def test_a_size_where_a_number_is_wanted_is_asked_at_each_call():
    """The type relation takes a size for three columns; a kernel that reads three must not get one."""
    n = SizeVar("n")
    x = relay.var("x", shape=(2, 2, n))
    vm = machine(relay.Function([x], relay.image.affine_grid(x, (4, 5))), open=True)
    given = floats(2, 2, 3)
    compare(vm, [given], reference("image.affine_grid", [given], target_shape=(4, 5)))
    with pytest.raises(RelayError, match="image.affine_grid") as told:
        forms(vm).open.run([floats(2, 2, 1)])
    assert told.value.code == "vm.size"
    compare(vm, [given], reference("image.affine_grid", [given], target_shape=(4, 5)))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "rows"])
def test_searches_in_sequences_of_any_length(right, lead):
    n, m = SizeVar("n"), SizeVar("m")
    vm = machine(opened("searchsorted", {"s": (*lead, n), "v": (*lead, m)}, right=right), open=True)
    for length in (0, 1, 2, 3, 100, 5000):
        for count in (0, 1, 40):
            s = np.sort(RNG.integers(0, length // 2 + 2, (*lead, length)).astype("float32"))
            v = RNG.integers(-1, length // 2 + 3, (*lead, count)).astype("float32")
            v[..., 3:4] = np.nan
            rows = zip(s, v) if lead else [(s, v)]
            wanted = [np.searchsorted(a, b, "right" if right else "left") for a, b in rows]
            compare(vm, [s, v], [np.stack(wanted).reshape(v.shape)])
    assert one_form(vm)


def test_matrices_of_an_open_batch_beside_two():
    n = SizeVar("n")
    vm = machine(opened("nn.batch_matmul", {"x": (n, 3, 4), "y": (2, 5, 4)}, transpose_b=True), open=True)
    x, y = floats(2, 3, 4), floats(2, 5, 4)
    compare(vm, [x, y], [x @ y.swapaxes(1, 2)])
    assert one_form(vm)
    compare(vm, [x[:1], y], [x[:1] @ y.swapaxes(1, 2)])
    with pytest.raises(RelayError):
        vm.invoke("main", floats(3, 3, 4), y)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("turned", [False, True], ids=["conv2d", "conv2d_transpose"])
def test_convolutions_of_open_channels(groups, turned):
    torch = pytest.importorskip("torch")
    c, o, k = SizeVar("c"), SizeVar("o"), SizeVar("k")
    kernel = (groups * c, o, k, 3) if turned else (groups * o, c, k, 3)
    name = "nn.conv2d_transpose" if turned else "nn.conv2d"
    w = relay.var("w", shape=kernel)
    x = relay.var("x", shape=(1, groups * c, 6, SizeVar("n")))
    sizes = [relay.var(f"size{d}", shape=(d,)) for d in (c, o)]  # which a product does not tell
    layout = "IOHW" if turned else "OIHW"
    body = call_operator(name, x, w, padding=(1, 1), groups=groups, strides=(2, 1), kernel_layout=layout)
    vm = machine(relay.Function([x, w, *sizes], body), open=True)
    judge = torch.nn.functional.conv_transpose2d if turned else torch.nn.functional.conv2d
    for ins, outs, high, wide in ((1, 1, 3, 4), (3, 2, 1, 9), (17, 5, 2, 3)):
        data, weight = floats(1, groups * ins, 6, wide), floats(groups * ins, outs, high, 3)
        if not turned:
            weight = floats(groups * outs, ins, high, 3)
        wanted = judge(torch.tensor(data), torch.tensor(weight), padding=1, groups=groups, stride=(2, 1)).numpy()
        compare(vm, [data, weight, floats(ins), floats(outs)], [wanted])
    assert one_form(vm)


def test_losses_of_any_batch_and_classes():
    torch = pytest.importorskip("torch")
    n, c = SizeVar("n"), SizeVar("c")
    shapes, types = {"x": (n, c), "t": (n,), "w": (c,)}, {"t": "int64"}
    vms = {r: machine(opened("nn.nll_loss", shapes, types, reduction=r), open=True) for r in ("mean", "sum", "none")}
    soft = machine(opened("nn.cross_entropy_with_logits", {"x": (n, c), "t": (n, c)}), open=True)
    for rows, classes in ((4, 3), (1, 1), (50, 20)):
        x, w = floats(rows, classes), np.abs(floats(classes)) + 0.1
        t, share = RNG.integers(0, classes, rows), np.abs(floats(rows, classes))
        for reduction, vm in vms.items():
            wanted = torch.nn.functional.nll_loss(*map(torch.tensor, (x, t, w)), reduction=reduction)
            compare(vm, [x, t, w], [wanted.numpy()])
        compare(soft, [x, share], [-(x * share).sum() / rows])
    assert one_form(soft) and all(map(one_form, vms.values()))


@pytest.mark.parametrize("factor", [0.5, 1.5, 2.25])
def test_images_enlarged_by_fractions(factor):
    n = SizeVar("n")
    vm = machine(opened("nn.upsampling", {"x": (1, 1, n, 2)}, scale_h=factor), open=True)
    for rows in (2, 3, 5, 6, 7, 8, 40):
        x, many = floats(1, 1, rows, 2), round(rows * factor)
        compare(vm, [x], [x[:, :, np.arange(many) * rows // many]])
    assert one_form(vm)


def test_a_slice_that_open_values_do_not_fill():
    x, v = relay.var("x", shape=(SizeVar("n"),)), relay.var("v", shape=(3,))
    limits = [relay.const(np.array([k], "int64")) for k in (1, 4, 1)]
    vm = machine(relay.Function([x, v], call_operator("strided_set", x, v, *limits)), open=True)
    for many in (4, 5, 90):
        data, values = floats(many), floats(3)
        compare(vm, [data, values], [np.concatenate([data[:1], values, data[4:]])])
    assert one_form(vm)
    with pytest.raises(RelayError, match="shape"):
        vm.invoke("main", floats(3), floats(3))


def test_common_divisors_of_open_tensors() -> None:
    n = SizeVar("n")
    vm = machine(opened("gcd", {"a": (n, 5), "b": (n, 5)}, {"a": "int64", "b": "int64"}), open=True)
    for rows in (3, 40):
        arrays = [RNG.integers(-90, 90, (rows, 5)) for _ in range(2)]
        compare(vm, arrays, [np.gcd(*arrays)])
    assert one_form(vm)
