"""Sparse weights: networks compute what they computed with the whole ones."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.analysis import list_op_freqs
from relaylab.analysis.sparse_weights import block_rows
from relaylab.ir import Function, IRModule
from relaylab.relay import transform
from relaylab.relay.analysis import sparse_conv2d, sparse_dense
from relaylab.relay.data_dep_optimization import bsr_conv2d, bsr_dense, simplify_fc_transpose
from relaylab.support.errors import RelayValueError

RNG = np.random.default_rng(5)


def sparse(shape: tuple[int, ...], rows: int, columns: int, share: float = 0.75) -> np.ndarray:
    """A matrix of which this share of blocks is zero."""
    kept = RNG.random((shape[0] // rows, shape[1] // columns)) > share
    return (RNG.standard_normal(shape) * np.kron(kept, np.ones((rows, columns)))).astype("float32")


def run(func: Function, params: dict, x: np.ndarray) -> np.ndarray:
    lib = relay.build(IRModule.from_expr(func), target="llvm", params=params)
    return lib.run(x=x)


def test_blocks_are_those_of_scipy():
    scipy = pytest.importorskip("scipy.sparse")
    matrix = sparse((12, 8), 3, 2)
    found, wanted = block_rows(matrix, (3, 2)), scipy.bsr_matrix(matrix, blocksize=(3, 2))
    wanted.sort_indices()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))
    assert block_rows(matrix, (5, 2)) is None
    with pytest.raises(RelayValueError, match="block of 0 x 2"):
        block_rows(matrix, (0, 2))


def test_dense_layers():
    x = relay.var("x", shape=(3, 8))
    w, v = relay.var("w", shape=(12, 8)), relay.var("v", shape=(4, 12))
    func = Function([x, w, v], relay.nn.relu(relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), v)))
    params = {"w": sparse((12, 8), 4, 1), "v": RNG.standard_normal((4, 12)).astype("float32")}
    data = RNG.standard_normal((3, 8)).astype("float32")
    want = run(func, dict(params), data)
    after, left = bsr_dense.convert(func, params, (4, 1), 0.5)
    assert set(left) == {"v", "w.data", "w.indices", "w.indptr"} == {p.name_hint for p in after.params[1:]}
    ops = list_op_freqs(IRModule.from_expr(after))
    assert ops["nn.sparse_dense"] == ops["nn.dense"] == 1
    np.testing.assert_allclose(run(after, left, data), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions(layout: str, kernel: int):
    shape, inner = ((1, 5, 6, 4), "HWIO") if layout == "NHWC" else ((1, 4, 5, 6), "OIHW")
    matrix = sparse((8, 4 * kernel * kernel), 4, 1)
    weight = matrix.reshape(8, 4, kernel, kernel)
    if layout == "NHWC":
        weight = matrix.T.reshape(kernel, kernel, 4, 8)
    how = {"channels": 8, "kernel_size": (kernel, kernel), "padding": kernel // 2, "data_layout": layout}
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight.shape)
    conv = lambda w: relay.nn.conv2d(x, w, kernel_layout=inner, **how)
    params, data = {"w": weight}, RNG.standard_normal(shape).astype("float32")
    want = run(Function([x, w], conv(w)), dict(params), data)
    after, left = bsr_conv2d.convert(Function([x, w], conv(w)), params, (4, 1), 0.5, layout, kernel)
    assert list_op_freqs(IRModule.from_expr(after)) == {"nn.sparse_conv2d": 1}
    np.testing.assert_allclose(run(after, left, data), want, rtol=1e-4, atol=1e-5)
    constant = transform.InferType()(IRModule.from_expr(conv(relay.const(weight))))
    second = transform.Conv2dToSparse2(layout, kernel, (4, 1), 0.5)(constant)
    assert list_op_freqs(second) == {"nn.sparse_conv2d": 1}
    np.testing.assert_allclose(run(second["main"], {}, data), want, rtol=1e-4, atol=1e-5)
    bound, _ = bsr_conv2d.convert2(Function([x, w], conv(w)), {"w": weight}, (4, 1), 0.5, layout, kernel)
    assert [p.name_hint for p in bound.params] == ["x"]
    np.testing.assert_allclose(run(bound, {}, data), want, rtol=1e-4, atol=1e-5)


def test_what_is_not_sparse_stays():
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(12, 8))
    params = {"w": np.ones((12, 8), "float32")}
    assert sparse_dense.process_params(relay.nn.dense(x, w), params, (4, 1), 0.5) == ([], []) and list(params) == ["w"]
    x, w = relay.var("x", shape=(1, 4, 9, 9)), relay.var("w", shape=(8, 4, 1, 1))
    strided = relay.nn.conv2d(x, w, strides=2, kernel_size=(1, 1), channels=8)
    zeros = {"w": np.zeros((8, 4, 1, 1), "float32")}
    assert not sparse_conv2d.process_params(strided, zeros, (1, 1), 0.5, "NCHW", 1).weight_name


def test_weights_that_are_transposed_in_the_program():
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(8, 12))
    func = Function([x, w], relay.nn.dense(x, relay.transpose(w, [1, 0])))
    params, data = {"w": RNG.standard_normal((8, 12)).astype("float32")}, RNG.random((3, 8), "float32")
    want = run(func, dict(params), data)
    after, left = simplify_fc_transpose.convert(func, params)
    assert list(left) == ["w.T"] and list_op_freqs(IRModule.from_expr(after)) == {"nn.dense": 1}
    np.testing.assert_allclose(run(after, left, data), want, rtol=1e-5)


@pytest.mark.parametrize("shapes, words", [([[1, 2, 3]], "3 extents, not 5"), ([], "1 names of weights with 0 shapes")])
def test_wrong_shapes_of_weights(shapes: list[list[int]], words: str):
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(12, 8))
    mod = IRModule.from_expr(relay.nn.dense(x, w))
    with pytest.raises(RelayValueError, match=words):
        transform.DenseToSparse(["w"], shapes)(mod)


def test_weights_that_are_needed_whole_stay():
    """Read by something else too, a factor of vectors in three axes, with a result of another data type."""
    x, cube, w = (relay.var(n, shape=s) for n, s in (("x", (2, 8)), ("x", (2, 3, 8)), ("w", (8, 8))))
    half = relay.var("x", shape=(2, 8), dtype="float16"), relay.var("w", shape=(8, 8), dtype="float16")
    dense = relay.nn.dense
    for given, out in (
        (x, dense(x, w) + relay.sum(w)),
        (cube, dense(cube, w)),
        (half[0], dense(*half, None, "float32")),
    ):
        weight = half[1] if given is half[0] else w
        params = {"w": np.diag(np.float32([1, 0, 0, 0, 0, 0, 0, 0])).astype(weight.type_annotation.dtype)}
        func, kept = bsr_dense.convert(Function([given, weight], out), params, (2, 2), 0.5)
        assert "nn.sparse_dense" not in list_op_freqs(func) and list(kept) == ["w"]
