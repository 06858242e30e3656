"""Gradients of pools of regions and of moved boxes, against torch's of the same formulas told with loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from test_gradient_samples import program

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import OPERATORS, Function, IRModule
from relaylab.transform import create, gradient

torch = pytest.importorskip("torch")
WITHOUT_LOOPS = ("vision.roi_align", "vision.multibox_transform_loc")
RNG = np.random.default_rng(0)
IMAGE, SCALE, POOLED = (7, 9), 0.5, (3, 2)
ROIS = np.array(  # inside, past two edges, smaller than a pixel, far outside, of an image that there is not, large
    [
        [0, 1.3, 2.1, 9.2, 11.7],
        [1, -6.3, -5.2, 8.4, 7.9],
        [0, 5.1, 5.3, 5.2, 5.4],
        [1, 40.2, 50.3, 60.4, 70.5],
        [7, 3.2, 1.6, 17.9, 20.3],
        [0, -31.7, -20.2, 70.6, 90.9],
    ]
)


def gradients(body, values: list[np.ndarray], weights: np.ndarray):
    """The gradients of a weighted sum of a program of x0, x1, ..."""
    named = {p.name_hint: p for p in relay.analysis.free_vars(body)}
    params = [named[f"x{k}"] for k in range(len(values))]
    weighted = Function(params, relay.multiply(body, relay.const(weights, "float64")))
    typed = create("InferType")(IRModule.from_expr(weighted))["main"]
    return Interpreter(IRModule.from_expr(gradient(typed))).evaluate()(*values)


def held(body, same, data: np.ndarray) -> None:
    """Holds result and gradient of a pool of ROIS against a function of torch; none flows to the regions."""
    x = torch.tensor(data, requires_grad=True)
    theirs = same(x)
    weights = RNG.normal(size=theirs.shape)
    (theirs * torch.tensor(weights)).sum().backward()
    out, (ours, regions) = gradients(body, [data, ROIS], weights)
    np.testing.assert_allclose(out, theirs.detach().numpy() * weights, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours, x.grad.numpy(), rtol=1e-9, atol=1e-9)
    assert regions.shape == ROIS.shape and not regions.any()


def aligned(x, ratio: int, mode: str, half: bool):
    """He et al. 2017, sampled by torch's grid_sample, whose border is the nearest pixel."""
    cells = []
    for image, *box in ROIS:
        (x1, y1, x2, y2), n = np.array(box) * SCALE, min(int(image), len(x) - 1)
        lines = []
        for first, last, count in ((y1, y2, POOLED[0]), (x1, x2, POOLED[1])):
            first, cell = (first - 0.5, (last - first) / count) if half else (first, max(last - first, 1.0) / count)
            samples = ratio if ratio > 0 else math.ceil(cell)
            lines.append(first + (np.arange(count * samples) + 0.5).reshape(count, -1) * (cell / samples))
        for row in lines[0]:
            for column in lines[1]:
                ys, xs = np.meshgrid(row, column, indexing="ij")
                seen = (ys >= -1) & (ys <= IMAGE[0]) & (xs >= -1) & (xs <= IMAGE[1])
                grid = np.stack([2 * xs / (IMAGE[1] - 1) - 1, 2 * ys / (IMAGE[0] - 1) - 1], -1)[None]
                how = {"padding_mode": "border", "align_corners": True}
                found = torch.nn.functional.grid_sample(x[n : n + 1], torch.tensor(grid), **how)[0]
                found = torch.where(torch.tensor(seen), found, 0.0).flatten(1)
                cells.append(found.mean(1) if mode == "avg" else found.max(1).values)
    return torch.stack(cells).reshape(len(ROIS), *POOLED, -1).permute(0, 3, 1, 2)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize("half", [False, True])
def test_roi_align(half: bool, ratio: int, mode: str, layout: str) -> None:
    data = RNG.normal(size=(2, 3, *IMAGE))
    last = layout == "NHWC"
    data = data.transpose(0, 2, 3, 1).copy() if last else data
    x, rois = (relay.var(f"x{k}", shape=a.shape, dtype="float64") for k, a in enumerate((data, ROIS)))
    body = relay.vision.roi_align(x, rois, POOLED, SCALE, ratio, layout, mode, half)
    turned = lambda v: aligned(v.permute(0, 3, 1, 2), ratio, mode, half).permute(0, 2, 3, 1)
    held(body, turned if last else lambda v: aligned(v, ratio, mode, half), data)


def pooled(x):
    """Girshick 2015: the maxima of cells, 0 where a cell is empty."""
    cells = []
    for image, *box in ROIS:
        x1, y1, x2, y2 = (math.floor(v * SCALE + 0.5) if v >= 0 else math.ceil(v * SCALE - 0.5) for v in box)
        n, ends = min(int(image), len(x) - 1), []
        for first, last, count, size in ((y1, y2, POOLED[0], IMAGE[0]), (x1, x2, POOLED[1], IMAGE[1])):
            cell = max(last - first + 1, 1) / count
            limits = [(math.floor(k * cell) + first, math.ceil((k + 1) * cell) + first) for k in range(count)]
            ends.append([[min(max(v, 0), size) for v in limit] for limit in limits])
        for top, bottom in ends[0]:
            for left, right in ends[1]:
                found = x[n, :, top:bottom, left:right].flatten(1)
                cells.append(found.max(1).values if found.shape[1] else 0 * x[0, :, 0, 0])
    return torch.stack(cells).reshape(len(ROIS), *POOLED, -1).permute(0, 3, 1, 2)


@pytest.mark.parametrize("equal", [False, True])
def test_roi_pool(equal: bool) -> None:
    """Of equal elements the first has all of the gradient."""
    data = RNG.normal(size=(2, 3, *IMAGE))
    data = np.sign(data) if equal else data
    x, rois = (relay.var(f"x{k}", shape=a.shape, dtype="float64") for k, a in enumerate((data, ROIS)))
    held(relay.vision.roi_pool(x, rois, POOLED, SCALE), pooled, data)


@pytest.mark.parametrize("classes, clip", [(3, False), (3, True), (1, True)])
def test_multibox_transform_loc(classes: int, clip: bool) -> None:
    """Liu et al. 2016: the rows that are valid move up, with their gradient."""
    low, size = RNG.uniform(0, 0.6, (1, 6, 2)), RNG.uniform(0.1, 0.5, (1, 6, 2))
    values = [RNG.uniform(size=(2, classes, 6)), RNG.normal(size=(2, 24)), np.concatenate([low, low + size], 2)]
    params = [relay.var(f"x{k}", shape=a.shape, dtype="float64") for k, a in enumerate(values)]
    variances = (0.1, 0.3, 0.2, 0.4)
    body = relay.vision.multibox_transform_loc(*params, clip=clip, threshold=0.6, variances=variances)[0]
    prob, moves, anchor = inputs = [torch.tensor(v, requires_grad=True) for v in values]
    weights = RNG.normal(size=(2, 6, 6))
    total, kept = sum(0 * v.sum() for v in inputs), []
    for n in range(2):
        row = 0
        for k in range(6):
            scores = prob[n, 1:, k]
            if not len(scores) or scores.max() < 0.6:
                continue
            (cx, cy), (w, h) = (anchor[0, k, :2] + anchor[0, k, 2:]) / 2, anchor[0, k, 2:] - anchor[0, k, :2]
            x, y, a, b = moves[n, 4 * k : 4 * k + 4] * torch.tensor(variances, dtype=torch.float64)
            x, y, a, b = cx + x * w, cy + y * h, w * a.exp() / 2, h * b.exp() / 2
            box = torch.stack([x - a, y - b, x + a, y + b])
            box = box.clamp(0, 1) if clip else box
            total = total + scores.max() * weights[n, row, 1] + (box * torch.tensor(weights[n, row, 2:])).sum()
            row += 1
        kept.append(row)
    assert classes == 1 or 0 < min(kept) < 6
    total.backward()
    _, found = gradients(body, values, weights)
    for ours, theirs in zip(found, inputs, strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITHOUT_LOOPS)
def test_compiled_gradients_are_the_interpreter_s(name: str) -> None:
    """These operators are evaluated themselves; what their gradients are made of is compiled."""
    for case in OPERATORS[name].definition.samples():
        mod, values = program(name, case)
        both = IRModule.from_expr(gradient(mod["main"], mod))
        wanted = Interpreter(both).evaluate()(*values)[1]
        found = relay.create_executor("vm", mod=both, target="llvm").evaluate()(*values)[1]
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-9)
