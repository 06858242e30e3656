"""Common divisors of whole numbers, by Euclid's algorithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, op, sample
from relaylab.op.helpers import TypeSolver
from relaylab.op.indexing import unravel

if TYPE_CHECKING:
    from relaylab.loop.expr import Tensor
    from relaylab.loop.procedure import Procedure

STEPS = {1: 13, 2: 24, 4: 47, 8: 93}
"""Steps of numbers of so many bytes: neighbours in Fibonacci's sequence take most (Lamé, 1844)."""
BLOCK = 64


@op("gcd", level=10, attrs_key="GCD")
class gcd(Opaque):
    """The largest numbers that divide both of two, never negative; 0 for two zeros."""

    lhs: Input = arg("whole numbers", dtype="integers")
    rhs: Input = arg("whole numbers", "that of lhs", "that of lhs")
    yields = "the type of lhs"
    source = "numpy.gcd"

    def result_type(self, s: TypeSolver, lhs: TensorType, rhs: TensorType) -> Type | None:
        rules.integers(s, lhs, "lhs")
        rules.same_dtype(s, lhs, rhs)
        return rules.shaped(s, rhs, lhs.shape, "rhs")

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        return np.gcd(lhs, rhs)

    def procedure(self, p: Procedure, out: Tensor, lhs: Tensor, rhs: Tensor) -> None:
        b, count = p.b, math.prod(lhs.shape)
        with p.parallel(-(-count // BLOCK)) as block, p.loop(BLOCK, stop=count - block * BLOCK) as k:
            at = unravel(b, block * BLOCK + k, lhs.shape)
            x, y = p.let(lhs(*at), "x"), p.let(rhs(*at), "y")
            with p.loop(STEPS[np.dtype(lhs.dtype).itemsize]), p.when(b.ne(y, b.const(0, lhs.dtype))):
                rest = p.let(x % y)
                p.set(x, y)
                p.set(y, rest)
            p.store(out, at, b.abs(x) if lhs.dtype.startswith("int") else x)

    @classmethod
    def samples(cls) -> list[Sample]:
        pair = lambda dtype: (np.array([12, 0, 7, 34, 0, 89], dtype), np.array([18, 5, 0, 55, 0, 55], dtype))
        signed = np.array([[-12, 144], [-7, 63245986]], "int32")
        other = np.array([[8, 89], [-21, 39088169]], "int32")
        return [sample(*pair("int64")), sample(*pair("uint8")), sample(signed, other)]
