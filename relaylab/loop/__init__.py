"""Loop level: scalar expressions, loop programs, their printer and evaluators."""

from relaylab.loop.builder import Builder, OutSpec, b
from relaylab.loop.evaluate import compute, evaluate
from relaylab.loop.expr import Apply, Axis, Cast, Const, Guard, Load, Reduce, ScalarExpr, Tensor

__all__ = [
    "Apply", "Axis", "Builder", "Cast", "Const", "ScalarExpr", "Guard", "Load", "OutSpec", "Reduce", "Tensor",
    "b", "compute", "evaluate",
]  # fmt: skip
