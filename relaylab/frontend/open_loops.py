"""Loops whose number of turns is an open size: a recursive function that keeps a state and collects rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.ir import AnyDim, Call, Constant, Expr, TensorType, TupleGetItem, Var, const
from relaylab.ir.scope_builder import while_loop
from relaylab.support.errors import RelayValueError

Turn = Callable[[Expr, list[Expr], list[Expr]], "tuple[list[Expr], list[Expr]]"]
"""From the number of a turn, what all turns share and the state to the next state and the rows of this turn."""


def turns_of(x: Expr, axis: int) -> Expr:
    """The extent of an axis as a scalar that is known at run time."""
    return op.take(op.shape_of(x, "int64"), const(axis, "int64"), axis=0)


def open_loop(
    g: Graph,
    shared: Sequence[Expr],
    state: Sequence[Expr],
    turn: Turn,
    steps: int | AnyDim,
    backwards: Sequence[bool] = (False,),
) -> tuple[list[Expr], list[Expr]]:
    """The last state, and all rows along a new first axis of `steps`; `backwards` says which are put before the others.

    The state keeps its types. `shared` are values that all turns read, first the number of turns: what a function
    alone uses would be computed in each of its calls.
    """
    types = [g.tensor(s) for s in state]
    common = [Var(f"shared{k}", g.tensor(s)) for k, s in enumerate(shared)]
    trial = turn(Var("turn", TensorType((), "int64")), list(common), [Var(f"s{k}", t) for k, t in enumerate(types)])[1]
    rows = [g.tensor(r) for r in trial]
    first = [*backwards, *[False] * (len(rows) - len(backwards))]
    collected = [TensorType((AnyDim(), *r.shape), r.dtype) for r in rows]
    names = [f"state{k}" for k in range(len(types))] + [f"rows{k}" for k in range(len(rows))]
    variables = [Var("turn", TensorType((), "int64")), *common, *map(Var, names, [*types, *collected])]

    def once(at: Expr, *given: Expr) -> list[Expr]:
        kept, values = given[: len(common)], given[len(common) :]
        new, found = turn(at, list(kept), list(values[: len(types)]))
        pairs = zip(values[len(types) :], (op.expand_dims(r, 0) for r in found), first)
        longer = [op.concatenate([r, old] if before else [old, r], 0) for old, r, before in pairs]
        return [op.add(at, const(1, "int64")), *kept, *new, *longer]

    empty = [_empty(g, r) for r in rows]
    loop = while_loop(lambda at, count, *_: op.less(at, count), variables, once)
    out = Call(loop, [const(0, "int64"), *shared, *state, *empty])
    fields: list[Expr] = [TupleGetItem(out, k + 1 + len(common)) for k in range(len(types) + len(rows))]
    pinned: list[Expr] = [op.reshape(f, (steps, *r.shape), allowzero=True) for f, r in zip(fields[len(types) :], rows)]
    return fields[: len(types)], pinned


def _empty(g: Graph, row: TensorType) -> Expr:
    if any(type(d) is AnyDim for d in row.shape):
        raise RelayValueError("the shapes of what a loop collects must be known", code="import.dynamic", help=g.remedy)
    if row.is_dynamic:
        return op.zeros((0, *row.shape), row.dtype)
    return Constant(np.zeros((0, *row.concrete_shape), row.dtype))
