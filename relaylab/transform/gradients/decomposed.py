"""Operators as programs of simpler ones: their gradient is that of the program.

A decomposition gets the call (for its attributes and types) and its arguments as variables, and returns an expression
with the call's value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relaylab.ir import Expr, TensorType, const
from relaylab.transform.engine.build import call, reshaped
from relaylab.transform.engine.infer_type import dtype_of, type_of
from relaylab.transform.gradients.reverse import expanded
from relaylab.transform.gradients.rules import gradient_of

Decomposition = Callable[..., Expr]
DECOMPOSITIONS: dict[str, Decomposition] = {}


def decomposition_of(*names: str) -> Callable[[Decomposition], Decomposition]:
    """Register how calls of operators are written with others, and their gradients with it."""

    def register(rule: Decomposition) -> Decomposition:
        DECOMPOSITIONS.update(dict.fromkeys(names, rule))
        back = expanded(lambda c: rule(c, *c.args))
        whole = lambda c: isinstance(type_of(c), TensorType) and not dtype_of(c).startswith(("float", "bfloat"))
        gradient_of(*names)(lambda c, y, g: [call("zeros_like", a) for a in c.args] if whole(c) else back(c, y, g))
        return rule

    return register


def mapped(x: Expr, shape: Sequence[int], matrices: Mapping[int, np.ndarray], dtype: str) -> Expr:
    """`x` (of a shape) with axes multiplied by matrices: element j of the new axis is row j times the old axis."""
    shape = list(shape)
    for axis, matrix in matrices.items():
        rows, n = matrix.shape
        if rows == n and (matrix == np.eye(n)).all():
            continue
        lead, rest = shape[:axis], shape[axis + 1 :]
        weight = const(matrix, dtype)
        if math.prod(rest) == 1:
            flat = call("nn.dense", reshaped(x, [math.prod(lead), n]), weight, units=rows)
        else:
            cut = reshaped(x, [math.prod(lead), n, math.prod(rest)])
            left = call("expand_dims", weight, axis=0)
            flat = call("nn.batch_matmul", left, cut, out_dtype=None, transpose_a=False, transpose_b=False)
        shape[axis] = rows
        x = reshaped(flat, shape)
    return x
