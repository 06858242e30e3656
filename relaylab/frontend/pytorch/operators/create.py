"""Tensors from nothing: filled, counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab import op
from relaylab.frontend.onnx.node import LARGEST
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr


def filled(g: TorchGraph, node: AtenNode, sizes: object, value: object) -> Expr:
    """A tensor of one value; its shape may be computed."""
    shape = g.sizes(cast(Sequence[Operand], sizes))
    return op.full(g.to(cast(Operand, value), node.dtype), shape=shape, dtype=node.dtype)


@converts("full", "new_full")
def full(g: TorchGraph, node: AtenNode, *given: object, dtype: object = None) -> Expr:
    return filled(g, node, *given[-2:])


@converts("zeros", "new_zeros", "empty.memory_format", "new_empty", "empty_permuted")
def zeros(g: TorchGraph, node: AtenNode, *given: object, dtype: object = None) -> Expr:
    """What torch leaves open holds zeros."""
    return filled(g, node, given[0 if node.name[0] in "ez" else 1], 0)


@converts("ones", "new_ones")
def ones(g: TorchGraph, node: AtenNode, *given: object, dtype: object = None) -> Expr:
    return filled(g, node, given[-1], 1)


@converts("full_like")
def full_like(g: TorchGraph, node: AtenNode, x: Expr, value: Operand, dtype: object = None) -> Expr:
    return filled(g, node, g.all_sizes(x), value)


@converts("zeros_like", "empty_like")
def zeros_like(g: TorchGraph, node: AtenNode, x: Expr, dtype: object = None) -> Expr:
    return full_like(g, node, x, 0)


@converts("ones_like")
def ones_like(g: TorchGraph, node: AtenNode, x: Expr, dtype: object = None) -> Expr:
    return full_like(g, node, x, 1)


@converts("scalar_tensor")
def scalar_tensor(g: TorchGraph, node: AtenNode, value: Operand, dtype: object = None) -> Expr:
    return g.to(value, node.dtype)


@converts("arange", "arange.start", "arange.start_step")
def arange(g: TorchGraph, node: AtenNode, *given: object, dtype: object = None) -> Expr:
    start, stop, step = {1: (0, *given, 1), 2: (*given, 1)}.get(len(given), given)
    if all(isinstance(v, (int, float)) for v in (start, stop, step)):
        count = max(math.ceil((stop - start) / step), 0)
        if count > LARGEST:
            raise node.error(f"{count} elements; {LARGEST} at most are made while a model is read", "import.shape")
        return Constant((start + step * np.arange(count)).astype(node.dtype))
    whole = all(isinstance(v, int) or isinstance(v, Expr) and g.dtype(v) == "int64" for v in (start, stop, step))
    dtype = "int64" if whole else node.dtype  # sizes tell how many whole numbers there are
    found = op.arange(*(g.to(cast(Operand, v), dtype) for v in (start, stop, step)), dtype=dtype)
    return g.to(g.refined(found, node.sizes), node.dtype)


@converts(
    "bartlett_window", "bartlett_window.periodic", "blackman_window", "blackman_window.periodic", "hamming_window",
    "hamming_window.periodic", "hamming_window.periodic_alpha", "hamming_window.periodic_alpha_beta", "hann_window",
    "hann_window.periodic", "kaiser_window", "kaiser_window.periodic", "kaiser_window.beta",
)  # fmt: skip
def window(g: TorchGraph, node: AtenNode, *given: Operand, dtype: object = None) -> Expr:
    """What torch itself gives: these have no tensors to read."""
    if any(isinstance(v, Expr) for v in given):
        raise node.error("how long a window is must be known", "import.dynamic", g.remedy)
    return g.const(node.run(*given).numpy(), node.dtype)
