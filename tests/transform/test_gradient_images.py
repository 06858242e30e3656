"""Gradients of pools, resizes and samplings: their programs of simpler operators, torch's gradients, compiled code."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import OPERATORS, Call, Expr, Function, IRModule, TensorType, Var
from relaylab.transform import create, gradient
from relaylab.transform.gradients.decomposed import DECOMPOSITIONS

sys.path.insert(0, str(Path(__file__).parent.parent / "op"))
from op_cases import arrays_of, cases  # noqa: E402

CASES = [pytest.param(n, c, id=f"{n}-{k}") for n, k, c in cases() if n in DECOMPOSITIONS]


@pytest.mark.parametrize("name, case", CASES)
def test_a_decomposition_is_the_operator(name: str, case) -> None:
    arrays, definition = arrays_of(case), OPERATORS[name].definition
    attrs = dict(case.attrs)
    if any(a.dtype.kind not in "fi" for a in arrays) or arrays[0].dtype.kind != "f":
        pytest.skip("only floats have a gradient")
    attrs |= {"extrapolation_value": 0.0} if "extrapolation_value" in definition.fields else {}
    params = [Var(f"x{k}", TensorType(a.shape, a.dtype)) for k, a in enumerate(arrays)]
    func = create("InferType")(IRModule.from_expr(Function(params, Call(definition.op, params, definition(**attrs)))))
    call = func["main"].body
    found, wanted = (
        Interpreter(IRModule.from_expr(f)).evaluate()(*arrays)
        for f in (Function(func["main"].params, DECOMPOSITIONS[name](call, *call.args)), func["main"])
    )
    for ours, theirs in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, wanted)), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-5, atol=2e-5)


def var(name: str, *shape: int, dtype: str = "float64") -> Expr:
    return relay.var(name, shape=shape, dtype=dtype)


def torch_cases():
    """(program, the same in torch)."""
    import torch.nn.functional as F

    line, image, volume = var("x", 2, 3, 9), var("x", 2, 3, 7, 6), var("x", 2, 3, 6, 5, 7)
    half, corners = (
        {"coordinate_transformation_mode": "half_pixel"},
        {"coordinate_transformation_mode": "align_corners"},
    )
    sizes = {"size": (4, 9)}
    yield (
        relay.image.resize2d(image, **sizes, **corners),
        lambda x: F.interpolate(x, (4, 9), mode="bilinear", align_corners=True),
    )
    yield relay.image.resize2d(image, **sizes, **half), lambda x: F.interpolate(x, (4, 9), mode="bilinear")
    cubic = {"method": "cubic", "cubic_alpha": -0.75, **half}
    yield relay.image.resize2d(image, **sizes, **cubic), lambda x: F.interpolate(x, (4, 9), mode="bicubic")
    near = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
    yield relay.image.resize1d(line, size=5, **near), lambda x: F.interpolate(x, 5)
    yield relay.image.resize3d(volume, size=(4, 7, 3), **half), lambda x: F.interpolate(x, (4, 7, 3), mode="trilinear")
    yield relay.nn.upsampling(image, scale_h=2, scale_w=3), lambda x: F.interpolate(x, (14, 18))
    for n, x in enumerate((line, image, volume), 1):
        out, pools = (4, 3, 5)[:n], dict(strides=(2,) * n, padding=(1,) * n)
        for kind in ("avg", "max"):
            same = getattr(F, f"adaptive_{kind}_pool{n}d")
            yield getattr(relay.nn, f"adaptive_{kind}_pool{n}d")(x, output_size=out), lambda x, f=same, o=out: f(x, o)
            build, same = getattr(relay.nn, f"{kind}_pool{n}d"), getattr(F, f"{kind}_pool{n}d")
            for ceil in (False, True):
                more = {"count_include_pad": True} if kind == "avg" else {}
                call = build(x, pool_size=(3,) * n, ceil_mode=ceil, **pools, **more)
                yield call, lambda x, f=same, c=ceil: f(x, 3, 2, 1, ceil_mode=c)
        dilated = build(x, pool_size=(2,) * n, dilation=(3,) * n)
        yield dilated, lambda x, f=same: f(x, 2, 1, 0, 3)
    yield (
        relay.nn.lrn(image, size=3, alpha=0.5, beta=0.6, bias=1.5),
        lambda x: F.local_response_norm(x, 3, 0.5, 0.6, 1.5),
    )
    theta = var("x", 2, 2, 3)
    yield (
        relay.image.affine_grid(theta, (4, 5)),
        lambda x: F.affine_grid(x, (2, 1, 4, 5), align_corners=True).permute(0, 3, 1, 2),
    )


def grid_cases():
    """The same for all ways to sample at the places of a grid, of which many lie far outside."""
    import torch.nn.functional as F

    far = lambda grid: relay.multiply(grid, relay.const(1.8, "float64"))
    inputs = {
        "NCHW": (var("x", 2, 3, 5, 4), var("grid", 2, 2, 3, 6), (0, 2, 3, 1)),
        "NCDHW": (var("x", 2, 3, 4, 3, 5), var("grid", 2, 3, 3, 2, 4), (0, 2, 3, 4, 1)),
    }
    paddings = ("zeros", "border", "reflection")
    for layout, method, padding, corners in product(
        inputs, ("nearest", "bilinear", "bicubic"), paddings, (True, False)
    ):
        if (layout, method) == ("NCDHW", "bicubic"):
            continue  # torch has none; differences are taken of it below
        if layout == "NCDHW" and corners:
            continue  # what it means is the same along each axis
        x, grid, axes = inputs[layout]
        how = {"padding_mode": padding, "align_corners": corners}
        yield (
            relay.image.grid_sample(x, far(grid), method=method, layout=layout, **how),
            lambda x, g, axes=axes, mode=method, how=how: F.grid_sample(x, 1.8 * g.permute(axes), mode=mode, **how),
        )


def crop_cases():
    """The same for crops: they are samples at the places of a grid, other than that all is cut off outside."""
    import torch
    import torch.nn.functional as F

    which, border = np.array([1, 0, 1, 7]), 0.5
    limits = np.array([[0.1, 0.2, 0.8, 1.1], [0.03, 0.02, 0.96, 0.97], [0.9, 0.3, 0.2, 0.6], [-0.4, 0.7, 0.5, 0.1]])

    def cropped(x, shifts, size, mode):
        boxes = torch.tensor(limits) + 0.01 * shifts
        places = []
        for d, n in enumerate(size):
            first, last = boxes[:, d, None], boxes[:, d + 2, None]
            share = torch.tensor(np.linspace(0, 1, n) if n > 1 else [0.5])
            places.append(first + (last - first) * share)
        y, x_ = torch.broadcast_tensors(places[0][:, :, None], places[1][:, None, :])
        found = F.grid_sample(x[which.clip(0, 1)], torch.stack([x_, y], -1) * 2 - 1, mode=mode, align_corners=True)
        inside = ((y >= 0) & (y <= 1) & (x_ >= 0) & (x_ <= 1))[:, None]
        return torch.where(inside, found, border)

    boxes = relay.add(relay.const(limits, "float64"), relay.multiply(var("shifts", 4, 4), relay.const(0.01, "float64")))
    for layout, method, size in product(("NCHW", "NHWC"), ("bilinear", "nearest_neighbor"), ((3, 4), (1, 5), (4, 1))):
        image = var("x", *((2, 3, 5, 6) if layout == "NCHW" else (2, 5, 6, 3)))
        how = {"crop_size": size, "layout": layout, "method": method, "extrapolation_value": border}

        def same(x, shifts, size=size, mode=method.split("_")[0], last=layout == "NHWC"):
            found = cropped(x.permute(0, 3, 1, 2) if last else x, shifts, size, mode)
            return found.permute(0, 2, 3, 1) if last else found

        yield relay.image.crop_and_resize(image, boxes, relay.const(which, "int64"), **how), same


@pytest.mark.parametrize("cases_of", [torch_cases, grid_cases, crop_cases])
def test_gradients_are_those_of_torch(cases_of) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for body, same in cases_of():
        params = relay.analysis.free_vars(body)
        shape = create("InferType")(IRModule.from_expr(Function(params, body)))["main"].ret_type.concrete_shape
        weights = rng.normal(size=shape)
        weighted = relay.multiply(body, relay.const(weights, "float64"))
        func = create("InferType")(IRModule.from_expr(Function(params, weighted)))["main"]
        values = [rng.uniform(-1.1, 1.1, p.checked_type.concrete_shape) for p in func.params]
        inputs = [torch.tensor(v, requires_grad=True) for v in values]
        (same(*inputs) * torch.tensor(weights)).sum().backward()
        found = Interpreter(IRModule.from_expr(gradient(func))).evaluate()(*values)[1]
        for ours, theirs in zip(found, inputs, strict=True):
            np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-9, atol=1e-9, err_msg=str(body))


def test_the_largest_of_windows_is_found_beside_infinities() -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).normal(size=(1, 2, 7, 6))
    values[0, 0, 2, 3] = values[0, 1, :, :2] = -np.inf
    x = var("x", 1, 2, 7, 6)
    func = create("InferType")(IRModule.from_expr(Function([x], relay.nn.adaptive_max_pool2d(x, (3, 3)))))["main"]
    theirs = torch.tensor(values, requires_grad=True)
    torch.nn.functional.adaptive_max_pool2d(theirs, (3, 3)).sum().backward()
    found = Interpreter(IRModule.from_expr(gradient(func))).evaluate()(values)[1][0]
    np.testing.assert_array_equal(found, theirs.grad.numpy())


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_cubic_samples_of_volumes_are_central_differences(padding: str) -> None:
    rng, step = np.random.default_rng(2), 1e-6
    params = [var("x", 1, 2, 3, 4, 3), var("grid", 1, 3, 2, 1, 2)]
    body = relay.image.grid_sample(*params, method="bicubic", layout="NCDHW", padding_mode=padding)
    mod = create("InferType")(IRModule.from_expr(Function(params, body)))
    values = [rng.uniform(-1.3, 1.3, p.checked_type.concrete_shape) for p in mod["main"].params]
    run, grads = (
        Interpreter(mod).evaluate(),
        Interpreter(IRModule.from_expr(gradient(mod["main"]))).evaluate()(*values)[1],
    )
    for k, grad in enumerate(grads):
        way = rng.uniform(-1, 1, grad.shape)
        up, down = (run(*[v + s * step * way if j == k else v for j, v in enumerate(values)]).sum() for s in (1, -1))
        np.testing.assert_allclose((grad * way).sum(), (up - down) / (2 * step), rtol=2e-6, atol=2e-6)


def compiled_programs() -> dict[str, Expr]:
    image, volume = var("x", 1, 2, 5, 6, dtype="float32"), var("x", 1, 2, 4, 5, 3, dtype="float32")
    grid, boxes = var("grid", 1, 2, 3, 4, dtype="float32"), var("boxes", 3, 4, dtype="float32")
    return {
        "grid": relay.image.grid_sample(image, grid, method="bilinear", padding_mode="zeros"),
        "crop": relay.image.crop_and_resize(
            image, boxes, relay.const([0] * 3, "int32"), crop_size=(3, 2), layout="NCHW"
        ),
        "resize": relay.image.resize2d(image, size=(3, 8), method="cubic"),
        "adaptive": relay.nn.adaptive_max_pool3d(volume, output_size=(3, 2, 2)),
        "dilation": relay.image.dilation2d(image, var("w", 2, 3, 3, dtype="float32"), padding=(1, 1), dilations=(1, 2)),
        "max": relay.nn.max_pool3d(volume, pool_size=(2, 2, 2), dilation=(2, 1, 1), padding=(0, 1, 0)),
        "avg": relay.nn.avg_pool3d(volume, pool_size=(3, 2, 2), strides=(2, 2, 2), padding=(1, 0, 1)),
        "lrn": relay.nn.lrn(image, size=3, alpha=0.5),
    }


@pytest.mark.parametrize("name", compiled_programs())
def test_compiled_gradients_are_the_interpreter_s(name: str) -> None:
    body = compiled_programs()[name]
    func = create("InferType")(IRModule.from_expr(Function(relay.analysis.free_vars(body), body)))["main"]
    mod = IRModule.from_expr(gradient(func))
    rng = np.random.default_rng(1)
    values = [rng.uniform(-1, 1, p.checked_type.concrete_shape).astype("float32") for p in func.params]
    wanted = Interpreter(mod).evaluate()(*values)
    found = relay.create_executor("graph", mod=mod, target="llvm").evaluate()(*values)
    for ours, theirs in zip((found[0], *found[1]), (wanted[0], *wanted[1]), strict=True):
        np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=1e-4, atol=1e-5)
