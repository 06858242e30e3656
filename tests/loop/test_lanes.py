"""Which axis vectors lie along, where elements are a few apart."""

import numpy as np
import pytest

from relaylab import relay

RNG = np.random.default_rng(0)


def built(body, shape, dtype="float32", target="llvm -mcpu=x86-64-v4"):
    x = relay.var("x", shape=shape, dtype=dtype)
    with relay.transform.PassContext(opt_level=3):
        return relay.build(relay.IRModule.from_expr(relay.Function([x], body(x))), target)


def vectorized(lib) -> set[str]:
    """The loops of lanes."""
    lines = [line.strip() for k in lib.kernels() for line in lib.inspect("loop", k).splitlines()]
    return {line.split()[1] for line in lines if line.startswith(("for", "parallel")) and "vectorized" in line}


@pytest.mark.parametrize(
    ("body", "shape", "dtype", "lanes"),
    [
        # results beside each other, whose windows are read with a stride
        (lambda x: relay.nn.max_pool2d(x, (3, 3), (3, 3)), (1, 4, 57, 57), "float32", {"i3"}),
        (lambda x: relay.nn.avg_pool2d(x, (4, 4), (4, 4)), (1, 4, 224, 224), "float32", {"i3"}),
        (lambda x: relay.max(x, axis=2), (100, 77, 5), "float32", {"i0"}),
        (lambda x: relay.max(x, axis=2), (100, 77, 6), "uint8", {"i0"}),
        # few results: lanes fold
        (lambda x: relay.nn.avg_pool2d(x, (7, 7), (7, 7)), (1, 64, 56, 56), "float32", {"k1"}),
        (lambda x: relay.sum(x, axis=2), (100, 77, 8), "float32", {"k"}),
        (lambda x: relay.sum(x, axis=2), (100, 77, 7), "float64", {"k"}),
        # few of a row: lanes fold rows that are three apart, but not those that are seven apart
        (lambda x: relay.sum(x, axis=0), (5000, 3), "float32", {"k"}),
        (lambda x: relay.sum(x, axis=1), (8, 400, 7), "float32", {"i1"}),
    ],
)
def test_the_cheaper_axis(body, shape, dtype, lanes) -> None:
    assert vectorized(built(body, shape, dtype)) == lanes


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int64"])
@pytest.mark.parametrize("n", range(2, 9))
def test_as_numpy(n, dtype, target) -> None:
    """Reductions over axes of few elements, and along rows of them."""
    x = (RNG.normal(size=(9, 37, n)) * 50).astype(dtype)
    wide = "float64" if np.dtype(dtype).kind == "f" else dtype
    for axis in (1, 2):
        lib = built(
            lambda v, a=axis: relay.Tuple([relay.sum(v, axis=a), relay.max(v, axis=a), relay.argmax(v, axis=a)]),
            x.shape, dtype, target,
        )  # fmt: skip
        total, most, place = lib.run(x=x)
        digits = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}.get(dtype, 0)
        np.testing.assert_allclose(total, x.sum(axis, dtype=wide).astype(dtype), rtol=digits, atol=300 * digits)
        np.testing.assert_array_equal(most, x.max(axis))
        np.testing.assert_array_equal(place, x.argmax(axis))
