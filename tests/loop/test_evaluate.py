"""The evaluator of scalar expressions against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.loop import OutSpec, compute
from relaylab.loop.builder import b as builder
from relaylab.loop.scalar import SCALAR_OPS, SIGNED, UNSIGNED
from relaylab.support.errors import RelayError, RelayIndexError, RelayTypeError

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 4, 5)).astype("float32")


def conv2d(b, out, i, x, w):
    n, o, y, z = i

    def tap(c, dy, dz):
        r, s = y + dy - 1, z + dz - 1
        inside = b.all_of(b.inside(r, x.shape[2]), b.inside(s, x.shape[3]))
        return b.guard(inside, lambda: x(n, c, r, s), 0.0) * w(o, c, dy, dz)

    return b.sum(w.shape[1:], tap)


def test_convolution_with_padding():
    x, w = RNG.standard_normal((2, 3, 6, 7)), RNG.standard_normal((4, 3, 3, 3))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("ncyzrs,ocrs->noyz", windows, w)
    np.testing.assert_allclose(compute(OutSpec((2, 4, 6, 7), "float64"), conv2d, [x, w]), expected, rtol=1e-12)


def test_softmax_layer_norm_and_nested_reductions():
    def softmax(b, out, i, x):
        n = x.shape[-1]
        top = b.rmax(n, lambda k: x(i[0], i[1], k))
        return b.exp(x(*i) - top) / b.sum(n, lambda k: b.exp(x(i[0], i[1], k) - top))

    e = np.exp(X - X.max(-1, keepdims=True))
    np.testing.assert_allclose(
        compute(OutSpec(X.shape, "float32"), softmax, [X]), e / e.sum(-1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize("kind,reference", [
    ("sum", np.sum), ("prod", np.prod), ("rmax", np.max), ("rmin", np.min), ("argmax", np.argmax),
    ("argmin", np.argmin),
])  # fmt: skip
def test_reductions(kind, reference):
    out = compute(
        OutSpec((), "int64" if "arg" in kind else "float32"),
        lambda b, o, i, x: getattr(b, kind)(x.shape, lambda *k: x(*k)),
        [X],
    )
    np.testing.assert_allclose(out, reference(X), rtol=1e-6)


def test_empty_reductions_give_identities():
    empty = np.zeros((0, 3), "float32")
    for kind, value in {"sum": 0, "prod": 1, "rmax": -np.inf, "rmin": np.inf}.items():
        out = compute(
            OutSpec((3,), "float32"), lambda b, o, i, x, kind=kind: getattr(b, kind)(0, lambda k: x(k, i[0])), [empty]
        )
        assert (out == value).all(), kind
    with pytest.raises(RelayError, match="empty"):
        builder.argmax(0, lambda k: k)


def test_extremes_propagate_nan_and_arg_finds_the_first():
    x = np.array([1, np.nan, 3, np.nan], "float32")
    for kind in ("rmax", "rmin"):
        assert np.isnan(
            compute(OutSpec((), "float32"), lambda b, o, i, x, kind=kind: getattr(b, kind)(4, lambda k: x(k)), [x])
        )
    assert compute(OutSpec((), "int64"), lambda b, o, i, x: b.argmax(4, lambda k: x(k)), [x]) == 1


def test_concatenate_gather_and_scalars():
    parts = (X[:, :1], X[:, 1:])

    def concatenate(b, out, i, xs):
        first = xs[0].shape[1]
        return b.guard(
            i[1] < first, lambda: xs[0](*i), b.guard(i[1] >= first, lambda: xs[1](i[0], i[1] - first, i[2]), 0.0)
        )

    np.testing.assert_array_equal(compute(OutSpec(X.shape, "float32"), concatenate, [parts]), X)
    indices = np.array([2, 0], "int32")
    taken = compute(
        OutSpec((2, 4, 5), "float32"), lambda b, o, i, x, k: x(b.load_index(k(i[0])), i[1], i[2]), [X, indices]
    )
    np.testing.assert_array_equal(taken, X[indices])
    assert compute(OutSpec((), "float32"), lambda b, o, i, x: x() * 2, [np.float32(3)]) == 6


def test_reading_outside_is_an_error_unless_guarded():
    x = np.arange(4.0)
    with pytest.raises(RelayIndexError, match="axis 0 of extent 4"):
        compute(OutSpec((5,), "float64"), lambda b, o, i, x: x(i[0]), [x])
    out = compute(OutSpec((5,), "float64"), lambda b, o, i, x: b.guard(i[0] < 4, lambda: x(i[0]), -1.0), [x])
    np.testing.assert_array_equal(out, [0, 1, 2, 3, -1])


def test_size_zero_and_large_boxes():
    empty = np.zeros((0, 3), "float32")
    assert compute(OutSpec((0, 3), "float32"), lambda b, o, i, x: x(*i) + 1, [empty]).shape == (0, 3)
    padded = compute(
        OutSpec((2, 3), "float32"), lambda b, o, i, x: b.guard(b.const(False, "bool"), lambda: x(*i), 7.0), [empty]
    )
    assert (padded == 7).all()
    far = lambda b, o, i, x: x(i[0], i[1] + 9)  # no element is computed, so none is read
    assert compute(OutSpec((0, 3), "float32"), far, [np.zeros((2, 3), "float32")]).shape == (0, 3)
    big = RNG.standard_normal((120, 600))
    np.testing.assert_allclose(
        compute(
            OutSpec((120, 120), "float64"), lambda b, o, i, x: b.sum(600, lambda k: x(i[0], k) * x(i[1], k)), [big]
        ),
        big @ big.T,
        rtol=1e-9,
    )


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integer_division(dtype):
    info = np.iinfo(dtype)
    left, right = [info.min, info.min + 1, 0, 1, 7, info.max], [info.min, 0, 1, 2, 3, info.max, -1 if info.min else 5]
    a, c = (v.ravel() for v in np.meshgrid(np.array(left, dtype), np.array(right, dtype)))
    for op in ("floordiv", "floormod", "truncdiv", "truncmod"):
        out = compute(OutSpec(a.shape, dtype), lambda b, o, i, x, y, op=op: getattr(b, op)(x(*i), y(*i)), [a, c])
        for x, y, z in zip(a.tolist(), c.tolist(), out.tolist()):
            if y == 0:
                exact = 0
            else:
                quotient = x // y if op.startswith("floor") else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                exact = quotient if op.endswith("div") else x - quotient * y
            assert np.array(exact).astype(dtype) == z, (op, x, y)


def test_casts_saturate_and_round():
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -2.9, 2147483648.0], "float32")
    cast = lambda dtype: compute(OutSpec(x.shape, dtype), lambda b, o, i, x: b.cast(x(*i), dtype), [x])
    assert cast("int32").tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2, -2, 2**31 - 1]
    assert cast("uint8").tolist() == [0, 255, 0, 255, 0, 2, 0, 255]
    assert cast("int64").tolist()[:5] == [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]
    assert cast("bool").tolist() == [True] * 8
    assert cast("float16")[5] == np.float16(2.9)


def test_folding_and_index_identities():
    from relaylab.loop import Axis, Const

    i = Axis("i", 8)
    assert (i + 0) is i and (0 + i) is i and i * 1 is i and i // 1 is i and i - 0 is i
    assert (i * 0).value == 0 and (i % 1).value == 0
    seven = builder.const(3, "int64") * 2 + 1
    assert isinstance(seven, Const) and seven.value == 7
    assert builder.exp(builder.const(0.0, "float32")).value == 1.0


def test_mistakes_have_codes():
    x, y = builder.const(1.0, "float32"), builder.const(1, "int32")
    from relaylab.loop import Axis, Tensor

    for wrong, code in [
        (lambda: builder.add(x, y), "loop.dtype-mismatch"),
        (lambda: builder.exp(y), "loop.dtype-kind"),
        (lambda: bool(Axis("i", 3) < 2), "loop.no-truth-value"),
        (lambda: Tensor("x", (2, 3), "float32")(0), "loop.index-count"),
        (lambda: builder.const(300, "uint8"), "loop.constant-range"),
        (lambda: builder.cast(x, "complex64"), "loop.unknown-dtype"),
        (lambda: builder.max(1, 2), "loop.dtype-mismatch"),
    ]:
        with pytest.raises(RelayError) as caught:
            wrong()
        assert caught.value.code == code
    with pytest.raises(RelayTypeError, match="output"):
        compute(OutSpec((3,), "int32"), lambda b, o, i, x: x(*i), [np.zeros(3)])


def test_every_scalar_function_evaluates():
    x = RNG.uniform(0.1, 0.9, 64).astype("float32")
    for name, op in SCALAR_OPS.items():
        if op.kind in ("same", "float", "bool"):
            out_dtype = "bool" if op.kind == "bool" else "float32"
            from relaylab.loop.expr import apply

            y = compute(
                OutSpec((64,), out_dtype), lambda b, o, i, x, name=name, op=op: apply(name, *[x(*i)] * op.arity), [x]
            )
            assert y.dtype == out_dtype


@pytest.mark.parametrize("dtype, whole", [("float32", "uint32"), ("float64", "uint64")])
def test_ordinals_are_ordered_as_numpy_orders_floats(dtype, whole):
    x = np.frombuffer(RNG.bytes(4096), dtype).copy()
    x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]
    got = compute(OutSpec(x.shape, whole), lambda b, o, i, x: b.ordinal(x(*i)), [x])
    np.testing.assert_array_equal(np.argsort(got, kind="stable"), np.argsort(x, kind="stable"))
    assert got[0] == got[1] and got[4] == got[5] == np.iinfo(whole).max
    with pytest.raises(RelayTypeError, match="`ordinal` needs a float, not int32"):
        builder.ordinal(builder.const(1, "int32"))
