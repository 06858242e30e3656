"""Images resampled axis by axis: which axis comes first, data types that take the same way, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Call, op_name, post_order

SIZES = [((1, 3, 11, 17), (33, 40)), ((2, 2, 40, 31), (13, 9)), ((1, 2, 9, 30), (20, 11)), ((1, 1, 5, 5), (5, 64))]
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 1e-5}
rng = np.random.default_rng(1)


def resized(x: np.ndarray, size: tuple[int, int], **how: str) -> np.ndarray:
    data = relay.var("data", shape=x.shape, dtype=x.dtype.name)
    lib = relay.build(relay.IRModule.from_expr(relay.image.resize2d(data, size=size, **how)), "llvm")
    assert not any("resize" in kernel for kernel in lib.kernels()), "computed element by element"
    return lib.run(data=x)


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("corners", [False, True])
def test_floats_are_those_of_torch(dtype: str, corners: bool) -> None:
    torch = pytest.importorskip("torch")
    for shape, size in SIZES:
        x = rng.standard_normal(shape).astype(dtype)
        how = {"mode": "bilinear", "align_corners": corners}
        want = torch.nn.functional.interpolate(torch.tensor(x.astype("float64")), size, **how).numpy()
        got = resized(x, size, coordinate_transformation_mode="align_corners" if corners else "half_pixel")
        np.testing.assert_allclose(got.astype("float64"), want, rtol=UNIT[dtype], atol=UNIT[dtype])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes_are_what_the_interpreter_says(dtype: str) -> None:
    for shape, size in SIZES:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = rng.choice([low, high, 0, 1, 100], shape).astype(dtype)
        for mode in ("half_pixel", "align_corners", "asymmetric"):
            data = relay.var("data", shape=shape, dtype=dtype)
            call = relay.image.resize2d(data, size=size, coordinate_transformation_mode=mode)
            mod = relay.IRModule.from_expr(call)
            want = relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
            np.testing.assert_array_equal(resized(x, size, coordinate_transformation_mode=mode), want)


@pytest.mark.parametrize(
    ("shape", "size", "first"), [((1, 21, 65, 65), (513, 513), 3), ((1, 3, 480, 640), (224, 224), 2)]
)
def test_few_elements_are_gathered(shape: tuple[int, ...], size: tuple[int, int], first: int) -> None:
    """Along the innermost axis elements are gathered: of an image before it grows, or once it is small."""
    data = relay.var("data", shape=shape)
    mod = relay.IRModule.from_expr(relay.image.resize2d(data, size=size))
    with relay.transform.PassContext(opt_level=3):
        body = relay.transform.Legalize()(relay.transform.InferType()(mod))["main"].body
    takes = [n for n in post_order(body) if isinstance(n, Call) and op_name(n) == "take"]
    assert takes[0].attrs.axis == first
