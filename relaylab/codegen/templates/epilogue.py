"""What the caller of a template does with its results before they are stored: the `Epilogue` of each element."""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.loop.expr import Axis, Local, ScalarExpr


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of the accumulators: an optional bias they start from, then an expression.

    `value` is the result of the output's dtype, over the accumulator `start`, elements of side inputs, and `axes`, the
    coordinates of the output; None: the accumulator as it is. `reads` are (what stands for the element, role, view).
    `operands` are the roles of all side inputs, appended to the kernel's operands; `bias` names one of them that holds
    a dense vector along the output's last axis in the accumulators' dtype. `rolled` asks for a loop over the finished
    tile instead of code for every register. `bias_part` is the part of the kernel that the bias belongs to (see
    `IRFunction.at`).
    """

    value: ScalarExpr | None = None
    start: Local = Local("x", "float32")
    reads: tuple[tuple[Local, str, MemoryView], ...] = ()
    axes: tuple[Axis, ...] = ()
    operands: tuple[str, ...] = ()
    bias: str | None = None
    rolled: bool = False
    bias_part: int = 0
