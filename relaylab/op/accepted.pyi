"""What builders of operators take; for type checkers and editors only."""

from collections.abc import Sequence

import numpy as np

from relaylab.ir.expr import Constant, Expr, TupleWrapper
from relaylab.ir.types import AnyDim, IntImm

Arg = Expr | TupleWrapper | Sequence["Arg"]
"""An expression; where the operator takes a tuple, also a list of them."""
Int = int | np.integer | IntImm
Ints = Int | Sequence[Int] | Constant
"""Whole numbers; one stands for a list of it."""
Floats = float | Sequence[float]
Pairs = Sequence[Sequence[Int]]
Dims = Int | AnyDim | Sequence[Int | AnyDim] | Constant
"""The extents of a shape."""
Dtype = str | type | np.dtype | None
"""A data type as a name, as numpy's or as Python's."""
