"""Operators that are procedures, compiled, against numpy: order of updates, edges of extents and of values."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.operator_programs import compiled

from relaylab.ir import OPERATORS
from relaylab.loop.builder import OutSpec
from relaylab.loop.procedure import Procedure, perform
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.op.vision.suppression import FIRST

RNG = np.random.default_rng(5)


def native(name: str, arrays: list, **attrs) -> list[np.ndarray]:
    return compiled(OPERATORS[name].definition(**attrs), [np.asarray(a) for a in arrays], "llvm")


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


# ---- scatters


def scattered(data, axis, indices, updates, add):
    """Along an axis, in order; an index beyond it is left out."""
    out, n = data.copy(), data.shape[axis]
    for at in np.ndindex(*indices.shape):
        k = indices[at] + n * (indices[at] < 0)
        if 0 <= k < n:
            to = (*at[:axis], k, *at[axis + 1 :])
            out[to] = out[to] + updates[at] if add else updates[at]
    return out


@pytest.mark.parametrize("shape, taken, axis", [((50, 8), (90, 5), 0), ((6, 40), (4, 70), 1), ((9,), (20,), 0)])
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_scatters_along_an_axis_keep_the_order_of_updates(name, shape, taken, axis):
    indices = RNG.integers(-shape[axis] - 3, shape[axis] + 3, taken)
    data, updates = floats(*shape), floats(*taken)
    (got,) = native(name, [data, indices, updates], axis=axis)
    np.testing.assert_allclose(got, scattered(data, axis, indices, updates, name == "scatter_add"), rtol=1e-6)


@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatters_of_slices_are_those_of_numpy(mode, depth):
    shape = (7, 3, 19)
    data, updates = floats(*shape), floats(30, *shape[depth:])
    indices = np.array([RNG.integers(-n, n, 30) for n in shape[:depth]])
    want = data.copy()
    if mode == "update":
        for k in range(30):
            want[tuple(indices[:, k])] = updates[k]
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[mode]
        ufunc.at(want, tuple(indices), updates)
    np.testing.assert_allclose(native("scatter_nd", [data, indices, updates], mode=mode)[0], want, rtol=1e-6)


def test_places_outside_are_left_out():
    data, indices = floats(4, 5), np.array([[0, 4, -5, 1 << 40, -(1 << 62)]])
    updates = floats(5, 5)
    (got,) = native("scatter_nd", [data, indices, updates], mode="add")
    np.testing.assert_array_equal(got[1:], data[1:])
    np.testing.assert_array_equal(got[0], data[0] + updates[0])


@pytest.mark.parametrize("extents", [(0, 3), (4, 0)])
def test_scatters_without_elements(extents):
    data, updates = floats(4, 3)[:, : extents[1]], floats(extents[0], extents[1])
    (got,) = native("scatter_nd", [data, np.zeros((1, extents[0]), "int64"), updates], mode="update")
    np.testing.assert_array_equal(got, data if 0 in updates.shape else updates)


@pytest.mark.parametrize("name, whole", [("cumsum", np.cumsum), ("cumprod", np.cumprod)])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_running_sums_are_those_of_numpy(name, whole, axis):
    x = floats(5, 40, 3)
    np.testing.assert_allclose(native(name, [x], axis=axis)[0], whole(x, axis, "float64"), rtol=1e-5, atol=1e-5)


# ---- sorting


def hard(n: int, dtype: str) -> np.ndarray:
    """Numbers with many ties; floats also with NaN of both signs, infinities and zeros of both signs."""
    if not dtype.startswith("float"):
        low, high = (0, 2) if dtype == "bool" else (0 if dtype[0] == "u" else -4, 5)
        return RNG.integers(low, high, n).astype(dtype)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0], dtype)
    return np.where(RNG.random(n) < 0.5, RNG.choice(odd, n), RNG.standard_normal(n).round(1)).astype(dtype)


def stable_order(x: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """The order of Python's own stable sort; NaN is the largest number."""
    lines = np.moveaxis(x, axis, -1)
    out = np.empty(lines.shape, "int64")
    for at in np.ndindex(*lines.shape[:-1]):
        values = [float(v) for v in lines[at]]
        key = lambda k, v=values: (np.isnan(v[k]), 0.0 if np.isnan(v[k]) else v[k])
        # `reverse` keeps the order of equal elements.
        out[at] = sorted(range(len(values)), key=key, reverse=not ascending)
    return np.moveaxis(out, -1, axis)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64", "bool"])
def test_sorted_is_as_pythons_stable_sort(dtype, ascending):
    for shape, axis in [((0,), 0), ((1,), 0), ((2,), -1), ((5, 33), -1), ((37, 4), 0), ((2, 9, 3), 1), ((0, 4), 1)]:
        x = hard(int(np.prod(shape)), dtype).reshape(shape)
        want = stable_order(x, axis, ascending)
        (got,) = native("argsort", [x], axis=axis, is_ascend=ascending, dtype="int64")
        np.testing.assert_array_equal(got, want, err_msg=f"{shape} along {axis}")
        (values,) = native("sort", [x], axis=axis, is_ascend=ascending)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis))


SOME_OF_FEW = [(2, 1), (31, 15), (80, 40), (128, 64), (129, 5), (256, 128), (256, 129)]


@pytest.mark.parametrize(
    "n, k", [(1, 1), (7, 7), (300, 3), (1000, 1), (1000, 249), (2048, 256), (1537, 300), (600, 0)] + SOME_OF_FEW
)
@pytest.mark.parametrize("ascending", [True, False])
def test_the_first_k_are_those_of_the_sorted_row(n, k, ascending):
    rising = np.arange(n, dtype="float32")
    x = np.stack([hard(n, "float32"), rising, -rising, np.full(n, np.nan, "float32"), np.zeros(n, "float32")])
    want = stable_order(x, 1, ascending)[:, : k or n]
    values, indices = native("topk", [x], k=k, axis=-1, ret_type="both", is_ascend=ascending, dtype="int32")
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))
    if k == 249:
        for part, whole in (("values", values), ("indices", indices)):
            (alone,) = native("topk", [x.T], k=k, axis=0, ret_type=part, is_ascend=ascending, dtype="int32")
            np.testing.assert_array_equal(alone, whole.T)


@pytest.mark.parametrize("n", [129, 300, 2500])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16", "int32", "uint32", "int64", "uint64"])
def test_long_rows_of_all_bits_are_sorted_as_numpy_sorts(dtype, n):
    x = np.frombuffer(RNG.bytes(n * np.dtype(dtype).itemsize), dtype).copy()
    x[n // 2 :] = x[: n - n // 2]  # ties
    want = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(native("argsort", [x])[0], want)
    for k in (2, 40):
        np.testing.assert_array_equal(native("topk", [x], k=k, is_ascend=True, ret_type="indices")[0], want[:k])


def limits_of(dtype: str, n: int) -> np.ndarray:
    """The ends of a data type and what lies near them and near 0."""
    if dtype.startswith("float"):
        tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
        ends = np.array([-np.inf, -huge, -tiny, -0.0, 0.0, tiny, 2 * tiny, 1.0, huge, np.inf, np.nan], dtype)
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        ends = np.array([low, low + 1, high // 2, 0, 1, high - 1, high], dtype)
    return RNG.choice(ends, n)


@pytest.mark.parametrize("n, k", [(400, 33), (4097, 1000), (6000, 10), (5000, 5000), (200, 90), (128, 64), (31, 15)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_rows_of_all_widths_give_their_first_k(dtype, n, k, ascending):
    """A row of the ends of its data type, and rows whose numbers share all but a few bits."""
    near = RNG.integers(0, 1000, n).astype(dtype)
    moved = near + np.array(2**40, dtype) if np.dtype(dtype).itemsize == 8 else near * np.array(65536, dtype)
    x = np.stack([limits_of(dtype, n), near, moved, np.full(n, 7, dtype)])
    key = np.where(np.isnan(x), np.inf, x) if dtype.startswith("float") else x
    for row, keys in zip(x, key):
        number = np.isnan(row) if dtype.startswith("float") else np.zeros(n, bool)
        ranks = np.unique(keys, return_inverse=True)[1] + 2 * number  # NaN stands behind infinity
        want = np.argsort(ranks if ascending else -ranks, kind="stable")[:k]
        values, indices = native("topk", [row], k=k, is_ascend=ascending)
        np.testing.assert_array_equal(indices, want)
        np.testing.assert_array_equal(values, row[want])


@pytest.mark.parametrize("attrs", [{"k": 300}, {"k": 5}, {"k": 60, "is_ascend": True}])
def test_the_loop_evaluator_gives_the_first_k(attrs):
    x = hard(300, "float32")
    specs = [OutSpec((attrs["k"],), "float32"), OutSpec((attrs["k"],), "int32", 1)]
    values, indices = perform(specs, OPERATORS["topk"].definition(**attrs).procedure, [x])
    want = stable_order(x, 0, attrs.get("is_ascend", False))[: attrs["k"]]
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, x[want])


def test_sorting_and_topk_are_those_of_torch():
    torch = pytest.importorskip("torch")
    x = hard(3 * 2000, "float32").reshape(3, 2000)
    for descending in (False, True):
        want = torch.sort(torch.from_numpy(x), dim=1, descending=descending, stable=True)
        np.testing.assert_array_equal(native("sort", [x], is_ascend=not descending)[0], want.values)
        (order,) = native("argsort", [x], is_ascend=not descending)
        np.testing.assert_array_equal(order, want.indices)
        best = native("topk", [x], k=9, ret_type="values", is_ascend=not descending)[0]
        np.testing.assert_array_equal(best, torch.topk(torch.from_numpy(x), 9, largest=descending).values)


# ---- boxes


def best_boxes(boxes, scores, limit, threshold, kinds=None) -> list[int]:
    """Greedy suppression, written down plainly: the places of the boxes that stay, best first."""
    kept: list[int] = []
    for k in sorted(range(len(boxes)), key=lambda k: -scores[k]):
        if len(kept) < limit and not any(
            overlap(boxes[k], boxes[j]) >= threshold for j in kept if kinds is None or kinds[k] == kinds[j]
        ):
            kept.append(k)
    return kept


def overlap(a, c) -> float:
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(c[:2], c[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(c[:2], c[2:]))
    inter = np.prod(np.maximum(high - low, 0))
    union = abs(np.prod(a[2:] - a[:2])) + abs(np.prod(c[2:] - c[:2])) - inter
    return inter / union if union > 0 else 0.0


def some_boxes(n: int) -> np.ndarray:
    """Boxes with corners at whole numbers, in any order: their overlaps are exact."""
    corner = RNG.integers(0, 40, (n, 2))
    return np.concatenate([corner, corner + RNG.integers(-12, 13, (n, 2))], 1).astype("float32")


@pytest.mark.parametrize("n, limit, top", [(0, -1, -1), (1, -1, -1), (150, -1, -1), (150, 20, 90), (40, 0, 500)])
@pytest.mark.parametrize("force", [True, False])
def test_suppression_is_the_greedy_one(n, limit, top, force):
    kinds, scores = RNG.integers(0, 3, (2, n, 1)), RNG.permutation(2 * n).reshape(2, n, 1)
    data = np.concatenate([kinds, scores, [some_boxes(n), some_boxes(n)]], 2).astype("float32")
    valid, names = np.array([n, n // 2], "int32"), np.array([np.arange(n)] * 2, "int32") + 1000
    rest = (valid, names, np.int32(limit), np.float32(0.3))
    indices, counts = native("vision.non_max_suppression", [data, *rest], force_suppress=force, top_k=top)
    attrs = {"force_suppress": force, "top_k": top, "return_indices": False, "invalid_to_bottom": True}
    (rows,) = native("vision.non_max_suppression", [data, *rest], **attrs)
    for k in range(2):
        looked = data[k, : valid[k]]
        if top > 0:
            looked = looked[np.argsort(-looked[:, 1])[:top]]
        kept = best_boxes(looked[:, 2:], looked[:, 1], limit if limit > 0 else n, 0.3, None if force else looked[:, 0])
        assert counts[k, 0] == len(kept)
        np.testing.assert_array_equal(rows[k, : len(kept)], looked[kept])
        assert (rows[k, len(kept) :] == -1).all() and (indices[k, len(kept) :] == -1).all()
        np.testing.assert_array_equal(data[k, indices[k, : len(kept)] - 1000], looked[kept])


def test_boxes_and_scores_that_are_no_numbers_suppress_nothing():
    data = np.array([[[0, 0.5, 0, 0, 9, 9], [0, 0.9, 0, 0, 9, np.nan], [0, np.nan, 0, 0, 9, 9], [0, 0.4, 1, 0, 9, 9]]])
    for valid in (-7, 4, 99):
        rest = (np.array([valid]), np.arange(4)[None], np.int32(-1), np.float32(0.5))
        indices, counts = native("vision.non_max_suppression", [data.astype("float32"), *rest])
        want = [] if valid < 0 else [1, 0]
        assert counts[0, 0] == len(want) and indices[0].tolist() == [*want, *[-1] * (4 - len(want))]


def of_onnxruntime(boxes, scores, limit: int, threshold: float, least: float) -> list[list[int]]:
    """What NonMaxSuppression of onnxruntime leaves."""
    onnxruntime, helper = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx").helper
    limits = [np.array([limit], "int64"), np.array([threshold], "float32"), np.array([least], "float32")]
    names, kinds = ["boxes", "scores", "most", "iou", "least"], [1, 1, 7, 1, 1]
    values = [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, kinds)]
    node = helper.make_node("NonMaxSuppression", names, ["out"])
    graph = helper.make_graph([node], "nms", values, [helper.make_tensor_value_info("out", 7, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, [boxes, scores, *limits])))[0].tolist()


def of_ours(boxes, scores, limit: int, threshold: float, least: float) -> list[list[int]]:
    rows, count = native(
        "vision.all_class_non_max_suppression",
        [boxes, scores, np.int64(limit), np.nextafter(np.float32(threshold), np.float32(9)), np.float32(least)],
    )
    assert (rows[count[0] :] == 0).all()
    return rows[: count[0]].tolist()


@pytest.mark.parametrize("limit, threshold, least", [(7, 0.3, -1.0), (300, 1.0, 0.6), (5, 0.0, 0.99)])
def test_suppression_of_every_class_is_that_of_onnxruntime(limit, threshold, least):
    boxes, scores = np.stack([some_boxes(70), some_boxes(70)]), RNG.random((2, 3, 70)).astype("float32")
    given = boxes, scores, limit, threshold, least
    assert of_ours(*given) == of_onnxruntime(*given)


@pytest.mark.parametrize("limit", [1, FIRST // 2, FIRST // 2 + 1, 1500])
@pytest.mark.parametrize("least", [-1.0, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["ties", "crowd"])
def test_few_boxes_of_many_are_those_of_onnxruntime(kind, least, limit):
    """Scores that are equal, infinite or no numbers; and best boxes that all lie on one another."""
    boxes = np.stack([some_boxes(1500)])
    scores = RNG.random((1, 2, 1500)).round(2).astype("float32")
    scores[0, 0, :40] = RNG.choice(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], "float32"), 40)
    if kind == "crowd":
        boxes[0, : 3 * FIRST], scores[:, :, : 3 * FIRST] = [0, 0, 9, 9], 2.0
    given = boxes, scores, limit, 0.5, least
    assert of_ours(*given) == of_onnxruntime(*given)


def test_suppression_sorted_by_score_over_the_classes_of_a_batch():
    boxes, scores = some_boxes(30)[None], RNG.random((1, 4, 30)).astype("float32")
    limits = (np.int32(9), np.float32(0.4), np.float32(0.3))
    name, arrays = "vision.all_class_non_max_suppression", [boxes, scores, *limits]
    rows, count = native(name, arrays)
    found, values, numbers = native(name, arrays, output_format="tensorflow")
    want = rows[: count[0], 1:][np.argsort(-scores[0][tuple(rows[: count[0], 1:].T)], kind="stable")]
    assert numbers.tolist() == [count[0]]
    np.testing.assert_array_equal(found[0, : count[0]], want)
    np.testing.assert_array_equal(values[0, : count[0]], scores[0][tuple(want.T)])
    assert (values[0, count[0] :] == 0).all()


@pytest.mark.parametrize("n", [0, 1, 33])
def test_valid_rows_move_to_the_front(n):
    data = RNG.random((2, n, 3)).astype("float32") - 0.3
    counts, rows, at = native("vision.get_valid_counts", [data, np.float32(0.25)], id_index=2, score_index=0)
    for k in range(2):
        want = np.flatnonzero((data[k, :, 0] > 0.25) & (data[k, :, 2] >= 0))
        assert counts[k] == len(want) and at[k].tolist() == [*want, *[-1] * (n - len(want))]
        np.testing.assert_array_equal(rows[k, : len(want)], data[k, want])
        assert (rows[k, len(want) :] == -1).all()


# ---- others


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_different_elements_are_those_of_numpy(n, dtype):
    x = hard(n, dtype)
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for ordered in (True, False):
        order = np.arange(len(values)) if ordered else np.argsort(first)
        got = native("unique", [x], sorted=ordered, return_counts=True)
        assert got[3].tolist() == [len(values)]
        for field, want in zip((got[0], got[1], got[4]), (values, first, counts)):
            np.testing.assert_array_equal(field, [*want[order], *[0] * (n - len(values))])
        np.testing.assert_array_equal(got[2], np.argsort(order)[inverse] if n else [])


def test_a_transposed_sparse_matrix_is_that_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    for density in (0.0, 0.2, 1.0):
        x = sparse.random(9, 9, density, "csr", "float32", random_state=4)
        want = x.T.tocsr()
        got = native("nn.sparse_transpose", [x.data, x.indices, x.indptr])
        for field, expected in zip(got, (want.data, want.indices, want.indptr)):
            np.testing.assert_array_equal(field, expected)


def test_a_region_without_end_is_sampled_in_finite_time():
    rois = np.array([[0, -1e30, -1e30, 1e30, 1e30], [0, 0, 0, 1, 1], [0, np.nan, 0, 1, np.inf]], "float32")
    attrs = {"pooled_size": (1, 1), "spatial_scale": 1.0}
    (got,) = native("vision.roi_align", [np.ones((1, 2, 4, 4), "float32"), rois], **attrs)
    np.testing.assert_allclose(got[:2, :, 0, 0], [[0, 0], [1, 1]])


# ---- the language of procedures


def test_a_loop_ends_where_it_says_and_a_branch_carries_its_registers():
    def odd_numbers_below(p, out, limits):
        with p.parallel(3) as row:
            total = p.let(0)
            with p.loop(10, stop=p.b.load_index(limits(row))) as k, p.when(p.b.eq(k % 2, 1)):
                p.add(total, k)
                p.store(out, (row, total), 1)

    limits, spec = np.array([4, -2, 99], "int32"), OutSpec((3, 30), "int64")
    (got,) = perform([spec], odd_numbers_below, [limits])
    assert [np.flatnonzero(row).tolist() for row in got] == [[1, 4], [], [1, 4, 9, 16, 25]]
    group = ProgramBuilder("demo")
    x = group.read("limits", BufferLayout.dense((3,), "int32"))
    procedure = Procedure(group)
    odd_numbers_below(procedure, group.read("out", BufferLayout.dense((3, 30), "int64")), x)
    text = str(procedure.programs[0])
    assert "for k0 in 10 to int64(limits[p0]):" in text and "if k0 % 2 == 1:" in text
