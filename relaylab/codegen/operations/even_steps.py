"""Constants whose numbers grow evenly along every axis: places of windows, positions, what is reversed.

A kernel computes them of its loops' counters instead of loading them: an index is then proven to lie in its tensor, and
what it leads to is loaded as a slice is.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from relaylab.codegen.network.network import NetworkTensor
from relaylab.loop.builder import Builder, OutSpec
from relaylab.loop.expr import ScalarExpr
from relaylab.loop.expr import Tensor as LoopTensor
from relaylab.loop.program_builder import ProgramBuilder

LEAST = 8
"""Fewer numbers are not worth a kernel of their own form."""

Steps = tuple[int, ...]


def even_steps(tensor: NetworkTensor) -> Steps | None:
    """The first number, then how much the next one along each axis is larger; None if that differs or is not known."""
    if tensor.origin != "constant" or tensor.data is None or tensor.dtype not in ("int32", "int64"):
        return None
    data = tensor.data
    if data.size < LEAST or data.shape != tensor.shape:
        return None
    first = data[(slice(0, 2),) * data.ndim]
    origin = (0,) * data.ndim
    unit = [tuple(int(a == d) for a in range(data.ndim)) for d in range(data.ndim)]
    steps = [int(first[u]) - int(first[origin]) if data.shape[d] > 1 else 0 for d, u in enumerate(unit)]
    last = int(first[origin]) + sum(step * (n - 1) for step, n in zip(steps, data.shape))
    if last != int(data.reshape(-1)[-1]):
        return None
    rows = [step * np.arange(n).reshape([-1 if a == d else 1 for a in range(data.ndim)])
            for d, (step, n) in enumerate(zip(steps, data.shape))]  # fmt: skip
    return (int(first[origin]), *steps) if np.array_equal(data, reduce(np.add, rows, first[origin])) else None


def computed(group: ProgramBuilder, tensor: NetworkTensor, steps: Steps) -> LoopTensor:
    """The tensor in a group, of the counters of loops."""

    def number(b: Builder, out: OutSpec, i: Sequence[ScalarExpr]) -> ScalarExpr:
        start, *along = steps
        terms = [i[d] * step for d, step in enumerate(along) if step]
        return b.cast(reduce(lambda x, y: x + y, terms, b.const(start, "int64")), out.dtype)

    return group.compute(OutSpec(tensor.shape, tensor.dtype), number, ())
