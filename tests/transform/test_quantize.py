"""relay.quantize: float programs on small integers, held against numpy's formulas, scipy, and the float programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.support.errors import RelayError
from relaylab.transform import run_pipeline
from relaylab.transform.quantized import thresholds
from relaylab.transform.quantized.quantize_annotate import ANNOTATE
from relaylab.transform.quantized.quantize_calibrate import simulated

quantize = relay.quantize
nn = relay.nn
SHAPE = (2, 3, 8, 8)


def residual() -> tuple[IRModule, dict[str, np.ndarray]]:
    """A small network with batch normalization, residual connections, poolings and a dense layer; He's weights."""
    rng = np.random.default_rng(0)
    params: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int, spread: float | None = None) -> relay.Expr:
        spread = np.sqrt(2 / np.prod(shape[1:])) if spread is None else spread
        params[name] = (rng.normal(size=shape) * spread).astype("float32")
        return relay.var(name, shape=shape)

    def conv(x: relay.Expr, name: str, out: int, width: int = 3) -> relay.Expr:
        channels = {"a": 3, "f": 8}.get(name, 4)
        x = nn.conv2d(x, weight(f"{name}_w", out, channels, width, width), padding=(width // 2, width // 2))
        return nn.bias_add(x, weight(f"{name}_b", out, spread=0.1))

    def norm(x: relay.Expr, name: str, size: int) -> relay.Expr:
        parts = [weight(f"{name}_{k}", size, spread=0.1) for k in ("gamma", "beta", "mean", "var")]
        params[f"{name}_gamma"] += 1
        params[f"{name}_var"] = np.abs(params[f"{name}_var"]) + 1
        return nn.batch_norm(x, *parts)[0]

    a = nn.relu(norm(conv(relay.var("data", shape=SHAPE), "a", 4), "n", 4))
    b = nn.relu(a + conv(nn.relu(conv(a, "b", 4)), "c", 4))
    c = nn.max_pool2d(b, (2, 2), strides=(2, 2))
    d = relay.concatenate([relay.clip(conv(c, "d", 4), 0.0, 6.0), conv(c, "e", 4, 1)], 1)
    e = nn.avg_pool2d(nn.relu(conv(d, "f", 8)), (2, 2), strides=(2, 2))
    out = nn.dense(nn.batch_flatten(nn.global_avg_pool2d(e)), weight("g_w", 5, 8))
    return IRModule.from_expr(relay.Function(relay.analysis.free_vars(out), out)), params


def batches() -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(3):
        yield {"data": rng.normal(size=SHAPE).astype("float32")}


def run(mod: IRModule, kind: str = "graph", **inputs: np.ndarray) -> np.ndarray:
    return relay.create_executor(kind, relay.transform.InferType()(mod)).evaluate()(**inputs).numpy()


@cache
def floats() -> tuple[np.ndarray, np.ndarray]:
    mod, params = residual()
    x = next(batches())["data"]
    return x, relay.build(mod, "llvm", params=params).run(data=x)


def test_options_have_the_defaults_of_relay():
    config = quantize.current_qconfig()
    assert (config.nbit_input, config.nbit_weight, config.nbit_activation) == (8, 8, 32)
    assert (config.dtype_input, config.dtype_weight, config.dtype_activation) == ("int8", "int8", "int32")
    assert (config.calibrate_mode, config.global_scale, config.weight_scale) == ("global_scale", 8.0, "power2")
    assert config.skip_dense_layer and list(config.skip_conv_layers) == [0] and not config.do_simulation
    assert config.round_for_shift and config.debug_enabled_ops is None and config.rounding == "UPWARD"
    assert (config.calibrate_chunk_by, config.partition_conversions) == (-1, "disabled")
    with quantize.qconfig(nbit_input=4) as outer:
        with quantize.qconfig(skip_conv_layers=None):
            assert quantize.current_qconfig().nbit_input == 8
        assert quantize.current_qconfig() is outer and outer.get_nbit_by_kind(quantize.QAnnotateKind.INPUT) == 4
        assert outer.get_dtype_by_kind(3) == "int32" and quantize.kind2str(2) == "weight"
    assert quantize.current_qconfig() is config


@pytest.mark.parametrize(
    "options, words",
    [
        ({"nbit_inputs": 8}, "did you mean `nbit_input`"),
        ({"nbit_input": "8"}, "`nbit_input` of qconfig is int"),
        ({"nbit_input": 9}, "between 2 and 8"),
        ({"calibrate_mode": "kl"}, "kl_divergence"),
        ({"weight_scale": "min"}, "power2, max"),
        ({"rounding": "DOWN"}, "UPWARD"),
        ({"partition_conversions": True}, "is str"),
        ({"dtype_input": "float16"}, "int8"),
        ({"global_scale": 0.0}, "above 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], words: str):
    with pytest.raises(RelayError, match=words):
        with quantize.qconfig(**options):
            quantize.calibrate()


CONFIGS: list[dict[str, object]] = [
    {"global_scale": 8.0, "weight_scale": "max"},
    {"calibrate_mode": "percentile", "weight_scale": "max", "skip_conv_layers": [], "skip_dense_layer": False},
    {"calibrate_mode": "percentile", "rounding": "TONEAREST", "calibrate_chunk_by": 3},
    {"calibrate_mode": "percentile", "weight_scale": "max", "partition_conversions": "enabled"},
]


@pytest.mark.parametrize("options", CONFIGS, ids=range(len(CONFIGS)))
def test_integers_give_what_the_simulation_gives_and_both_are_near_the_floats(options: dict[str, object]):
    mod, params = residual()
    x, exact = floats()
    with quantize.qconfig(**options):
        whole = quantize.quantize(mod, params, dataset=batches())
    with quantize.qconfig(**{**options, "do_simulation": True}):
        real = quantize.quantize(mod, params, dataset=batches())
    dtypes = {t for f in relay.transform.InferType()(whole).functions.values() for t in relay.analysis.all_dtypes(f)}
    assert {"int8", "int32"} <= dtypes
    compiled = "graph" if len(whole.functions) == 1 else "vm"
    found, expected = run(whole, compiled, data=x), run(real, "debug", data=x)
    step = np.abs(exact).max() / 16  # integer means are cut off, as in TVM: that is the largest part
    assert np.abs(found - expected).max() < step and np.abs(found - exact).max() < 2 * step
    np.testing.assert_array_equal(found.argmax(1), exact.argmax(1))
    np.testing.assert_allclose(found, run(whole, "debug", data=x), rtol=1e-5, atol=1e-5)


def test_one_convolution_is_the_formula():
    """With scales that are powers of two, integers and simulation are the same numbers as numpy's."""
    rng = np.random.default_rng(2)
    x, w = (rng.normal(size=s).astype("float32") for s in ((1, 3, 5, 5), (4, 3, 1, 1)))
    data = relay.var("data", shape=x.shape)
    mod = IRModule.from_expr(relay.Function([data], nn.conv2d(data, relay.const(w))))
    with quantize.qconfig(skip_conv_layers=[], global_scale=4.0):
        whole = quantize.quantize(mod)
    away = lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5)
    greatest = 2.0 ** np.ceil(np.log2(np.abs(w).max()))
    a, b = np.clip(away(x * 32), -127, 127), np.clip(away(w * 128 / greatest), -127, 127)
    sums = np.einsum("nihw,oi->nohw", a, b[:, :, 0, 0])  # of steps of greatest / (32 * 128)
    shift = int(np.log2(128 / greatest))  # to steps of 1 / 32
    kept = np.clip(np.floor((sums + 2.0 ** (shift - 1)) / 2.0**shift), -127, 127) / 32
    np.testing.assert_array_equal(run(whole, data=x), kept.astype("float32"))


@pytest.mark.parametrize("types", [{"dtype_input": "int16", "nbit_input": 14}, {"dtype_weight": "int16"}], ids=str)
def test_a_product_of_two_inputs_has_the_type_of_inputs(types: dict[str, object]):
    x, y = relay.var("x", shape=(1, 4, 8)), relay.var("y", shape=(1, 5, 8))
    mod = IRModule.from_expr(relay.Function([x, y], nn.batch_matmul(x, y)))
    a, b = (np.random.default_rng(3).normal(size=s).astype("float32") for s in ((1, 4, 8), (1, 5, 8)))
    with quantize.qconfig(global_scale=4.0, **types):
        whole = quantize.quantize(mod)
    np.testing.assert_allclose(run(whole, x=a, y=b), a @ b.transpose(0, 2, 1), atol=0.3)


@pytest.mark.parametrize("limits", [(0.0, np.inf), (-np.inf, 1.0)])
def test_a_clip_may_have_no_limit(limits: tuple[float, float]):
    data = relay.var("data", shape=(1, 3, 5, 5))
    w = np.random.default_rng(4).normal(size=(4, 3, 1, 1)).astype("float32")
    mod = IRModule.from_expr(relay.Function([data], relay.clip(nn.conv2d(data, relay.const(w)), *map(float, limits))))
    with quantize.qconfig(skip_conv_layers=[], weight_scale="max"):
        whole = quantize.quantize(mod)
    x = np.linspace(-1, 1, 75, dtype="float32").reshape(1, 3, 5, 5)
    np.testing.assert_allclose(run(whole, data=x), run(mod, data=x), atol=0.2)


def test_the_tutorial():
    """The shape of "Deploy a Quantized Model": calibrated by divergence, and built."""
    mod, params = residual()
    x, exact = floats()

    def calibrate_dataset():
        yield from batches()

    with quantize.qconfig(calibrate_mode="kl_divergence", weight_scale="max"):
        whole = quantize.quantize(mod, params, dataset=calibrate_dataset())
    with relay.build_config(opt_level=3):
        lib = relay.build(whole, target="llvm")
    found = lib.run(data=x)
    assert np.abs(found - exact).max() < np.abs(exact).max() / 8
    np.testing.assert_array_equal(found.argmax(1), exact.argmax(1))


def test_statistics_are_those_of_the_float_program():
    mod, params = residual()
    mod = relay.transform.InferType()(
        quantize.annotate()(quantize.partition()(quantize.prerequisite_optimize(mod, params)))
    )
    (all_at_once,) = quantize.collect_stats(mod, list(batches()))
    by_two = [v for part in quantize.collect_stats(mod, batches(), 2) for v in part]
    assert len(all_at_once) == len(by_two) == sum(n.attrs.kind != 2 for n in simulated(mod["main"]))
    for a, b in zip(all_at_once, by_two):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    w, b, *_ = (params[k] for k in ("a_w", "a_b"))
    gamma, beta, mean, var = (params[f"n_{k}"][:, None, None] for k in ("gamma", "beta", "mean", "var"))
    x = np.concatenate([b["data"] for b in batches()])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    first = np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None]
    first = np.maximum((first - mean) / np.sqrt(var + 1e-5) * gamma + beta, 0)
    np.testing.assert_allclose(all_at_once[0], first.reshape(-1), rtol=1e-3, atol=1e-4)


def slow_divergence(values: np.ndarray, bins: int, levels: int) -> float:
    """Migacz's search, bin by bin, with the divergence of Kullback and Leibler as it is defined."""
    greatest = np.abs(values).max()
    counts, edges = np.histogram(values, bins, range=(-greatest, greatest))
    middle, best, found = bins // 2, np.inf, 0.0
    for k in range(levels // 2, middle + 1):
        inner = counts[middle - k : middle + k + 1]
        p = inner.astype(float)
        p[0] += counts[: middle - k].sum()
        p[-1] += counts[middle + k + 1 :].sum()
        q, merged = np.zeros(len(p)), len(p) // levels
        for j in range(levels):
            part = slice(j * merged, len(p) if j == levels - 1 else (j + 1) * merged)
            full = p[part] != 0
            q[part] = np.where(full, inner[part].sum() / max(full.sum(), 1), 0)
        smooth = lambda v: np.where(v == 0, 1e-4, v - 1e-4 * (v == 0).sum() / max((v != 0).sum(), 1))
        p, q = smooth(p), smooth(q)
        p, q = p / p.sum(), q / q.sum()
        value = (p * np.log(p / q)).sum() if (p > 0).all() and (q > 0).all() else np.inf
        if value < best:
            best, found = value, edges[middle + k + 1]
    return float(found)


@pytest.mark.parametrize("kind", ["normal", "laplace", "relu", "outlier"])
def test_thresholds_of_least_divergence(kind: str):
    rng = np.random.default_rng(3)
    values = {
        "normal": rng.normal(size=2000),
        "laplace": rng.laplace(size=2000),
        "relu": np.maximum(rng.normal(size=2000), 0),
        "outlier": np.append(rng.normal(size=2000), 40.0),
    }[kind]
    assert thresholds.by_divergence(values, 401, 15) == pytest.approx(slow_divergence(values, 401, 15))
    assert thresholds.by_divergence(np.zeros(5)) == 0.0
    assert thresholds.by_percentile(values, 0.9) == pytest.approx(np.quantile(np.abs(values), 0.9), rel=2e-2)


def dense_program(weight: object = None) -> IRModule:
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    return IRModule.from_expr(nn.dense(x, w if weight is None else relay.const(np.asarray(weight, "float32"))))


@pytest.mark.parametrize(
    "options, dataset, words",
    [
        ({"calibrate_mode": "kl_divergence"}, None, "needs a data set"),
        ({"calibrate_mode": "percentile"}, [], "has no batches"),
        ({"calibrate_mode": "percentile"}, [np.zeros((1, 4))], "a dict of arrays by name"),
        ({"calibrate_mode": "percentile"}, [{"y": np.zeros((1, 4))}], "`y`"),
        ({"calibrate_mode": "percentile"}, [{"x": np.zeros((1, 5))}], "shape"),
        ({"calibrate_mode": "percentile"}, [{"x": np.full((1, 4), np.nan)}], "not all finite"),
        ({"partition_conversions": "fully_integral", "debug_enabled_ops": []}, None, "computes on floats"),
    ],
)
def test_wrong_data_sets_are_refused(options: dict[str, object], dataset: object, words: str):
    with quantize.qconfig(skip_dense_layer=False, **options), pytest.raises(RelayError, match=words):
        quantize.quantize(dense_program(np.ones((3, 4))), dataset=dataset)


def test_parts_of_the_work_are_refused_out_of_order():
    mod = relay.transform.QuantizeAnnotate(skip_dense_layer=False)(dense_program(np.ones((3, 4))))
    with pytest.raises(RelayError, match="QuantizeCalibrate"):
        relay.transform.QuantizeRealize()(mod)
    with pytest.raises(RelayError, match="2 thresholds for 1"):
        relay.transform.QuantizeCalibrate(thresholds=[1.0, 2.0])(mod)
    with pytest.raises(RelayError, match="not finite"):
        quantize_dense = quantize.qconfig(skip_dense_layer=False)
        with quantize_dense:
            quantize.quantize(dense_program(np.full((3, 4), np.inf)))


def test_programs_of_unknown_extents_are_calibrated_by_the_virtual_machine():
    x = relay.var("x", shape=(relay.Any(), 4))
    mod = IRModule.from_expr(relay.Function([x], nn.dense(x, relay.const(np.eye(3, 4, dtype="float32")))))
    data = np.linspace(-2, 2, 8, dtype="float32").reshape(2, 4)
    with quantize.qconfig(skip_dense_layer=False, calibrate_mode="percentile", weight_scale="max"):
        whole = quantize.quantize(mod, dataset=[{"x": data}, {"x": data[:1]}])
    np.testing.assert_allclose(run(whole, "vm", x=data), data[:, :3], atol=0.05)


def test_fully_integral_programs_compute_between_conversions_only():
    with quantize.qconfig(skip_dense_layer=False, partition_conversions="fully_integral"):
        mod = quantize.quantize(dense_program(np.eye(3, 4)))
    middle = mod["quantized_main"]
    assert str(middle.params[0].type_annotation) == "Tensor[(1, 4), int8]"
    assert set(relay.analysis.list_op_freqs(mod)) >= {"nn.dense", "round", "cast"}
    x = np.array([[0.5, -1.25, 3.0, 9.0]], "float32")
    np.testing.assert_array_equal(run(mod, "vm", x=x), run(mod, "debug", x=x))
    np.testing.assert_allclose(run(mod, "vm", x=x), x[:, :3], atol=8 / 128 + 3 / 128)


def test_weights_that_are_not_known_stay_in_floats_and_only_main_is_changed():
    mod = dense_program()
    mod["helper"] = relay.Function(
        [x := relay.var("x", shape=(2, 2))], nn.dense(x, relay.const(np.ones((2, 2), "float32")))
    )
    with quantize.qconfig(skip_dense_layer=False):
        after = quantize.quantize(mod)
    assert relay.analysis.list_op_freqs(after) == relay.analysis.list_op_freqs(mod)


def test_rules_of_ones_own():
    @quantize.register_annotate_function("nn.leaky_relu")
    def moved(call, args, ctx):
        if not isinstance(args[0], quantize.QAnnotateExpr) or ctx.check_to_skip(call):
            return None
        small = quantize.attach_simulated_quantize(args[0].realize(), quantize.QAnnotateKind.INPUT)
        return quantize.QAnnotateExpr(relay.Call(call.op, [small], call.attrs), quantize.QAnnotateKind.ACTIVATION)

    try:
        x = relay.var("x", shape=(1, 4))
        mod = IRModule.from_expr(nn.leaky_relu(nn.dense(x, relay.const(np.ones((3, 4), "float32")))))
        with quantize.qconfig(skip_dense_layer=False, do_simulation=True):
            after = quantize.quantize(mod)
        assert len(simulated(after["main"])) == 2  # the weight is known: its simulation is folded
    finally:
        del ANNOTATE["nn.leaky_relu"]


def test_the_passes_are_seen_like_others():
    mod, params = residual()
    mod = quantize.prerequisite_optimize(mod, params)
    history = run_pipeline(mod, [quantize.partition(), quantize.annotate(), quantize.calibrate(), quantize.realize()])
    assert history.error is None
    assert [s.name for s in history] == [
        *("QuantizePartition", "QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize")
    ]
    assert all(s.changed and not s.unaccounted() for s in history)


def test_conversions_that_results_share_stay_shared():
    x = relay.var("x", shape=(4,))
    scale, zero = relay.const(0.1), relay.const(0)
    back = relay.qnn.dequantize(relay.nn.relu(relay.qnn.quantize(x, scale, zero)), scale, zero)
    mod = IRModule.from_expr(relay.Function([x], relay.Tuple([relay.cast(back, "float16"), back])))
    half, whole = relay.transform.PartitionConversions()(mod)["dequantize_outputs"].body.fields
    assert half.args[0] is whole
