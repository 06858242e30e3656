"""Which programs compute each example of a batch on its own.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from relaylab.ir.dims import AnyDim, SizeVar
from relaylab.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op, facets
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import operands_of, walk
from relaylab.op.examples import keeps_examples


def examples_of(func: Function) -> Examples | None:
    """The examples, two or more, that a typed function of operators and kernels computes, each on its own.

    All its inputs and results have them along the first axis, and element `n` of each is computed from elements `n` of
    the inputs and from constants alone. None where this does not hold, or is not seen.
    """
    size = _batch(func.params)
    if not isinstance(size, int) or size < 2:
        return None
    found = _Search(size)
    return Examples(size, frozenset(found.batched)) if found.holds(func, func.params) else None


def open_batch(func: Function) -> list[Var] | None:
    """The parameters with the examples of a batch whose size has a name, if a typed function computes each on its own,
    as `examples_of` says, for all numbers that it may be; the others have no size with a name. None if it does not.
    """
    batched = [p for p in func.params if is_dynamic(p.checked_type)]
    size = _batch(batched)
    if not isinstance(size, SizeVar) or not _Search(size).holds(func, batched):
        return None
    within = [d for p in batched for leaf in _leaves(p.checked_type) for d in cast(TensorType, leaf).shape[1:]]
    return None if any(isinstance(d, AnyDim) for d in within) else batched


def _batch(params: Sequence[Var]) -> int | SizeVar | None:
    """The extent of the first axis of all parameters."""
    sizes = {_leading(leaf) for p in params for leaf in _leaves(p.checked_type)}
    return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True, slots=True)
class Examples:
    """How many there are, and the expressions whose values have them along the first axis."""

    size: int
    batched: frozenset[Expr]


def _leaves(t: Type) -> Sequence[Type]:
    return t.fields if isinstance(t, TupleType) else (t,)


def _leading(t: Type) -> int | SizeVar | None:
    """The extent of the first axis of a tensor, if it has one that is a number or a size with a name."""
    first = t.shape[0] if isinstance(t, TensorType) and t.shape else None
    return first if isinstance(first, (int, SizeVar)) else None


@dataclass
class _Search:
    """Looks at every call of a program once; equal calls of one kernel as one."""

    size: int | SizeVar
    batched: set[Expr] = field(default_factory=set)
    seen: dict[tuple[Function, tuple[bool, ...]], bool] = field(default_factory=dict)

    def holds(self, func: Function, batched: Sequence[Var]) -> bool:
        """Whether a function of which these parameters have the examples gives a result that has them too."""
        self.batched |= set(batched)
        return self._body(func)

    def _body(self, func: Function) -> bool:
        nodes = walk((func.body,), operands_of)
        return all(self._node(node) for node in nodes) and func.body in self.batched

    def _node(self, node: Expr) -> bool:
        """Whether a node may stand in such a program; notes those that have the examples."""
        match node:
            case Constant() | Var():
                return True
            case Tuple():
                held = [f in self.batched for f in node.fields]
                self.batched |= {node} if all(held) else set()
                return all(held) or not any(held)
            case TupleGetItem():
                self.batched |= {node} if node.tuple_value in self.batched else set()
                return True
            case Call():
                return self._call(node)
        return False

    def _call(self, call: Call) -> bool:
        held = tuple(a in self.batched for a in call.args)
        types = _leaves(call.checked_type)
        if not any(held):  # it gives all examples the same
            return isinstance(call.op, Op) and not facets(call).stateful
        if any(_leading(t) != self.size for t in types):
            return False
        self.batched.add(call)
        if isinstance(call.op, Function):
            return self._kernel(call.op, held)
        args, fields = [a.checked_type for a in call.args], enumerate(types)
        return isinstance(call.op, Op) and all(keeps_examples(facets(call), args, held, t, k) for k, t in fields)

    def _kernel(self, func: Function, held: tuple[bool, ...]) -> bool:
        key = (func, held)
        if key not in self.seen:
            self.batched |= {p for p, has in zip(func.params, held) if has}
            self.seen[key] = bool(func.is_primitive) and self._body(func)
        return self.seen[key]
