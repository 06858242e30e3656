"""In which order the nodes of an expression are emitted: found once, used for all lanes and turns of its statement.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from relaylab.codegen.loops.contexts import LaneValue, Mask, VectorContext
from relaylab.loop.expr import Guard, Load, ScalarExpr, children, post_order

Done = list[Any]
"""What the steps of an expression have given: lane values and masks."""


class EmissionStep(NamedTuple):
    """A node, the steps that give its operands, and the one that gives the mask of its loads (-1: the context's).

    A step that `limits` gives the mask below a guard, of its condition and of the mask around it.
    """

    node: Any
    operands: tuple[int, ...] = ()
    mask: int = -1
    limits: bool = False


Way = Callable[[Any, EmissionStep, Done, VectorContext], LaneValue | Mask]
"""What emits a step, for the emitter that is named first."""


class _Order:
    def __init__(self) -> None:
        self.steps: list[EmissionStep] = []
        self.known: dict[ScalarExpr | tuple[ScalarExpr, int], int] = {}
        self.masks: dict[tuple[int, int], int] = {}
        self.loads: dict[ScalarExpr, bool] = {}

    def key(self, node: ScalarExpr, mask: int) -> ScalarExpr | tuple[ScalarExpr, int]:
        # Without a load below, a mask changes nothing: the same value serves inside and outside a guard.
        return (node, mask) if mask >= 0 and self.has_loads(node) else node

    def at(self, node: ScalarExpr, mask: int) -> int:
        return self.known[self.key(node, mask)]

    def add(self, step: EmissionStep) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def below(self, guard: Guard, mask: int) -> int:
        """The step of the mask below a guard."""
        key = (self.at(guard.condition, mask), mask)
        if key not in self.masks:
            self.masks[key] = self.add(EmissionStep(guard, (key[0],), mask, True))
        return self.masks[key]

    def has_loads(self, node: ScalarExpr) -> bool:
        for n in post_order(node, known=self.loads):
            self.loads[n] = isinstance(n, Load) or any(self.loads[c] for c in children(n))
        return self.loads[node]


def steps_of(root: ScalarExpr, operands: Callable[[ScalarExpr], Sequence[ScalarExpr]]) -> list[EmissionStep]:
    """The steps that give `root`, the last one; `operands` of a node come before it, a guard's condition before its
    sides. No recursion: an explicit stack."""
    if not isinstance(root, Guard) and not operands(root):  # most addresses
        return [EmissionStep(root)]
    order = _Order()
    stack: list[tuple[ScalarExpr, int, Sequence[ScalarExpr] | None, int]] = [(root, -1, None, 0)]
    while stack:
        node, mask, below, phase = stack.pop()
        key = order.key(node, mask)
        if key in order.known:
            continue
        if not isinstance(node, Guard):
            if below is None and (below := operands(node)):
                stack.append((node, mask, below, 1))
                stack.extend((c, mask, None, 0) for c in reversed(below))
                continue
            found = tuple([order.at(c, mask) for c in below])
            order.known[key] = order.add(EmissionStep(node, found, mask))
        elif phase < 2:
            wanted = (
                [(node.value, order.below(node, mask)), (node.otherwise, mask)] if phase else [(node.condition, mask)]
            )
            stack.append((node, mask, None, phase + 1))
            stack.extend((c, m, None, 0) for c, m in wanted)
        else:
            within = order.below(node, mask)
            found = (order.at(node.condition, mask), order.at(node.value, within), order.at(node.otherwise, mask))
            order.known[key] = order.add(EmissionStep(node, found, within))
    return order.steps
