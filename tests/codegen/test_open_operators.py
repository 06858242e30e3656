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
