"""Comparisons of two arguments, with broadcasting as in numpy; the result is bool."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from relaylab.loop.scalar import SCALAR_OPS
from relaylab.op.base import Broadcast, op
from relaylab.op.helpers import Element, ElementBuilder


class ComparisonOperator(Broadcast):
    """A comparison; NaN is unequal to everything."""

    yields = "the shapes of lhs and rhs broadcast as numpy's are, bool"
    source = "IEEE 754-2019, 5.11"

    result_dtype = "bool"
    function: ClassVar[str] = ""

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        return np.asarray(SCALAR_OPS[self.function].meaning(lhs, rhs))

    def scalar(self, b: ElementBuilder, x: Element, y: Element) -> Element:
        match self.function:
            case "lt":
                return x < y
            case "le":
                return x <= y
            case "gt":
                return x > y
            case "ge":
                return x >= y
        return getattr(b, self.function)(x, y)


@op("equal", level=4)
class equal(ComparisonOperator):
    """Whether two elements are equal."""

    function, dtypes = "eq", ("int32", "float32", "bool")


@op("not_equal", level=4)
class not_equal(ComparisonOperator):
    """Whether two elements differ."""

    function, dtypes = "ne", ("int32", "float32", "bool")


@op("less", level=4)
class less(ComparisonOperator):
    """Whether lhs < rhs."""

    function = "lt"


@op("less_equal", level=4)
class less_equal(ComparisonOperator):
    """Whether lhs <= rhs."""

    function = "le"


@op("greater", level=4)
class greater(ComparisonOperator):
    """Whether lhs > rhs."""

    function = "gt"


@op("greater_equal", level=4)
class greater_equal(ComparisonOperator):
    """Whether lhs >= rhs."""

    function = "ge"
