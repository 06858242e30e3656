"""Weights that are inputs: kernels lay them out as constants are, and what reads them is the kernel of constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, place, runnable_targets

from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.pack import Packing, WeightMatrix, WeightPacking
from relaylab.loop.run import run as evaluate
from relaylab.loop.verify import unproven

dense = MemoryView.dense


def turned(shape: tuple[int, ...]) -> MemoryView:
    """Weights [batch, K, N] whose rows lie side by side in memory."""
    batch, depth, columns = shape
    return MemoryView("float32", shape, (depth * columns, 1, depth))


def product(family: T.ProductFamily, view: MemoryView, target: str):
    """(weights, how a kernel lays them out, how it is done for constants) of a product."""
    batch, depth, columns = view.shape
    spec = T.GemmSpec(dense((batch, 64, depth)), dense(view.shape), dense((batch, 64, columns)), minimal=True)
    problem, isa = gemm_problem(spec), TARGETS[target]
    packing = WeightPacking(family.packed(problem, isa), lambda w: family.blocks(problem, isa, w), family.mixes)
    return view, packing, lambda w: family.pack(problem, isa, WeightMatrix.of(w))


def convolution(
    family: T.ConvolutionFamily, shape: tuple[int, ...], order: tuple[int, ...], target: str, groups=1, step=1
):
    """The same of a convolution with weights [OC, IC / groups, *kernel], which lie in memory in this order."""
    inner = dense(tuple(shape[axis] for axis in order))
    view = MemoryView("float32", shape, tuple(inner.strides[order.index(axis)] for axis in range(len(shape))))
    taps = shape[2:]
    data, out = dense((1, *(9 for _ in taps), shape[1] * groups)), dense((1, *(9 for _ in taps), shape[0]))
    one, pad = (1,) * len(taps), tuple(k // 2 for k in taps)
    steps = (step,) * len(taps)
    spec = T.ConvSpec(data, out, taps, steps, one, pad, groups, minimal=True, weight=view).anywhere()
    if family.name in T.TRANSPOSED.families:
        step = 2 if family is T.PHASES else step
        data = dense((1, *(6 for _ in taps), shape[0]))
        out = dense((1, *(5 * step + k - 2 for k in taps), shape[1] * groups))
        spec = T.ConvSpec(data, out, taps, (step,) * len(taps), one, one, groups, minimal=True, weight=view).anywhere()
        assert not family.declines(spec, TARGETS[target])
    constant, packing = replace(spec, weight=None), family.packing(spec, TARGETS[target])
    return view, (family.matrix(view, spec), packing), lambda w: family.pack(constant, TARGETS[target], w)


CASES = {
    "panels": lambda t: product(T.TILES, dense((1, 37, 200)), t),
    "panels, turned": lambda t: product(T.TILES, turned((2, 37, 70)), t),
    "panels, few columns": lambda t: product(T.TILES, dense((1, 20, 3)), t),
    "dots": lambda t: product(T.DOTS, dense((1, 37, 3)), t),
    "dots, whole vectors": lambda t: product(T.DOTS, dense((2, 64, 2)), t),
    "dots, turned": lambda t: product(T.DOTS, turned((2, 37, 4)), t),
    "strassen": lambda t: product(T.STRASSEN, dense((1, 128, 96)), t),
    "strassen, turned": lambda t: product(T.STRASSEN, turned((1, 130, 224)), t),
    "direct": lambda t: convolution(T.DIRECT, (21, 5, 3, 2), (2, 3, 1, 0), t),
    "direct, as it is written": lambda t: convolution(T.DIRECT, (21, 5, 3, 3), (0, 1, 2, 3), t),
    "direct, groups": lambda t: convolution(T.DIRECT, (12, 4, 3), (2, 1, 0), t, groups=3),
    "depthwise": lambda t: convolution(T.DEPTHWISE, (21, 1, 3, 3), (2, 3, 1, 0), t, groups=21),
    "depthwise, as it is written": lambda t: convolution(T.DEPTHWISE, (16, 1, 5), (0, 1, 2), t, groups=16),
    "phases": lambda t: convolution(T.PHASES, (6, 21, 4, 3), (2, 3, 0, 1), t),
    "phases, as it is written": lambda t: convolution(T.PHASES, (6, 10, 3, 3), (0, 1, 2, 3), t, groups=2),
    "phases without taps": lambda t: convolution(T.PHASES, (5, 8, 1, 2), (2, 3, 0, 1), t),
    "F(4, 3), flipped": lambda t: convolution(T.FLIPPED[4, 3], (9, 20, 3, 3), (2, 3, 0, 1), t),
    "F(3, 2), flipped, as it is written": lambda t: convolution(T.FLIPPED[3, 2], (9, 20, 2, 2), (0, 1, 2, 3), t),
    "F(2, 2), flipped, phases": lambda t: convolution(T.FLIPPED[2, 2], (9, 20, 4, 4), (2, 3, 0, 1), t, step=2),
    "F(2, 3), flipped, phases": lambda t: convolution(T.FLIPPED[2, 3], (5, 33, 9, 9), (0, 1, 2, 3), t, step=3),
    "F(2, 3)": lambda t: convolution(T.MINIMAL[2, 3], (20, 7, 3, 3), (2, 3, 1, 0), t),
    "F(3, 2)": lambda t: convolution(T.MINIMAL[3, 2], (33, 3, 2, 2), (2, 3, 1, 0), t),
    "F(4, 3), as it is written": lambda t: convolution(T.MINIMAL[4, 3], (20, 7, 3, 3), (0, 1, 2, 3), t),
    "F(3, 2), phases": lambda t: convolution(T.MINIMAL[3, 2], (33, 3, 4, 4), (2, 3, 1, 0), t, step=2),
    "F(2, 3), phases, as it is written": lambda t: convolution(T.MINIMAL[2, 3], (20, 5, 9, 9), (0, 1, 2, 3), t, step=3),
}


def made(case: str, target: str) -> tuple[MemoryView, tuple[Kernel, ...], dict[str, int], Packing, np.ndarray]:
    """The weights' view, the kernels that lay them out, their workspaces, the constant packing, some weights."""
    view, packing, constant = CASES[case](target)
    matrix, packing = packing if isinstance(packing, tuple) else (view, packing)
    kernels, work = packing.kernels(matrix, TARGETS[target])
    weights = np.random.default_rng(2).integers(-8, 9, view.shape).astype("float32")
    return view, kernels, dict(work), constant(weights), weights


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("case", CASES)
def test_kernels_lay_out_what_is_packed_for_constants(case: str, target: str) -> None:
    view, kernels, work, packed, weights = made(case, target)
    buffers = {role: aligned(size // 4) for role, size in work.items()} | {"in1": place(view, weights)}
    for role in work:
        buffers[role][:] = 77  # what is not a weight is written too: memory of a run is not zero
    operands = {role: values.copy() for role, values in buffers.items()}
    for kernel in kernels:
        Runner(kernel, TARGETS[target]).run(buffers, splits=3)
        memory = {tensor: operands[role] for role, tensor in kernel.program.buffers}
        evaluate(kernel.program, memory)
    # The fractions of F(4, 3) round; everything else is exact with such weights.
    error = 1e-5 if case.startswith("F(4") else 0
    np.testing.assert_allclose(operands["weight0"], buffers["weight0"], rtol=0, atol=error)
    np.testing.assert_allclose(buffers["weight0"], packed.array(), rtol=0, atol=error)


@pytest.mark.parametrize("target", TARGETS)
def test_every_access_is_proven(target: str) -> None:
    for case in CASES:
        _, kernels, *_ = made(case, target)
        for kernel in kernels:
            assert unproven(kernel.program) is None, case


NETWORKS = {  # data, weight, attributes, the family that computes it
    "filtered": ((1, 16, 12, 12), (32, 16, 3, 3), {"padding": (1, 1)}, "winograd4x3"),
    "filtered, strides": ((1, 48, 30, 32), (64, 48, 4, 4), {"padding": (1, 1), "strides": (2, 2)}, "winograd3x2"),
    "two": ((1, 16, 20, 20), (20, 16, 2, 2), {}, "direct"),
    "strides": ((1, 8, 13, 12), (12, 4, 3, 2), {"groups": 2, "strides": (2, 1), "dilation": (1, 2)}, "direct"),
    "depthwise": ((1, 8, 13, 12), (8, 1, 3, 3), {"groups": 8, "padding": (1, 1)}, "depthwise"),
    "multiplied": ((1, 4, 9, 9), (8, 1, 3, 3), {"groups": 4}, "direct"),
    "cubes": ((1, 3, 5, 6, 4), (9, 3, 2, 3, 1), {}, "direct"),
    "line": ((2, 6, 40), (10, 6, 5), {"padding": (2,)}, "direct"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("case", NETWORKS)
def test_convolutions_of_two_inputs(case: str, dtype: str) -> None:
    data, weight, attrs, family = NETWORKS[case]
    x, w = (relay.var(name, shape=shape, dtype=dtype) for name, shape in (("x", data), ("w", weight)))
    convolve = {3: relay.nn.conv1d, 4: relay.nn.conv2d, 5: relay.nn.conv3d}[len(data)]
    call = convolve(x, w, channels=weight[0], kernel_size=weight[2:], **attrs)
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(call) + call))
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm")
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-9, 9, s).astype(dtype) for s in (data, weight))
    want = relay.create_executor("debug", mod).evaluate()(x, w).numpy()
    np.testing.assert_allclose(lib.run(x=x, w=w), want, rtol=0, atol=2e-6 * np.abs(want).max())
    why = "".join(lib.inspect("why", name) for name in lib.kernels())
    expected = family if dtype == "float32" or not family.startswith("winograd") else "direct"
    assert f"-> {expected} " in why and "the weight is an input" in why


TRANSPOSED = {  # data, weight, attributes, the family that computes it
    "strides": ((1, 6, 5, 4), (6, 7, 4, 4), {"strides": (2, 2), "padding": (1, 1)}, "phases"),
    "groups": ((2, 8, 5, 4), (8, 3, 3, 2), {"groups": 2, "strides": (2, 1), "output_padding": (1, 0)}, "phases"),
    "dilation": ((1, 3, 6, 6), (3, 20, 3, 3), {"dilation": (2, 2)}, "phases"),
    "flipped": ((1, 32, 28, 27), (32, 48, 3, 3), {"padding": (1, 1)}, "flipped4x3"),
    "flipped phases": ((1, 64, 16, 16), (64, 96, 4, 4), {"strides": (2, 2), "padding": (1, 1)}, "flipped2x2"),
    "flipped, all of it": ((2, 32, 14, 14), (32, 16, 2, 2), {}, "flipped3x2"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions_of_two_inputs(case: str, dtype: str) -> None:
    data, weight, attrs, family = TRANSPOSED[case]
    x, w = (relay.var(name, shape=shape, dtype=dtype) for name, shape in (("x", data), ("w", weight)))
    channels = weight[1] * attrs.get("groups", 1)
    call = relay.nn.conv2d_transpose(x, w, channels=channels, kernel_size=weight[2:], **attrs)
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(call) + call))
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm")
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-9, 9, s).astype(dtype) for s in (data, weight))
    want = relay.create_executor("debug", mod).evaluate()(x, w).numpy()
    np.testing.assert_allclose(lib.run(x=x, w=w), want, rtol=0, atol=2e-6 * np.abs(want).max())
    with relay.transform.PassContext(opt_level=3):
        constant = relay.build(mod, target="llvm", params={"w": w})
    np.testing.assert_allclose(constant.run(x=x), want, rtol=0, atol=2e-6 * np.abs(want).max())
    for built in (lib, constant):
        family = family if dtype == "float32" else "phases"
        assert f"-> {family} " in "".join(built.inspect("why", name) for name in built.kernels())


GRADIENTS = {  # data, weight, attributes
    "plain": ((2, 5, 9, 11), (7, 5, 3, 3), {"padding": (1, 1)}),
    "strides": ((1, 16, 13, 12), (32, 16, 3, 2), {"strides": (2, 1), "dilation": (1, 2)}),
    "groups": ((2, 6, 8, 9), (8, 3, 3, 3), {"groups": 2, "padding": (1, 0)}),
    "pointwise": ((2, 33, 7, 7), (64, 33, 1, 1), {}),
    "depthwise": ((1, 8, 9, 9), (8, 1, 3, 3), {"groups": 8, "padding": (1, 1)}),
    "few": ((1, 3, 20, 20), (3, 3, 5, 5), {"padding": (2, 2)}),
}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_of_weights_are_those_of_torch(case: str, layout: str) -> None:
    torch = pytest.importorskip("torch")
    data, weight, attrs = GRADIENTS[case]
    rng = np.random.default_rng(4)
    x, w = (torch.tensor(rng.standard_normal(s), requires_grad=True) for s in (data, weight))
    how = {"stride": attrs.get("strides", 1), "padding": attrs.get("padding", 0), "dilation": attrs.get("dilation", 1)}
    result = torch.nn.functional.conv2d(x, w, groups=attrs.get("groups", 1), **how)
    g = torch.tensor(rng.standard_normal(result.shape))
    result.backward(g)
    last = lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1)) if layout == "NHWC" else a
    grad, images = (last(v.detach().numpy()).astype("float32") for v in (g, x))
    given = [relay.var(name, shape=v.shape) for name, v in (("g", grad), ("x", images))]
    layouts = {"grad_layout": layout, "data_layout": layout, "kernel_layout": "OIHW"}
    call = relay.nn.conv2d_backward_weight(*given, kernel_size=weight[2:], **attrs, **layouts)
    side = rng.standard_normal(weight).astype("float32")
    mod = relay.IRModule.from_expr(relay.Function(given, call * relay.const(0.5) + relay.const(side)))
    for target in ("llvm", "llvm -mcpu=x86-64"):
        with relay.transform.PassContext(opt_level=3):
            lib = relay.build(mod, target=target)
        want = w.grad.numpy() * 0.5 + side
        np.testing.assert_allclose(lib.run(g=grad, x=images), want, rtol=0, atol=3e-6 * np.abs(want).max())
        assert ("the gradient of a weight" in lib.inspect("why", "backward_weight")) == (case != "depthwise")


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_gradients_of_weights_in_other_dtypes_and_of_constants(dtype: str) -> None:
    rng = np.random.default_rng(6)
    g, x = (rng.integers(-9, 9, s).astype(dtype) for s in ((2, 8, 6, 7), (2, 5, 6, 7)))
    variable = relay.var("x", shape=x.shape, dtype=dtype)
    call = relay.nn.conv2d_backward_weight(relay.const(g, dtype), variable, kernel_size=(3, 3), padding=(1, 1))
    mod = relay.IRModule.from_expr(relay.Function([variable], call))
    want = relay.create_executor("debug", mod).evaluate()(x).numpy()
    lib = relay.build(mod, target="llvm")
    np.testing.assert_allclose(lib.run(x=x), want, rtol=1e-12)
    assert "the gradient of a weight" in lib.inspect("why", "backward_weight")


def test_one_pixel_reads_its_weights_where_they_lie() -> None:
    x, w = relay.var("x", shape=(1, 64, 3, 3)), relay.var("w", shape=(128, 64, 3, 3))
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w))), target="llvm")
    assert "generic lowering" in lib.inspect("why", "conv2d")


@pytest.mark.parametrize("transposed", [False, True])
def test_large_products_of_two_inputs_take_strassens(transposed: bool) -> None:
    x, w = relay.var("x", shape=(1024, 512)), relay.var("w", shape=(512, 512))
    call = relay.nn.matmul(x, w, transpose_b=transposed)
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(call)))
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((1024, 512)).astype("f"), rng.standard_normal((512, 512)).astype("f")
    want = np.maximum(a.astype("float64") @ (b.T if transposed else b), 0)
    for minimal in (True, False):
        with relay.transform.PassContext(opt_level=3, config={"relay.codegen.winograd": minimal}):
            lib = relay.build(mod, target="llvm -mcpu=x86-64-v3")
        assert ("product in 7" in lib.inspect("loop", "matmul")) == minimal
        why = lib.inspect("why", "matmul")
        assert ("lays it out in panels" in why) == ("-> strassen" in why) == minimal
        np.testing.assert_allclose(lib.run(x=a, w=b), want, rtol=0, atol=2e-6 * np.abs(want).max())
