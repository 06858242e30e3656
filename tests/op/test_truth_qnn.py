"""The quantized dialect computes TVM's integers, in every executor: recorded numbers, and a retelling in whole numbers.

The retelling here follows TVM 0.10's C++ (`src/relay/qnn/utils.cc`, `op/requantize.cc`, `op/add.cc` ...) with Python's
own integers and shares nothing with the package.
"""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from op_cases import lowered

from relaylab import relay
from relaylab.ir import OPERATORS, IRModule, TensorType, const
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

qnn = relay.qnn.op
F, Z = (lambda v: const(np.float32(v))), (lambda v: const(np.int32(v)))
PAIRS = tuple(np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij"))


def outputs(build, *arrays: np.ndarray) -> dict[str, np.ndarray]:
    """The result of `build(*variables)` in each executor, and of the program that canonicalization writes."""
    names = [f"x{k}" for k in range(len(arrays))]
    variables = [relay.var(n, shape=a.shape, dtype=a.dtype.name) for n, a in zip(names, arrays)]
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(variables, build(*variables))))
    written = relay.transform.InferType()(relay.qnn.transform.CanonicalizeOps()(mod))
    assert "qnn." not in written.astext().replace("qnn.simulated", "")
    run = lambda m, kind: relay.create_executor(kind, mod=m, target="llvm").evaluate()(*arrays).numpy()
    found = {kind: run(mod, kind) for kind in ("debug", "graph", "vm")}
    with relay.transform.PassContext(opt_level=3, disabled_pass=["QnnLegalize"]):
        found["loops"] = run(mod, "graph")
    return found | {"canonical": run(written, "debug")}


def check(expected, build, *arrays: np.ndarray) -> None:
    for kind, found in outputs(build, *arrays).items():
        np.testing.assert_array_equal(found, np.asarray(expected), err_msg=kind)


def ints(*values: int, dtype: str = "int8") -> np.ndarray:
    return np.array(values, dtype)


def binary(name: str, *parameters: float):
    given = [(F if k % 2 == 0 else Z)(v) for k, v in enumerate(parameters)]
    return lambda x, y: getattr(qnn, name)(x, y, *given)


# ---- recorded numbers of TVM 0.10: its tests (test_op_qnn_add.py, test_op_qnn_subtract.py) and runs of it
def test_sums_saturate_after_each_side_is_requantized() -> None:
    x, y = ints(255, 1, 1, 0, dtype="uint8"), ints(255, 255, 127, 0, dtype="uint8")
    check([255, 129, 65, 0], binary("add", 0.125, 0, 0.125, 0, 0.25, 0), x, y)


@pytest.mark.parametrize(
    "name, right, expected",
    [("add", (1, 1, 1), (2, 3, 4)), ("subtract", (1, 1, 1), (0, 1, 2)), ("mul", (1, 1, 1), (1, 2, 3))],
)
def test_halves_go_up(name: str, right: tuple[int, ...], expected: tuple[int, ...]) -> None:
    check(expected, binary(name, 1, 0, 1, 0, 2, 0), ints(1, 3, 5), ints(*right))


def test_products_of_negative_halves_go_up() -> None:
    check([1, 3, -1], binary("mul", 1, 0, 1, 0, 2, 0), ints(1, 5, -3), ints(1, 1, 1))


def test_what_is_joined_is_requantized() -> None:
    build = lambda x, y: qnn.concatenate([x, y], [F(1), F(1)], [Z(0), Z(0)], F(2), Z(0), 0)
    check([1, 2, 3, 0], build, ints(1, 3, 5), ints(-1))
    tie = lambda x: qnn.concatenate([x], [F(0.3)], [Z(1)], F(0.2), Z(2), 0)
    check([retold([-78], 0.3, 1, 0.2, 2)[0]], tie, ints(-78))


def test_leaky_relu_multiplies_in_fixed_point() -> None:
    check([3, 1, 0], lambda x: qnn.leaky_relu(x, 0.25, F(1), Z(0), F(2), Z(0)), ints(5, 1, -3))
    check([3, 1, 0], lambda x: qnn.leaky_relu(x=x, alpha=0.25, input_scale=F(1), input_zero_point=Z(0),
                                              output_scale=F(2), output_zero_point=Z(0)), ints(5, 1, -3))  # fmt: skip


def test_quantize_divides_in_float32() -> None:
    x = (np.arange(-100, 100) * 0.05).astype("float32")
    expected = np.rint(x / np.float32(0.1)).astype("int8")
    assert (expected != np.rint(x.astype("float64") / float(np.float32(0.1)))).any()
    check(expected, lambda v: qnn.quantize(v, F(0.1), Z(0), out_dtype="int8"), x)


# ---- a retelling in whole numbers
def fixed(ratio: float) -> tuple[int, int]:
    """GetFixedPointMultiplierShift."""
    significand, exponent = math.frexp(ratio)
    m = math.floor(abs(significand) * 2**31 + 0.5)
    m, exponent = (m // 2, exponent + 1) if m == 2**31 else (m, exponent)
    return m if ratio >= 0 else -m, exponent


def multiplied(q: int, ratio: float, rounding: str = "UPWARD") -> int:
    """FixedPointMultiply and FixedPointMultiplyToNearest."""
    m, shift = fixed(ratio)
    product, right = (q << max(shift, 0)) * m, 31 + max(-shift, 0)
    half = 1 << (right - 1)
    return (product + (half - 1 if rounding == "TONEAREST" and product < 0 else half)) >> right


def retold(values, scale: float, zero: int, new_scale: float, new_zero: int, rounding: str = "UPWARD") -> np.ndarray:
    """RequantizeLower to int32, value by value."""
    ratio = float(np.float32(scale)) / float(np.float32(new_scale))
    known = {int(v): new_zero + multiplied(int(v) - zero, ratio, rounding) for v in np.unique(values)}
    return np.vectorize(known.get, otypes=["int64"])(values)


def clipped(values: np.ndarray, dtype: str = "int8") -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(values, info.min, info.max).astype(dtype)


PARAMETERS = [
    (1.0, 0, 1.0, 0, 2.0, 0),
    (0.031, 2, 0.017, -5, 0.057, 1),
    (0.3, 1, 0.1, -3, 0.2, 2),
    (0.1, 0, 0.2, 0, 0.4, -7),
    (1.0, 3, 1.0, 0, 6.0, 0),
    (0.5, -128, 0.25, 127, 0.25, 127),
]


@pytest.mark.parametrize("p", PARAMETERS)
@pytest.mark.parametrize("name", ["add", "subtract", "mul"])
def test_all_pairs_of_int8(name: str, p: tuple[float, ...]) -> None:
    x, y = (v.astype("int8") for v in PAIRS)
    if name == "mul":
        scale = np.float32(p[0]) * np.float32(p[2])
        expected = retold((PAIRS[0] - p[1]) * (PAIRS[1] - p[3]), scale, 0, p[4], p[5])
    else:
        left, right = retold(PAIRS[0], p[0], p[1], p[4], p[5]), retold(PAIRS[1], p[2], p[3], p[4], p[5])
        expected = left + right - p[5] if name == "add" else left - right + p[5]
    check(clipped(expected), binary(name, *p), x, y)


@pytest.mark.parametrize("p", PARAMETERS)
@pytest.mark.parametrize("alpha", [0.25, 0.1, 0.0, 1.5])
def test_leaky_relu_of_every_int8(alpha: float, p: tuple[float, ...]) -> None:
    q = retold(np.arange(-128, 128), p[0], p[1], p[4], p[5])
    below = [multiplied(int(v), alpha) + multiplied(int(p[5]), 1 - alpha) for v in q]
    expected = clipped(np.where(q < p[5], below, q))
    x = np.arange(-128, 128).astype("int8")
    check(expected, lambda v: qnn.leaky_relu(v, alpha, F(p[0]), Z(p[1]), F(p[4]), Z(p[5])), x)


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize(
    "scale, new_scale", [(1, 6), (1, 2), (3, 2), (0.3, 0.2), (1e-4, 0.7), (2.0**-40, 1), (5, 1e-3)]
)
def test_requantize_is_the_fixed_point_product(scale: float, new_scale: float, rounding: str) -> None:
    """1/6 of 3 is below one half as a fixed-point number: 0, and not 1."""
    rng = np.random.default_rng(3)
    x = np.concatenate([np.arange(-300, 300), rng.integers(-(2**27), 2**27, 400)]).astype("int32")
    expected = clipped(retold(x, scale, 3, new_scale, -2, rounding))
    check(expected, lambda v: qnn.requantize(v, F(scale), Z(3), F(new_scale), Z(-2), rounding=rounding), x)


def test_scales_for_each_channel_and_scales_that_are_not_known() -> None:
    scales, zeros = np.array([0.3, 1, 0.07], "float32"), np.array([1, 0, -4], "int32")
    x = np.arange(-128, 127).reshape(3, 85).astype("int8")
    expected = np.stack([clipped(retold(r, s, int(z), 0.2, 2)) for r, s, z in zip(x.astype(int), scales, zeros)])
    check(expected, lambda v: qnn.requantize(v, const(scales), const(zeros), F(0.2), Z(2), axis=0), x)
    given = np.float32(0.2), np.int32(2)
    check(
        expected, lambda v, s, z, t, u: qnn.requantize(v, s, z, t, u, axis=0), x, scales, zeros, *map(np.asarray, given)
    )
    record = qnn.requantize.definition(axis=0, out_dtype="int8")
    np.testing.assert_array_equal(lowered(record, [x, scales, zeros, *given], TensorType(x.shape, "int8")), expected)


def test_unsigned_results_of_64_bits_are_as_large_as_sums_can_be() -> None:
    check(np.uint64([0, 2, 2**31 - 1]), lambda x: qnn.requantize(x, F(1), Z(0), F(1), Z(0), out_dtype="uint64"),
          ints(-2, 2, 2**31 - 1, dtype="int32"))  # fmt: skip


def test_a_number_keeps_its_shape_beside_parameters_of_one_element() -> None:
    scale, zero = np.array([0.5], "float32"), np.array([3], "int32")
    check(np.int8(9), lambda x, s, z: qnn.add(x, x, *[s, z] * 3), np.int8(6), scale, zero)


@pytest.mark.parametrize("name", ["tanh", "exp", "sigmoid", "erf", "abs", "hardswish", "sqrt", "rsqrt", "log"])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_functions_give_one_result_in_all_executors(name: str) -> None:
    """Of 8-bit integers they are tables, so that nothing can differ."""
    x = np.arange(-128, 128).astype("int8")
    found = outputs(lambda v: getattr(qnn, name)(v, F(0.05), Z(-10), F(0.031), Z(-7)), x)
    for kind in ("graph", "vm", "canonical"):
        np.testing.assert_array_equal(found[kind], found["debug"], err_msg=kind)


# ---- signatures
def test_parameters_are_those_of_tvm() -> None:
    listed = lambda f: ", ".join(
        n if p.default is p.empty else f"{n}={p.default!r}" for n, p in inspect.signature(f).parameters.items()
    )
    assert listed(qnn.simulated_quantize) == "data, output_scale, output_zero_point, axis=-1, out_dtype='int8'"
    assert listed(qnn.simulated_dequantize) == "data, input_scale, input_zero_point, axis=-1, in_dtype='int8'"
    assert listed(qnn.leaky_relu).startswith("x, alpha, input_scale, input_zero_point, output_scale")
    assert set(inspect.signature(qnn.requantize_config).parameters) == {"rounding", "compute_dtype"}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "disable"])
def test_simulated_types_are_named_or_given_as_codes(dtype: str) -> None:
    x = np.linspace(-9, 9, 12).astype("float32").reshape(4, 3)
    code = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}[dtype]
    expected = x if dtype == "disable" else clipped(np.rint(x / np.float32(0.05)) + 3, dtype).astype("float32")
    for given in (dtype, const(code, "int32")):
        check(expected, lambda v, g=given: qnn.simulated_quantize(v, F(0.05), Z(3), out_dtype=g), x)
    back = lambda v: qnn.simulated_dequantize(v, F(0.05), Z(3), in_dtype=dtype)
    real = expected if dtype == "disable" else (expected - 3) * np.float32(0.05)
    for found in outputs(back, expected).values():
        np.testing.assert_allclose(found, real, rtol=1e-6)


def test_a_type_that_cannot_be_simulated() -> None:
    with pytest.raises(RelayError, match="float32"):
        qnn.simulated_quantize(relay.var("x", shape=(2,)), F(1), Z(0), out_dtype="float32")


def test_requantize_config_says_where_halves_go() -> None:
    build = lambda v: qnn.requantize(v, F(1), Z(0), F(2), Z(0))
    x = ints(-3, -1, 1, 3)
    with qnn.requantize_config(rounding="TONEAREST", compute_dtype="int64"):
        found = outputs(build, x)
        assert found.pop("loops").tolist() == [-1, 0, 1, 2]  # a kernel may outlive the configuration
        assert {kind: v.tolist() for kind, v in found.items()} == dict.fromkeys(found, [-2, -1, 1, 2])
        check([-1, 0, 1, 2], lambda v: qnn.requantize(v, F(1), Z(0), F(2), Z(0), rounding="UPWARD"), x)
    check([-1, 0, 1, 2], build, x)
    with pytest.raises(RelayError, match="UPWARD, TONEAREST"), qnn.requantize_config(rounding="DOWN"):
        pass


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_requantize_computes_in_the_type_that_is_asked_for(wide: str, rounding: str, dtype: str) -> None:
    x = np.array([-(2**30) - 1, -(2**25) - 1, -1003, -5, -3, 1, 2, 77, 2**24 + 1, 2**31 - 1], "int32")
    real = x.astype(wide) * np.dtype(wide).type(np.float64(np.float32(2.5)) / np.float64(np.float32(0.5)))
    if rounding == "UPWARD":
        real = np.floor(real + np.dtype(wide).type(0.5))
    moved = (real + np.dtype(wide).type(3)).astype("float64")  # the zero point is added in that type as well
    expected = np.clip(moved, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    check(expected, lambda v: qnn.requantize(v, F(2.5), Z(0), F(0.5), Z(3), -1, rounding, wide, dtype), x)
    with qnn.requantize_config(rounding=rounding, compute_dtype=wide) as config:
        assert qnn.current_requantize_config() is config and config.compute_dtype == wide
        found = outputs(lambda v: qnn.requantize(v, F(2.5), Z(0), F(0.5), Z(3), out_dtype=dtype), x)
        found.pop("loops")  # a kernel may outlive the configuration
        for value in found.values():
            np.testing.assert_array_equal(value, expected)
    assert qnn.current_requantize_config().compute_dtype == "int64"


def test_annotated_steps_are_limited_and_then_rounded_away_from_zero() -> None:
    """The formula of the quantize pass's compute: divide, limit, round, multiply."""
    annotated = OPERATORS["relay.op.annotation.simulated_quantize"].definition
    data = np.array([0.125, 0.375, -0.125, 9.0, -9.0], "float32")
    make = lambda x: annotated.call(x, F(0.25), F(-4), F(3.5), kind=1)
    check(np.array([0.25, 0.5, -0.25, 1.0, -1.0], "float32"), make, data)
