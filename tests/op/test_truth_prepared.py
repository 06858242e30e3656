"""Operators on prepared weights against plain convolutions and integer arithmetic in numpy, and published matrices.

Every number is asked of the interpreter and of the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from op_cases import infer

from relaylab import relay
from relaylab.ir import OPERATORS, Expr, IRModule, TensorType
from relaylab.support.errors import RelayError

nn = relay.nn


def both(build: Callable[..., Expr], *arrays: np.ndarray) -> Iterator[np.ndarray]:
    """What the interpreter and the compiled program say of `build` applied to variables with these values."""
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(arrays)]
    mod = IRModule.from_expr(relay.Function(variables, build(*variables)))
    mod = relay.parse(mod.astext(show_meta_data=True))
    for kind in ("debug", "graph"):
        yield relay.create_executor(kind, mod).evaluate()(*arrays).numpy()


def agree(wanted: np.ndarray, build: Callable[..., Expr], *arrays: np.ndarray, bar: float = 2e-4) -> None:
    for found in both(build, *arrays):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=bar, atol=bar)


def same(wanted: np.ndarray, build: Callable[..., Expr], *arrays: np.ndarray) -> None:
    for found in both(build, *arrays):
        np.testing.assert_array_equal(found, wanted)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def integers(high: int, *shape: int, dtype: str = "int16", low: int = 0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape, endpoint=True).astype(dtype)


def convolution(x: np.ndarray, w: np.ndarray, pad: tuple[int, ...], stride: int = 1, dilation: int = 1) -> np.ndarray:
    """Data (N, C, ...) with a weight (O, C, ...), befores and then afters of each axis: a product with all windows."""
    n = x.ndim - 2
    x = np.pad(x.astype("int64" if x.dtype.kind in "iu" else "float64"), [(0, 0)] * 2 + list(zip(pad[:n], pad[n:])))
    reach = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + n)))
    windows = windows[(..., *[slice(None, None, dilation)] * n)][(slice(None),) * 2 + (slice(None, None, stride),) * n]
    taps = range(2 + n, 2 + 2 * n)
    return np.moveaxis(np.tensordot(windows, w, ([1, *taps], [1, *range(2, 2 + n)])), -1, 1)


# ---- Winograd


@pytest.mark.parametrize("tile", range(1, 9))
def test_winograd_of_the_transformed_weight_is_the_convolution(tile: int) -> None:
    x, w = normal(2, 3, 9, 7), normal(4, 3, 3, 3, seed=1)

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_winograd_weight_transform(k, tile)
        how = {"padding": (1, 0, 2, 1), "channels": 4, "kernel_size": 3}
        return nn.contrib_conv2d_winograd_without_weight_transform(d, k, tile, **how)

    agree(convolution(x, w, (1, 0, 2, 1)), build, x, w, bar=2e-3 if tile > 6 else 2e-4)


@pytest.mark.parametrize("kernel", [(1, 1), (2, 3), (5, 5), (7, 3)])
def test_winograd_of_other_kernels_and_layouts(kernel: tuple[int, int]) -> None:
    x, w = normal(1, 9, 8, 2), normal(3, 2, *kernel, seed=1)

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_winograd_weight_transform(k, 3)
        how = {"kernel_size": kernel, "data_layout": "NHWC", "out_layout": "NCHW", "padding": 1}
        return nn.contrib_conv2d_winograd_without_weight_transform(d, k, 3, **how)

    agree(convolution(np.moveaxis(x, -1, 1), w, (1, 1, 1, 1)), build, x, w, bar=1e-3)


@pytest.mark.parametrize(
    "shapes", [((0, 3, 5, 6), (2, 3, 3, 3)), ((1, 0, 5, 6), (2, 0, 3, 3)), ((1, 3, 5, 6), (0, 3, 3, 3))]
)
def test_winograd_of_nothing(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, w = normal(*shapes[0]), normal(*shapes[1])

    def tiles(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_gemm_weight_transform(relay.transpose(k, (2, 3, 1, 0)), 2, 4)
        return nn.contrib_conv2d_gemm_without_weight_transform(d, k, channels=shapes[1][0], kernel_size=3)

    def winograd(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_winograd_weight_transform(k, 2)
        return nn.contrib_conv2d_winograd_without_weight_transform(d, k, 2, kernel_size=3)

    for build in (tiles, winograd):
        agree(convolution(x, w, (0,) * 4), build, x, w)


def test_none_of_the_channels_in_tiles() -> None:
    """No channels were all that the tiles hold."""
    x, tiled = normal(1, 5, 6, 2), normal(2, 8, 4, 3)
    how = {"kernel_size": 3, "data_layout": "NHWC", "kernel_layout": "HWIO"}
    build = lambda d, k: nn.contrib_conv2d_gemm_without_weight_transform(d, k, channels=0, **how)
    agree(np.zeros((1, 3, 4, 0), "float32"), build, x, tiled)


def test_winograd_of_halves_sums_in_singles() -> None:
    """Terms are many times larger than the sums that are left of them."""
    x, w = normal(1, 8, 9, 9).astype("float16"), normal(2, 8, 3, 3, seed=1).astype("float16")

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_winograd_weight_transform(relay.cast(k, "float32"), 4)
        return nn.contrib_conv2d_winograd_without_weight_transform(d, k, 4, kernel_size=3)

    agree(convolution(x, w, (0,) * 4), build, x, w, bar=4e-3)


@pytest.mark.parametrize("kernel, points", [((3, 3, 3), (5, 5, 5)), ((2, 3, 3), (5, 5, 2)), ((4, 3, 2), (6, 5, 4))])
def test_winograd_in_three_dimensions(kernel: tuple[int, ...], points: tuple[int, ...]) -> None:
    x, w = normal(1, 2, 5, 4, 6), normal(3, 2, *kernel, seed=1)

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv3d_winograd_weight_transform(k, 3)
        assert relay.transform.InferTypeLocal(k).concrete_shape == (*points, 3, 2)
        how = {"padding": (1, 1, 1), "channels": 3, "kernel_size": kernel}
        return nn.contrib_conv3d_winograd_without_weight_transform(d, k, 3, **how)

    agree(convolution(x, w, (1,) * 6), build, x, w)


def test_the_transform_is_lavins() -> None:
    """F(2, 3) of Lavin and Gray, 2016, section 4.1, with the points -1 and 1 in this order."""
    g = np.array([[1, 0, 0], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 1]])
    w = normal(2, 3, 3, 3)
    wanted = np.einsum("ay,bx,oiyx->aboi", g, g, w)
    agree(wanted, lambda k: nn.contrib_conv2d_winograd_weight_transform(k, tile_size=2), w, bar=1e-6)


def test_the_transform_for_nnpack_goes_with_the_published_matrices() -> None:
    """F(6, 3) as Lavin's wincnn prints it, for the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity."""
    back = np.array(
        [[1, 0, -21 / 4, 0, 21 / 4, 0, -1, 0], [0, 1, 1, -17 / 4, -17 / 4, 1, 1, 0]]
        + [[0, -1, 1, 17 / 4, -17 / 4, -1, 1, 0], [0, 1 / 2, 1 / 4, -5 / 2, -5 / 4, 2, 1, 0]]
        + [[0, -1 / 2, 1 / 4, 5 / 2, -5 / 4, -2, 1, 0], [0, 2, 4, -5 / 2, -5, 1 / 2, 1, 0]]
        + [[0, -2, 4, 5 / 2, -5, -1 / 2, 1, 0], [0, -1, 0, 21 / 4, 0, -21 / 4, 0, 1]]
    )
    points = [0, 1, -1, 2, -2, 0.5, -0.5]
    out = np.array([[p**k for p in points] + [float(k == 5)] for k in range(6)])
    w, x = normal(2, 3, 3, 3), normal(3, 8, 8, seed=1)
    seen = np.einsum("ay,bx,iyx->iab", back, back, x)
    for found in both(lambda k: nn.contrib_conv2d_winograd_nnpack_weight_transform(k, 3), w):
        tile = np.einsum("ya,xb,oiab,iab->oyx", out, out, found, seen)
        np.testing.assert_allclose(tile, convolution(x[None], w, (0,) * 4)[0], rtol=1e-4, atol=1e-4)
        half = [found.astype("float16").astype("float32")]
    halves = both(lambda k: nn.contrib_conv2d_winograd_nnpack_weight_transform(k, 6), w)
    for kept, wanted in zip(halves, 2 * half):
        assert (kept == kept.astype("float16")).all()
        np.testing.assert_allclose(kept, wanted, rtol=2e-3)


# ---- products of matrices


@pytest.mark.parametrize("rows, cols", [(4, 4), (2, 16), (3, 5)])
def test_a_convolution_of_tiles_is_the_convolution(rows: int, cols: int) -> None:
    x, w = normal(2, 3, 9, 7), normal(5, 3, 3, 2, seed=1)

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_gemm_weight_transform(relay.transpose(k, (2, 3, 1, 0)), rows, cols)
        how = {"padding": (1, 0, 2, 1), "strides": 2, "dilation": 2, "channels": 5, "kernel_size": (3, 2)}
        return nn.contrib_conv2d_gemm_without_weight_transform(d, k, **how)

    agree(convolution(x, w, (1, 0, 2, 1), stride=2, dilation=2), build, x, w)


def test_a_convolution_of_tiles_sums_small_numbers_in_wide_ones() -> None:
    x, w = integers(127, 1, 5, 6, 3, dtype="int8", low=-128), integers(255, 2, 2, 3, 4, dtype="uint8")

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.contrib_conv2d_gemm_weight_transform(k, 4, 4)
        how = {"data_layout": "NHWC", "kernel_layout": "HWIO", "out_dtype": "int32", "kernel_size": (2, 2)}
        return nn.contrib_conv2d_gemm_without_weight_transform(d, k, **how)

    plain = convolution(np.moveaxis(x, -1, 1), w.astype("int64").transpose(3, 2, 0, 1), (0,) * 4)
    same(np.moveaxis(plain, 1, -1), build, x, w)


def test_tiles_are_transposed_blocks_of_the_matrix() -> None:
    w = normal(2, 3, 5, 7)
    matrix = np.pad(w.reshape(30, 7), ((0, 2), (0, 1)))  # up to 4 * 2 rows at once, and 4 columns
    wanted = np.stack([np.stack([matrix[2 * q : 2 * q + 2, 4 * p : 4 * p + 4].T for q in range(16)]) for p in range(2)])
    same(wanted, lambda k: nn.contrib_conv2d_gemm_weight_transform(k, tile_rows=4, tile_cols=2), w)


# ---- bits


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("axis, to", [(0, 0), (1, 1), (1, 3), (2, 0), (2, 2), (1, -1)])
def test_words_are_those_of_packbits(dtype: str, axis: int, to: int) -> None:
    shape = [3, 2, 2]
    shape[axis] = 128
    x = integers(127, *shape, dtype="int8", low=-128)
    planes = [np.moveaxis(np.packbits(x >> k & 1, axis=axis), axis, -1) for k in range(5)]
    words = [np.moveaxis(np.ascontiguousarray(p).view(np.dtype(dtype).newbyteorder(">")), -1, axis) for p in planes]
    wanted = np.stack(words, axis=to).astype(dtype)
    same(wanted, lambda d: nn.bitpack(d, bits=5, pack_axis=axis, bit_axis=to, pack_type=dtype), x)


@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_bit_serial_layer_is_integer_arithmetic(bits: int, packed: bool, unipolar: bool) -> None:
    x, w = integers(2**bits - 1, 3, 64), integers(2**bits - 1, 4, 64)
    meaning = 2 * w.astype("int64") - (2**bits - 1) if unipolar else w.astype("int64")

    def build(d: Expr, k: Expr) -> Expr:
        k = nn.bitpack(k, bits=bits, pack_axis=1, bit_axis=2) if packed else k
        return nn.bitserial_dense(d, k, units=4, data_bits=bits, weight_bits=bits, unipolar=unipolar)

    same((x.astype("int64") @ meaning.T).astype("int16"), build, x, w)


@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("layout, kernel_layout", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_a_bit_serial_convolution_is_integer_arithmetic(
    layout: str, kernel_layout: str, packed: bool, unipolar: bool
) -> None:
    x, w = integers(7, 2, 16, 5, 6), integers(3, 3, 16, 3, 2)
    meaning = 2 * w.astype("int64") - 3 if unipolar else w.astype("int64")
    orders = [["NCHW".index(a) for a in layout], ["OIHW".index(a) for a in kernel_layout]]

    def build(d: Expr, k: Expr) -> Expr:
        if packed:
            k = nn.bitpack(k, bits=2, pack_axis=kernel_layout.index("I"), bit_axis=4, pack_type="uint8")
        how = {"data_layout": layout, "kernel_layout": kernel_layout, "pack_dtype": "uint8", "out_dtype": "int32"}
        bits = {"activation_bits": 3, "weight_bits": 2, "unipolar": unipolar}
        return nn.bitserial_conv2d(d, k, 2, (1, 0), 3, (3, 2), **bits, **how)

    wanted = convolution(x, meaning, (1, 0, 1, 0), stride=2).transpose(orders[0])
    same(wanted, build, x.transpose(orders[0]), w.transpose(orders[1]))


def test_a_product_of_bits_is_the_published_count_of_bits() -> None:
    """Sums of popcount(a & w) - popcount(a & ~w), shifted by both places: Umuroglu and Jahre, 2017, and Riptide."""
    x, w = integers(7, 2, 32), integers(3, 3, 32)
    word = lambda row, bit: int("".join(str(v >> bit & 1) for v in row), 2)
    count = lambda a, b: (a & b).bit_count() - (a & ~b).bit_count()
    wanted = [
        [sum(count(word(r, i), word(k, j)) << i + j for i in range(3) for j in range(2)) for k in w.tolist()]
        for r in x.tolist()
    ]
    same(np.array(wanted), lambda d, k: nn.bitserial_dense(d, k, data_bits=3, weight_bits=2), x, w)


# ---- types, text


PREPARED = [
    n for n in OPERATORS if n.startswith(("nn.bit", "nn.contrib_conv")) and not n.endswith("NCHWc")
]  # bitpack, bitserial_conv2d, bitserial_dense, ...


def test_their_records_have_the_names_of_tvm() -> None:
    keys = {OPERATORS[n].definition(**OPERATORS[n].definition.samples()[0].attrs).type_key for n in PREPARED}
    assert keys == {
        f"relay.attrs.{name}Attrs"
        for name in """BitPack BinaryConv2D BinaryDense ConvWinogradWeightTransform ConvGemmWeightTransform Conv2D
            Conv2DWinograd Conv3DWinograd Conv2DWinogradNNPACKWeightTransform""".split()
    }


def test_untyped_weights_are_typed() -> None:
    x, w = relay.var("x", shape=(1, 8, 6, 6)), relay.var("w")
    call = nn.contrib_conv2d_winograd_without_weight_transform(x, w, 4, channels=5, kernel_size=3)
    main = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w], call)))["main"]
    assert main.params[1].checked_type.concrete_shape == (6, 6, 5, 8)


N = relay.Any()
DYNAMIC = [
    ("nn.contrib_conv2d_winograd_weight_transform", {"tile_size": 2}, [(N, 3, 3, 3)], (4, 4, N, 3)),
    (
        "nn.contrib_conv2d_winograd_without_weight_transform",
        {"tile_size": 2, "kernel_size": (3, 3)},
        [(N, 3, N, 6), (4, 4, N, 3)],
        (N, N, N, 4),
    ),
    ("nn.contrib_conv2d_gemm_weight_transform", {"tile_rows": 2, "tile_cols": 2}, [(3, N, 3, N)], (N, N, 2, 2)),
    (
        "nn.contrib_conv2d_gemm_without_weight_transform",
        {"kernel_size": (3, 3), "channels": 3},
        [(N, N, N, 6), (N, 4, 2, 2)],
        (N, 3, N, 4),
    ),
    ("nn.bitpack", {"bits": 2}, [(N, N, 3)], (N, N, 3, 2)),
    ("nn.bitserial_dense", {"units": 4}, [(N, 32), (N, N)], (N, 4)),
    ("nn.bitserial_conv2d", {}, [(N, N, N, 5), (4, N, 3, 3)], (N, 4, N, 3)),
]


@pytest.mark.parametrize("name, attrs, shapes, wanted", DYNAMIC, ids=[c[0] for c in DYNAMIC])
def test_unknown_extents_are_passed_on(name: str, attrs: dict, shapes: list[tuple], wanted: tuple) -> None:
    record, dtype = OPERATORS[name].definition(**attrs), "int16" if ".bit" in name else "float32"
    types = [TensorType(s, dtype) for s in shapes]
    found = infer(record, *types)
    assert found.shape == TensorType(wanted, dtype).shape and record.macs(types, found) == 0


X, K = relay.var("x", shape=(1, 8, 6, 6)), relay.var("k", shape=(4, 8, 3, 3))
I, J = relay.var("i", shape=(1, 8, 6, 6), dtype="int16"), relay.var("j", shape=(4, 8, 3, 3), dtype="int16")
U = relay.var("u", shape=(4, 4, 4, 8))
MISFITS = [
    (lambda: nn.contrib_conv2d_winograd_weight_transform(K, 0), "`tile_size` must be at least 1"),
    (lambda: nn.contrib_conv2d_winograd_weight_transform(K, 13), "need 15 points"),
    (lambda: nn.contrib_conv2d_winograd_weight_transform(J, 2), "`weight` must hold floats"),
    (lambda: nn.contrib_conv3d_winograd_weight_transform(K, 2), "must have 5 dimensions"),
    (lambda: nn.contrib_conv2d_winograd_nnpack_weight_transform(K, 1), "algorithm 1 of NNPACK"),
    (lambda: nn.contrib_conv2d_winograd_nnpack_weight_transform(U, 3), r"must have the shape \(\?, \?, 3, 3\)"),
    (lambda: nn.contrib_conv2d_winograd_without_weight_transform(X, U, 2), "needs `kernel_size`"),
    (lambda: nn.contrib_conv2d_winograd_without_weight_transform(X, U, 4, kernel_size=3), r"shape \(6, 6, \?, \?\)"),
    (
        lambda: nn.contrib_conv2d_winograd_without_weight_transform(X, U, 2, kernel_size=3, strides=2),
        "knows only strides, dilation and groups of 1",
    ),
    (
        lambda: nn.contrib_conv2d_winograd_without_weight_transform(X, U, 2, kernel_size=3, channels=5),
        "channels=5, but the weight",
    ),
    (lambda: nn.contrib_conv2d_gemm_weight_transform(K, 0, 4), "`tile_rows` must be at least 1"),
    (lambda: nn.contrib_conv2d_gemm_without_weight_transform(X, U), "needs `kernel_size`"),
    (lambda: nn.contrib_conv2d_gemm_without_weight_transform(X, U, kernel_size=3), "72 elements of each kernel are"),
    (
        lambda: nn.contrib_conv2d_gemm_without_weight_transform(X, U, kernel_size=1, channels=17),
        "17 output channels are more than the 16",
    ),
    (lambda: nn.contrib_conv2d_gemm_without_weight_transform(X, U, kernel_size=1, groups=2), "only one group"),
    (lambda: nn.bitpack(I, pack_axis=1), "8 numbers do not fill words of uint32"),
    (lambda: nn.bitpack(I, pack_axis=4), "pack_axis 4 is out of range"),
    (lambda: nn.bitpack(I, pack_type="int8"), "`pack_type` must be one of uint8, uint16, uint32, uint64"),
    (lambda: nn.bitpack(I, bits=9, pack_type="uint8"), "`bits` must be 1 to 8"),
    (lambda: nn.bitpack(X, pack_type="uint8"), "`data` must hold integers"),
    (lambda: nn.bitserial_conv2d(I, J), "8 numbers do not fill words of uint32"),
    (lambda: nn.bitserial_conv2d(I, J, pack_dtype="uint8", kernel_size=5), r"kernel_size=\[5, 5\]"),
    (lambda: nn.bitserial_conv2d(I, J, pack_dtype="uint8", out_dtype="float32"), "`out_dtype` must hold integers"),
    (lambda: nn.bitserial_conv2d(I, nn.bitpack(J, 1, 1, 4, "uint8"), pack_dtype="uint16"), "the words of `weight`"),
    (lambda: nn.bitserial_dense(I, J), "`weight` must have 3 dimensions"),
]


@pytest.mark.parametrize("build, words", MISFITS, ids=range(len(MISFITS)))
def test_misfits_of_prepared_weights_are_explained(build: Callable[[], Expr], words: str) -> None:
    with pytest.raises(RelayError, match=words):
        relay.transform.InferType()(IRModule.from_expr(build()))


def test_macs_count_the_products_of_the_algorithm() -> None:
    """4 x 4 products for 2 x 2 results instead of 9 for each: Lavin and Gray count 16 against 36."""
    plain = nn.conv2d(X, K, channels=4, kernel_size=3, padding=1)
    fast = nn.contrib_conv2d_winograd_without_weight_transform(X, U, 2, kernel_size=3, padding=1)
    calls = [relay.transform.InferType()(IRModule.from_expr(e))["main"].body for e in (plain, fast)]
    count = [c.attrs.macs([a.checked_type for a in c.args], c.checked_type) for c in calls]
    assert Fraction(count[1], count[0]) == Fraction(16, 36)
