"""Loop level: scalar expressions, loop programs, their printer, parser and evaluators."""

from relaylab.loop.builder import Builder, OutSpec, b
from relaylab.loop.evaluate import compute, evaluate
from relaylab.loop.expr import Apply, Axis, Cast, Const, Guard, Load, Reduce, ScalarExpr, Tensor
from relaylab.loop.parse import parse
from relaylab.loop.program import LoopProgram
from relaylab.loop.run import run

__all__ = [
    "Apply", "Axis", "Builder", "Cast", "Const", "ScalarExpr", "Guard", "Load", "LoopProgram", "OutSpec", "Reduce",
    "Tensor", "b", "compute", "evaluate", "parse", "run",
]  # fmt: skip
