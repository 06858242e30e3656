"""FakeQuantizationToInteger: every rule computes on integers what the program computes on dequantized numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.analysis import list_op_freqs
from relaylab.ir import Expr, IRModule
from relaylab.support.errors import RelayError
from relaylab.transform import PASSES, run_pipeline
from relaylab.transform.quantized.fake_quantization_rules import RULES

t = relay.transform
RNG = np.random.default_rng(7)


def real(x: Expr, scale: float | np.ndarray = 0.05, zero: int | np.ndarray = 3, axis: int = -1) -> Expr:
    return relay.qnn.op.dequantize(x, relay.const(np.float32(scale)), relay.const(np.int32(zero)), axis=axis)


def whole(x: Expr, scale: float = 0.07, zero: int = -2, dtype: str = "int8") -> Expr:
    return relay.qnn.op.quantize(x, relay.const(np.float32(scale)), relay.const(np.int32(zero)), out_dtype=dtype)


def weights(*shape: int) -> Expr:
    return relay.const(RNG.integers(-20, 20, shape).astype("int8"))


def per_channel(x: Expr) -> Expr:
    """A convolution with a scale for each channel, a dequantized bias and nn.relu."""
    scales = np.array([0.01, 0.02, 0.03], "float32")
    w = real(weights(3, 4, 3, 3), scales, np.zeros(3, "int32"), axis=0)
    bias = real(relay.const(np.array([100, -50, 20], "int32")), scales * np.float32(0.05), np.zeros(3, "int32"), axis=0)
    return relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(real(x), w, padding=(1, 1)), bias))


nn = relay.nn
CASES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "reshape": lambda x, y: relay.reshape(real(x), (4, -1)),
    "squeeze": lambda x, y: relay.squeeze(real(x), [0]),
    "strided_slice": lambda x, y: relay.strided_slice(real(x), [0, 1], [1, 3], axes=[0, 1]),
    "transpose": lambda x, y: relay.transpose(real(x), (0, 2, 3, 1)),
    "expand_dims": lambda x, y: relay.expand_dims(real(x), 1),
    "broadcast_to": lambda x, y: relay.broadcast_to(real(x), (2, 4, 6, 6)),
    "nn.max_pool2d": lambda x, y: nn.max_pool2d(real(x), (2, 2)),
    "nn.batch_flatten": lambda x, y: nn.batch_flatten(real(x)),
    "nn.depth_to_space": lambda x, y: nn.depth_to_space(real(x), 2),
    "max": lambda x, y: relay.max(real(x), 1),
    "min": lambda x, y: relay.min(real(x), 1),
    "split": lambda x, y: relay.split(real(x), 2, 1)[1],
    "topk": lambda x, y: relay.topk(real(x), 3, 2, "values"),
    "image.resize2d": lambda x, y: relay.image.resize2d(real(x), (4, 9), method="linear"),
    "nn.relu": lambda x, y: nn.relu(real(x)),
    "clip": lambda x, y: relay.clip(real(x), -1.0, 2.0),
    "nn.pad": lambda x, y: nn.pad(real(x), ((0, 0), (0, 0), (1, 1), (1, 1)), 0.5),
    "nn.avg_pool2d": lambda x, y: nn.avg_pool2d(real(x), (2, 2)),
    "nn.global_avg_pool2d": lambda x, y: nn.global_avg_pool2d(real(x)),
    "nn.adaptive_avg_pool1d": lambda x, y: nn.adaptive_avg_pool1d(relay.reshape(real(x), (1, 4, 36)), 5),
    "mean": lambda x, y: relay.mean(real(x), [2, 3]),
    "nn.leaky_relu": lambda x, y: nn.leaky_relu(real(x), 0.125),
    "add": lambda x, y: real(x) + real(y, 0.03, 1),
    "subtract": lambda x, y: real(x) - relay.const(1.25),
    "multiply": lambda x, y: real(x) * real(y, 0.03, 1),
    "maximum": lambda x, y: relay.maximum(real(x), real(y, 0.03, 1)),
    "minimum": lambda x, y: relay.minimum(relay.const(0.75), real(y)),
    "concatenate": lambda x, y: relay.concatenate([real(x), real(y, 0.03, 1), real(x)], 1),
    "nn.bias_add": lambda x, y: per_channel(x),
    "nn.conv2d": lambda x, y: nn.conv2d(real(x), real(weights(3, 4, 3, 3), 0.02, 1), padding=(1, 1)),
    "nn.conv2d_transpose": lambda x, y: nn.conv2d_transpose(
        real(x), real(weights(4, 3, 3, 3), 0.02, 1), strides=(2, 2)
    ),
    "nn.dense": lambda x, y: nn.dense(relay.reshape(real(x), (4, 36)), real(weights(5, 36), 0.02, 1)),
    "nn.batch_matmul": lambda x, y: nn.batch_matmul(
        relay.reshape(real(x), (4, 6, 6)), relay.reshape(real(y), (4, 6, 6))
    ),
    **{
        name: lambda x, y, name=name: getattr(relay, name)(real(x, 0.02, -128))
        for name in ("exp", "log", "sqrt", "rsqrt")
    },
    **{name: lambda x, y, name=name: getattr(relay, name)(real(x)) for name in ("abs", "erf", "sigmoid", "tanh")},
}


def module(make: Callable[[Expr, Expr], Expr]) -> IRModule:
    x, y = (relay.var(name, shape=(1, 4, 6, 6), dtype="int8") for name in "xy")
    return t.InferType()(IRModule.from_expr(relay.Function([x, y], make(x, y))))


def run(mod: IRModule) -> np.ndarray:
    rng = np.random.default_rng(1)
    data = [rng.integers(-120, 127, (1, 4, 6, 6)).astype("int8") for _ in range(2)]
    return relay.create_executor("debug", mod).evaluate()(*data).numpy()


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_region_on_integers_gives_the_same_up_to_one_step(name: str) -> None:
    scale = 0.6 if "dense" in name or "matmul" in name or "conv" in name or "bias" in name else 0.07
    before = module(lambda x, y: whole(CASES[name](x, y), scale))
    history = run_pipeline(before, t.FakeQuantizationToInteger(hard_fail=True))
    assert history.error is None, history.error
    assert not any(stage.unaccounted() for stage in history)
    left = set(list_op_freqs(history.mod))
    assert not left & {"qnn.quantize", "qnn.dequantize"}
    np.testing.assert_allclose(run(history.mod).astype(int), run(before).astype(int), atol=1)


EACH = {"scale": np.array([0.03, 0.05, 0.08, 0.11], "float32"), "zero": np.array([3, -7, 0, 12], "int32"), "axis": 1}
WIDE = {"scale": np.array([0.09, 0.05, 0.04, 0.03, 0.02, 0.01], "float32"), "zero": np.full(6, 5, "int32"), "axis": 3}
CHANNELS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "relu": lambda x, y: nn.relu(real(x, **EACH)),
    "clip": lambda x, y: relay.clip(real(x, **EACH), -1.0, 2.0),
    "add": lambda x, y: real(x, **EACH) + real(y, **EACH),
    "subtract": lambda x, y: real(x, **EACH) - real(y, **WIDE),
    "multiply": lambda x, y: real(x, **WIDE) * relay.const(0.75),
    "maximum": lambda x, y: relay.maximum(real(x), real(y, **EACH)),
    "minimum": lambda x, y: relay.minimum(real(x, **WIDE), real(y, **EACH)),
}


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_scale_for_each_channel(name: str) -> None:
    before = module(lambda x, y: whole(CHANNELS[name](x, y)))
    after = t.FakeQuantizationToInteger(hard_fail=True)(before)
    assert not set(list_op_freqs(after)) & {"qnn.quantize", "qnn.dequantize"}
    np.testing.assert_allclose(run(after).astype(int), run(before).astype(int), atol=1)


SCALES = np.array([0.01, 0.05, 0.2, 0.4], "float32")
ASIDE: dict[str, Callable[[Expr], Expr]] = {
    "dense": lambda x: nn.dense(real(relay.reshape(x, (36, 4))), real(weights(4, 4), SCALES, np.zeros(4), 1)),
    "zeros": lambda x: nn.dense(real(relay.reshape(x, (36, 4))), real(weights(4, 4), 0.1, np.array([0, 9, -9, 3]), 1)),
    "conv2d": lambda x: nn.conv2d(real(x), real(weights(4, 4, 3, 3), SCALES, np.zeros(4), 1)),
    "transpose": lambda x: nn.conv2d_transpose(
        real(x), real(weights(4, 4, 3, 3), SCALES, np.zeros(4), 0), channels=4, kernel_size=(3, 3)
    ),
    "bias_add": lambda x: nn.bias_add(
        nn.conv2d(real(x), real(weights(4, 4, 3, 3), SCALES, np.zeros(4), 0)), relay.const(30 * SCALES), axis=3
    ),
}


@pytest.mark.parametrize("use_qat", [False, True])
@pytest.mark.parametrize("name", ASIDE)
def test_scales_that_are_not_those_of_the_result_s_channels_stay_in_floats(name: str, use_qat: bool) -> None:
    x = relay.var("x", shape=(1, 4, 6, 6), dtype="int8")
    before = t.InferType()(IRModule.from_expr(relay.Function([x], whole(ASIDE[name](x), 0.6))))
    after = t.FakeQuantizationToInteger(use_qat=use_qat)(before)
    values = RNG.integers(-128, 128, (1, 4, 6, 6)).astype("int8")
    expected, found = (
        relay.create_executor("debug", m).evaluate()(values).numpy().astype(int) for m in (before, after)
    )
    np.testing.assert_allclose(found, expected, atol=1)


def test_scales_of_channels_are_kept_to_the_end() -> None:
    scale, zero = relay.const(EACH["scale"]), relay.const(EACH["zero"])
    for step in (nn.relu, lambda x: relay.clip(x, 0.0, 6.0)):
        same = lambda x: relay.qnn.op.quantize(x, scale, zero, axis=1, out_dtype="int8")
        before = module(lambda x, y, step=step, same=same: same(step(real(x, **EACH))))
        after = t.FakeQuantizationToInteger(hard_fail=True)(before)
        assert not any(name.startswith("qnn.") for name in list_op_freqs(after))
        np.testing.assert_array_equal(run(after), run(before))


def test_sums_of_many_numbers_do_not_overflow() -> None:
    x = relay.var("x", shape=(1, 3, 224, 224), dtype="uint8")
    before = t.InferType()(IRModule.from_expr(whole(relay.mean(real(x, 2.0, 114)), 2.0, 114, "uint8")))
    after = t.FakeQuantizationToInteger(hard_fail=True)(before)
    data = np.full((1, 3, 224, 224), 250, "uint8")
    for mod in (before, after):
        assert relay.create_executor("graph", mod, target="llvm").evaluate()(data).numpy() == 250


def test_a_rule_that_a_program_registers_comes_first() -> None:
    from relaylab.transform.quantized.affine import TensorAffineType

    def negated(expr, types):
        found = types[expr.args[0]]
        assert isinstance(found, TensorAffineType)
        return [relay.negative(expr.args[0]), TensorAffineType(found.scale, relay.const(-3), found.dtype, found.axis)]

    def refused(expr, types):
        raise NotImplementedError("not today")

    key = "FTVMFakeQuantizationToInteger"
    with relay.testing.TempOpAttr("negative", key, negated):
        before = module(lambda x, y: whole(relay.negative(real(x))))
        after = t.FakeQuantizationToInteger(hard_fail=True)(before)
        assert set(list_op_freqs(after)) == {"negative", "qnn.requantize"}
        np.testing.assert_allclose(run(after).astype(int), run(before).astype(int), atol=1)
    with relay.testing.TempOpAttr("clip", key, refused):
        mod = module(lambda x, y: whole(relay.clip(real(x), 0.0, 1.0)))
        assert t.FakeQuantizationToInteger()(mod) is mod
        with pytest.raises(RelayError, match="clip: not today"):
            t.FakeQuantizationToInteger(hard_fail=True)(mod)


def test_what_has_no_rule_stays_or_is_an_error() -> None:
    mod = module(lambda x, y: whole(relay.sin(real(x))))
    assert t.FakeQuantizationToInteger()(mod) is mod
    with pytest.raises(RelayError, match="sin: there is no rule"):
        t.FakeQuantizationToInteger(hard_fail=True)(mod)


def test_numbers_that_were_never_quantized_are_no_error() -> None:
    x, first = relay.var("x", shape=(2, 3), dtype="int8"), relay.var("first", shape=(2, 3))
    parts = [whole(first), whole(real(x) + first), whole(relay.nn.relu(real(x)))]
    mod = t.InferType()(IRModule.from_expr(relay.Function([x, first], relay.Tuple(parts))))
    after = t.FakeQuantizationToInteger(hard_fail=True)(mod)
    assert list_op_freqs(after)["qnn.dequantize"] == 1 and list_op_freqs(mod)["qnn.dequantize"] == 2


def test_a_result_that_is_clamped_is_not_computed_with() -> None:
    """exp(x) may be beyond the range of the result of exp(x) - x; the region stays as it is."""
    mod = module(lambda x, y: whole(relay.exp(real(x)) - real(y)))
    assert t.FakeQuantizationToInteger()(mod) is mod


def test_products_that_are_not_quantized_again() -> None:
    weight = real(weights(3, 4, 3, 3), 0.02, 1)
    mod = module(lambda x, y: relay.sin(nn.conv2d(real(x), weight, padding=(1, 1))))
    assert t.FakeQuantizationToInteger()(mod) is mod
    after = t.FakeQuantizationToInteger(use_qat=True)(mod)
    assert {"qnn.conv2d", "qnn.dequantize", "sin"} == set(list_op_freqs(after))
    np.testing.assert_allclose(run(after), run(mod), rtol=1e-4, atol=1e-4)


def test_regions_one_after_another() -> None:
    conv = lambda x: whole(nn.relu(nn.conv2d(real(x, 0.3), real(weights(4, 4, 3, 3), 0.02, 1), padding=(1, 1))), 0.3)
    before = module(lambda x, y: whole(real(conv(conv(x)), 0.3) + real(y), 0.4))
    after = PASSES["FakeQuantizationToInteger"].make()(before)
    assert "nn.conv2d" not in list_op_freqs(after) and list_op_freqs(after)["qnn.conv2d"] == 2
    np.testing.assert_allclose(run(after).astype(int), run(before).astype(int), atol=3)


def test_products_of_equal_scales_along_an_axis_are_computed_on_integers() -> None:
    """A scale and a zero point for each column, all of them equal, are one scale and one zero point."""
    x = relay.var("x", shape=(3, 8), dtype="uint8")
    data = real(x, np.full(8, 0.1), np.full(8, 3), axis=1)
    mod = IRModule.from_expr(relay.Function([x], nn.dense(data, real(weights(4, 8), zero=0))))
    values = RNG.integers(0, 255, (3, 8)).astype("uint8")
    expected = relay.create_executor("debug", mod).evaluate()(values).numpy()
    mod = t.IntegerProducts()(mod)
    assert "qnn.dense" in mod.astext()
    np.testing.assert_allclose(relay.create_executor("graph", mod).evaluate()(values).numpy(), expected, rtol=1e-4)
