"""Gradients against differences of values."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import relaylab.text  # noqa: F401
from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import OPERATORS, IRModule
from relaylab.op.custom import register, register_compute, register_gradient, register_stateful
from relaylab.support.errors import RelayValueError
from relaylab.transform import create, gradient

UNARY = """
exp log log2 log10 sqrt rsqrt sigmoid tanh negative copy abs sin cos tan sinh cosh
asin acos atan asinh atanh erf
""".split()
M = "%x: Tensor[(2, 3), float32]"
IMAGE = "%x: Tensor[(1, 2, 5, 5), float32], %w: Tensor[(3, 2, 3, 3), float32]"
PROGRAMS = {
    **{name: f"fn ({M}) {{ {name}(%x) }}" for name in UNARY},
    "binary": f"fn ({M}, %y: Tensor[(3), float32]) {{ %0 = add(%x, %y); %1 = multiply(%0, %x); "
    f"%2 = subtract(%1, %y); divide(%2, %y) }}",
    "power": f"fn ({M}, %y: Tensor[(3), float32]) {{ power(%x, %y) }}",
    "extrema": f"fn ({M}, %y: Tensor[(3), float32]) {{ %0 = maximum(%x, %y); minimum(%0, %x) }}",
    "relu": f"fn ({M}) {{ %0 = subtract(%x, 0.5f); %1 = nn.relu(%0); %2 = nn.leaky_relu(%0, alpha=0.1f); "
    f"add(%1, %2) }}",
    "clip": f"fn ({M}) {{ clip(%x, a_min=0.3f, a_max=0.6f) }}",
    "shapes": f"fn ({M}) {{ %0 = transpose(%x, axes=[1, 0]); %1 = reshape(%0, newshape=[6]); "
    f"%2 = expand_dims(%1, axis=0); squeeze(%2, axis=[0]) }}",
    "reductions": f"fn ({M}) {{ %0 = sum(%x, axis=[1]); %1 = mean(%x, axis=[1]); %2 = max(%x, axis=[1]); "
    f"%3 = multiply(%0, %1); multiply(%3, %2) }}",
    "all_excluded": f"fn ({M}) {{ %0 = tanh(%x); sum(%0, axis=None, exclude=True) }}",
    "concatenate": f"fn ({M}) {{ %0 = exp(%x); %1 = (%x, %0); %2 = concatenate(%1, axis=1); tanh(%2) }}",
    "split": "fn (%x: Tensor[(2, 4), float32]) { %0 = split(%x, indices_or_sections=2, axis=1); %1 = %0.0; exp(%1) }",
    "stack": f"fn ({M}) {{ %0 = (%x, %x); %1 = stack(%0, axis=1); tanh(%1) }}",
    "dense": f"fn ({M}, %w: Tensor[(4, 3), float32], %b: Tensor[(4), float32]) {{ "
    f"%0 = nn.dense(%x, %w, units=4); %1 = nn.bias_add(%0, %b); nn.softmax(%1) }}",
    "log_softmax": f"fn ({M}) {{ %0 = nn.log_softmax(%x); multiply(%0, %x) }}",
    "batch_matmul": "fn (%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 5, 4), float32]) "
    "{ nn.batch_matmul(%x, %y, transpose_b=True) }",
    "conv2d": f"fn ({IMAGE}) {{ "
    f"nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2], channels=3, kernel_size=[3, 3]) }}",
    "pools": "fn (%x: Tensor[(1, 2, 4, 4), float32]) "
    "{ %0 = nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]); nn.global_avg_pool2d(%0) }",
    "max_pool": "fn (%x: Tensor[(1, 2, 4, 4), float32]) "
    "{ nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]) }",
    "lets": f"fn ({M}) {{ let %a = exp(%x); let %f = fn (%b: Tensor[(2, 3), float32]) {{ multiply(%b, %a) }}; "
    f"%f(%a) }}",
    "unused": f"fn ({M}, %y: Tensor[(3), float32]) {{ tanh(%x) }}",
}
STEP = 1e-2


TIED = [("max", "axis=[1]"), ("min", "axis=[1], keepdims=True"), ("max", ""), ("max", "axis=[0], exclude=True"),
        ("max", "axis=[0, 1], exclude=True")]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs"), [*TIED, ("max", "axis=None, exclude=True")])
def test_equal_extrema_share_the_gradient(name: str, attrs: str) -> None:
    """As torch.amax has it; numbers that move together change an extremum by as much as one that moves alone."""
    x = np.array([[1, 3, 3], [2, 2, 2]], "float32") * (1 if name == "max" else -1)
    text = f"def @main(%x: Tensor[(2, 3), float32]) {{ {name}(%x, {attrs}) }}".replace(", )", ")")
    mod = relay.transform.InferType()(relay.parse(text))
    out, (found,) = Interpreter(IRModule.from_expr(gradient(mod["main"], mode="first_order"))).evaluate()(x)
    keep = {"": None, "axis=None, exclude=True": None, "axis=[0, 1], exclude=True": ()}.get(attrs, 1)
    best = x.max(axis=keep, keepdims=True) if name == "max" else x.min(axis=keep, keepdims=True)
    tied = x == best
    np.testing.assert_allclose(found, tied / tied.sum(axis=keep, keepdims=True), atol=1e-6)


def test_equal_pixels_share_the_gradient_of_a_global_maximum() -> None:
    text = 'def @main(%x: Tensor[(1, 2, 2, 2), float32]) { nn.global_max_pool2d(%x, layout="NHWC") }'
    mod = relay.transform.InferType()(relay.parse(text))
    x = np.array([1, 5, 3, 4, 3, 5, 2, 5], "float32").reshape(1, 2, 2, 2)
    _, (found,) = Interpreter(IRModule.from_expr(gradient(mod["main"], mode="first_order"))).evaluate()(x)
    np.testing.assert_allclose(found.ravel(), [0, 1 / 3, 1 / 2, 0, 1 / 2, 1 / 3, 0, 1 / 3], atol=1e-6)


def evaluate(mod: IRModule, args: list[np.ndarray]) -> list:
    return Interpreter(mod).evaluate()(*args)


def array(value) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype="float64")


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_slopes(name: str) -> None:
    mod = create("InferType")(
        IRModule.from_text(f'#[version = "0.0.5"]\ndef @main{PROGRAMS[name].removeprefix("fn ")}')
    )
    rng = np.random.default_rng(0)
    args = [rng.uniform(0.2, 0.8, [int(d) for d in p.checked_type.shape]).astype("float32") for p in mod["main"].params]
    both = IRModule.from_expr(gradient(mod["main"], mod))
    out, grads = evaluate(both, args)
    np.testing.assert_allclose(array(out), array(evaluate(mod, args)), rtol=1e-5, atol=1e-6)
    for i, (arg, grad) in enumerate(zip(args, grads, strict=True)):
        direction = rng.uniform(-1, 1, arg.shape).astype("float32")
        ends = [
            array(evaluate(mod, [a + s * STEP * direction if j == i else a for j, a in enumerate(args)])).sum()
            for s in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose((array(grad) * direction).sum(), slope, rtol=3e-2, atol=3e-2)


def test_what_has_no_gradient_is_named() -> None:
    mod = create("InferType")(IRModule.from_text(f'#[version = "0.0.5"]\ndef @main({M}) {{ argmax(%x, axis=[1]) }}'))
    with pytest.raises(RelayValueError, match="gradient of argmax is not known"):
        create("FirstOrderGradient")(mod)
    branch = IRModule.from_text(f'#[version = "0.0.5"]\ndef @main({M}, %c: bool) {{ if (%c) {{ %x }} else {{ %x }} }}')
    with pytest.raises(RelayValueError, match="gradient of an If is not defined"):
        gradient(create("InferType")(branch)["main"], mode="first_order")


@pytest.fixture
def tick() -> Iterator[list[float]]:
    """An operator with an effect: it notes what it is given."""
    noted: list[float] = []
    made = register("test.tick")
    made.set_num_inputs(1)
    made.add_argument("data", "Tensor", "what is noted")
    made.add_type_rel("Identity")
    register_stateful("test.tick", True)
    register_compute("test.tick", lambda attrs, inputs, out: [noted.append(float(inputs[0])) or inputs[0]])
    register_gradient("test.tick", lambda call, grad: [grad])
    yield noted
    OPERATORS.remove("test.tick")


def test_effects_keep_their_order(tick: list[float]) -> None:
    """Lets were replaced by their values: what nobody reads was gone, the others came in the order of their use."""
    mod = IRModule.from_text("""#[version = "0.0.5"]
    def @main(%x: float32) -> float32 {
      let %a = test.tick(%x); let %b = test.tick(%x * 2f); let %c = test.tick(%x * 3f); %c * %a
    }""")
    with pytest.raises(RelayValueError, match="does not keep the order of effects"):
        create("FirstOrderGradient")(mod)
    _, (dx,) = evaluate(IRModule.from_expr(gradient(mod["main"], mod)), [np.array(5, "float32")])
    assert tick == [5, 10, 15] and float(array(dx)) == 30


def slopes(program: str, *args: object) -> list:
    """The gradients of a program's parameters."""
    mod = create("InferType")(IRModule.from_text(f'#[version = "0.0.5"]\ndef @main{program}'))
    return evaluate(IRModule.from_expr(gradient(mod["main"], mod)), list(args))[1]


def test_fields_that_nobody_uses_get_zeros() -> None:
    program = (
        "(%p: (Tensor[(3), float32], (Tensor[(2), float32], Tensor[(), float32]))) "
        "{ %0 = %p.1; %1 = %0.1; multiply(%p.0, %1) }"
    )
    x = np.array([0, 1, 2], "float32")
    ((first, (second, third)),) = slopes(program, (x, (x[:2], np.array(3, "float32"))))
    assert [array(g).tolist() for g in (first, second, third)] == [[3, 3, 3], [0, 0], 3]


def test_powers_of_zero_have_the_slopes_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x, y = np.array([0, 1, -2], "float32"), np.array([[-1, 0, 1], [0, 0, 0], [2, 1.5, -2]], "float32")
    inputs = [torch.tensor(v, requires_grad=True) for v in (x, y)]
    (inputs[0] ** inputs[1]).sum().backward()
    found = slopes("(%x: Tensor[(3), float32], %y: Tensor[(3, 3), float32]) { power(%x, %y) }", x, y)
    for ours, theirs in zip(found, inputs):
        np.testing.assert_allclose(array(ours), theirs.grad, rtol=1e-6)


def test_a_mean_of_more_halfs_than_a_half_can_count() -> None:
    (grad,) = slopes("(%x: Tensor[(700, 100), float16]) { mean(%x) }", np.zeros((700, 100), "float16"))
    np.testing.assert_allclose(array(grad), 1 / 70000, rtol=5e-3)


EMPTY = {
    "tile": "(%x: Tensor[(2, 0), float32]) { tile(%x, reps=[2, 3]) }",
    "repeat": "(%x: Tensor[(3, 0, 2), float32]) { repeat(%x, repeats=2, axis=0) }",
    "mean": "(%x: Tensor[(2, 0), float32]) { mean(%x, axis=[0]) }",
    "dense": "(%x: Tensor[(2, 3, 0), float32], %w: Tensor[(4, 0), float32]) { nn.dense(%x, %w, units=4) }",
    "matmul": "(%x: Tensor[(2, 3, 0), float32], %w: Tensor[(0, 4), float32]) { nn.matmul(%x, %w) }",
    "resize": "(%x: Tensor[(2, 0, 4, 4), float32]) { image.resize2d(%x, size=[3, 3]) }",
    "conv3d": "(%x: Tensor[(0, 3, 5, 5, 5), float32], %w: Tensor[(2, 3, 1, 2, 3), float32]) "
    "{ nn.conv3d(%x, %w, channels=2, kernel_size=[1, 2, 3], padding=[0, 0, 0, 0, 0, 0]) }",
}


@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements_have_gradients(name: str) -> None:
    shapes = [eval(found) for found in re.findall(r"Tensor\[(\(.*?\)),", EMPTY[name])]
    for shape, grad in zip(shapes, slopes(EMPTY[name], *(np.ones(s, "float32") for s in shapes)), strict=True):
        assert grad.shape == shape and not array(grad).any()


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int8", "float16"])
def test_a_sign_that_the_type_does_not_have_wraps(dtype: str) -> None:
    x = relay.var("x", shape=(2,), dtype=dtype)
    func = gradient(relay.Function([x], relay.negative(x)), mode="first_order")
    value, (grad,) = Interpreter(relay.transform.InferType()(IRModule.from_expr(func))).evaluate()(np.ones(2, dtype))
    minus = np.zeros(2, dtype) - np.ones(2, dtype)
    assert np.array_equal(value, minus) and np.array_equal(grad, minus) and np.asarray(grad).dtype == dtype


PRODUCTS = {
    "nn.dense": ((2, 3), (4, 3), {}),
    "nn.matmul": ((2, 3), (3, 4), {}),
    "nn.batch_matmul": ((1, 2, 3), (1, 4, 3), {"transpose_b": True}),
    "nn.conv1d": ((1, 3, 6), (4, 3, 3), {}),
    "nn.conv2d": ((1, 3, 5, 5), (4, 3, 3, 3), {}),
    "nn.conv2d_transpose": ((1, 3, 4, 4), (3, 4, 3, 3), {"channels": 4, "kernel_layout": "IOHW"}),
}


@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_of_products_with_wider_sums_are_of_the_type_of_what_is_multiplied(name: str, mode: str) -> None:
    def gradients(dtype: str, wide: str) -> list[np.ndarray]:
        x, w = relay.var("x", shape=shapes[0], dtype=dtype), relay.var("w", shape=shapes[1], dtype=dtype)
        made = OPERATORS[name].definition.call(relay.tanh(x), relay.tanh(w), out_dtype=wide, **attrs)
        mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w], relay.exp(made))))
        both = relay.transform.InferType()(IRModule.from_expr(gradient(mod["main"], mod, mode=mode)))
        found = Interpreter(both).evaluate()(*(a.astype(dtype) for a in arrays))[1]
        return [np.asarray(g) for g in found]

    *shapes, attrs = PRODUCTS[name]
    rng = np.random.default_rng(4)
    arrays = [rng.uniform(-0.5, 0.5, s).astype("float16") for s in shapes]
    for narrow, exact in zip(gradients("float16", "float32"), gradients("float64", "float64"), strict=True):
        assert narrow.dtype == "float16" and np.allclose(narrow, exact, rtol=2e-2, atol=2e-2)
    if name == "nn.dense":
        a, b = (np.tanh(v.astype("float64")) for v in arrays)
        of_x = (np.exp(a @ b.T) @ b) * (1 - a**2)
        assert np.allclose(gradients("float16", "float32")[0], of_x, rtol=2e-2, atol=2e-2)
