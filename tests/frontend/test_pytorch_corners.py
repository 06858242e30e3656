"""Core operators of ATen at their corners against torch: nan and infinities, small integers, halves, scalars, nothing."""
# ruff: noqa: E501 (a case a cell)

from __future__ import annotations

import pytest
from pytorch_tools import agree_together, torch
from test_pytorch_core import HOLES, IMAGE, INF, LEFT, NAN, ODD, RIGHT, B, D, I, X, Y, ints, r

from torch.nn import functional as F  # noqa: E402  (after the skip)

S, NONE, BETWEEN = torch.tensor(1.5), torch.empty(0, 3), torch.empty(2, 0, 3)
U8, I8, I32 = (
    ints(3, 4, low=0, high=255).to(torch.uint8),
    ints(3, 4, low=-128, high=127).to(torch.int8),
    ints(3, 4).int(),
)
ENDS = torch.tensor([[INF, 1, -INF], [-INF, -INF, -INF], [0, -0.0, NAN]])
NEAR = torch.tensor([1e-4, -1e-3, 1e-20, 0.999999, -0.999999, 1.0, -1.0, 50.0, -50.0, 88.0, -100.0])

ONE = {
    "odd": ODD,
    "odd double": ODD.double(),
    "near": NEAR,
    "uint8": U8,
    "int8": I8,
    "bool": B,
    "scalar": S,
    "nothing": NONE,
}
TWO = {
    "odd": (LEFT, RIGHT), "mixed": (I32, r(3, 4)), "bytes": (U8, I8.abs() + 1), "scalars": (S, torch.tensor(-3)), "nothing": (NONE, NONE),
    "broadcast": (X, r(3, 1)), "bool int": (B, I.abs() + 1), "widths": (D, X), "int8": (I8, I8.flip(0) | 1), "number": (X, torch.tensor(2)), "odd number": (I, torch.tensor(2.5)),
}  # fmt: skip
OVER = {"holes": HOLES, "ends": ENDS, "int8": I8, "uint8": U8, "bool": B, "double": D, "scalar": S}
UNARY = "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor isinf isnan log log10 log1p log2 logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc".split()
BINARY = "add sub mul div maximum minimum eq ne lt le gt ge fmod remainder pow atan2 logical_and logical_or logical_xor".split()
REDUCING = "sum mean amax amin any all argmax argmin var logsumexp max min".split()

CASES = {f"{n} {k}": (getattr(torch, n), x) for n in UNARY for k, x in ONE.items()}
CASES |= {f"{n} {k}": (getattr(torch, n), *xs) for n in BINARY for k, xs in TWO.items()}
CASES |= {
    f"{n} last {k}": (lambda x, f=getattr(torch, n): f(x, -1), x)
    for n in [*REDUCING, "cumsum", "softmax", "log_softmax"]
    for k, x in OVER.items()
}
CASES |= {
    f"{n} kept {k}": (lambda x, f=getattr(torch, n): f(x, dim=0, keepdim=True), x)
    for n in REDUCING
    for k, x in OVER.items()
}
CASES |= {
    f"{n} of nothing": (lambda x, f=getattr(torch, n): f(x, 1), BETWEEN)
    for n in ("sum", "prod", "any", "all", "mean", "var", "logsumexp", "cumsum")
}
CASES |= {
    f"{n} odd": (getattr(F, n), ODD)
    for n in "silu hardtanh elu leaky_relu relu6 softplus hardswish mish hardsigmoid logsigmoid selu".split()
}
CASES |= {f"pow {e}": (lambda x, e=e: x**e, ODD) for e in (2, 0.5, -0.5, 3, -2, 0, 1, -1)} | {
    f"pow int {e}": (lambda x, e=e: x**e, U8) for e in (0, 1, 2, 3)
}
CASES |= {
    f"div {m} {k}": (lambda a, b, m=m: torch.div(a, b, rounding_mode=m), *TWO[k])
    for m in ("floor", "trunc")
    for k in ("odd", "int8", "mixed", "bytes")
}
CASES |= {
    "pow wraps": (lambda x: x**15, I), "pow back": (torch.pow, I, I), "pow base": (lambda x: torch.pow(-2.0, x), ODD), "log1p far": (torch.log1p, torch.tensor([3e38, 1e10, -1.0, -2.0])),
    "squeeze scalar": (torch.squeeze, S), "unsqueeze scalar": (lambda x: x.unsqueeze(-1), S), "expand scalar": (lambda x: x.expand(2, 3), S), "repeat never": (lambda x: x.repeat(0, 1, 1), X),
    "flip none": (lambda x: x.flip([]), X), "roll bool": (lambda x: x.roll(1, 0), B), "cat empty": (lambda x: torch.cat([torch.empty(0), x], 0), X), "cat bytes": (lambda x, y: torch.cat([x, y], -1), U8, I8),
    "split empty": (lambda x: x.split((0, 3), 1), X), "pad ints": (lambda x: F.pad(x, (1, 0, 2, 1), value=-5), I), "pad cut": (lambda x: F.pad(x, (-1, 1, -1, -1)), X), "pad infinite": (lambda x: F.pad(x, (1, 1), value=-INF), X),
    "arange back": (lambda x: x + torch.arange(3, -1, -1), X), "arange none": (lambda x: torch.cat([x, torch.arange(3, 3).float()]), r(2)), "copy wide": (lambda x, y: x.clone().copy_(y), X, I[0]),
    "to bool": (lambda x: x.bool(), ODD), "to int8": (lambda x: x.to(torch.int8), I * 100), "clamp odd": (lambda x: x.clamp(0, 1), ODD), "clamp crossed": (lambda x: x.clamp(2, 1), X), "clamp bytes": (lambda x: x.clamp(10, 100), U8),
    "clamp ints by floats": (lambda x: x.clamp(-1.5, 2.5), I), "where numbers": (lambda x: torch.where(x > 0, 1, 0), X), "embedding one": (F.embedding, torch.tensor(2), r(5, 3)), "embedding none": (F.embedding, torch.empty(0, dtype=torch.int64), r(5, 3)),
    "index_select one": (lambda x, i: x.index_select(-1, i), X, torch.tensor(2)), "gather scalar": (lambda x, i: x.gather(0, i), S, torch.tensor(0)), "gather none": (lambda x, i: x.gather(1, i), X, torch.empty(2, 0, 4, dtype=torch.int64)),
    "scatter scalar": (lambda x, i, s: x.scatter(0, i, s), S, torch.tensor(0), r()), "scatter none": (lambda x, i, s: x.scatter(0, i, s), X, torch.empty(0, 3, 4, dtype=torch.int64), Y), "scatter_add scalar": (lambda x, i, s: x.scatter_add(0, i, s), S, torch.tensor(0), r()),
    "scatter bool": (lambda x, i: x.scatter(1, i, True), B, torch.zeros(2, 1, 4, dtype=torch.int64)), "index back": (lambda x, i: x[..., i], X, torch.tensor([-1, -4])), "index many": (lambda x, i: x[None, i, ..., None], X, torch.tensor([1])),
    "index_put apart": (lambda x, i, j, v: torch.ops.aten.index_put(x, [i, None, j], v), X, torch.tensor([0, 1]), torch.tensor([1, 2]), r(2, 3)), "slice_scatter back": (lambda x, y: torch.slice_scatter(x, y, -1, -3, -1), X, r(2, 3, 2)),
    "topk scalar": (lambda x: x.topk(1), S), "topk none": (lambda x: x.topk(0, -1), X), "topk nan": (lambda x: x.topk(2, -1).values, HOLES), "sort scalar": (torch.sort, S), "sort none": (lambda x: x.sort(1), BETWEEN), "sort bool": (lambda x: torch.sort(x, stable=True, dim=-1), B),
    "sort nan down": (lambda x: torch.sort(x, stable=True, dim=1, descending=True), HOLES), "round tens": (lambda x: torch.round(x, decimals=-1), X * 100), "mm of nothing": (torch.mm, torch.empty(2, 0), torch.empty(0, 3)), "mm ints": (torch.mm, I[0], I[1].t().contiguous()),
    "addmm without": (lambda b, x, y: torch.addmm(b * NAN, x, y, beta=0), r(5), r(3, 4), r(4, 5)), "conv double": (lambda x, w: F.conv2d(x, w, padding=1), IMAGE.double(), r(3, 4, 3, 3, dtype=torch.float64)), "max_pool nan": (lambda x: F.max_pool1d(x, 2), HOLES[None]),
    "adaptive larger": (lambda x: F.adaptive_avg_pool2d(x, (13, 11)), IMAGE), "layer_norm of 0": (lambda x: F.layer_norm(x * 0, (4,)), X), "norm 0": (lambda x: torch.linalg.vector_norm(x, 0, dim=-1), X.relu()), "norm -inf": (lambda x: torch.linalg.vector_norm(x, -INF, dim=0), X),
    "var beyond": (lambda x: x.var(1, correction=5), X), "std of one": (lambda x: x[:, :1].std(1), X),
    **{f"{mode} of {by}": (lambda x, mode=mode, by=by: F.interpolate(x, scale_factor=by, mode=mode), IMAGE) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic") for by in (1.1, 2.3, 0.6)},
    **{f"{mode} to {n}": (lambda x, mode=mode, n=n: F.interpolate(x, n, mode=mode), r(1, 2, 50)) for mode in ("nearest", "nearest-exact") for n in (41, 47, 73)},
    "nearest of volumes": (lambda x: F.interpolate(x, scale_factor=1.1), r(1, 1, 9, 5, 3)), "instance_norm half": (lambda x: F.instance_norm(x) > 0, (r(2, 3, 40) * 3000).half()),
}  # fmt: skip


def _refused(case: str) -> bool:
    """Whether torch itself refuses: means of integers, minus of bools."""
    function, *inputs = CASES[case]
    try:
        function(*inputs)
    except (RuntimeError, IndexError, ValueError, TypeError):
        return True
    return False


TOGETHER = 24  # cases in one program
TAKEN = [case for case in CASES if not _refused(case)]
PARTS = [TAKEN[k : k + TOGETHER] for k in range(0, len(TAKEN), TOGETHER)]


@pytest.mark.slow
@pytest.mark.parametrize("cases", PARTS, ids=lambda cases: cases[0])
def test_as_torch(cases: list[str]) -> None:
    agree_together([CASES[case] for case in cases])


def test_torch_refuses_few() -> None:
    assert len(TAKEN) > 0.9 * len(CASES) > 600
