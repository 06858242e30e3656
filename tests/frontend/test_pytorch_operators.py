"""Every converter of an ATen operator against torch itself."""
# ruff: noqa: E501 (a case a cell)

from __future__ import annotations

import math

import pytest
from pytorch_tools import agree_together, torch

from torch.nn import functional as F  # noqa: E402  (after the skip)

NAN, INF = math.nan, math.inf


def r(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ints(*shape, low=-9, high=9, seed=1, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


X, Y = r(2, 3, 4), r(2, 3, 4, seed=5)
POS = X.abs() + 0.1
UNIT = X.tanh() * 0.95
ODD = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-8, -3.0])
I, J = ints(2, 3, 4), ints(2, 3, 4, low=1, seed=2)
B, C = I > 0, J > 4
IMAGE, VOLUME, SERIES = r(2, 4, 9, 8), r(1, 2, 5, 6, 7), r(2, 4, 11)

ELEMENTWISE = {
    name: (lambda x, name=name: getattr(torch, name)(x), X)
    for name in "abs atan cos cosh erf exp neg sigmoid sin sinh tan tanh ceil floor trunc sign expm1 asinh square".split()
} | {
    "acos": (torch.acos, UNIT), "asin": (torch.asin, UNIT), "atanh": (torch.atanh, UNIT),
    "acosh": (torch.acosh, POS + 1), "log": (torch.log, POS), "log2": (torch.log2, POS), "log10": (torch.log10, POS),
    "log1p": (torch.log1p, POS * 1e-5), "log1p far": (torch.log1p, torch.tensor([0.0, 1e-9, 3.0, INF, 1e30])),
    "expm1 near": (torch.expm1, torch.tensor([0.0, 1e-9, -1e-6, 0.3, -30.0, 5.0])),
    "sqrt": (torch.sqrt, POS), "rsqrt": (torch.rsqrt, POS), "reciprocal": (torch.reciprocal, POS),
    "round to even": (torch.round, ODD[3:]), "round decimals": (lambda x: torch.round(x, decimals=1), X),
    "abs int": (torch.abs, I), "exp int": (torch.exp, I), "neg int": (torch.neg, I), "sign int": (torch.sign, I),
    "floor int": (torch.floor, I), "isnan": (torch.isnan, ODD), "isinf": (torch.isinf, ODD),
    "isfinite": (torch.isfinite, ODD), "sign odd": (torch.sign, ODD), "relu odd": (torch.relu, ODD),
    "clamp odd": (lambda x: x.clamp(-1, 1), ODD), "maximum odd": (lambda x: torch.maximum(x, x.flip(0)), ODD),
    "frac": (torch.frac, X), "logit": (torch.logit, UNIT.abs() * 0.9 + 0.01),
    "bitwise_not": (torch.bitwise_not, I), "bitwise_not bool": (torch.bitwise_not, B),
    "logical_not": (torch.logical_not, I), "sinc": (torch.sinc, X), "deg2rad": (torch.deg2rad, X),
}  # fmt: skip

PAIRS = {
    "add": (torch.add, X, Y), "add alpha": (lambda a, b: torch.add(a, b, alpha=2), X, Y),
    "add int float": (torch.add, I, X), "add int scalar": (lambda a: a + 2.5, I), "add bool": (torch.add, B, C),
    "add bool int": (lambda a: a + 1, B), "sub": (torch.sub, X, Y), "rsub": (lambda a: 3 - a, X),
    "sub broadcast": (torch.sub, X, Y[0, :1]), "mul": (torch.mul, X, Y), "mul bool": (torch.mul, B, X),
    "mul bools": (torch.mul, B, C), "div": (torch.div, X, POS), "div ints": (torch.div, I, J),
    "div floor": (lambda a, b: torch.div(a, b, rounding_mode="floor"), X * 9, Y),
    "div floor ints": (lambda a, b: torch.div(a, b, rounding_mode="floor"), I, J),
    "div trunc": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), X * 9, Y),
    "div trunc ints": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), I, J),
    "floor_divide": (lambda a: a // 0.1, torch.tensor([1.0, -1.0, 0.3, 7.0])),
    "floor_divide odd": (lambda a: a // 2, ODD), "floor_divide zero": (lambda a: a // 0.0, X),
    "remainder": (torch.remainder, X * 9, Y), "remainder ints": (torch.remainder, I, J),
    "remainder scalar": (lambda a: a % -3, I), "fmod": (torch.fmod, X * 9, Y), "fmod ints": (torch.fmod, I, J),
    "pow": (torch.pow, POS, Y), "pow scalar": (lambda a: a**3, X), "pow half": (lambda a: a**0.5, POS),
    "pow int": (lambda a: a**3, I), "pow base": (lambda a: 2**a, X), "pow -1": (lambda a: a**-1, POS),
    "maximum": (torch.maximum, X, Y), "minimum": (torch.minimum, I, J), "atan2": (torch.atan2, X, Y),
    "atan2 axes": (torch.atan2, torch.tensor([0.0, 1, -1, 0, 2]), torch.tensor([1.0, 0, 0, -1, -2])),
    "eq": (torch.eq, I, J), "ne": (lambda a: a != 3, I), "lt": (torch.lt, X, Y), "le": (lambda a: a <= 0.5, I),
    "gt": (torch.gt, I, X), "ge": (lambda a: a >= 0, X), "eq nan": (lambda a: a == a, ODD),
    "and": (torch.bitwise_and, I, J), "or": (lambda a: a | 5, I), "xor": (torch.bitwise_xor, B, C),
    "logical_and": (torch.logical_and, I, X), "logical_or": (torch.logical_or, B, C),
    "logical_xor": (torch.logical_xor, I, J), "shift": (lambda a: (a << 2) >> 1, I),
    "where": (torch.where, B, X, Y), "where scalar": (lambda c, a: torch.where(c, a, 0.0), B, X),
    "where promotes": (torch.where, B, I, X), "masked_fill": (lambda a, m: a.masked_fill(m, -INF), X, B),
    "clamp min": (lambda a: a.clamp(min=0.2), X), "clamp tensor": (lambda a, b: torch.clamp(a, b, b + 1), X, Y),
    "clamp int": (lambda a: a.clamp(-3, 3), I), "lerp": (lambda a, b: torch.lerp(a, b, 0.3), X, Y),
    "addcmul": (lambda a, b: torch.addcmul(a, a, b, value=0.5), X, Y),
    "to int": (lambda a: (a * 3).to(torch.int32), X), "to bool": (lambda a: a.bool(), I), "half": (lambda a: a.half(), X),
    "double": (lambda a: a.double() * 0.1, X),
}  # fmt: skip

ACTIVATIONS = {
    name: (getattr(F, name), X * 3)
    for name in "relu gelu silu hardswish hardsigmoid hardtanh relu6 elu selu celu mish softplus softsign logsigmoid tanhshrink hardshrink softshrink".split()
} | {
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), X * 3), "elu 2": (lambda x: F.elu(x, 0.5), X),
    "leaky": (lambda x: F.leaky_relu(x, 0.2), X), "rrelu": (F.rrelu, X), "prelu": (F.prelu, IMAGE, r(4)), "prelu 1": (F.prelu, X, r(1)),
    "softmax": (lambda x: F.softmax(x, 1), X), "softmax last": (lambda x: F.softmax(x, -1), X),
    "softmin": (lambda x: F.softmin(x, -1), X), "log_softmax": (lambda x: F.log_softmax(x, -1), X),
    "log_softmax 1": (lambda x: F.log_softmax(x, 1), X), "dropout": (lambda x: F.dropout(x, 0.5, False), X),
    "glu": (lambda x: F.glu(x, -1), X), "threshold": (lambda x: F.threshold(x, 0.1, 20.0), X),
    "attention": (F.scaled_dot_product_attention, r(2, 2, 5, 4), r(2, 2, 6, 4, seed=2), r(2, 2, 6, 4, seed=3)),
    "causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), r(2, 2, 5, 4)),
    "masked attention": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m), r(1, 2, 5, 4), ints(5, 5, low=0, high=2).bool(),
    ),
}  # fmt: skip

REDUCTIONS = {
    "sum": (lambda x: x.sum(), X), "sum dim": (lambda x: x.sum((0, -1)), X), "sum keep": (lambda x: x.sum(1, True), X),
    "sum ints": (lambda x: x.sum(1), I.int()), "sum bool": (lambda x: x.sum(), B), "mean": (lambda x: x.mean(), X),
    "mean dim": (lambda x: x.mean((1, 2), keepdim=True), X), "prod": (lambda x: x.prod(1), X), "prod all": (torch.prod, J),
    "amax": (lambda x: x.amax((0, 2)), X), "amin": (lambda x: x.amin(1, True), I), "max": (torch.max, X),
    "min": (torch.min, I), "max dim": (lambda x: x.max(1), X), "min dim": (lambda x: x.min(-1, keepdim=True), X),
    "argmax": (lambda x: x.argmax(1), X), "argmax all": (torch.argmax, X), "argmax ties": (lambda x: (x * 0).argmax(1), X),
    "argmin": (lambda x: x.argmin(-1, keepdim=True), X), "any": (torch.any, B), "any dim": (lambda x: x.any(1), I),
    "all": (torch.all, B), "all dim": (lambda x: x.all(-1, keepdim=True), B), "var": (lambda x: x.var(1), X),
    "var 0": (lambda x: x.var((0, 2), correction=0), X), "std": (lambda x: x.std(-1, keepdim=True), X),
    "var_mean": (lambda x: torch.var_mean(x, 1), X), "norm": (lambda x: x.norm(dim=-1), X),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1, dim=1), X), "norm 3": (lambda x: x.norm(3, dim=1), X),
    "norm inf": (lambda x: torch.linalg.vector_norm(x, INF), X), "normalize": (lambda x: F.normalize(x, dim=1), X),
    "cumsum": (lambda x: x.cumsum(1), X), "cumsum ints": (lambda x: x.cumsum(-1), I.int()), "cumprod": (lambda x: x.cumprod(1), X),
    "logsumexp": (lambda x: x.logsumexp(1), X), "mse": (F.mse_loss, X, Y), "cosine": (F.cosine_similarity, X, Y),
    "count_nonzero": (lambda x: (x != 0).sum(-1), I),
}  # fmt: skip

SHAPES = {
    "view": (lambda x: x.view(6, -1), X), "permute": (lambda x: x.permute(2, 0, 1), X), "T": (lambda x: x[0].t(), X),
    "transpose": (lambda x: x.transpose(0, -1), X), "flatten": (lambda x: x.flatten(1), X),
    "squeeze": (lambda x: x[:1].squeeze(), X), "squeeze dim": (lambda x: x[:, :1].squeeze(1).squeeze(0), X),
    "unsqueeze": (lambda x: x.unsqueeze(-1).unsqueeze(0), X), "expand": (lambda x: x[:, :1].expand(-1, 5, -1), X),
    "expand new": (lambda x: x.expand(7, -1, -1, -1), X), "repeat": (lambda x: x.repeat(2, 1, 3), X),
    "repeat more": (lambda x: x.repeat(2, 1, 1, 2), X), "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), X),
    "slice": (lambda x: x[:, 1:, ::2], X), "slice back": (lambda x: x[..., -3:-1], X), "slice empty": (lambda x: x[:, 2:1], X),
    "slice over": (lambda x: x[:, :99], X), "select": (lambda x: x[:, -1], X), "cat": (lambda x, y: torch.cat([x, y], 1), X, Y),
    "cat promotes": (lambda x, y: torch.cat([x, y], -1), X, I), "stack": (lambda x, y: torch.stack([x, y], 2), X, Y),
    "split": (lambda x: x.split(2, 1), X), "chunk": (lambda x: x.chunk(2, -1), X), "unbind": (lambda x: x.unbind(1), X),
    "split sizes": (lambda x: x.split([1, 3], -1), X), "tensor_split": (lambda x: x.tensor_split(3, -1), X),
    "flip": (lambda x: x.flip(0, 2), X), "roll": (lambda x: x.roll((1, -2), (0, 2)), X), "roll flat": (lambda x: x.roll(5), X),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), X), "pad cut": (lambda x: F.pad(x, (-1, 2)), X),
    "pad bool": (lambda x: F.pad(x, (1, 1), value=True), B), "reflect": (lambda x: F.pad(x, (2, 1, 1, 3), "reflect"), IMAGE),
    "reflect 1": (lambda x: F.pad(x, (2, 1), "reflect"), SERIES), "edge": (lambda x: F.pad(x, (2, 1, 1, 3), "replicate"), IMAGE),
    "edge 3": (lambda x: F.pad(x, (1, 1, 2, 0, 1, 1), "replicate"), VOLUME), "circular": (lambda x: F.pad(x, (1, 2), "circular"), SERIES),
    "tril": (lambda x: x.tril(-1), X), "triu": (lambda x: x.triu(1), X), "shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    "unshuffle": (lambda x: F.pixel_unshuffle(x[..., :8, :], 2), IMAGE), "channel": (lambda x: F.channel_shuffle(x, 2), IMAGE),
    "meshgrid": (lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"), X), "unfold": (lambda x: F.unfold(x, 3), IMAGE),
    "movedim": (lambda x: x.movedim(0, -1), X), "rot90": (lambda x: x.rot90(1, (1, 2)), X),
    "tile": (lambda x: x.tile(2), X), "view_as": (lambda x, y: x.flatten().view_as(y), X, Y),
}  # fmt: skip

INDEXING = {
    "embedding": (lambda i, w: F.embedding(i, w), ints(2, 3, low=0, high=5), r(5, 4)),
    "padding_idx": (lambda i, w: F.embedding(i, w, padding_idx=0), ints(2, 3, low=0, high=5), r(5, 4)),
    "index_select": (lambda x, i: x.index_select(2, i), X, torch.tensor([3, 0, 1])),
    "index": (lambda x, i: x[:, i], X, torch.tensor([[2, 0], [1, -1]])), "index const": (lambda x: x[[1, 0]], X),
    "index two": (lambda x, i, j: x[i, j], X, torch.tensor([1, 0]), torch.tensor([-1, 2])),
    "index inner": (lambda x, i, j: x[:, i, j], X, torch.tensor([[1], [0]]), torch.tensor([-1, 2, 0])),
    "index apart": (lambda x, i, j: x[i, :, j], X, torch.tensor([1, 0]), torch.tensor([-1, 2])),
    "gather": (lambda x, i: x.gather(1, i), X, ints(2, 5, 4, low=0, high=3)),
    "gather part": (lambda x, i: x.gather(2, i), X, ints(1, 2, 3, low=0, high=4)),
    "scatter": (lambda x, i, s: x.scatter(1, i, s), X, torch.arange(24).view(2, 3, 4) % 3, Y),
    "scatter value": (lambda x, i: x.scatter(2, i, 1.5), X, torch.zeros(2, 3, 1, dtype=torch.int64)),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), X, ints(2, 3, 4, low=0, high=3), Y),
    "one_hot": (lambda i: F.one_hot(i, 5), ints(2, 3, low=0, high=5)),
    "index_put": (lambda x, i, v: x.index_put((i,), v), X, torch.tensor([1]), r(1, 3, 4, seed=9)),
    "index_put add": (lambda x, i, v: x.index_put((i, i), v, True), X, torch.tensor([1, 1]), r(4, seed=9)),
    "index_put inner": (lambda x, i, v: torch.ops.aten.index_put(x, [None, i], v), X, torch.tensor([2, 0]), r(2, 2, 4, seed=9)),
    "index_put mask": (lambda x, m: x.index_put((m,), torch.tensor(7.0)), X, B),
    "assign": (lambda x, y: torch.slice_scatter(x, y[:, :1], 1, 1, 2), X, Y),
    "assign plane": (lambda x, y: torch.select_scatter(x, y[:, 0], 1, -1), X, Y),
    "topk": (lambda x: x.topk(2, 1), X), "topk least": (lambda x: x.topk(3, -1, largest=False), X),
    "sort": (lambda x: x.sort(1), X), "sort down": (lambda x: torch.sort(x, dim=-1, descending=True, stable=True), ints(2, 9, low=0, high=3)),
    "argsort": (lambda x: x.argsort(1), X), "take_along": (lambda x, i: torch.take_along_dim(x, i, 1), X, ints(2, 1, 4, low=0, high=3)),
    "grid": (lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, r(2, 5, 6, 2).tanh()),
    "grid nearest": (lambda x, g: F.grid_sample(x, g, "nearest", "border", True), IMAGE, r(2, 5, 6, 2).tanh()),
}  # fmt: skip

CREATED = {
    "arange": (lambda x: x + torch.arange(4), X), "arange float": (lambda x: x + torch.arange(0.5, 2.4, 0.5), X),
    "full": (lambda x: x + torch.full((3, 1), 2.5), X), "zeros": (lambda x: torch.zeros(3, dtype=torch.int32), X),
    "ones_like": (torch.ones_like, I), "zeros_like": (lambda x: torch.zeros_like(x, dtype=torch.bool), X),
    "full_like": (lambda x: torch.full_like(x, 3), X), "new_zeros": (lambda x: x.new_zeros(2, 2), X),
    "new_ones": (lambda x: x.new_ones((2,)), I), "new_full": (lambda x: x.new_full((2,), 7), X), "eye": (lambda x: x @ torch.eye(4), X),
    "linspace": (lambda x: x + torch.linspace(0, 1, 4), X), "tensor": (lambda x: x * torch.tensor([1.0, 2, 3, 4]), X),
    "mask": (lambda x: x.masked_fill(torch.ones(3, 4, dtype=torch.bool).triu(1), -INF), X), "empty": (lambda x: torch.empty_like(x).fill_(1), X),
}  # fmt: skip

PRODUCTS = {
    "mm": (torch.mm, r(3, 4), r(4, 5)), "matmul": (torch.matmul, r(2, 3, 4), r(4, 5)), "bmm": (torch.bmm, r(2, 3, 4), r(2, 4, 5)),
    "matmul wide": (torch.matmul, r(2, 1, 3, 4), r(5, 4, 2)), "mv": (torch.mv, r(3, 4), r(4)), "dot": (torch.dot, r(4), r(4)),
    "addmm": (lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), r(3, 5), r(3, 4), r(4, 5)), "outer": (torch.outer, r(3), r(4)),
    "baddbmm": (torch.baddbmm, r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)), "linear": (F.linear, r(2, 3, 4), r(5, 4), r(5)),
    "linear plain": (F.linear, r(3, 4), r(5, 4)), "linear vector": (F.linear, r(4), r(5, 4), r(5)),
    "einsum": (lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), r(2, 3, 4, 5), r(2, 3, 6, 5)),
    "kron": (torch.kron, r(2, 2), r(3, 2)),
}  # fmt: skip

W2, W1, W3 = r(6, 4, 3, 3, seed=3), r(6, 4, 3, seed=3), r(6, 2, 3, 2, 3, seed=3)
NETWORK = {
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), IMAGE, W2, r(6)), "conv same": (lambda x, w: F.conv2d(x, w, padding="same"), IMAGE, W2),
    "conv dilated": (lambda x, w: F.conv2d(x, w, None, (1, 2), (2, 0), 2), IMAGE, W2), "conv1d": (F.conv1d, SERIES, W1, r(6)),
    "conv3d": (lambda x, w: F.conv3d(x, w, None, 1, 1), VOLUME, W3), "conv one": (F.conv2d, IMAGE[0], W2),
    "depthwise": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 4), IMAGE, r(4, 1, 3, 3)), "groups": (lambda x, w: F.conv2d(x, w, groups=2), IMAGE, r(6, 2, 3, 3)),
    "transposed": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), IMAGE, r(4, 6, 3, 3), r(6)),
    "transposed groups": (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 0, 2), IMAGE, r(4, 3, 3, 3)),
    "transposed 1": (lambda x, w: F.conv_transpose1d(x, w, None, 2), SERIES, r(4, 3, 4)), "transposed 3": (lambda x, w: F.conv_transpose3d(x, w, None, 2), VOLUME, r(2, 3, 2, 2, 2)),
    "batch_norm": (lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), IMAGE, r(4), POS[0, 0], r(4, seed=8), r(4, seed=9)),
    "batch_norm plain": (lambda x, m, v: F.batch_norm(x, m, v), IMAGE, r(4), POS[0, 0]), "batch_norm rows": (lambda x, m, v: F.batch_norm(x, m, v), r(5, 4), r(4), POS[0, 0]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), X, r(4), r(4, seed=2)), "layer_norm plain": (lambda x: F.layer_norm(x, (4,)), X),
    "layer_norm two": (lambda x, w, b: F.layer_norm(x, (3, 4), w, b), X, r(3, 4), r(3, 4, seed=2)), "rms": (lambda x, w: F.rms_norm(x, (4,), w), X, r(4)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), IMAGE, r(4), r(4, seed=2)), "group_norm 1": (lambda x: F.group_norm(x, 2), SERIES),
    "instance_norm": (lambda x: F.instance_norm(x), IMAGE), "lrn": (lambda x: F.local_response_norm(x, 3), IMAGE),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE), "max_pool up": (lambda x: F.max_pool2d(x, 2, 2, 0, 1, True), IMAGE),
    "max_pool dilated": (lambda x: F.max_pool2d(x, 2, 1, 0, 2), IMAGE), "max_pool 1": (lambda x: F.max_pool1d(x, 2), SERIES), "max_pool 3": (lambda x: F.max_pool3d(x, 2), VOLUME),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE), "avg_pool inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, False, False), IMAGE),
    "avg_pool up": (lambda x: F.avg_pool2d(x, 3, 2, 1, True), IMAGE), "avg_pool by": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), IMAGE),
    "avg_pool 1": (lambda x: F.avg_pool1d(x, 3), SERIES), "avg_pool 3": (lambda x: F.avg_pool3d(x, 2), VOLUME),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), IMAGE), "adaptive 1": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    "adaptive series": (lambda x: F.adaptive_avg_pool1d(x, 4), SERIES), "adaptive max": (lambda x: F.adaptive_max_pool2d(x, (4, 3)), IMAGE),
    "adaptive volume": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 3)), VOLUME),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), IMAGE), "nearest odd": (lambda x: F.interpolate(x, (5, 13)), IMAGE),
    "nearest-exact": (lambda x: F.interpolate(x, (5, 13), mode="nearest-exact"), IMAGE), "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
    "bilinear corners": (lambda x: F.interpolate(x, (13, 5), mode="bilinear", align_corners=True), IMAGE), "bilinear odd": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), IMAGE),
    "bicubic": (lambda x: F.interpolate(x, (13, 17), mode="bicubic"), IMAGE), "linear up": (lambda x: F.interpolate(x, 17, mode="linear"), SERIES),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), VOLUME), "nearest 1": (lambda x: F.interpolate(x, 25), SERIES),
}  # fmt: skip

TABLES = {
    "elementwise": ELEMENTWISE, "pairs": PAIRS, "activations": ACTIVATIONS, "reductions": REDUCTIONS, "shapes": SHAPES,
    "indexing": INDEXING, "created": CREATED, "products": PRODUCTS, "network": NETWORK,
}  # fmt: skip


TOGETHER = 12  # cases in one program, since an export takes long whatever it exports; 1 tells which one is wrong
PARTS = [(t, list(c)[k : k + TOGETHER]) for t, c in TABLES.items() for k in range(0, len(c), TOGETHER)]


@pytest.mark.parametrize("table, cases", PARTS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_as_torch(table: str, cases: list[str]) -> None:
    agree_together([TABLES[table][case] for case in cases])
