"""More operators of ATen against torch itself: corner values, negative axes, ties, masks, several data types."""
# ruff: noqa: E501 (a case a cell)

from __future__ import annotations

import math

import pytest
from pytorch_tools import agree, agree_together, compare, program, run, torch, wanted, Wrapped

from relaylab import relay
from relaylab.frontend.graph import module_of
from relaylab.frontend.pytorch.importer import TorchImporter
from relaylab.support.errors import RelayError
from torch.nn import functional as F  # noqa: E402  (after the skip)

NAN, INF = math.nan, math.inf
A = torch.ops.aten


def r(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ints(*shape, low=-9, high=9, seed=1, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


X, Y, D = r(2, 3, 4), r(2, 3, 4, seed=5), r(2, 3, 4, dtype=torch.float64)
I, SMALL = ints(2, 3, 4), ints(2, 3, 7, low=0, high=3)
B = I > 0
ODD = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 0.5, 1.5, -2.5, 3.0, NAN])
LEFT, RIGHT = (v.flatten() for v in torch.meshgrid(ODD[:9], ODD[:9], indexing="ij"))
HOLES = torch.where(r(3, 6, seed=3) > 0.8, NAN, r(3, 6, seed=4))
TAIL = torch.linspace(-6, 9, 61)
IMAGE, VOLUME = r(2, 4, 9, 8), r(1, 2, 5, 6, 7)

NUMBERS = {
    "erfc": (torch.erfc, TAIL), "erfc double": (torch.erfc, torch.linspace(-3, 25, 57, dtype=torch.float64)),
    "erfc odd": (torch.erfc, ODD), "erfc int": (torch.erfc, ints(9, low=-2, high=4)),
    "erfcx": (torch.special.erfcx, TAIL), "erfcx double": (torch.special.erfcx, torch.linspace(-5, 50, 45, dtype=torch.float64)),
    "log_ndtr": (torch.special.log_ndtr, TAIL * 2), "exp2": (torch.exp2, TAIL), "exp2 int": (torch.exp2, I), "exp2 odd": (torch.exp2, ODD),
    "ldexp": (torch.ldexp, X, I), "hypot": (torch.hypot, X, Y), "hypot odd": (torch.hypot, LEFT, RIGHT), "hypot large": (torch.hypot, X * 1e38, Y * 1e38),
    "hypot double": (torch.hypot, D * 1e-200, D), "copysign": (torch.copysign, X, Y), "copysign odd": (torch.copysign, ODD[1:9], -ODD[1:9]),
    "copysign scalar": (lambda x: torch.copysign(x, -0.0), X), "copysign int": (torch.copysign, I, X), "signbit": (torch.signbit, ODD[1:9]),
    "signbit int": (torch.signbit, I), "signbit bool": (torch.signbit, B), "fmax": (torch.fmax, LEFT, RIGHT), "fmin": (torch.fmin, LEFT, RIGHT),
    "fmax int": (torch.fmax, I, ints(4, seed=4)), "fmin bool": (torch.fmin, B, ~B[0]), "atan2 odd": (torch.atan2, LEFT, RIGHT), "atan2 double": (torch.atan2, D, -D.flip(0)),
    "atan2 ints": (torch.atan2, I, I.flip(0)), "logaddexp": (torch.logaddexp, LEFT, RIGHT), "logaddexp2": (torch.logaddexp2, X, Y), "xlogy": (torch.xlogy, LEFT, RIGHT),
    "nan_to_num": (lambda x: torch.nan_to_num(x, 1.0, 9.0), ODD), "isclose": (lambda a, b: torch.isclose(a, b, equal_nan=True), LEFT, RIGHT),
    "heaviside": (torch.heaviside, ODD[1:9], X.flatten()[:8]), "ndtr": (torch.special.ndtr, TAIL),
}  # fmt: skip

VIEWS = {
    "diagonal": (torch.diagonal, X), "diagonal last": (lambda x: x.diagonal(1, -2, -1), X), "diagonal low": (lambda x: x.diagonal(-1, 2, 1), X),
    "diagonal crossed": (lambda x: x.diagonal(1, 2, 0), X), "diagonal none": (lambda x: x.diagonal(7, 1, 2), X), "diag": (torch.diag, r(3, 5)), "trace": (torch.trace, r(3, 5)),
    "diag_embed": (lambda x: torch.diag_embed(x, 1), X[0]), "diag of vector": (torch.diag, r(3)), "diagonal_scatter": (lambda x, y: torch.diagonal_scatter(x, y, 1, 0, 2), X, r(3, 2)),
    "diagonal_scatter low": (lambda x, y: torch.diagonal_scatter(x, y, -1), r(4, 4), r(3)), "unfold": (lambda x: x.unfold(1, 2, 1), X), "unfold step": (lambda x: x.unfold(-1, 2, 2), I),
    "unfold all": (lambda x: x.unfold(0, 2, 1), X), "unfold scalar": (lambda x: x.unfold(0, 1, 1), X[0, 0, 0]), "as_strided": (lambda x: x.as_strided((2, 3, 2), (12, 1, 4), 1), X),
    "as_strided over": (lambda x: x.as_strided((5, 3), (1, 2)), X), "as_strided still": (lambda x: x.as_strided((2, 3), (0, 1), 5), I),
    "as_strided turned": (lambda x: x.permute(2, 0, 1).as_strided((3, 4), (4, 1)), X), "as_strided none": (lambda x: x.as_strided((0, 2), (1, 1)), X),
    "view dtype": (lambda x: x.view(torch.int32), X), "view float": (lambda x: (x + 2**30).view(torch.float64), I), "narrow_copy": (lambda x: torch.narrow_copy(x, 2, 1, 2), X),
    "narrow_copy back": (lambda x: torch.narrow_copy(x, -1, -3, 2), X), "unbind_copy": (lambda x: torch.unbind_copy(x, -1), X[:, :, :2]),
    "fold": (lambda x: F.fold(x, (5, 6), (2, 3)), r(2, 12, 16)), "fold strided": (lambda x: F.fold(x, (7, 9), (3, 2), (2, 1), (1, 2), (2, 3)), r(2, 18, 12)),
    "fold one": (lambda x: F.fold(x, (4, 4), 2, stride=2), r(8, 4)), "fold of unfold": (lambda x: F.fold(F.unfold(x, 3, padding=1), (9, 8), 3, padding=1), IMAGE),
    "im2col": (lambda x: F.unfold(x, (3, 2), (2, 1), (1, 0), (2, 3)), IMAGE), "tril_indices": (lambda x: x + torch.tril_indices(3, 4, -1), r(2, 1)),
    "triu_indices": (lambda x: x[tuple(torch.triu_indices(3, 4, 1))], X[0]), "fill": (lambda x: A.fill.Scalar(x, 2.5), X), "fill int": (lambda x: x.clone().fill_(7), I),
    "fill tensor": (lambda x, v: A.fill.Tensor(x, v), X, r()), "empty_strided": (lambda x: torch.empty_strided((2, 3), (1, 2)).fill_(3) + x, r(3)),
    "new_empty_strided": (lambda x: torch.zeros_like(x.new_empty_strided((2, 2), (2, 1))), X), "unflatten": (lambda x: x.unflatten(-1, (2, -1)), X),
    "stride": (lambda x: x * x.stride(1), X), "roll many": (lambda x: x.roll((-1, 5, 2), (0, -1, 1)), I), "interleave": (lambda x: x.repeat_interleave(torch.tensor([2, 0, 1]), 1), X),
    "interleave each": (lambda x, n: x.repeat_interleave(n, -1, output_size=7), X, torch.tensor([1, 3, 0, 3])),
    "pixel_shuffle deep": (lambda x: F.pixel_shuffle(x, 2), r(3, 2, 8, 2, 3)), "tensor_split": (lambda x: x.tensor_split((1, 3), -1), X), "block_diag": (torch.block_diag, X[0], I[0]),
}  # fmt: skip

ORDER = {
    "cummax": (lambda x: torch.cummax(x, 1), X), "cummax ties": (lambda x: torch.cummax(x, -1), SMALL), "cummax nan": (lambda x: torch.cummax(x, 1), HOLES),
    "cummax bool": (lambda x: torch.cummax(x, 0), B), "cummax scalar": (lambda x: torch.cummax(x, 0), X[0, 0, 0]), "cummin": (lambda x: torch.cummin(x, -2), D),
    "cummin ties": (lambda x: torch.cummin(x, 2), SMALL.to(torch.uint8)), "cummin nan": (lambda x: torch.cummin(x, 0), HOLES), "cummin infinite": (lambda x: torch.cummin(x, 0), ODD),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, -1), X * 50), "logcumsumexp odd": (lambda x: torch.logcumsumexp(x, 0), ODD[1:9].flip(0)), "logcumsumexp double": (lambda x: torch.logcumsumexp(x, 0), D),
    "logsumexp many": (lambda x: torch.logsumexp(x, (0, -1), True), X * 90), "kthvalue": (lambda x: torch.kthvalue(x, 2, 1), X), "kthvalue keep": (lambda x: x.kthvalue(4, keepdim=True), D),
    "kthvalue scalar": (lambda x: x.kthvalue(1), X[0, 0, 0]), "median": (torch.median, X), "median int": (torch.median, I), "median nan": (torch.median, HOLES),
    "median dim": (lambda x: x.median(1), X), "median dim even": (lambda x: x.median(-1, keepdim=True), X), "median dim nan": (lambda x: x.median(1), HOLES), "median dim int": (lambda x: torch.arange(7) + x.median(0).values, ints(5, 7)),
    "nanmedian": (torch.nanmedian, HOLES), "nanmedian dim": (lambda x: x.nanmedian(1), HOLES), "nanmedian of none": (lambda x: (x * NAN).nanmedian(1).values, X),
    "mode": (lambda x: x.mode(-1), SMALL), "mode keep": (lambda x: x.mode(1, True), ints(2, 9, 3, low=0, high=3)), "mode one": (lambda x: x.mode(0), X[:1]), "mode scalar": (lambda x: x.mode(), I[0, 0, 0]),
    "searchsorted": (torch.searchsorted, torch.tensor([-1.0, 0, 0, 0.5]), X), "searchsorted rows": (lambda s, x: torch.searchsorted(s.sort(-1).values, x, right=True, out_int32=True), Y, X),
    "searchsorted side": (lambda s, x: torch.searchsorted(s, x, side="right"), torch.tensor([1, 2, 2, 5]), I), "searchsorted number": (lambda s: torch.searchsorted(s, 2), torch.tensor([1, 2, 2, 5])),
    "searchsorted sorter": (lambda s, x: torch.searchsorted(s, x, sorter=s.argsort(-1)), Y, X), "histc": (lambda x: torch.histc(x, 7, -1, 1.5), X), "histc ends": (lambda x: torch.histc(x, 4, 0, 3), torch.tensor([0, 1, 1, 3, 3, -1, 4, NAN, INF, 2.9])), "histc range": (lambda x: torch.histc(x, 3), D), "histc one": (lambda x: torch.histc(x, 4, 2, 2), torch.ones(3)), "bucketize": (torch.bucketize, X, torch.tensor([-0.5, 0.0, 1.0])),
    "bucketize right": (lambda x, s: torch.bucketize(x, s, right=True, out_int32=True), I, torch.tensor([-3, 0, 0, 4])), "bucketize one": (lambda x, s: torch.bucketize(x, s), X[0, 0, 0], torch.tensor([-0.5, 1.0])),
    "isin": (torch.isin, I, ints(9, seed=6)), "quantile": (lambda x: x.quantile(0.3, 1), X), "aminmax": (lambda x: torch.aminmax(x, dim=-1), X), "sort nan": (lambda x: x.sort(1), HOLES),
    "argsort down": (lambda x: torch.argsort(x, dim=-1, descending=True, stable=True), SMALL), "topk ends": (lambda x: x.topk(3, 0, largest=False), ints(7, 2, seed=8).float() + r(7, 2) / 9), "msort": (torch.msort, X),
}  # fmt: skip

PLACES = ints(2, 3, 4, low=0, high=3, seed=7)
COMBINED = {
    f"scatter_reduce {how}{'' if own else ' alone'}": (lambda x, i, s, how=how, own=own: x.scatter_reduce(1, i, s, how, include_self=own), X, PLACES, Y)
    for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
} | {
    "scatter_reduce part": (lambda x, i, s: x.scatter_reduce(-1, i, s, "amax"), I, ints(1, 2, 3, low=0, high=4), ints(2, 2, 5, seed=9)),
    "scatter_reduce mean of ints": (lambda x, i, s: x.scatter_reduce(0, i, s, "mean"), ints(5), ints(9, low=0, high=5, seed=2), ints(9, seed=3)),
    "scatter_reduce nan": (lambda x, i, s: x.scatter_reduce(1, i, s, "amax"), torch.zeros(3, 6), ints(3, 6, low=0, high=6), HOLES),
    "scatter_reduce ints": (lambda x, i, s: x.scatter_reduce(0, i, s, "amin", include_self=False), ints(5).int(), ints(9, low=0, high=3, seed=2), ints(9, seed=3).int()),
    "scatter_reduce scalar": (lambda x, s: x.scatter_reduce(0, torch.tensor(0), s, "sum"), r(), r(seed=1)), "scatter add": (lambda x, i, s: x.scatter(1, i, s, reduce="add"), X, PLACES, Y),
    "scatter times": (lambda x, i: x.scatter(2, i, 3.0, reduce="multiply"), X, PLACES), "index_reduce": (lambda x, i, s: x.index_reduce(1, i, s, "prod"), X, torch.tensor([2, 0, 2]), Y),
    "index_reduce mean": (lambda x, i, s: x.index_reduce(-1, i, s, "mean", include_self=False), X, torch.tensor([3, 0, 3]), Y[..., :3]),
    "index_add": (lambda x, i, s: x.index_add(-1, i, s, alpha=2), X, torch.tensor([3, 0, 3]), Y[..., :3]), "index_copy": (lambda x, i, s: x.index_copy(1, i, s), X, torch.tensor([2, 0]), Y[:, :2]),
    "index_fill": (lambda x, i: x.index_fill(2, i, 7.0), X, torch.tensor([3, -4])), "put": (lambda x, i, s: torch.put(x, i, s), X, torch.tensor([[1, 20], [-1, 3]]), r(2, 2)),
    "put add": (lambda x, i, s: torch.put(x, i, s, True), X, torch.tensor([1, 1, 3]), r(3)), "take": (lambda x, i: torch.take(x, i), X, torch.tensor([[1, 20], [-1, 3]])),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m, s), X, B, Y), "masked_scatter wide": (lambda x, m, s: x.masked_scatter(m, s), X, B[0, :, :1], r(40)), "masked_scatter none": (lambda x, m, s: x.masked_scatter(m & ~m, s), I, B, I.flip(0)),
    "index_put rows": (lambda x, i, j: x.index_put((i, j), torch.tensor(5.0)), X, torch.tensor([[0], [1]]), torch.tensor([0, -1])), "index_put sum": (lambda x, i, v: x.index_put((i,), v, accumulate=True), I, torch.tensor([1, 1, 0]), ints(3, 4)),
    "assign slices": (lambda x: _assigned(x), X),
}  # fmt: skip


def _assigned(x):
    x = x.clone()
    x[:, 1:, ::2] = 0
    x[0, ..., -1] += 1
    return x


WORDS, OFFSETS = ints(9, low=0, high=6), torch.tensor([0, 2, 2, 5])
BAGS = {
    f"bag {mode}": (lambda w, i, o, mode=mode: F.embedding_bag(i, w, o, mode=mode), r(6, 3), WORDS, OFFSETS) for mode in ("sum", "mean", "max")
} | {
    f"bag {mode} padded": (lambda w, i, o, mode=mode: F.embedding_bag(i, w, o, mode=mode, padding_idx=2), r(6, 3), WORDS, OFFSETS) for mode in ("sum", "mean", "max")
} | {
    "bag rows": (lambda w, i: F.embedding_bag(i, w), r(6, 3), ints(4, 2, low=0, high=6)), "bag rows weighted": (lambda w, i, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s, padding_idx=2), r(6, 3), ints(4, 2, low=0, high=6), r(4, 2)),
    "bag even": (lambda w, i: F.embedding_bag(i, w, torch.arange(0, 9, 3), mode="max"), r(6, 3), WORDS), "bag uneven": (lambda w, i: F.embedding_bag(i, w, torch.arange(0, 9, 4)), r(6, 3), WORDS), "bag weighted": (lambda w, i, o, s: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=s), r(6, 3), WORDS, OFFSETS, r(9)),
    "bag with end": (lambda w, i, o: F.embedding_bag(i, w, o, include_last_offset=True), r(6, 3), WORDS, torch.tensor([0, 2, 5, 9])), "bag double": (lambda w, i: F.embedding_bag(i, w, mode="max"), r(6, 3, dtype=torch.float64), ints(1, 3, low=0, high=6)),
    "cdist": (torch.cdist, X, r(2, 5, 4)), "cdist batches": (torch.cdist, r(3, 1, 3, 4), r(2, 5, 4)), "pdist": (F.pdist, r(5, 4)), "pdist 1": (lambda x: F.pdist(x, 1), D[0]),
    "dist": (torch.dist, X, Y), "dist 0": (lambda a, b: torch.dist(a, b, 0), X, X.relu()), "pairwise": (F.pairwise_distance, X, Y), "trilinear": (F.bilinear, r(2, 3), r(2, 4), r(5, 3, 4), r(5)),
    "addbmm": (lambda b, x, y: torch.addbmm(b, x, y, beta=0.5, alpha=2), r(3, 5), r(2, 3, 4), r(2, 4, 5)), "addmv": (lambda b, a, v: torch.addmv(b, a, v, alpha=3), r(3), r(3, 4), r(4)), "addmv plain": (lambda b, a, v: torch.addmv(b * NAN, a, v, beta=0), r(3), r(3, 4), r(4)),
    "int_mm": (torch._int_mm, ints(18, 8, dtype=torch.int8), ints(8, 16, dtype=torch.int8)), "einsum": (lambda a, b: torch.einsum("...ij,kj->k...i", a, b), X, r(5, 4)), "einsum diagonal": (lambda a: torch.einsum("bii->bi", a), r(2, 3, 3)),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([0, 2], [2, 0])), X, r(4, 5, 2)), "var dim": (lambda x: A.var.dim(x, [0, -1], False, True), X), "var all": (lambda x: A.var.default(x, True), X), "var one": (lambda x: x.var(1, correction=0), X[:, :1]),
    "var_mean keep": (lambda x: torch.var_mean(x, (0, 2), correction=2, keepdim=True), D), "renorm": (lambda x: x.renorm(2, 1, 0.5), X), "cross": (lambda a, b: torch.linalg.cross(a, b, dim=1), X, Y), "matrix_power": (lambda x: torch.matrix_power(x, 3), r(2, 3, 3)),
} | {f"cdist {p}": (lambda a, b, p=p: torch.cdist(a, b, p), D[0], r(2, 4, dtype=torch.float64)) for p in (0, 1, 3, INF)}  # fmt: skip

GRID = r(2, 5, 6, 2).tanh() * 1.2
PICTURES = {
    "max_pool places": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), IMAGE), "max_pool places up": (lambda x: F.max_pool2d(x, (3, 2), 2, (1, 0), (2, 1), True, True), IMAGE),
    "max_pool places one": (lambda x: F.max_pool2d(x, 2, return_indices=True), IMAGE[0].round()), "max_pool places 1": (lambda x: F.max_pool1d(x, 3, 2, return_indices=True), IMAGE[0]), "max_pool places 3": (lambda x: F.max_pool3d(x, 2, 2, 1, return_indices=True), VOLUME),
    "max_pool below": (lambda x: F.max_pool2d(x, 2, 1, return_indices=True), torch.full((1, 1, 3, 3), -INF)), "adaptive places": (lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), IMAGE),
    "adaptive places 1": (lambda x: F.adaptive_max_pool1d(x, 5, return_indices=True), IMAGE[0].round()), "unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), IMAGE), "lp_pool": (lambda x: F.lp_pool2d(x.abs(), 2, 2), IMAGE),
    "smooth": (lambda x: F.interpolate(x, (5, 3), mode="bilinear", antialias=True), IMAGE), "smooth up": (lambda x: F.interpolate(x, (13, 5), mode="bilinear", antialias=True), IMAGE), "smooth cubic": (lambda x: F.interpolate(x, (4, 11), mode="bicubic", antialias=True), IMAGE),
    "smooth corners": (lambda x: F.interpolate(x, (4, 5), mode="bilinear", antialias=True, align_corners=True), IMAGE), "smooth factor": (lambda x: F.interpolate(x, scale_factor=0.55, mode="bicubic", antialias=True), IMAGE), "area": (lambda x: F.interpolate(x, (5, 3), mode="area"), IMAGE),
    "bilinear by size": (lambda x: A.upsample_bilinear2d.default(x, [5, 13], False), IMAGE), "bilinear by factor": (lambda x: A.upsample_bilinear2d.default(x, [15, 13], False, 1.7, 1.7), IMAGE), "bicubic by size": (lambda x: A.upsample_bicubic2d.default(x, [13, 5], True), IMAGE),
    "trilinear by size": (lambda x: A.upsample_trilinear3d.default(x, [7, 5, 9], False, None, None, None), VOLUME), "linear by size": (lambda x: A.upsample_linear1d.default(x, [13], True), IMAGE[0]), "nearest by size": (lambda x: A.upsample_nearest2d.default(x, [5, 13]), IMAGE),
    "nearest by factor": (lambda x: A.upsample_nearest1d.default(x, [12], 1.6), IMAGE[0]), "exact by size": (lambda x: A._upsample_nearest_exact3d.default(x, [7, 5, 9]), VOLUME),
    "grid 3": (lambda x, g: F.grid_sample(x, g, align_corners=False), VOLUME, r(1, 3, 2, 4, 3).tanh() * 1.2), "grid 3 border": (lambda x, g: F.grid_sample(x, g, "nearest", "border", True), VOLUME, r(1, 3, 2, 4, 3).tanh() * 1.2),
    "grid 3 reflected": (lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True), VOLUME, r(1, 3, 2, 4, 3) * 2), "grid cubic": (lambda x, g: F.grid_sample(x, g, "bicubic", "reflection", False), IMAGE, GRID),
    "grid border": (lambda x, g: F.grid_sample(x, g, "bilinear", "border", False), IMAGE, GRID), "affine": (lambda t, x: F.grid_sample(x, F.affine_grid(t, (2, 4, 5, 6), align_corners=False), align_corners=False), r(2, 2, 3) / 2, IMAGE),
}  # fmt: skip

Q, K, V = r(2, 4, 5, 8), r(2, 4, 7, 8, seed=2), r(2, 4, 7, 6, seed=3)
MASK = ints(5, 7, low=0, high=3) > 0
MASK[:, 0] = True
ATTENTION = {
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3), Q, K, V), "masked": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), Q, K, V, MASK), "causal wide": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), Q, K, V),
    "bias": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), Q, K, V, r(2, 1, 5, 7)), "groups": (lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True), Q, K, V),
    "row of nothing": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), Q, K, V, MASK & (torch.arange(5) > 0)[:, None]), "flat": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), Q[0], K[0], V[0]),
    "heads": (lambda q, k, v, w, u: F.multi_head_attention_forward(q, k, v, 8, 2, w, None, None, None, False, 0.0, u, None, False, need_weights=True)[:2], r(5, 4, 8), r(7, 4, 8, seed=2), r(7, 4, 8, seed=3), r(24, 8), r(8, 8)),
    "rms": (lambda x, w: F.rms_norm(x, (3, 4), w, 1e-3), D, r(3, 4, dtype=torch.float64)), "group_norm 1": (lambda x, w: F.group_norm(x, 1, w), IMAGE, r(4)), "group_norm each": (lambda x: F.group_norm(x, 4, eps=1e-2), VOLUME.expand(2, 2, 5, 6, 7).reshape(1, 4, 5, 6, 7)),
    "layer_norm double": (lambda x: F.layer_norm(x, (4,)), D), "instance_norm 1": (lambda x, w, b: F.instance_norm(x, None, None, w, b), r(2, 4, 11), r(4), r(4, seed=2)), "local_response": (lambda x: F.local_response_norm(x, 2, 1e-2, 0.5, 2.0), IMAGE),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=2), r(4, 5), torch.tensor([0, 2, 4, 1])), "bce": (lambda x, t: F.binary_cross_entropy_with_logits(x, t), X, Y.sigmoid()), "huber": (F.huber_loss, X, Y), "kl": (F.kl_div, X, Y),
}  # fmt: skip

TABLES = {
    "numbers": NUMBERS, "views": VIEWS, "order": ORDER, "combined": COMBINED, "bags": BAGS, "pictures": PICTURES, "attention": ATTENTION,
}  # fmt: skip
TOGETHER = 12
PARTS = [(t, list(c)[k : k + TOGETHER]) for t, c in TABLES.items() for k in range(0, len(c), TOGETHER)]


@pytest.mark.parametrize("table, cases", PARTS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_as_torch(table: str, cases: list[str]) -> None:
    agree_together([TABLES[table][case] for case in cases])


def _split(x, sizes):
    a, b = sizes.tolist()
    torch._check(a >= 0)
    torch._check(b >= 0)
    return tuple(part * 2 for part in x.split([a, b], 1))


def _cut(x, n):
    n = n.item()
    torch._check(n >= 0)
    torch._check(n <= 4)
    return x[..., :n] * 2


LATE = {
    "nonzero": (torch.nonzero, B), "nonzero int": (torch.nonzero, SMALL), "masked_select": (torch.masked_select, X, B), "masked_select wide": (torch.masked_select, X[:1], B),
    "masked_select narrow": (torch.masked_select, I, B[0, 0]), "mask": (lambda x, m: x[m], X, B), "mask of rows": (lambda x, m: x[m] + 1, X, B[:, :, 0]), "mask beside": (lambda x, m: x[:, m], X, B[0, :, 0]),
    "none": (lambda x, m: x[m], X, B & ~B), "item": (lambda x: x * x.sum().item(), X), "item int": (lambda x, n: x + n.item(), X, torch.tensor(3)), "cut": (_cut, X, torch.tensor(3)),
    "split": (_split, X, torch.tensor([1, 2])), "split none": (_split, X, torch.tensor([0, 3])),
    "interleave": (lambda x, n: x.repeat_interleave(n, 0), X, torch.tensor([2, 1])),
}  # fmt: skip


@pytest.mark.parametrize("case", LATE)
def test_sizes_that_values_decide(case: str) -> None:
    function, *inputs = LATE[case]
    agree(Wrapped(function), *inputs, executor="vm")


WHOLE = {
    "fill": (lambda x: A.fill.Scalar(x, 2.5), X), "fill tensor": (lambda x, v: A.fill.Tensor(x, v), I, r()), "var dim": (lambda x: A.var.dim(x, [0, -1], False, True), X), "var biased": (lambda x: A.var.default(x, False), X), "var": (lambda x: A.var.default(x), D),
    "as_strided": (lambda x: A.as_strided_copy(x, [2, 2], [1, 4], 3), X), "diagonal": (lambda x: A.diagonal_copy(x, -1, 1, 2), X), "windows": (lambda x: A.unfold_copy(x, 2, 2, 2), X), "bits": (lambda x: A.view_copy.dtype(x, torch.int32), X),
    "bucketize": (lambda s: A.bucketize.Scalar(2, s, right=True), torch.tensor([1, 2, 2, 5])), "stride": (lambda x: x * x.stride(1), X),
    "bilinear": (lambda x: A.upsample_bilinear2d.default(x, [5, 13], False), IMAGE), "bilinear by": (lambda x: A.upsample_bilinear2d.default(x, [15, 13], False, 1.7, 1.7), IMAGE), "bicubic": (lambda x: A.upsample_bicubic2d.default(x, [13, 5], True), IMAGE), "bicubic by": (lambda x: A.upsample_bicubic2d.default(x, [15, 13], False, 1.7, 1.7), IMAGE),
    "linear": (lambda x: A.upsample_linear1d.default(x, [13], True), IMAGE[0]), "trilinear": (lambda x: A.upsample_trilinear3d.default(x, [7, 5, 9], False), VOLUME), "nearest 2": (lambda x: A.upsample_nearest2d.default(x, [5, 13]), IMAGE), "nearest 3": (lambda x: A.upsample_nearest3d.default(x, [7, 5, 9]), VOLUME),
    "exact 1": (lambda x: A._upsample_nearest_exact1d.default(x, [12], 1.6), IMAGE[0]), "exact 2": (lambda x: A._upsample_nearest_exact2d.default(x, [5, 13]), IMAGE), "softmax": (lambda x: torch.softmax(x, 1), X), "stack": (lambda x, y: torch.stack([x, y], -1), X, Y), "tril": (lambda x: x.tril(-1), X), "roll": (lambda x: x.roll((1, -1), (0, 2)), X),
    "square": (torch.square, X), "sgn": (torch.sgn, ODD), "silu": (F.silu, X), "hardswish": (F.hardswish, X * 4), "reflect": (lambda x: A.reflection_pad2d(x, [1, 2, 0, 1]), IMAGE), "replicate": (lambda x: A.replication_pad1d(x, [1, 2]), X), "shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE), "unshuffle": (lambda x: F.pixel_unshuffle(x[..., :8, :], 2), IMAGE),
    "prelu": (F.prelu, IMAGE, r(4)), "dot": (torch.dot, r(4), r(4, seed=2)), "mv": (torch.mv, r(3, 4), r(4)), "baddbmm": (torch.baddbmm, r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)), "logsumexp": (lambda x: x.logsumexp(1), X), "select_scatter": (lambda x, y: torch.select_scatter(x, y[:, 0], 1, -1), X, Y), "rsub": (lambda x: torch.rsub(x, 3), X),
    "masked_fill": (lambda x, m: x.masked_fill(m, -INF), X, B), "floor_divide": (lambda x, y: x // y, X * 9, Y), "shifts": (lambda x: (x << 2) >> 1, I), "clamp_min": (lambda x: torch.clamp_min(x, 0.2), X), "std": (lambda x: x.std(-1, correction=0), X), "unbind": (lambda x: x.unbind(1), X), "chunk": (lambda x: x.split(2, -1), X), "squeeze": (lambda x: x[:, :1].squeeze(1), X),
}  # fmt: skip


@pytest.mark.parametrize("cases", [list(WHOLE)[k::4] for k in range(4)], ids=lambda cases: cases[0])
def test_what_torch_would_take_apart_is_known_whole(cases: list[str]) -> None:
    def together(*tensors):
        given = iter(tensors)
        results = [function(*(next(given) for _ in inputs)) for function, *inputs in map(WHOLE.__getitem__, cases)]
        return tuple(v for r in results for v in (r if isinstance(r, (tuple, list)) else [r]))

    tensors, model = [x.clone() for case in cases for x in WHOLE[case][1:]], Wrapped(together)
    importer = TorchImporter(program(model, *tensors), False, {})
    importer.check_operators()
    mod, params = module_of(importer.inputs((), ()), importer.outputs(), importer.g.params)
    compare(run(mod, params, tensors, "debug"), wanted(model, tensors), 3e-5)


OPEN = {
    "diagonal": lambda x: x.diagonal(1, -1, 1), "diagonal_scatter": lambda x: torch.diagonal_scatter(x, x[..., 0, :] * 2, 0, -2, -1), "unfold": lambda x: x.unfold(-1, 3, 2), "cummax": lambda x: torch.cummax(x, 2),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1), "median": lambda x: x.median(-1), "nanmedian": lambda x: x.nanmedian(1, True), "kthvalue": lambda x: x.kthvalue(2, -2), "mode": lambda x: x.round().mode(-1),
    "places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), "adaptive places": lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), "smooth": lambda x: F.interpolate(x, (5, 3), mode="bicubic", antialias=True),
    "fold": lambda x: F.fold(F.unfold(x, 3, padding=1), (9, 8), 3, padding=1), "narrow_copy": lambda x: torch.narrow_copy(x, 2, -3, 2), "cdist": lambda x: torch.cdist(x, x), "fmax": lambda x: torch.fmax(x, x.flip(1)),
    "the same view": lambda x: x.mean((2, 3), True).as_strided((x.shape[0], 4, 1, 1), (4, 1, 4, 4)),
}  # fmt: skip


def test_an_open_batch_stays_open() -> None:
    def together(x):
        results = [function(x) for function in OPEN.values()]
        return tuple(v for r in results for v in (r if isinstance(r, (tuple, list)) else [r]))

    model = Wrapped(together)
    mod, params = relay.frontend.from_pytorch(program(model, IMAGE, dynamic=(({0: torch.export.Dim("batch")},),)))
    (batch,) = {t.shape[0] for t in mod["main"].ret_type.fields}
    assert batch is mod["main"].params[0].type_annotation.shape[0] and isinstance(batch, relay.SizeVar)
    for batch in (2, 5):
        x = r(batch, 4, 9, 8, seed=batch)
        compare(run(mod, params, [x], "vm"), wanted(model, [x]), 3e-5)


RESIZED = {
    "nearest": lambda x, y: F.interpolate(x, scale_factor=(3, 1.7)), "linear": lambda x, y: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "cubic": lambda x, y: F.interpolate(x, scale_factor=(2, 3), mode="bicubic"), "exact": lambda x, y: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "to another": lambda x, y: F.interpolate(x, y.shape[-2:], mode="bilinear", align_corners=True), "nearest to another": lambda x, y: F.interpolate(x, y.shape[-2:]),
    "corners": lambda x, y: F.interpolate(x, scale_factor=(2, 1.5), mode="bilinear", align_corners=True), "to parts": lambda x, y: F.interpolate(x, (y.shape[-2] // 2 + 3, 7), mode="bicubic"), "signal": lambda x, y: F.interpolate(x.flatten(2), scale_factor=2, mode="linear"),
}  # fmt: skip


@pytest.mark.parametrize("function", RESIZED.values(), ids=RESIZED)
def test_images_of_open_sizes_are_resized(function) -> None:
    def model(x, y):
        return function(x, y) + y.sum() * 0

    free = torch.export.Dim.DYNAMIC
    sizes = {2: free, 3: free}
    exported = program(Wrapped(model), r(1, 3, 5, 6), r(1, 3, 9, 13), dynamic=((sizes, sizes),))
    if function is RESIZED["exact"]:
        exported = exported.run_decompositions()  # to quotients of sizes
    mod, params = relay.frontend.from_pytorch(exported)
    for shape, other in ((4, 3), (82, 94)), ((7, 2), (3, 110)):
        inputs = [r(1, 3, *shape, seed=shape[0]), r(1, 3, *other)]
        compare(run(mod, params, inputs, "vm"), wanted(Wrapped(model), inputs), 3e-6)


def test_strides_are_known_where_sizes_are_open() -> None:
    free = torch.export.Dim.DYNAMIC
    for function in (lambda x: x * x.stride(0), lambda x: x + x.stride(-2), lambda x: x.flatten(1) * x.stride(0)):
        agree(Wrapped(function), X, executor="vm", dynamic=(({1: free, 2: free},),))


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
        lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 0), ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3),
    ],
)
def test_windows_are_rounded_up_where_sizes_are_open(pool) -> None:
    free, model = torch.export.Dim.DYNAMIC, Wrapped(pool)
    mod, params = relay.frontend.from_pytorch(program(model, IMAGE, dynamic=(({0: free, 2: free, 3: free},),)))
    for x in (r(2, 4, 6, 7), r(1, 4, 7, 6)):
        compare(run(mod, params, [x], "vm"), wanted(model, [x]), 1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.pad(x, (-x.shape[1] % 4, x.shape[2] - 3)),
        lambda x: F.pad(x, (3 - x.shape[2], 6 - x.shape[1]), value=2),
        lambda x: F.pad(x > 0, (0, -x.shape[1] % 4), value=True),
        lambda x: F.pad(x, (x.shape[1] // 2, 1), mode="reflect"),
        lambda x: torch.ones_like(x).index_put((torch.arange(x.shape[0]),), x * 2, accumulate=True),
        lambda x: A.index_put(x, [None, None, torch.arange(x.shape[2]).flip(0)], x[:1]),
    ],
)
def test_widths_and_places_of_open_sizes(function) -> None:
    free, model = torch.export.Dim.DYNAMIC, Wrapped(function)
    mod, params = relay.frontend.from_pytorch(program(model, r(3, 5, 4), dynamic=(({0: free, 1: free, 2: free},),)))
    for x in (r(2, 6, 5), r(4, 3, 3)):
        compare(run(mod, params, [x], "vm"), wanted(model, [x]), 1e-6)


PARTS_OF_OPEN_SIZES = {
    "slice": lambda x, i: torch.slice_scatter(x, x[:, 2:] * 2, 1, 1, -1), "computed slice": lambda x, i: torch.slice_scatter(x, x[:, x.shape[1] // 2 :], 1, x.shape[1] // 2),
    "plane": lambda x, i: x.select_scatter(x[:, 0], 1, -1), "scatter": lambda x, i: x.scatter(2, i[1:, :-1], x), "numbers": lambda x, i: x.scatter(1, i[:, :1], 3.0),
    "sums": lambda x, i: x.scatter_add(1, i, x), "means": lambda x, i: x.scatter_reduce(1, i[:, 1:], x, "mean"), "largest": lambda x, i: x.scatter_reduce(0, i % 2, x, "amax", include_self=False),
    "products": lambda x, i: x.scatter(2, i, 2.0, reduce="multiply"), "planes": lambda x, i: x.index_reduce(1, i[0, :, 0], x, "amin"), "gather": lambda x, i: x.gather(2, i[1:, :-1]),
    "put": lambda x, i: torch.put(x, i[0], x[0]), "masked": lambda x, i: x.masked_scatter(i > 1, x * 2), "chosen": lambda x, i: torch.masked_select(x, i[0, :, :1] > 0), "windows": lambda x, i: x.unfold(1, 2, 2),
    "no windows": lambda x, i: x.unfold(1, 0, 3), "diagonal": lambda x, i: x.diagonal(-1, 1, 0), "own diagonal": lambda x, i: x.diagonal_scatter(x.diagonal(1, 1, 2) * 2, 1, 1, 2),
    "rolled": lambda x, i: x.roll((1, -2), (0, 1)), "rolled flat": lambda x, i: x.roll(-5), "halves": lambda x, i: torch.cat(x.chunk(2, 1)[::-1], 1),
    "a product": lambda x, i: F.linear(x, x[0]), "layer_norm": lambda x, i: F.layer_norm(x.mT, x.shape[1:2]), "group_norm": lambda x, i: F.group_norm(x, 1), "a power": lambda x, i: x * x.shape[1] ** 2,
    **{f"bags {mode}": lambda x, i, mode=mode: F.embedding_bag(i.flatten(), torch.eye(3), torch.arange(x.shape[0]) * 3, mode=mode, padding_idx=1) for mode in ("sum", "mean", "max")},
    **{f"rows of bags {mode}": lambda x, i, mode=mode: F.embedding_bag(i[..., 0], torch.eye(3), mode=mode, padding_idx=1) for mode in ("sum", "mean", "max")},
}  # fmt: skip


def test_parts_of_open_sizes() -> None:
    def together(x, i):
        return tuple(function(x, i) for function in PARTS_OF_OPEN_SIZES.values())

    free, model = torch.export.Dim.DYNAMIC, Wrapped(together)
    sizes = ({0: free, 1: free}, {0: free, 1: free})
    mod, params = relay.frontend.from_pytorch(
        program(model, r(3, 6, 4), ints(3, 6, 4, low=0, high=3), dynamic=(sizes,))
    )
    for b, n in ((2, 5), (5, 7)):
        inputs = [r(b, n, 4, seed=n), ints(b, n, 4, low=0, high=3, seed=n)]
        compare(run(mod, params, inputs, "vm"), wanted(model, inputs), 1e-6)


def test_a_view_of_what_lies_otherwise_when_torch_has_taken_it_apart() -> None:
    def heads(x):
        q = x.view(*x.shape[:2], 2, 4).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2)
        return out.reshape(*x.shape[:2], -1).contiguous().view(-1, 8) * 2

    free = torch.export.Dim.DYNAMIC
    with torch.no_grad():
        agree(Wrapped(heads), r(3, 5, 8), executor="vm", dynamic=(({0: free, 1: free},),))


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """What transformers calls where torch has no kernel for it: a product for each group of rows."""
    parts = torch.tensor_split(x, ends.long())
    return torch.cat([*(p @ w for p, w in zip(parts, weight)), torch.zeros_like(parts[-1] @ weight[0])])


@grouped.register_fake
def _(x, weight, ends):
    return x.new_empty(x.shape[0], weight.shape[2])


def test_groups_of_rows_times_their_matrices() -> None:
    """A mixture of experts as transformers writes it: rows in the order of their experts."""

    def experts(x, gate, weight):
        shares, chosen = (x @ gate).softmax(-1).topk(2)
        expert, order = chosen.flatten().sort(stable=True)
        ends = torch.histc(expert.float(), 5, 0, 4).cumsum(0, dtype=torch.int32)
        made = grouped(x[order // 2], weight, ends) * shares.flatten()[order, None]
        back = torch.empty_like(order)
        back[order] = torch.arange(x.shape[0] * 2)
        return made[back].view(x.shape[0], 2, -1).sum(1)

    model, dims = Wrapped(experts), ({0: torch.export.Dim.DYNAMIC}, None, None)
    weights = r(6, 5), r(5, 6, 70)
    mod, params = relay.frontend.from_pytorch(program(model, r(7, 6), *weights, dynamic=(dims,)))
    for rows in (19, 3):
        inputs = r(rows, 6, seed=rows), *weights
        compare(run(mod, params, inputs, "vm"), wanted(model, inputs), 3e-6)
    narrow = Wrapped(lambda x, w, ends: A._grouped_mm(x.bfloat16(), w.bfloat16(), ends).float())
    agree(narrow, r(16, 16), r(3, 16, 16), torch.tensor([4, 4, 16], dtype=torch.int32), tolerance=2e-2)


def test_any_strides_are_read_where_the_tensor_holds_them() -> None:
    with pytest.raises(RelayError) as info:
        relay.frontend.from_pytorch(program(Wrapped(lambda x: x[0].as_strided((2, 3), (12, 1)) * 2), X))
    assert info.value.code == "import.view" and "beside the tensor" in info.value.message
    assert "as_strided.default" in info.value.place and ".py:" in info.value.place and info.value.help


def test_results_that_nobody_reads_are_not_made() -> None:
    mod, _ = relay.frontend.from_pytorch(program(Wrapped(lambda x: F.max_pool2d(x, 3, 2, 1)), IMAGE))
    assert "argmax" not in mod.astext()


def test_bfloat16_as_torch_rounds_it() -> None:
    """A block of a language model; its parameters keep their bits, its values are within two roundings of torch's."""
    torch.manual_seed(0)
    layers = torch.nn.Embedding(50, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.SiLU()
    model = torch.nn.Sequential(*layers, torch.nn.Linear(32, 16)).to(torch.bfloat16).eval()
    tokens = ints(2, 7, low=0, high=50)
    mod, params = relay.frontend.from_pytorch(program(model, tokens))
    assert {v.dtype for v in params.values()} == {"bfloat16"}
    want = model(tokens).detach().float().numpy()
    for executor in ("debug", "graph"):
        found = relay.create_executor(executor, mod).evaluate()(tokens.numpy(), **params).numpy()
        assert found.dtype == "bfloat16" and abs(found.astype("float32") - want).max() <= abs(want).max() * 2**-7


def test_rows_of_bags_scatter_nothing() -> None:
    model = Wrapped(lambda w, i: F.embedding_bag(i, w))
    free = torch.export.Dim.DYNAMIC
    mod, _ = relay.frontend.from_pytorch(
        program(model, r(6, 3), ints(4, 2, low=0, high=6), dynamic=(({}, {0: free, 1: free}),))
    )
    assert "scatter_nd" not in str(mod)


PAIRED = {
    "logaddexp": torch.logaddexp, "xlogy": torch.special.xlogy, "lerp": lambda a, b: torch.lerp(a, b, b), "mse": F.mse_loss,
    "addcmul": lambda a, b: torch.addcmul(a, a, b), "smooth": F.smooth_l1_loss, "distance": F.pairwise_distance,
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRED)
def test_an_operator_of_one_tensor_twice_and_then_of_two(name: str) -> None:
    """What torch made of it for the first call read one operand alone, also where it stood for the second call."""
    pair = PAIRED[name]
    model = Wrapped(lambda x, y: (pair(x, x), pair(y, x), pair(x, y), pair(y, y)))
    inputs = r(4, 4).abs(), r(4, 4, seed=2).abs()
    agree(model, *inputs)
    free = {0: torch.export.Dim.DYNAMIC}
    agree(model, *inputs, executor="vm", dynamic=((free, free),))


def test_a_product_with_a_matrix_whose_axes_stay_where_they_are() -> None:
    """What writes into a tensor brings axes to the front and back: that was taken for a transpose of a square matrix."""
    square, other = r(4, 4), r(4, 4, seed=2)
    written = lambda x, y: y @ x.clone().index_put_((torch.tensor([0]),), y[:1])
    agree(Wrapped(written), square, other)
    agree(Wrapped(lambda x, y: y @ x.permute(0, 1)), square, other)
    agree(Wrapped(lambda x, y: y @ x.permute(-1, -2)), square, other)


def test_strides_that_parts_of_an_operator_keep() -> None:
    agree(Wrapped(lambda x, y: torch.lerp(x, y.t().contiguous().t(), 0.3)), r(5, 4), r(5, 4, seed=2))
