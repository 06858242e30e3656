"""Operations of a dump and of a program beside each other: by their operators, in the order of their data."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

ALIASES = {
    "addmm": "dense", "batchnormalization": "batch_norm", "conv": "conv2d", "convolution": "conv2d", "gemm": "dense",
    "globalaveragepool": "mean", "global_avg_pool2d": "mean", "adaptive_avg_pool2d": "mean", "linear": "dense",
    "matmul": "dense", "mm": "dense", "bmm": "batch_matmul", "mul": "multiply", "sub": "subtract", "div": "divide",
    "permute": "transpose", "view": "reshape", "flatten": "reshape", "batch_flatten": "reshape", "cat": "concatenate",
    "layernormalization": "layer_norm", "maxpool": "max_pool2d", "reducemean": "mean",
}  # fmt: skip
"""One name for operators that PyTorch, ONNX and Relay call differently."""


def alike(kind: str) -> str:
    """The common name of an operator."""
    name = kind.lower().rpartition(".")[2]
    return ALIASES.get(name, name)


def matched(a: Sequence[str], b: Sequence[str], anchors: Collection[str] = ()) -> list[tuple[int, int]]:
    """Places of equal words in the order of both; words that are anchors first, the others between these."""
    places = [[k for k, word in enumerate(side) if word in anchors] for side in (a, b)]
    firm = _blocks([a[k] for k in places[0]], [b[k] for k in places[1]])
    pairs = [(places[0][i], places[1][j]) for i, j in firm]
    found: list[tuple[int, int]] = []
    for (i, j), (to_i, to_j) in zip([(-1, -1), *pairs], [*pairs, (len(a), len(b))], strict=True):
        found += [(i, j)] if i >= 0 else []
        found += [(i + 1 + x, j + 1 + y) for x, y in _blocks(a[i + 1 : to_i], b[j + 1 : to_j])]
    return found


def _blocks(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [(m.a + k, m.b + k) for m in blocks for k in range(m.size)]
