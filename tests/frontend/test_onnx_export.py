"""Relay programs as ONNX models: what is written says the same, and what cannot be said is refused."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import OPERATORS, Call, Expr, Tuple, Var
from relaylab.support.errors import RelayError
from relaylab.zoo.catalog import NETWORKS

onnx = pytest.importorskip("onnx", reason="writes ONNX models")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from relaylab.frontend.onnx.export import RULES  # noqa: E402
from op.op_cases import arrays_of, type_of  # noqa: E402

pytestmark = pytest.mark.slow


def evaluated(mod: relay.IRModule, arrays: list[np.ndarray], params: dict | None = None) -> list[np.ndarray]:
    """The results of `main` by the reference evaluator of Relay."""
    main = mod["main"]
    given = dict(zip([p.name_hint for p in main.params if p.name_hint not in (params or {})], arrays))
    values = [(params or {}).get(p.name_hint, given.get(p.name_hint)) for p in main.params]
    found = relay.create_executor("debug", mod=mod).evaluate()(*values)
    fields = list(found) if isinstance(found, (tuple, list)) or hasattr(found, "fields") else [found]
    return [f.numpy() for f in fields]


def assert_says_the_same(mod: relay.IRModule, arrays: list, params: dict | None = None, evaluator: bool = True) -> None:
    """The model is well formed, ONNX's own evaluator finds what Relay's finds, and so does the model read again."""
    model = relay.frontend.to_onnx(mod, params)
    onnx.checker.check_model(model, full_check=True)
    expected = evaluated(mod, arrays, params)
    feed = dict(zip((i.name for i in model.graph.input), arrays))
    found = ReferenceEvaluator(model).run(None, feed) if evaluator else by_onnxruntime(model, feed) or expected
    for ours, theirs, back in zip(expected, found, read_again(model, arrays) or expected, strict=True):
        assert ours.dtype == theirs.dtype == back.dtype and ours.shape == theirs.shape == back.shape
        near = {"float16": 5e-3, "bfloat16": 2e-2}.get(ours.dtype.name, 1e-4)
        scale = max(float(np.abs(ours).max(initial=0)), 1.0) if "float" in ours.dtype.name else 1.0
        np.testing.assert_allclose(theirs, ours, rtol=near, atol=0.1 * near * scale)
        np.testing.assert_allclose(back, ours, rtol=near, atol=0.1 * near * scale)


def by_onnxruntime(model, feed: dict) -> list[np.ndarray] | None:
    """What onnxruntime finds, where it is installed."""
    if not find_spec("onnxruntime"):
        return None
    session = import_module("onnxruntime").InferenceSession(model.SerializeToString())
    return session.run(None, feed)


def read_again(model, arrays: list) -> list[np.ndarray] | None:
    """The results of the model as it is imported; None if it wants values of inputs when it is."""
    try:
        again, _ = relay.frontend.from_onnx(model)
    except RelayError as error:
        assert error.code == "import.dynamic"
        return None
    return evaluated(again, arrays)


FAULTS = {
    "nn.conv2d_transpose-1": "ONNX's evaluator gives one group's kernel the channels of all",
    "nn.max_pool2d-3": "ONNX's evaluator pads integers with NaN",
    "gather-1": "ONNX's evaluator wants indices of the size of data",
    **{f"image.grid_sample-{k}": "ONNX's evaluator knows the names of opset 20" for k in (0, 2, 3)},
    "nn.conv1d_transpose-1": "as nn.conv2d_transpose-1",
    **{f"qnn.dequantize-{k}": "ONNX's evaluator has it from opset 19 on" for k in (0, 1)},
}
QNN = [
    n
    for n in OPERATORS
    if n.startswith("qnn.") and n not in RULES and "simulated" not in n and n != "qnn.conv2d_transpose"
]  # written plainly
WRITTEN = [*RULES, *QNN]
CASES = [pytest.param(n, c, id=f"{n}-{k}") for n in WRITTEN for k, c in enumerate(OPERATORS[n].definition.samples())]

UNWRITTEN = {
    "its shape is not known before run time": "argwhere dyn. sparse_fill_empty_rows sparse_reshape "
    "unique vision.all_class_non_max_suppression vision.proposal",
    "a form for kernels, which programs have behind passes": "annotation. auto_scheduler_layout_transform call_lowered "
    "memory. nn.bitpack nn.bitserial_ nn.contrib_ nn.internal. padded_ vm.",
    "a gradient": "nn.avg_pool2d_grad nn.conv2d_backward_weight nn.max_pool2d_grad",
    "random numbers are its own": "random.",
    "it is studied, not run": "debug qnn.simulated_ relay.op.annotation.simulated_quantize",
    "ONNX has it for floats alone": "qnn.conv2d_transpose",
    "ONNX has no operator for it": "cholesky cumprod gcd image.crop_and_resize image.dilation2d lu nn.correlation "
    "nn.fifo_buffer nn.grouped_matmul nn.nll_loss nn.sparse_ one_sided_svd qr reinterpret solve_triangular strided_set "
    "vision.get_valid_counts vision.multibox_ vision.non_max_suppression vision.roi_pool",
    "it came to ONNX later, or differs there": "nn.deformable_conv2d stft",
}  # fmt: skip


def test_every_operator_has_a_rule_or_a_reason() -> None:
    """A name that ends in . or _ stands for all that begin so."""
    waived = [name for names in UNWRITTEN.values() for name in names.split()]
    fits = lambda name, w: name.startswith(w) if w[-1] in "._" else name == w
    missing = [n for n in OPERATORS if n not in WRITTEN]
    assert [n for n in missing if not any(fits(n, w) for w in waived)] == []
    assert [w for w in waived if not any(fits(n, w) for n in missing)] == []


def program_of(name: str, case) -> tuple[relay.IRModule, list[np.ndarray]]:
    """A sample of an operator as a program, and the values of its inputs."""
    inputs: list[Var] = []
    arrays: list[np.ndarray] = []

    def operand(value) -> Expr:
        if isinstance(value, tuple):
            return Tuple([operand(v) for v in value])
        if name.startswith("qnn.") and value.ndim < 2:  # scales and zero points
            return relay.const(value)
        inputs.append(relay.var(f"x{len(inputs)}", type_of(value)))
        arrays.append(value)
        return inputs[-1]

    args = [operand(value) for value in arrays_of(case)]
    record = OPERATORS[name].definition(**case.attrs)
    return relay.IRModule.from_expr(relay.Function(inputs, Call(relay.op.get(name), args, record))), arrays


@pytest.mark.parametrize("name, case", CASES)
def test_a_sample_says_the_same_or_is_refused(name: str, case, request: pytest.FixtureRequest) -> None:
    mod, arrays = program_of(name, case)
    try:
        relay.frontend.to_onnx(mod)
    except RelayError as error:
        assert error.code in ("export.attribute", "export.dtype") and error.help
        return
    assert_says_the_same(mod, arrays, evaluator=request.node.callspec.id not in FAULTS)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int64", "uint64", "bool", "float16", "float64"])
def test_what_is_written_has_the_data_types_of_onnx(dtype: str) -> None:
    """onnx's own inference takes every model: what is computed on the way has data types that operators take."""
    x, image = relay.var("x", shape=(2, 6), dtype=dtype), relay.var("x", shape=(1, 2, 4, 4), dtype=dtype)
    pools = (relay.nn.max_pool2d, relay.nn.avg_pool2d, relay.nn.global_max_pool2d, relay.nn.global_avg_pool2d)
    makers = [lambda f=f: f(image) for f in (*pools, relay.nn.adaptive_max_pool2d, relay.nn.adaptive_avg_pool2d)]
    makers += [lambda: relay.cumsum(x, axis=1), lambda: relay.argmax(x, axis=1), lambda: relay.variance(x, axis=1)]
    makers += [lambda: relay.nn.conv1d(relay.reshape(x, (1, 2, 6)), relay.ones((2, 2, 3), dtype)), lambda: relay.max(x)]
    written = 0
    for make in makers:
        try:
            mod = relay.transform.InferType()(relay.IRModule.from_expr(make()))
            model = relay.frontend.to_onnx(mod)
        except RelayError as error:
            assert error.code == "export.dtype" or error.code.startswith("type."), error
            continue
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        written += 1
    assert written > 1


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_narrow_sums_wrap_as_they_do_here(dtype: str) -> None:
    x = relay.var("x", shape=(2, 6), dtype=dtype)
    values = np.array([[100, 100, 7, 90, 1, 2], [3, 120, 9, 8, 7, 127]]).astype(dtype) * np.array(101, dtype)
    assert_says_the_same(relay.IRModule.from_expr(relay.cumsum(x, axis=1, exclusive=True)), [values])


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_every_rule_says_something(name: str) -> None:
    """No rule refuses all samples of its operator."""
    written = 0
    for case in OPERATORS[name].definition.samples():
        try:
            relay.frontend.to_onnx(program_of(name, case)[0])
            written += 1
        except RelayError:
            pass
    assert written


@pytest.mark.parametrize("name", ["mlp", "lstm", "dcgan", "mobilenet", "squeezenet1.1", "inception_v3"])
def test_a_network_comes_back(name: str) -> None:
    """Written and read again, a network computes the same (tests/bench holds it against onnxruntime)."""
    mod, params = NETWORKS[name].small()
    model = relay.frontend.to_onnx(mod, params)
    onnx.checker.check_model(model, full_check=True)
    rng = np.random.default_rng(0)
    dims = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    inputs = {n: rng.standard_normal(shape).astype("float32") for n, shape in dims.items()}
    again, _ = relay.frontend.from_onnx(model)
    expected = relay.build(mod, "llvm", params=params).run(inputs)
    np.testing.assert_allclose(relay.build(again, "llvm").run(inputs), expected, rtol=1e-3, atol=1e-5)


def test_functions_lets_and_inputs_of_one_name() -> None:
    mod = relay.parse(
        """#[version = "0.0.5"]
        def @twice(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { add(%x, %x) }
        def @main(%a: Tensor[(2, 3), float32], %c0: Tensor[(2, 3), float32]) {
          let %y = @twice(%a);
          (%y, multiply(%c0, 2f), (%y, %a))
        }"""
    )
    a, b = (np.random.default_rng(k).standard_normal((2, 3)).astype("float32") for k in (0, 1))
    model = relay.frontend.to_onnx(mod, name="small")
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.name == "small" and len({o.name for o in model.graph.output}) == 4
    found = ReferenceEvaluator(model).run(None, {"a": a, "c0": b})
    for ours, theirs in zip((2 * a, 2 * b, 2 * a, a), found, strict=True):
        np.testing.assert_allclose(ours, theirs)
    x, again = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    model = relay.frontend.to_onnx(relay.IRModule.from_expr(relay.Function([x, again], x - again)))
    assert [i.name for i in model.graph.input] == ["x", "x1"]


def test_what_does_not_count_is_not_written() -> None:
    """batch_norm with center=False has a beta that does not count; ONNX would add it."""
    x, v = relay.var("x", shape=(2, 3, 4, 4)), [relay.var(n, shape=(3,)) for n in "gbmv"]
    body = relay.nn.batch_norm(x, *v, center=False, scale=False)[0]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, s).astype("float32") for s in ((2, 3, 4, 4), *[(3,)] * 4)]
    assert_says_the_same(relay.IRModule.from_expr(relay.Function([x, *v], body)), arrays)


X = relay.var("x", shape=(3, 4))
V = '#[version = "0.0.5"]\n'
LOOP = (
    "def @f(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { @f(%x) } def @main(%x: Tensor[(3), float32]) { @f(%x) }"
)


@pytest.mark.parametrize(
    "mod, params, code, words",
    [
        (relay.Function([X], relay.cumprod(relay.reinterpret(X, "int32"))), None, "export.operator", "reinterpret"),
        (relay.Function([X], relay.cumprod(X)), None, "export.operator", "cumprod"),
        (relay.Function([X], relay.nn.relu(X)), {"x": np.zeros((3, 5), "float32")}, "export.parameter", "(3, 5)"),
        (relay.Function([X], relay.nn.relu(X)), {"x": np.zeros((3, 4), "float64")}, "export.parameter", "float64"),
        (LOOP, None, "export.not-static", "Call"),
        ("def @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }", None, "type.dynamic-shape", "?"),
        ("def @main(%x: (Tensor[(3), float32],)) { %x.0 }", None, "export.not-static", "`x`"),
    ],
)
def test_what_cannot_be_said_is_refused(mod, params, code: str, words: str) -> None:
    program = relay.parse(V + mod) if isinstance(mod, str) else relay.IRModule.from_expr(mod)
    with pytest.raises(RelayError) as error:
        relay.frontend.to_onnx(program, params)
    assert error.value.code == code and words in str(error.value)


def test_a_function_is_no_module() -> None:
    with pytest.raises(RelayError, match="must be a module, not a Function"):
        relay.frontend.to_onnx(relay.Function([X], X))
