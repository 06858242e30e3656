"""Gradients in compiled code, and of programs in all their layouts and groups against torch's."""

from __future__ import annotations

import numpy as np
import pytest
from test_gradient_samples import program

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import OPERATORS, Call, Function, IRModule, const
from relaylab.transform import create, gradient
from relaylab.transform.engine.build import call

COMPILED = """nn.conv3d nn.conv3d_transpose nn.conv2d_backward_weight scatter scatter_nd sparse_to_dense
einsum stft nn.sparse_dense nn.internal.sparse_dense_padded nn.sparse_add nn.sparse_conv2d
nn.avg_pool2d_grad nn.max_pool2d_grad nn.correlation nn.deformable_conv2d
random.normal random.uniform matrix_set_diag vision.roi_pool""".split()
CASES = [pytest.param(n, c, id=f"{n}-{k}") for n in COMPILED for k, c in enumerate(OPERATORS[n].definition.samples())]


@pytest.mark.parametrize("name, case", CASES)
def test_compiled_gradients_are_those_of_the_interpreter(name: str, case) -> None:
    mod, values = program(name, case)
    if not values:
        pytest.skip("no floats go in")
    both = IRModule.from_expr(gradient(mod["main"], mod))
    expected = Interpreter(both).evaluate()(*values)
    graph = relay.build(both, target="llvm")
    found = graph.run(**{p.name_hint: v for p, v in zip(both["main"].params, values)})
    for ours, theirs in zip(found[-len(values) :], expected[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def held_against_torch(body, values: list[np.ndarray], same, rtol: float = 1e-9) -> None:
    """Holds the gradients of a weighted sum of a result against those of a function of torch."""
    torch = pytest.importorskip("torch")
    params = {p.name_hint: p for p in relay.analysis.free_vars(body)}
    func = Function([params[f"x{k}"] for k in range(len(values))], body)
    func = create("InferType")(IRModule.from_expr(func))["main"]
    weights = np.random.default_rng(1).normal(size=func.ret_type.concrete_shape)
    weighted = Function(func.params, call("multiply", func.body, const(weights, "float64")))
    found = Interpreter(IRModule.from_expr(gradient(create("InferType")(IRModule.from_expr(weighted))["main"])))
    out, grads = found.evaluate()(*values)
    inputs = [torch.tensor(v, requires_grad=True) for v in values]
    theirs = same(*inputs) * torch.tensor(weights)
    theirs.sum().backward()
    np.testing.assert_allclose(out, theirs.detach().numpy(), rtol=rtol, atol=rtol)
    for ours, x in zip(grads, inputs, strict=True):
        np.testing.assert_allclose(ours, x.grad.numpy(), rtol=rtol, atol=rtol)


def floats(*shapes: tuple[int, ...], seed: int = 0) -> tuple[list, list[np.ndarray]]:
    """Parameters x0, x1, ... of float64, and values for them."""
    rng = np.random.default_rng(seed)
    params = [relay.var(f"x{k}", shape=s, dtype="float64") for k, s in enumerate(shapes)]
    return params, [rng.normal(size=s) for s in shapes]


CONV3D = {
    "strides": ((2, 4, 6, 7, 5), (6, 4, 2, 3, 3), {"strides": (2, 3, 1), "padding": (1, 0, 2)}),
    "dilation": ((1, 4, 7, 6, 5), (6, 4, 2, 3, 2), {"dilation": (2, 1, 3), "padding": (0, 1, 1)}),
    "groups": ((2, 4, 5, 6, 5), (6, 2, 3, 2, 2), {"groups": 2, "strides": (1, 2, 2), "dilation": (2, 1, 1)}),
    "depthwise": ((2, 3, 4, 5, 5), (3, 2, 2, 2, 3), {"groups": 3, "strides": (1, 2, 1), "padding": (1, 1, 0)}),
    "pixel-groups": ((1, 3, 4, 5, 5), (3, 1, 2, 2, 3), {"groups": 3, "padding": (1, 1, 0)}),
}


@pytest.mark.parametrize("name", CONV3D)
@pytest.mark.parametrize("layouts", [("NCDHW", "OIDHW", ""), ("NDHWC", "DHWIO", "NCDHW")], ids=["first", "last"])
def test_the_gradient_of_conv3d_is_that_of_torch(name: str, layouts: tuple[str, str, str]) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    shape, kernel, how = CONV3D[name]
    (x, w), values = floats(shape, kernel)
    data, weight = relay.layout_transform(x, "NCDHW", layouts[0]), relay.layout_transform(w, "OIDHW", layouts[1])
    attrs = dict(zip(("data_layout", "kernel_layout", "out_layout"), layouts))
    channels = kernel[0] * (kernel[1] if name == "depthwise" else 1)
    body = relay.nn.conv3d(data, weight, channels=channels, kernel_size=kernel[2:], **attrs, **how)
    body = relay.layout_transform(body, layouts[2] or layouts[0], "NCDHW")
    step = {{"strides": "stride"}.get(k, k): v for k, v in how.items()}
    same = lambda x, w: functional.conv3d(x, w.reshape(channels, -1, *kernel[2:]), **step)
    held_against_torch(body, values, same)


@pytest.mark.parametrize(
    "how",
    [
        {"groups": 2, "strides": (2, 1, 3), "output_padding": (1, 0, 2), "padding": (1, 0, 1)},
        {"dilation": (1, 2, 2), "padding": (0, 1, 2)},
    ],
)
def test_the_gradient_of_conv3d_transpose_is_that_of_torch(how: dict) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    groups = how.get("groups", 1)
    (x, w), values = floats((2, 4, 3, 4, 3), (4, 6 // groups, 2, 3, 3))
    body = relay.nn.conv3d_transpose(x, w, channels=6, kernel_size=(2, 3, 3), **how)
    step = {{"strides": "stride"}.get(k, k): v for k, v in how.items()}
    held_against_torch(body, values, lambda x, w: functional.conv_transpose3d(x, w, **step))


def test_a_convolution_is_differentiated_twice() -> None:
    torch = pytest.importorskip("torch")
    how = {"strides": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
    step = {{"strides": "stride"}.get(k, k): v for k, v in how.items()}
    (x, w), values = floats((2, 4, 6, 7), (6, 2, 3, 2))
    cube = lambda v: call("multiply", v, call("multiply", v, v))
    once = Function([x, w], cube(relay.nn.conv2d(x, w, channels=6, kernel_size=(3, 2), **how)))
    first = gradient(create("InferType")(IRModule.from_expr(once))["main"])
    outer, _ = floats((2, 4, 6, 7), (6, 2, 3, 2))
    slopes = Call(first, outer)
    total = call("add", *(call("sum", cube(relay.TupleGetItem(relay.TupleGetItem(slopes, 1), k))) for k in range(2)))
    twice = gradient(create("InferType")(IRModule.from_expr(Function(outer, total)))["main"])
    found = Interpreter(IRModule.from_expr(twice)).evaluate()(*values)[1]
    inputs = [torch.tensor(v, requires_grad=True) for v in values]
    out = torch.nn.functional.conv2d(*inputs, **step) ** 3
    theirs = torch.autograd.grad(out.sum(), inputs, create_graph=True)
    for ours, other in zip(found, torch.autograd.grad(sum((t**3).sum() for t in theirs), inputs), strict=True):
        np.testing.assert_allclose(ours, other.numpy(), rtol=1e-8)


@pytest.mark.parametrize("mode, same", [("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax")])
def test_the_gradient_of_scatter_nd_is_that_of_torch(mode: str, same: str) -> None:
    torch = pytest.importorskip("torch")
    (x, new), values = floats((5, 2), (7, 2))
    at = np.array([0, 1, 1, -1, 4, 1, 4], "int64")
    values[1][[1, 4, 6], 0] = 0  # one factor that is zero, and two of one place
    values[1][3, 1] = values[0][4, 1] = values[1][6, 1] = 9.5  # three that are equally large
    rows = torch.tensor(np.stack([at % 5] * 2, axis=1))
    theirs = lambda x, new: x.scatter_reduce(0, rows, new, same, include_self=True)
    held_against_torch(relay.scatter_nd(x, relay.const(at[None]), new, mode=mode), values, theirs)


def test_the_last_of_several_updates_gets_the_gradient() -> None:
    (x, new), values = floats((4, 3), (3, 2))
    at = np.array([[0, 2], [3, -1], [3, 1]], "int64")

    def theirs(x, new):
        out = x.clone()
        for place in np.ndindex(*at.shape):
            out[at[place], place[1]] = new[place]
        return out

    held_against_torch(relay.scatter(x, relay.const(at), new, axis=0), values, theirs)


def test_whole_numbers_pass_on_nothing() -> None:
    (x,), values = floats((4, 5))
    best = relay.argmax(x, axis=1, keepdims=True)
    body = relay.multiply(x, relay.gather(x, 1, relay.cast(best, "int64")))
    held_against_torch(body, values, lambda x: x * x.gather(1, x.argmax(1, keepdim=True)))


@pytest.mark.parametrize("name", ["strided_set", "sparse_fill_empty_rows"])
def test_gradients_of_what_depends_on_data_run_on_the_virtual_machine(name: str) -> None:
    for case in OPERATORS[name].definition.samples():
        mod, values = program(name, case)
        both = IRModule.from_expr(gradient(mod["main"], mod))
        expected = Interpreter(both).evaluate()(*values)[1]
        found = relay.create_executor("vm", mod=both).evaluate()(*values)[1]
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ij,k->k", [(2, 3), (4,)]),
        ("ii,ij->j", [(3, 3), (3, 2)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("ij,ij,j->", [(2, 3), (1, 3), (3,)]),
    ],
)
def test_the_gradient_of_einsum_is_that_of_torch(equation: str, shapes: list[tuple[int, ...]]) -> None:
    torch = pytest.importorskip("torch")
    params, values = floats(*shapes)
    held_against_torch(relay.einsum(params, equation), values, lambda *xs: torch.einsum(equation, *xs))


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_the_gradient_of_stft_is_that_of_torch(normalized: bool, onesided: bool) -> None:
    torch = pytest.importorskip("torch")
    (x, window), values = floats((2, 23), (8,))
    how = {"n_fft": 8, "hop_length": 3, "win_length": 8, "normalized": normalized, "onesided": onesided}
    theirs = lambda x, w: torch.view_as_real(torch.stft(x, window=w, center=False, return_complex=True, **how))
    held_against_torch(relay.stft(x, window=window, **how), values, theirs)


POOLS = [
    {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 0, 1, 1), "ceil_mode": True},
    {"pool_size": (2, 2), "strides": (1, 2), "dilation": (2, 1), "padding": (1, 1, 0, 0)},
    {"pool_size": (2, 3), "strides": (3, 2), "layout": "NHWC"},
]


@pytest.mark.parametrize("how", [*POOLS, *({**how, "count_include_pad": True} for how in POOLS)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_gradients_of_pools_are_linear_in_what_they_spread(kind: str, how: dict) -> None:
    """Each element of the gradient is the weighted sum of what a one there is spread to."""
    if kind == "max" and "count_include_pad" in how:
        pytest.skip("maxima count nothing")
    how = {"padding": (0, 0, 0, 0), **how}
    pool, spread = (OPERATORS[f"nn.{kind}_pool2d{end}"].definition(**how) for end in ("", "_grad"))
    data = np.random.default_rng(2).integers(0, 4, (1, 6, 7, 2) if "layout" in how else (1, 2, 6, 7)).astype("float64")
    made = pool.reference(data).shape
    g, x = relay.var("g", shape=made, dtype="float64"), relay.var("x", shape=data.shape, dtype="float64")
    weights = np.random.default_rng(3).normal(size=data.shape)
    body = call("multiply", Call(type(spread).op, (g, x), spread), const(weights, "float64"))
    func = create("InferType")(IRModule.from_expr(Function([g, x], body)))["main"]
    ones = np.eye(int(np.prod(made))).reshape(-1, *made)
    found = Interpreter(IRModule.from_expr(gradient(func))).evaluate()(ones[0], data)[1]
    expected = [(weights * spread.reference(one, data)).sum() for one in ones]
    np.testing.assert_allclose(found[0].reshape(-1), expected, rtol=1e-12, atol=1e-12)
    assert not found[1].any()


@pytest.mark.parametrize("multiply", [True, False])
def test_the_gradient_of_correlation_is_that_of_torch(multiply: bool) -> None:
    torch = pytest.importorskip("torch")
    how = {"kernel_size": 3, "max_displacement": 3, "stride1": 2, "stride2": 2, "padding": (4, 3, 2, 4)}
    params, values = floats((2, 3, 6, 5), (2, 3, 6, 5))

    def theirs(one, two):
        one, two = (torch.nn.functional.pad(v, (3 + 9, 4 + 9, 4 + 9, 2 + 9)) for v in (one, two))
        parts = []
        for dy, dx in ((y, x) for y in (-2, 0, 2) for x in (-2, 0, 2)):
            moved = two.roll((-dy, -dx), (2, 3))
            match = (one * moved if multiply else (one - moved).abs()).mean(1, keepdim=True)
            parts.append(torch.nn.functional.avg_pool2d(match, 3, 1)[:, :, 12:, 12:][:, :, :4:2, :4:2])
        return torch.cat(parts, 1)

    body = relay.nn.correlation(*params, is_multiply=multiply, layout="NCHW", **how)
    held_against_torch(body, values, theirs)
