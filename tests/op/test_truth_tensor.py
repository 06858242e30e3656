"""Operators of `op/tensor` against TVM's meaning where it is easy to miss: the same on every executor, or refused.

What is expected was computed by hand or by numpy from the definitions in TVM 0.10's type relations and topi.
"""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import TensorType
from relaylab.op.tensor.composite import round_even
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

EXECUTORS = ("debug", "graph", "vm")


def run(executor: str, build, *arrays):
    """The values of an expression that `build` makes of variables for the arrays: a list of arrays."""
    xs = [relay.var(f"x{k}", shape=a.shape, dtype=a.dtype.name) for k, a in enumerate(arrays)]
    mod = relay.IRModule.from_expr(relay.Function(xs, build(*xs)))
    out = relay.create_executor(executor, mod=mod, target="llvm").evaluate()(*arrays)
    return [x.numpy() for x in out] if isinstance(out, (list, tuple)) else [out.numpy()]


def refused(build, *shapes):
    xs = [
        relay.var(f"x{k}", TensorType(*s) if s and isinstance(s[0], tuple) else TensorType(s))
        for k, s in enumerate(shapes)
    ]
    with pytest.raises(RelayError):
        relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(xs, build(*xs))))


def every_executor(build, arrays, *expected):
    for executor in EXECUTORS:
        got = run(executor, build, *arrays)
        assert [g.dtype for g in got] == [e.dtype for e in expected]
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-6, err_msg=executor)


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (1, 3), (3,), (1,), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_variance_broadcasts_the_mean_over_any_axis(shape, keepdims):
    x, m = np.arange(12, dtype="float32").reshape(4, 3), np.full(shape, 5.5, "float32")
    want = np.mean((x - m) ** 2, axis=1, keepdims=keepdims)
    every_executor(lambda x, m: relay.variance(x, axis=1, keepdims=keepdims, with_mean=m), [x, m], want)


def test_matrix_set_diag_wants_one_diagonal_for_each_matrix():
    refused(relay.matrix_set_diag, (3, 2, 2), (1, 2))
    refused(lambda d, g: relay.matrix_set_diag(d, g, k=(-2, 1)), (1, 4, 3), (2, 4, 3))
    refused(lambda d, g: relay.matrix_set_diag(d, g, k=(-2, 1)), (2, 4, 3), (2, 1, 3))
    refused(lambda d, g: relay.matrix_set_diag(d, g, k=3), (2, 4, 3), (2, 0))


def test_reverse_sequence_needs_two_axes():
    lengths = ((3,), "int32")
    refused(lambda d, n: relay.reverse_sequence(d, n, 0, -1), (3,), lengths)
    refused(lambda d, n: relay.reverse_sequence(d, n, 1, -1), (2, 3), lengths)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_reverse_sequence_limits_the_lengths(dtype):
    data = np.arange(24, dtype="int32").reshape(6, 4)
    lengths = np.array([-1, 0, 1, 3, 4, 5], dtype)
    want = data.copy()
    want[3, :3], want[4], want[5] = data[3, 2::-1], data[4, ::-1], data[5, ::-1]
    every_executor(lambda d, n: relay.reverse_sequence(d, n, 1, 0), [data, lengths], want)


def test_slice_like_without_axes_cuts_those_that_the_other_has():
    data, like = np.arange(60, dtype="float32").reshape(3, 4, 5), np.zeros((1, 2), "float32")
    every_executor(lambda x, y: relay.slice_like(x, y), [data, like], data[:1, :2])
    every_executor(lambda x, y: relay.slice_like(x, y, axes=()), [data[0], data[:2, :1]], data[0, :2, :1])


def test_strided_set_fills_the_slice_exactly():
    data, v = np.zeros((4, 5), "float32"), np.ones((2, 2), "float32")
    build = lambda x, v: relay.strided_set(x, v, [1, 0], [3, 4], [1, 2])
    want = data.copy()
    want[1:3, 0:4:2] = 1
    every_executor(build, [data, v], want)
    for shape in ((2,), (), (5, 2), (2, 6)):
        refused(build, (4, 5), shape)
    for wrong in (v[:1], v[:, :1], np.ones((3, 2), "float32")):
        with pytest.raises(RelayError, match="the slice has the shape"):
            run("debug", build, data, wrong)


SLICES = [
    ((7, 5, 6), (6, -1), (-9, 0), (-2, -2)),
    ((5, 3), (-3,), (99,), (2,)),
    ((4, 4), (0, 0), (4, 4), ()),
    ((4, 4), (3, 1), (1, 4), (1, 1)),
    ((9,), (-100,), (-1,), (3,)),
    ((2, 6), (1, 5), (-9, -9), (-1, -5)),
]


@pytest.mark.parametrize("case", SLICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_strided_set_with_known_limits_is_native(case, dtype):
    shape, begin, end, strides = case
    parts = tuple(slice(*p) for p in zip(begin, end, strides or (1,) * len(begin)))
    rng = np.random.default_rng(2)
    data = rng.integers(0, 2, shape).astype(dtype)
    v = rng.integers(0, 2, data[parts].shape).astype(dtype)
    want = data.copy()
    want[parts] = v
    every_executor(lambda x, v: relay.strided_set(x, v, begin, end, strides or None), [data, v], want)


@pytest.mark.parametrize("case", SLICES, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_strided_set_with_limits_of_a_run_is_native(case, dtype):
    """What does not fit is left out: the interpreter alone refuses it."""
    shape, *limits = case
    limits = [np.array(x or (1,), dtype) for x in limits]
    parts = tuple(slice(*p) for p in zip(*[x.tolist() for x in limits[:2]], limits[2].tolist() * len(shape)))
    data = np.random.default_rng(3).normal(size=shape).astype("float32")
    v = np.arange(data[parts].size, dtype="float32").reshape(data[parts].shape)
    want = data.copy()
    want[parts] = v
    every_executor(relay.strided_set, [data, v, *limits], want)
    if 0 in v.shape:
        return
    less = v[tuple(slice(n - 1) for n in v.shape)]
    inner = want[parts]
    inner[...] = data[parts]
    inner[tuple(map(slice, less.shape))] = less
    np.testing.assert_array_equal(run("graph", relay.strided_set, data, less, *limits)[0], want)
    still = [limits[0], limits[1], limits[2] * 0]
    np.testing.assert_array_equal(run("graph", relay.strided_set, data, v, *still)[0], data)
    more = np.full([n + (k < limits[0].size) for k, n in enumerate(v.shape)], -1, "float32")
    if all(n <= m for n, m in zip(more.shape, shape)):
        got = run("graph", relay.strided_set, data, more, *limits)[0]
        want[parts] = -1
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("old, new", [((2, 3, 4), (6, -1)), ((8, 6), (-1, 3, 2, 4)), ((5,), (1, 5, 1))])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sparse_reshape_with_shapes_of_a_run_is_native(old, new, dtype):
    rng = np.random.default_rng(5)
    at = np.stack([rng.integers(0, n, 30) for n in old], axis=1).astype(dtype)
    shape = np.zeros(old).reshape(new).shape
    want = np.stack(np.unravel_index(np.ravel_multi_index(tuple(at.T), old), shape), axis=1).astype(dtype)
    build = lambda *xs: relay.sparse_reshape(*xs).astuple()
    every_executor(build, [at, np.array(old, dtype), np.array(new, dtype)], want, np.array(shape, dtype))
    for wrong in (np.zeros(len(new), dtype), np.full(len(new), -1, dtype), np.full(len(new), 7, dtype)):
        assert [x.shape for x in run("graph", build, at, np.array(old, dtype), wrong)] == [want.shape, wrong.shape]
        with pytest.raises(RelayError):
            run("debug", build, at, np.array(old, dtype), wrong)


@pytest.mark.parametrize(
    "old, new", [((2, 3, 4), (6, -1)), ((8, 6), (-1, 3, 2, 4)), ((5,), (1, 5, 1)), ((3, 7), (21,))]
)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_sparse_reshape_with_known_shapes_is_native(old, new, dtype, count):
    rng = np.random.default_rng(4)
    at = np.stack([rng.integers(0, n, count) for n in old], axis=1).astype(dtype)
    shape = np.zeros(old).reshape(new).shape
    want = np.stack(np.unravel_index(np.ravel_multi_index(tuple(at.T), old), shape), axis=1)
    build = lambda at: relay.sparse_reshape(at, relay.const(np.array(old)), relay.const(np.array(new))).astuple()
    every_executor(build, [at], want.astype(dtype), np.array(shape, "int32"))  # as `const` makes of int64
    for wrong in ((4, 7), (5, -1)):
        given = lambda at, wrong=wrong: relay.sparse_reshape(
            at, relay.const(np.array(old)), relay.const(np.array((*old, *wrong)))
        ).astuple()
        with pytest.raises(RelayError):
            run("vm", given, at)


@pytest.mark.parametrize("n", [100, 104, 128, 400, 402])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("known", [False, True])
def test_a_short_time_transform_is_that_of_numpy(n, dtype, known):
    rng = np.random.default_rng(n)
    data, window = rng.standard_normal((2, 3 * n + 7)).astype(dtype), rng.uniform(0, 1, n).astype(dtype)
    hop = n // 3
    frames = np.lib.stride_tricks.sliding_window_view(data, n, axis=1)[:, ::hop] * window
    want = np.fft.rfft(frames.astype("float64")).transpose(0, 2, 1)
    of = lambda x, w: relay.stft(x, n, hop, n, w, False, True)
    if known:
        (found,) = run("graph", lambda x: of(x, relay.const(window, dtype)), data)
    else:
        (found,) = run("graph", of, data, window)
    scale = np.abs(want).max()
    close = 3e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], axis=-1), rtol=0, atol=close * scale)


@pytest.mark.parametrize("n", [4, 9, 15, 36, 100, 105, 202, 256, 400, 401, 512, 1001, 2048])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("onesided, known, normalized", [(True, True, False), (False, False, True)])
def test_many_frames_are_transformed_in_two_steps(n, dtype, onesided, known, normalized):
    """Products with the columns and then with the rows of a matrix, but for prime numbers of points."""
    rng, hop, many = np.random.default_rng(n), max(n // 7, 1), 17 if n < 2048 else 3
    data, window = rng.standard_normal((2, n + (many - 1) * hop)).astype(dtype), rng.uniform(0, 1, n).astype(dtype)
    frames = np.lib.stride_tricks.sliding_window_view(data, n, axis=1)[:, ::hop] * window.astype("float64")
    want = np.fft.fft(frames)[..., : n // 2 + 1 if onesided else n].transpose(0, 2, 1)
    want /= np.sqrt(n) if normalized else 1
    of = lambda x, w: relay.stft(x, n, hop, n, w, normalized, onesided)
    arrays = [data] if known else [data, window]
    (found,) = run("graph", (lambda x: of(x, relay.const(window, dtype))) if known else of, *arrays)
    close = 1e-6 if dtype == "float32" else 4e-15
    expected = np.stack([want.real, want.imag], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=close * np.abs(want).max())


@pytest.mark.parametrize("lanes", [2, 7, 8, 33, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums_of_lines_side_by_side(lanes, dtype, exclusive, name):
    data = np.random.default_rng(lanes).integers(-3, 4, (2, 9, lanes)).astype(dtype)
    if dtype.startswith("float"):
        data[0, 3, 0], data[1, 2, 1] = np.nan, np.inf
    wide = "float64" if dtype.startswith("float") else dtype
    first = np.full_like(data[:, :1], name == "cumprod")
    with np.errstate(all="ignore"):
        line = np.concatenate([first, data[:, :-1]], axis=1) if exclusive else data
        want = getattr(np, name)(line, axis=1, dtype=wide).astype(dtype)
    for executor in ("debug", "graph"):
        found = run(executor, lambda x: getattr(relay, name)(x, axis=1, exclusive=exclusive), data)[0]
        np.testing.assert_array_equal(found, want)


def test_sparse_fill_empty_rows_marks_empty_rows_with_one():
    rows, values = np.array([[0, 1], [0, 3], [2, 0]], "int64"), np.array([1, 2, 3], "float32")
    build = lambda at, v, n, d: relay.sparse_fill_empty_rows(at, v, n, d).astuple()
    arrays = [rows, values, np.array([4, 6], "int64"), np.array(9, "float32")]
    for executor in ("debug", "vm"):
        found, filled, empty = run(executor, build, *arrays)
        np.testing.assert_array_equal(found, [[0, 1], [0, 3], [1, 0], [2, 0], [3, 0]])
        np.testing.assert_array_equal(filled, [1, 2, 9, 3, 9])
        np.testing.assert_array_equal(empty, [0, 1, 0, 1])
        assert empty.dtype == "int64"


@pytest.mark.parametrize(
    "shapes",
    [((3, 2), (3, 1), (2,), ()), ((3, 2), (2,), (2,), ()), ((3, 2), (3,), (3,), ()), ((3, 2), (3,), (2,), (2,))],
)
def test_sparse_fill_empty_rows_refuses_what_does_not_fit(shapes):
    at, v, n, d = shapes
    build = lambda *xs: relay.sparse_fill_empty_rows(*xs).astuple()
    refused(build, (at, "int64"), (v, "float32"), (n, "int64"), (d, "float32"))


def _halves(dtype: str) -> np.ndarray:
    given = [0.5, 1.5, 2.5, 3.5, 4.5, 0.49999997, 0.3, 0.0, 2.4, 3.6, 2049, 32768.5, 8388609, np.inf, np.nan]
    with np.errstate(over="ignore"):
        return np.array([*given, *(-x for x in given)] * 2, "float64").astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
def test_round_takes_halves_away_from_zero(dtype, target):
    x = _halves(dtype)
    want = np.copysign(np.floor(np.abs(x.astype("float64")) + np.where(np.abs(x) < 0.5, 0, 0.5)), x).astype(dtype)
    v = relay.var("x", shape=x.shape, dtype=dtype)
    mod = relay.IRModule.from_expr(relay.Function([v], relay.round(v)))
    folded = relay.transform.FoldConstant()(relay.IRModule.from_expr(relay.round(relay.const(x))))
    found = [relay.create_executor(e, mod=mod, target=target).evaluate()(x).numpy() for e in EXECUTORS]
    for got in (*found, folded["main"].body.data.numpy()):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_importers_have_halves_to_even(executor, dtype):
    x = _halves(dtype)
    np.testing.assert_array_equal(run(executor, lambda x: round_even(x, dtype), x)[0], np.rint(x))


def test_what_only_types_can_tell_is_refused():
    i32 = lambda *shape: (shape, "int32")
    refused(lambda x: relay.einsum([x], "ii->i"), (1, 3))
    refused(lambda x: relay.squeeze(x, [0, -3]), (1, 3, 1))
    refused(lambda x, at: relay.gather_nd(x, at, batch_dims=1), (1, 3, 4), i32(1, 2))
    refused(lambda x, at, v: relay.scatter(x, at, v, 0), (4, 1), i32(2, 3), (2, 3))
    refused(lambda x, at, v: relay.scatter_add(x, at, v, 0), (4, 1), i32(2, 3), (2, 3))
    refused(lambda at, old, new: relay.sparse_reshape(at, old, new).astuple(), i32(3, 3), i32(2), i32(2))
    refused(lambda x, k: relay.topk(x, k).astuple(), (3, 6), i32(2))
    refused(lambda x, width: relay.nn.pad(x, width), (3,), i32(2, 2))


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_shapes_that_do_not_fit_at_run_time_are_refused_by_name(executor):
    to = lambda x, shape: relay.broadcast_to(x, shape)
    with pytest.raises(RelayError, match="cannot be broadcast to"):
        run(executor, to, np.ones((4, 1), "float32"), np.array([2, 3, 4]))
    with pytest.raises(RelayError, match="cannot be reshaped to"):
        run(executor, lambda x, s: relay.reshape(x, s), np.ones((2, 6), "float32"), np.array([5, -1]))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_index_arithmetic_has_an_answer_for_every_number(executor):
    at, shape = np.array([0, 7, 23, -1, 50], "int32"), np.array([2, 3, 4], "int32")
    (got,) = run(executor, relay.unravel_index, at, shape)
    np.testing.assert_array_equal(got, [at // 12 % 2, at // 4 % 3, at % 4])
    (got,) = run(executor, relay.invert_permutation, np.array([2, 0, 9, 2, -1], "int32"))
    np.testing.assert_array_equal(got, [1, 0, 0, 0, 0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float32", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_narrow_length_masks_what_lies_beyond_its_type(dtype, axis):
    x, lengths = np.ones((2600, 2) if axis == 0 else (2, 2600), "float32"), np.array([100, 1]).astype(dtype)
    kept = np.arange(2600) < lengths.astype("int64")[:, None]
    mask = lambda x, n: relay.sequence_mask(x, n, -2.0, axis)
    every_executor(mask, [x, lengths], np.where(kept if axis else kept.T, x, np.float32(-2)))


def test_no_number_of_elements_is_shorter_or_longer_than_a_sequence():
    x, lengths = np.ones((3, 3), "float32"), np.array([np.nan, np.inf, -np.inf], "float32")
    every_executor(relay.sequence_mask, [x, lengths], np.array([[0, 1, 0]] * 3, "float32"))


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_looked_for_behind_all_numbers(right):
    row, values = np.array([1, 2, np.inf, np.nan], "float32"), np.array([np.nan, np.inf, 2, -np.nan, 9], "float32")
    want = np.searchsorted(row, values, "right" if right else "left").astype("int32")
    every_executor(lambda row, v: relay.searchsorted(row, v, right), [row, values], want)
    wide = lambda x: np.stack([x, x])
    every_executor(lambda row, v: relay.searchsorted(row, v, right), [wide(row), wide(values)], wide(want))


@pytest.mark.parametrize("limits", [(2**60, 2**60 + 5, 1), (2**62, 2**62 - 7, -3), (5, 5, 1), (3, 1, 2)])
def test_a_range_of_large_integers_is_exact(limits):
    given = [relay.const(v, "int64") for v in limits]
    every_executor(lambda: relay.arange(*given, dtype="int64"), [], np.arange(*limits, dtype="int64"))


@pytest.mark.parametrize("last", [2**63 - 1, 2**62])
def test_a_range_that_no_memory_holds(last):
    stop = relay.var("stop", shape=(), dtype="int64")
    main = relay.Function([stop], relay.arange(relay.const(57, "int64"), stop, dtype="int64"))
    for kind in ("debug", "vm"):
        held = relay.create_executor(kind, relay.IRModule.from_expr(main), target="llvm").evaluate()
        with pytest.raises(RelayError, match="arange"):
            held(np.array(last))


def test_limits_of_a_range_are_numbers_or_vectors_of_one():
    given = [relay.const(np.array([v], "float32")) for v in (0, 2, 0.5)]
    every_executor(lambda: relay.arange(*given), [], np.arange(0, 2, 0.5, dtype="float32"))
    for limit in (np.nan, np.inf):
        with pytest.raises(RelayError, match="arange cannot go from 0.0 to"):
            run("graph", lambda limit=limit: relay.arange(relay.const(0.0), relay.const(limit)))


@pytest.mark.parametrize("axis, exclude", [(2, False), (-1, False), ((0, 2), False), (1, True), (None, False)])
def test_moments_keep_axes_of_extent_one(axis, exclude):
    x = np.arange(12, dtype="float32").reshape(1, 3, 4)
    axes = (0, 2) if exclude else axis
    want = np.mean(x, axes), np.var(x, axes)
    every_executor(lambda x: relay.mean_variance(x, axis, False, exclude).astuple(), [x], *want)
    every_executor(lambda x: relay.mean_std(x, axis, False, exclude).astuple(), [x], want[0], np.std(x, axes))


@pytest.mark.parametrize("begin, size, want", [(-2, 2, [2, 3]), (-3, 2, [1, 2]), (-2, 0, []), (-2, 5, [2, 3])])
def test_a_size_counts_from_a_begin_before_the_end(begin, size, want):
    x = np.arange(4, dtype="float32")
    cut = lambda x: relay.strided_slice(x, [begin], [size], slice_mode="size")
    every_executor(cut, [x], np.array(want, "float32"))


def test_a_batch_of_no_rows_takes_nothing():
    x, at = np.ones((0, 3), "float32"), np.zeros((0, 2), "int32")
    every_executor(lambda x, at: relay.take(x, at, axis=1, batch_dims=1), [x, at], np.ones((0, 2), "float32"))


def test_what_is_moved_beyond_64_bits_is_nothing():
    x = np.array([1, -5, 2**31 - 1, -(2**31)], "int32")
    for shift in (-32, -33, -60):
        every_executor(lambda x, s=shift: relay.fixed_point_multiply(x, 1 << 30, s), [x], np.zeros(4, "int32"))


@pytest.mark.parametrize("default", [300.0, -1.0, np.nan, 1e30])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_the_default_of_a_sparse_tensor_is_cast_as_all_numbers_are(default, dtype):
    (rest,) = run("debug", lambda: relay.cast(relay.const(default, "float32"), dtype))
    build = lambda at, v: relay.sparse_to_dense(at, (3,), v, relay.const(default, "float32"))
    every_executor(build, [np.array([1]), np.array([5], dtype)], np.array([rest, 5, rest], dtype))


def test_the_interpreter_refuses_coordinates_outside():
    build = lambda at, v: relay.sparse_to_dense(at, (4,), v)
    for place in (-1, 4):
        with pytest.raises(RelayError, match="a coordinate lies outside the shape"):
            run("debug", build, np.array([place, 0], "int32"), np.array([5, 6], "float32"))


@pytest.mark.parametrize("scan", [relay.cumsum, relay.cumprod])
def test_running_sums_of_nothing_are_nothing(scan):
    nothing = np.zeros((0, 3), "float32")
    every_executor(lambda x: scan(x, axis=0, exclusive=True), [nothing], nothing)
    every_executor(lambda x: scan(x, exclusive=True), [nothing], nothing.reshape(-1))


def test_the_inverse_of_no_permutation_is_none():
    nothing = np.zeros(0, "int32")
    every_executor(relay.invert_permutation, [nothing], nothing)


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_rows_that_count_more_than_is_stored_end_there(executor):
    parts = np.ones(1, "float32"), np.array([0], "int32"), np.array([0, 2, 3, 4], "int32")
    assert run(executor, lambda *p: relay.nn.sparse_transpose(p).astuple(), *parts)[1].tolist() == [0]


@pytest.mark.parametrize("block", [(1, 1), (2, 3)])
def test_sparse_matrices_are_those_of_scipy(block):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(5)
    full = rng.random((12, 12)) * (rng.random((12, 12)) < 0.3)
    x = rng.random((12, 12))
    x[3, 4] = np.inf  # only stored numbers meet it
    made = sparse.csr_matrix(full) if block == (1, 1) else sparse.bsr_matrix(full, blocksize=block)
    parts = [made.data, made.indices.astype("int32"), made.indptr.astype("int32")]
    every_executor(lambda d, *p: relay.nn.sparse_dense(d, p), [x, *parts], x @ made.T)
    if block == (1, 1):
        every_executor(lambda d, *p: relay.nn.sparse_dense(d, p, sparse_lhs=True), [x, *parts], made @ x.T)
        every_executor(lambda d, *p: relay.nn.sparse_add(d, p), [x, *parts], np.asarray(x + made))
        want = made.T.tocsr()
        for executor in ("debug", "vm"):
            found = run(executor, lambda *p: relay.nn.sparse_transpose(p).astuple(), *parts)
            for got, wanted in zip(found, (want.data, want.indices, want.indptr), strict=True):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    "n_fft, width, hop, normalized, onesided", [(16, 12, 3, True, True), (15, 15, 4, False, False)]
)
def test_transforms_of_frames_are_those_of_numpy(executor, dtype, constant, n_fft, width, hop, normalized, onesided):
    """As products with a matrix, with the window in it or not, and of 16 bits as sums."""
    rng = np.random.default_rng(2)
    x, window = rng.normal(size=(2, 61)).astype(dtype), rng.uniform(size=n_fft).astype("float32")
    frames = np.lib.stride_tricks.sliding_window_view(x[:, : 61 - (n_fft - width)], width, 1)[:, ::hop] * window[:width]
    found = np.moveaxis(np.fft.fft(frames.astype("float64"), width), 2, 1)
    found = np.concatenate([found, found], 1)[:, : n_fft // 2 + 1 if onesided else n_fft]
    expected = np.stack([found.real, found.imag], -1) / (np.sqrt(n_fft) if normalized else 1)
    make = lambda x, w: relay.stft(x, n_fft, hop, width, w, normalized, onesided)
    if constant:
        (got,) = run(executor, lambda x: make(x, relay.const(window)), x)
    else:
        (got,) = run(executor, make, x, window)
    near = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(got, expected, rtol=0, atol=near * np.abs(expected).max())
