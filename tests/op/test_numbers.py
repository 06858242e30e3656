"""docs/numbers.md as a table: each operation on special values, in each data type, by each executor.

The judge is numpy: in float64 (float32 and float16 are rounded from it), in Python's integers reduced to the width, or
a formula of the page that is written here. `EXACT` operations give that number, NaN for NaN and zeros with their
signs; the others are within `RELATIVE`. Executors: the interpreter, constant folding, the loop evaluator, the graph
executor on three targets, and the virtual machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from op_cases import infer, lowered, type_of

from relaylab import relay
from relaylab.ir import Call, Constant, Function, IRModule, Tuple
from relaylab.support.errors import RelayError
from relaylab.transform import FoldConstant, InferType, PassContext

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")
pytestmark = pytest.mark.slow

EXECUTORS = ("interpreter", "fold", "loop", *TARGETS, "vm")
RELATIVE = {"float16": 2e-3, "float32": 1.5e-6, "float64": 4e-15}  # 8 ulp, but for float16: rounded twice


def specials(dtype: str) -> np.ndarray:
    """Numbers of a data type at which operations differ."""
    if dtype in FLOATS:
        f = np.finfo(dtype)
        tiny = [f.tiny, -f.tiny, f.smallest_subnormal, -f.smallest_subnormal, f.tiny / 4, -3 * f.tiny / 8]
        numbers = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.4999, 3, -7, 88.5, -87.5, -100, 127.5, 255.5]
        numbers += [np.nan, np.inf, -np.inf, float(f.max), -float(f.max), *tiny, 65504, 2.0**31, -(2.0**63), 1e30]
        with np.errstate(all="ignore"):
            return np.array(numbers, "float64").astype(dtype)
    i = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 7, 8, i.bits - 1, i.bits, i.max, i.max - 1, i.min, i.min + 1, -1, -2, -3, -7]
    return np.array([n for n in dict.fromkeys(numbers) if i.min <= n <= i.max], dtype)


def wrapped(function: Callable[[int, int], int]):
    """A function of Python's integers on arrays, reduced to the width of the type."""

    def on_arrays(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        i = np.iinfo(x.dtype)
        pairs = [(int(a), int(c)) for a, c in zip(x.ravel(), (x if y is None else y).ravel())]
        values = [(function(a, c) - i.min) % 2**i.bits + i.min for a, c in pairs]
        return np.array(values, x.dtype).reshape(x.shape)

    return on_arrays


def truncated(a: int, c: int) -> int:
    return 0 if c == 0 else abs(a) // abs(c) * (1 if (a < 0) == (c < 0) else -1)


def power(a: int, c: int) -> int:
    if c >= 0:
        return pow(a, c, 2**64)
    return {1: 1, -1: -1 if c % 2 else 1}.get(a, 0)


def shifted(a: int, c: int, bits: int, left: bool) -> int:
    far = not 0 <= c < bits
    if left:
        return 0 if far else a << c
    return (-1 if a < 0 else 0) if far else a >> c


def shift(left: bool):
    return lambda x, y: wrapped(lambda a, c: shifted(a, c, np.iinfo(x.dtype).bits, left))(x, y)


def to_integer(dtype: str):
    """Towards zero, NaN is 0, what is outside becomes the nearest end (LLVM's fptosi.sat and fptoui.sat)."""
    i = np.iinfo(dtype)
    whole = lambda v: 0 if math.isnan(v) else (i.max if v > 0 else i.min) if math.isinf(v) else math.trunc(v)
    return lambda x: np.array([min(max(whole(float(v)), i.min), i.max) for v in x], dtype)


def away(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    return np.copysign(np.trunc(size) + (size - np.trunc(size) >= 0.5), x)


EXACT = {
    "negative": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": away,
    "copy": np.positive, "nn.relu": lambda x: np.maximum(x, 0), "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "sqrt": np.sqrt, "sign": lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0)),
}  # fmt: skip
ROUNDED = {
    "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(math.erf), "rsqrt": lambda x: 1 / np.sqrt(x),
    "atan": np.arctan, "sinh": np.sinh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "tan": np.tan, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos,
}  # fmt: skip
PAIRS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "equal": np.equal,
    "not_equal": np.not_equal, "greater_equal": np.greater_equal,
}  # fmt: skip
REMAINDERS = {
    "floor_mod": np.mod, "mod": np.fmod, "trunc_mod": np.fmod, "trunc_divide": lambda x, y: np.trunc(x / y),
    "floor_divide": np.floor_divide,
}  # fmt: skip
WHOLE = {
    "add": wrapped(lambda a, c: a + c), "subtract": wrapped(lambda a, c: a - c),
    "multiply": wrapped(lambda a, c: a * c),
    "divide": wrapped(truncated), "trunc_divide": wrapped(truncated),
    "floor_divide": wrapped(lambda a, c: a // c if c else 0), "floor_mod": wrapped(lambda a, c: a % c if c else 0),
    "trunc_mod": wrapped(lambda a, c: a - truncated(a, c) * c if c else 0),
    "mod": wrapped(lambda a, c: a - truncated(a, c) * c if c else 0),
    "power": wrapped(power), "left_shift": shift(True), "right_shift": shift(False),
    "maximum": np.maximum, "minimum": np.minimum, "bitwise_and": np.bitwise_and, "bitwise_xor": np.bitwise_xor,
}  # fmt: skip
WHOLE_UNARY = {
    "negative": wrapped(lambda a, _: -a), "abs": wrapped(lambda a, _: abs(a)), "sign": np.sign, "round": np.positive,
    "bitwise_not": np.invert, "nn.relu": lambda x: np.maximum(x, 0),
}  # fmt: skip


def results(executor: str, make: Callable[..., list], values: list[np.ndarray]) -> list[np.ndarray]:
    """What the expressions that `make` gives of some arguments are, by one executor."""
    if executor == "fold":
        mod = IRModule.from_expr(Function([], Tuple(make(*(relay.const(v, v.dtype.name) for v in values)))))
        with PassContext(opt_level=3):
            folded = FoldConstant()(InferType()(mod))["main"].body
        fields = folded.fields if isinstance(folded, Tuple) else [folded]
        assert all(isinstance(f, Constant) for f in fields), folded
        return [f.data.numpy() for f in fields]
    params = [relay.var(f"x{k}", shape=v.shape, dtype=v.dtype.name) for k, v in enumerate(values)]
    mod = IRModule.from_expr(Function(params, Tuple(make(*params))))
    if executor == "loop":
        return [loop_value(e, dict(zip(params, values))) for e in InferType()(mod)["main"].body.fields]
    kind, target = ("debug", "llvm") if executor == "interpreter" else ("graph", executor)
    if executor == "vm":
        kind, target = "vm", "llvm"
    found = relay.create_executor(kind, mod=mod, target=target).evaluate()(*values)
    return [np.asarray(v.numpy()) for v in found]


def loop_value(expr, values) -> np.ndarray:
    """A call, and those that it is of, by the loop evaluator."""
    params = {p.name_hint: v for p, v in values.items()}

    def value(e):
        if isinstance(e, Call):
            args = [value(a) for a in e.args]
            record = e.attrs if e.attrs is not None and hasattr(e.attrs, "lower") else e.op.definition()
            return lowered(record, args, infer(record, *map(type_of, args)))
        return e.data.numpy() if isinstance(e, Constant) else params[e.name_hint]

    return value(expr)


def check(table: dict[str, tuple[Callable, np.ndarray, bool]], executor: str, values: list[np.ndarray], dtype: str):
    """`table`: for each name how its expression is made, what it should give, and whether exactly."""
    got = results(executor, lambda *args: [make(*args) for make, _, _ in table.values()], values)
    wrong = []
    for (name, (_, want, exact)), found in zip(table.items(), got, strict=True):
        assert (found.dtype, found.shape) == (want.dtype, want.shape), name
        same = (found == want) | ((found != found) & (want != want))
        if want.dtype.kind == "f":
            if exact:
                same &= (np.signbit(found) == np.signbit(want)) | (want != want) | (exact == "any zero")
            else:
                least = 2.0**-127 if name == "sigmoid" else np.finfo(want.dtype).smallest_subnormal * 2
                with np.errstate(all="ignore"):
                    near = (
                        np.abs(found.astype("float64") - want)
                        <= RELATIVE[dtype] * np.abs(want.astype("float64")) + least
                    )
                same |= near
        if not same.all():
            at = np.flatnonzero(~same.ravel())
            shown = [
                (*(v.ravel()[k].item() for v in values), found.ravel()[k].item(), want.ravel()[k].item())
                for k in at[:4]
            ]
            wrong.append(f"{name}: (arguments, found, wanted) {shown}, {len(at)} in all")
    assert not wrong, f"{executor}, {dtype}:\n" + "\n".join(wrong)


def rounded(truth: Callable, dtype: str, *values: np.ndarray) -> np.ndarray:
    """A formula in float64, rounded to a data type; tests stay bools."""
    with np.errstate(all="ignore"):
        found = np.asarray(truth(*(v.astype("float64") for v in values)))
        return found if found.dtype == bool else found.astype(dtype)


def op(name: str) -> Callable:
    return relay.nn.relu if name == "nn.relu" else getattr(relay, name)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_one_float(dtype, executor):
    x = specials(dtype)
    table = {n: (op(n), rounded(f, dtype, x), "any zero" if n == "nn.relu" else True) for n, f in EXACT.items()}
    table |= {n: (op(n), rounded(f, dtype, x), False) for n, f in ROUNDED.items()}
    table["clip"] = (lambda e: relay.clip(e, -1.0, 2.0), rounded(lambda v: np.clip(v, -1, 2), dtype, x), True)
    table["leaky"] = (
        lambda e: relay.nn.leaky_relu(e, 0.5),
        rounded(lambda v: np.where(v > 0, v, v * 0.5), dtype, x),
        True,
    )
    check(table, executor, [x], dtype)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two_floats(dtype, executor):
    one = specials(dtype)
    x, y = np.repeat(one, one.size), np.tile(one, one.size)
    truth = lambda f: rounded(f, dtype, x, y)
    table = {n: (op(n), truth(f), "any zero" if n in ("maximum", "minimum") else True) for n, f in PAIRS.items()}
    table |= {n: (op(n), truth(f), False) for n, f in REMAINDERS.items()}
    table["power"] = (relay.power, truth(np.power), False)
    check(table, executor, [x, y], dtype)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers(dtype, executor):
    one = specials(dtype)
    x, y = np.repeat(one, one.size), np.tile(one, one.size)
    table = {n: (op(n), np.asarray(f(x, y)), True) for n, f in WHOLE.items()}
    table |= {n: ((lambda a, c, n=n: op(n)(a)), np.asarray(f(x)), True) for n, f in WHOLE_UNARY.items()}
    with np.errstate(all="ignore"):
        for target in INTEGERS:
            table[f"to {target}"] = ((lambda a, c, t=target: relay.cast(a, t)), x.astype(target), True)
        for target in FLOATS:
            table[f"to {target}"] = ((lambda a, c, t=target: relay.cast(a, t)), x.astype(target), False)
    check(table, executor, [x, y], "float16")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_conversions_of_floats(dtype, executor):
    x = specials(dtype)
    table = {t: ((lambda e, t=t: relay.cast(e, t)), to_integer(t)(x), True) for t in INTEGERS}
    with np.errstate(all="ignore"):
        table |= {t: ((lambda e, t=t: relay.cast(e, t)), x.astype(t), True) for t in (*FLOATS, "bool")}
    check(table, executor, [x], dtype)


ROWS = np.array(
    [[1, np.nan, 3, np.nan], [np.inf, -np.inf, 1, 2], [np.inf, 1, 2, np.inf], [-0.0, 2, -1, 1], [1e-41, 1e-41, 0, -0.0]]
)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_reductions_of_floats(dtype, executor):
    x = ROWS.astype(dtype)
    table = {}
    with np.errstate(all="ignore"):
        for name in ("sum", "prod", "max", "min", "mean"):
            want = getattr(np, name)(x, 1).astype(dtype)
            table[name] = ((lambda e, n=name: getattr(relay, n)(e, axis=1)), want, False)
        for name in ("argmax", "argmin"):
            want = getattr(np, name)(x, 1).astype("int32")
            table[name] = ((lambda e, n=name: getattr(relay, n)(e, axis=1)), want, True)
        spread = np.exp(x - x.max(1, keepdims=True))
        table["softmax"] = ((lambda e: relay.nn.softmax(e, axis=1)), spread / spread.sum(1, keepdims=True), False)
    check(table, executor, [x], dtype)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ("int8", "uint8", "int32"))
def test_reductions_of_integers_wrap_and_means_are_cut(dtype, executor):
    most = np.iinfo(dtype).max
    x = np.array([[most, most, 1], [1, 2, 2], [0, most, 0]], dtype)
    if dtype != "uint8":
        x = np.concatenate([x, np.array([[-1, -1, -2], [-most - 1, -1, 0]], dtype)])
    with np.errstate(all="ignore"):
        total = x.sum(1, dtype=dtype)
        table = {n: ((lambda e, n=n: getattr(relay, n)(e, axis=1)), getattr(np, n)(x, 1), True) for n in ("max", "min")}
        table["sum"] = ((lambda e: relay.sum(e, axis=1)), total, True)
        table["prod"] = ((lambda e: relay.prod(e, axis=1)), x.prod(1, dtype=dtype), True)
        mean = np.array([truncated(int(t), 3) for t in total], dtype)
        table["mean"] = ((lambda e: relay.mean(e, axis=1)), mean, True)
    check(table, executor, [x], "float32")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_reductions_of_nothing(executor):
    for dtype in ("float32", "int32", "bool"):
        x = np.zeros((2, 0), dtype)
        ends = {"float32": (-np.inf, np.inf), "int32": (-(2**31), 2**31 - 1), "bool": (False, True)}[dtype]
        wanted = (
            {"any": False, "all": True} if dtype == "bool" else {"sum": 0, "prod": 1, "max": ends[0], "min": ends[1]}
        )
        wanted |= {"float32": {"mean": np.nan}, "int32": {"mean": 0}}.get(dtype, {})
        table = {
            n: ((lambda e, n=n: getattr(relay, n)(e, axis=1)), np.full(2, v, dtype), True) for n, v in wanted.items()
        }
        check(table, executor, [x], "float32")


@pytest.mark.parametrize("name", ("argmax", "argmin"))
def test_nothing_has_no_extreme(name):
    x = relay.var("x", shape=(2, 0))
    mod = IRModule.from_expr(Function([x], getattr(relay, name)(x, axis=1)))
    for kind in ("debug", "graph", "vm"):
        with pytest.raises(RelayError):
            relay.create_executor(kind, mod=mod, target="llvm").evaluate()(np.zeros((2, 0), "float32"))


@pytest.mark.parametrize("executor", [e for e in EXECUTORS if e != "loop"])
def test_float16_is_rounded_by_operators_or_by_kernels(executor):
    x = np.array([65504, 1.001, 0.1, 1e-7, 3.3, -40000, 2049], "float16")
    make = lambda e: (e * relay.const(2.5, "float16")) * relay.const(0.3, "float16")
    factors = np.float16(2.5), np.float16(0.3)
    with np.errstate(over="ignore"):
        by_operators = (x * factors[0]) * factors[1]
        by_kernel = (x.astype("float32") * factors[0] * factors[1]).astype("float16")
    assert not np.array_equal(by_operators, by_kernel)
    folded = executor in ("interpreter", "fold")
    check({"chain": (make, by_operators if folded else by_kernel, True)}, executor, [x], "float16")


@pytest.mark.parametrize("executor", [e for e in EXECUTORS if e != "loop"])
def test_a_product_and_a_sum_round_once_or_twice(executor):
    x = np.random.default_rng(3).uniform(-2, 2, 300).astype("float32")
    y, exact = -(x * x), x.astype("float64") ** 2 - (x * x).astype("float64")
    (found,) = results(executor, lambda a, c: [a * a + c], [x, y])
    assert ((found == 0) | (found == exact.astype("float32"))).all()
    if executor in ("interpreter", "fold"):
        assert not found.any()


@pytest.mark.parametrize("kind", ("debug", "vm"))
def test_nan_is_the_largest_when_sorted(kind):
    x = np.array([[3, np.nan, 1, -np.inf, np.inf, 0, np.nan]], "float32")
    e = relay.var("x", shape=x.shape)
    order = np.argsort(x, 1, kind="stable")
    made = Tuple([
        relay.sort(e, axis=1), relay.argsort(e, axis=1, dtype="int32"), relay.sort(e, axis=1, is_ascend=False),
        relay.topk(e, k=2, axis=1, ret_type="indices"),
    ])  # fmt: skip
    found = relay.create_executor(kind, mod=IRModule.from_expr(Function([e], made)), target="llvm").evaluate()(x)
    wanted = [np.sort(x, 1), order, np.sort(x, 1)[:, ::-1], [[1, 6]]]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("executor", [e for e in EXECUTORS if e not in ("loop", "fold")])
def test_quantize_takes_halves_to_even_and_divides_in_float32(executor):
    x = np.array([-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 1e30, -1e30, np.inf, -np.inf, np.nan], "float32")
    near = (np.arange(-100, 100) * 0.05).astype("float32")
    for data, scale in ((x, 0.5), (near, 0.1)):
        whole = np.rint(data / np.float32(scale))
        want = np.nan_to_num(np.clip(whole, -128, 127), nan=0).astype("int8")
        make = lambda e, scale=scale: relay.qnn.op.quantize(e, relay.const(scale), relay.const(0), out_dtype="int8")
        check({"quantize": (make, want, True)}, executor, [data], "float32")


def with_and_without_minimal(make: Callable, x: np.ndarray) -> list[np.ndarray]:
    found = []
    for minimal in (True, False):
        e = relay.var("x", shape=x.shape)
        with PassContext(opt_level=3, config={"relay.codegen.winograd": minimal}):
            lib = relay.build(IRModule.from_expr(Function([e], make(e))), target="llvm")
        found.append(np.asarray(lib.run(x=x)))
    return found


@pytest.mark.parametrize("channels, size", ((64, 28), (128, 14)))
def test_minimal_filtering_keeps_what_is_not_finite_and_spreads_it_within_a_tile(channels, size):
    rng = np.random.default_rng(0)
    weight = relay.const((rng.normal(size=(channels, channels, 3, 3)) / 24).astype("float32"))
    make = lambda e: relay.nn.conv2d(e, weight, kernel_size=(3, 3), padding=(1, 1), channels=channels)
    x = rng.normal(size=(2, channels, size, size)).astype("float32")
    x[0, 3, 5, 6], x[0, 4, size - 3, 2] = np.inf, np.nan
    fast, plain = with_and_without_minimal(make, x)
    bad, truly = ~np.isfinite(fast), ~np.isfinite(plain)
    assert not (truly & ~bad).any()
    rows, columns = np.nonzero(bad[0].any(0))
    near = np.argwhere(truly[0].any(0))
    assert all(np.abs(near - (r, c)).max(1).min() <= 3 for r, c in zip(rows, columns))
    assert not bad[1].any()
    np.testing.assert_allclose(fast[~bad], plain[~bad], rtol=1e-3, atol=1e-3)
    fast, _ = with_and_without_minimal(
        make, (rng.uniform(-1, 1, (1, channels, size, size)) * 2.0**105).astype("float32")
    )
    assert np.isfinite(fast).all()


def test_strassen_keeps_what_is_not_finite_and_spreads_it_to_one_other_row():
    rng = np.random.default_rng(0)
    weight = relay.const(rng.normal(size=(1024, 1024)).astype("float32"))
    x = rng.normal(size=(512, 1024)).astype("float32")
    x[5, 7] = np.nan
    fast, plain = with_and_without_minimal(lambda e: relay.nn.dense(e, weight), x)
    bad = ~np.isfinite(fast)
    assert bad[5].all() and set(np.flatnonzero(bad.any(1))) <= {5, 5 + 256}
    np.testing.assert_allclose(fast[~bad], plain[~bad], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_constant_that_is_no_number_of_either_sign_passes_through(dtype: str) -> None:
    y = relay.var("y", shape=(), dtype=dtype)
    for nan in (np.array(np.nan, dtype), -np.array(np.nan, dtype)):
        for build in (relay.maximum, relay.minimum):
            mod = relay.IRModule.from_expr(relay.Function([y], relay.Tuple([build(relay.const(nan, dtype), y), y])))
            assert np.isnan(np.asarray(relay.build(mod, "llvm").run(y=np.array(2, dtype))[0]))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ("int8", "uint8"))
def test_windows_of_integers_may_have_more_elements_than_the_type_counts(dtype, executor):
    """Found by the search: the count of a window of 210 elements is no int8, and was taken for -46."""
    x = np.zeros((1, 2, 15, 14), dtype)
    x[0, 0, 0, :9], x[0, 1, 3, 3] = 13, 100
    cut = lambda total: truncated(int(np.array(total).astype(dtype)), 210)
    want = np.array([[[[cut(9 * 13)]], [[cut(100)]]]], dtype)
    table = {
        "nn.adaptive_avg_pool2d": (lambda e: relay.nn.adaptive_avg_pool2d(e, output_size=1), want, True),
        "nn.avg_pool2d": (lambda e: relay.nn.avg_pool2d(e, pool_size=(15, 14)), want, True),
        "nn.global_avg_pool2d": (relay.nn.global_avg_pool2d, want, True),
    }
    check(table, executor, [x], "float32")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_mean_of_no_integers_is_zero(executor):
    x, want = np.zeros((1, 2, 3, 0), "int32"), np.zeros((1, 2, 2, 2), "int32")
    pool = lambda e: relay.nn.adaptive_avg_pool2d(e, output_size=2)
    check({"nn.adaptive_avg_pool2d": (pool, want, True)}, executor, [x], "float32")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_shapes_without_elements_are_kept_by_passes(executor):
    """Found by the search: an extent of 0 was read as the code that copies a dimension."""
    x, like = np.zeros((1, 2, 3, 0), "float32"), np.zeros((9, 6, 7), "float32")
    part = lambda e: relay.reshape_like(e, relay.const(like), lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=2)
    check({"reshape_like": (part, np.zeros((1, 6, 0), "float32"), True)}, executor, [x], "float32")
