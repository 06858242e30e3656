"""Every rule of the gradient against central differences in float64, over all samples of the operator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import OPERATORS, Call, Function, IRModule, TensorType, Tuple, TupleGetItem, TupleType, Var, const
from relaylab.transform import create, gradient
from relaylab.transform.gradients.rules import GRADIENTS

sys.path.insert(0, str(Path(__file__).parent.parent / "op"))
from op_cases import arrays_of, cases  # noqa: E402

CASES = [pytest.param(n, c, id=f"{n}-{k}") for n, k, c in cases() if n in GRADIENTS]
STEP, DIRECTIONS = 1e-6, 3
CONVENTION = {  # beyond differences
    "arange": "the samples end exactly at a limit, where the number of elements jumps; tested by its own"
}
CONVENTION["image.crop_and_resize"] = "a box ends exactly at the border, behind which all is cut off; tested by its own"
CONVENTION["nn.max_pool3d-1"] = "a window that lies in the padding gives the lowest float, whose sums overflow"
CONVENTION["sequence_mask-1"] = "its lengths are floats that are whole numbers: one less masks one more"

HELD = {"vision.roi_align": [1], "vision.roi_pool": [1]}
"""Arguments that by convention get no gradient: regions are taken as they are."""


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype("float64") if array.dtype.kind == "f" else array


def program(name: str, case) -> tuple[IRModule, list[np.ndarray]]:
    """A function of the floats of a sample whose result has a weight for each element; and the floats."""
    params: list[Var] = []
    values: list[np.ndarray] = []

    def given(value, held: bool = False):
        if isinstance(value, tuple):
            return Tuple(map(given, value))
        value = wide(value)
        if value.dtype.kind != "f" or held:
            return const(value)
        params.append(Var(f"x{len(params)}", TensorType(value.shape, "float64")))
        values.append(value)
        return params[-1]

    definition = OPERATORS[name].definition
    attrs = {k: "float64" if str(v).startswith("float") and "dtype" in k else v for k, v in case.attrs.items()}
    args = tuple(given(v, k in HELD.get(name, [])) for k, v in enumerate(arrays_of(case)))
    call = Call(definition.op, args, definition(**attrs) if definition.fields else None)
    typed = create("InferType")(IRModule.from_expr(Function(params, call)))["main"].body
    rng = np.random.default_rng(5)

    def weighted(value, t):
        if isinstance(t, TupleType):
            return Tuple([weighted(TupleGetItem(value, k), f) for k, f in enumerate(t.fields)])
        if not t.dtype.startswith("float") or t.is_dynamic:
            return value
        weights = const(np.asarray(rng.uniform(0.5, 1.5, t.concrete_shape)), "float64")
        return Call(OPERATORS["multiply"], (value, weights))

    body = weighted(call, typed.checked_type)
    return create("InferType")(IRModule.from_expr(Function(params, body))), values


def holds_floats(t) -> bool:
    return any(map(holds_floats, t.fields)) if isinstance(t, TupleType) else t.dtype.startswith("float")


def summed(value) -> float:
    """The sum of the floats: whole numbers stay what they are, and a random generator's are too large for sums."""
    if not isinstance(value, np.ndarray):
        return sum(map(summed, value))
    return float(value.sum()) if value.dtype.kind == "f" else 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, case", CASES)
def test_gradients_are_central_differences(name: str, case, request) -> None:
    key = request.node.callspec.id
    if name in CONVENTION or key in CONVENTION:
        pytest.skip(CONVENTION.get(name) or CONVENTION[key])
    mod, values = program(name, case)
    if not values or not holds_floats(mod["main"].ret_type):
        pytest.skip("no floats go in, or none come out: the slope of whole numbers is 0, a cast passes on what it gets")
    both, run = Interpreter(IRModule.from_expr(gradient(mod["main"], mod))).evaluate(), Interpreter(mod).evaluate()
    found = both(*values)[1]
    rng = np.random.default_rng(3)
    for k, (value, grad) in enumerate(zip(values, found, strict=True)):
        assert grad.shape == value.shape and grad.dtype == value.dtype
        for _ in range(DIRECTIONS):
            way = rng.choice([-1.0, 1.0], value.shape) * rng.uniform(0.5, 1, value.shape)
            up, down = (
                summed(run(*[v + s * STEP * way if j == k else v for j, v in enumerate(values)])) for s in (1, -1)
            )
            slope = (up - down) / (2 * STEP)
            np.testing.assert_allclose((grad * way).sum(), slope, rtol=2e-6, atol=2e-6)


def torch_cases():
    """(program, shapes, the same in torch) where torch has an equal function."""
    import torch.nn.functional as F
    from torch import logsumexp

    conv = lambda **how: relay.nn.conv2d(x4, w4, kernel_size=(3, 3), channels=6, **how)
    x4, w4 = relay.var("x", shape=(2, 4, 7, 6), dtype="float64"), relay.var("w", shape=(6, 2, 3, 3), dtype="float64")
    x3, w3 = relay.var("x", shape=(2, 4, 9), dtype="float64"), relay.var("w", shape=(4, 3, 3), dtype="float64")
    m, v = relay.var("x", shape=(3, 5), dtype="float64"), relay.var("w", shape=(3, 5), dtype="float64")
    rows = relay.const([[0, 4, 4], [1, 2, 0]], "int64")
    at = np.array([[0, 4, 4], [1, 2, 0]])
    how = {"groups": 2, "strides": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    yield "conv2d", conv(**how), lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2), 2)
    transposed = relay.nn.conv1d_transpose(x3, w3, channels=6, kernel_size=(3,), groups=2, strides=(2,), padding=(1,))
    yield "transpose", transposed, lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 0, 2)
    yield "variance", relay.variance(m, axis=1, unbiased=True), lambda x: x.var(1, unbiased=True)
    yield "take", relay.take(m, rows, axis=1), lambda x: x[:, at]
    yield "slice", relay.strided_slice(m, [2, 4], [0, 0], [-1, -2]), lambda x: x.flip(0, 1)[:2, ::2][:, :2]
    yield "prod", relay.prod(m, axis=1), lambda x: x.prod(1)
    yield "cumprod", relay.cumprod(m, axis=1), lambda x: x.cumprod(1)
    half = relay.cumprod(relay.cast(m, "float32"), axis=1, dtype="float64")
    yield "cumprod into float64", half, lambda x: x.float().cumprod(1, dtype=x.dtype)
    yield "cumsum", relay.cumsum(m, axis=0), lambda x: x.cumsum(0)
    yield "matmul", relay.nn.matmul(m, v, transpose_b=True), lambda x, w: x @ w.T
    yield "entropy", relay.nn.cross_entropy_with_logits(relay.nn.log_softmax(m), v), lambda x, w: F.cross_entropy(x, w)
    yield "logsumexp", relay.logsumexp(m, axis=1), lambda x: logsumexp(x, 1)
    yield "sort", relay.sort(m, axis=1), lambda x: x.sort(1)[0]
    yield "tile", relay.tile(m, (2, 3)), lambda x: x.tile(2, 3)
    yield "mod", relay.floor_mod(m, v), lambda x, w: x.remainder(w)


def test_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for name, body, same in torch_cases():
        params = relay.analysis.free_vars(body)
        func = create("InferType")(IRModule.from_expr(Function(params, body)))["main"]
        values = [rng.normal(size=p.checked_type.concrete_shape) for p in func.params]
        if "prod" in name:
            values[0][:, 1] = 0
        inputs = [torch.tensor(v, requires_grad=True) for v in values]
        same(*inputs).sum().backward()
        found = Interpreter(IRModule.from_expr(gradient(func))).evaluate()(*values)[1]
        for ours, theirs in zip(found, inputs, strict=True):
            np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_range_changes_with_its_start_and_step() -> None:
    limits = [relay.var(n, shape=(), dtype="float32") for n in "abs"]
    func = create("InferType")(IRModule.from_expr(Function(limits, relay.arange(*limits))))["main"]
    out, grads = Interpreter(IRModule.from_expr(gradient(func))).evaluate()(*np.array([0, 10, 2], "float32"))
    assert out.tolist() == [0, 2, 4, 6, 8] and [g.item() for g in grads] == [5, 0, 10]
