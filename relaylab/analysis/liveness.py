"""Liveness in a straight-line program: when each value is made and when it is used last."""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.ir.adt import Match
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from relaylab.ir.visit import children, walk
from relaylab.support.errors import RelayValueError, kind_of


@dataclass(slots=True)
class LiveInterval:
    """The steps (indices of calls in the order of evaluation) from which to which a value is needed, both included.

    A parameter or a constant is there before step 0 (`born` -1); what the result holds dies after the last step.
    """

    born: int
    dies: int

    def overlaps(self, other: LiveInterval) -> bool:
        """Whether the two values need room at the same time."""
        return self.born <= other.dies and other.born <= self.dies


@dataclass(frozen=True, slots=True)
class Liveness:
    """The steps of a straight-line program, and for every stored value (call, parameter, constant) its interval."""

    steps: tuple[Call, ...]
    intervals: dict[Expr, LiveInterval]

    def live_at(self, step: int) -> list[Expr]:
        """The values that exist while a step runs."""
        return [node for node, i in self.intervals.items() if i.born <= step <= i.dies]


def liveness(func: Function) -> Liveness:
    """The liveness of the values of a function body of calls, tuples, projections and lets.

    Calls of functions count as one step each. Raises `RelayValueError` for branches and references.
    """
    order = list(walk((func.body,), _below))
    steps = tuple(n for n in order if isinstance(n, Call))
    found = _Stores({n.var: n.value for n in order if isinstance(n, Let)})
    for param in func.params:
        found.make(param, -1)
    number = {call: k for k, call in enumerate(steps)}
    for node in order:
        found.visit(node, number)
    found.use(func.body, len(steps))
    return Liveness(steps, found.intervals)


class _Stores:
    """Which stored values each node stands for: tuples, projections and variables are names, not copies."""

    def __init__(self, bound: dict[Var, Expr]):
        self.bound = bound
        self.stores: dict[Expr, tuple[Expr, ...]] = {}
        self.intervals: dict[Expr, LiveInterval] = {}

    def make(self, node: Expr, step: int) -> None:
        self.stores[node] = (node,)
        self.intervals.setdefault(node, LiveInterval(step, step))

    def of(self, node: Expr) -> tuple[Expr, ...]:
        while isinstance(node, Var) and node in self.bound:
            node = self.bound[node]
        return self.stores.get(node, ())

    def use(self, node: Expr, step: int) -> None:
        for store in self.of(node):
            self.intervals[store].dies = max(self.intervals[store].dies, step)

    def visit(self, node: Expr, number: dict[Call, int]) -> None:
        match node:
            case Call():
                for part in (node.op, *node.args):
                    self.use(part, number[node])
                self.make(node, number[node])
            case Constant() | Var() if node not in self.bound:
                self.make(node, -1)
            case Tuple():
                self.stores[node] = tuple(dict.fromkeys(s for f in node.fields for s in self.of(f)))
            case TupleGetItem():
                source = node.tuple_value
                self.stores[node] = self.of(source.fields[node.index] if isinstance(source, Tuple) else source)
            case Let():
                self.stores[node] = self.of(node.body)


def _below(node: Expr) -> tuple[Expr, ...]:
    """Parts in the order of evaluation; a function is a value without parts."""
    if isinstance(node, (If, Match, RefCreate, RefRead, RefWrite)):
        raise RelayValueError(
            f"liveness is of straight-line programs; this one has {kind_of(node)}", code="analysis.not-straight-line"
        )
    return () if isinstance(node, Function) else children(node)
