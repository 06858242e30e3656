"""Control flow that torch keeps as it is written: `cond`, `while_loop`, `scan` and `map`, whose bodies are graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import is_open
from relaylab.frontend.open_loops import open_loop, turns_of
from relaylab.frontend.pytorch.expansion import Fx
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import AnyDim, Call, Constant, Expr, If, TensorType, Tuple, TupleGetItem, Var, const
from relaylab.ir.scope_builder import while_loop

LONGEST = 256
"""How many turns of a loop are written out at most; others are a loop in the program too."""


def _body(g: TorchGraph, graph: Fx, values: Sequence[Any]) -> list[Any]:
    """What a graph gives for these values."""
    inputs = [n.name for n in graph.graph.nodes if n.op == "placeholder"]
    return g.convert_body(graph, dict(zip(inputs, values)), "a body")


def _scalar(g: TorchGraph, x: Operand) -> Expr:
    found = g.to(x, "bool")
    return op.reshape(found, ()) if g.rank(found) else found


@converts("cond")
def cond(g: TorchGraph, node: AtenNode, pred: Operand, true: Fx, false: Fx, operands: Sequence[Any] = ()) -> list[Any]:
    """A condition that is known chooses now; otherwise both branches become part of the program."""
    condition = _scalar(g, pred)
    known = g.value(condition)
    if known is not None:
        return _body(g, true if known else false, operands)
    branches = [[_tensor(g, v) for v in _body(g, graph, operands)] for graph in (true, false)]
    if len(branches[0]) == 1:
        return [If(condition, branches[0][0], branches[1][0])]
    both = If(condition, Tuple(branches[0]), Tuple(branches[1]))
    return [TupleGetItem(both, k) for k in range(len(branches[0]))]


def _tensor(g: TorchGraph, x: Operand) -> Expr:
    return x if isinstance(x, Expr) else Constant(np.asarray(x))


@converts("while_loop")
def loop(
    g: TorchGraph, node: AtenNode, goes_on: Fx, body: Fx, state: Sequence[Any], more: Sequence[Any] = ()
) -> list[Any]:
    """Written out if it is known how often it turns; otherwise a recursive function."""
    now: list[Any] = list(state)
    for _ in range(LONGEST):
        alive = g.value(_scalar(g, _body(g, goes_on, [*now, *more])[0]))
        if alive is None:
            break
        if not alive:
            return now
        now = _body(g, body, [*now, *more])
    return _while(g, node, goes_on, body, [_tensor(g, s) for s in state], list(more))


def _while(g: TorchGraph, node: AtenNode, goes_on: Fx, body: Fx, state: list[Expr], more: list[Any]) -> list[Expr]:
    """A function over the state and what all turns read; extents that a turn changes are open."""
    where = _computed(g, more)
    shared = [Var(f"shared{k}", g.tensor(more[k])) for k in where]

    def scope(values: Sequence[Expr]) -> list[Any]:
        read = dict(zip(where, values))
        return [read.get(k, m) for k, m in enumerate(more)]

    types = _steady(g, node, body, [g.tensor(s) for s in state], scope(shared))
    variables = [*shared, *(Var(f"state{k}", t) for k, t in enumerate(types))]
    count = len(shared)

    def alive(*given: Expr) -> Expr:
        return _scalar(g, _body(g, goes_on, [*given[count:], *scope(given[:count])])[0])

    def once(*given: Expr) -> list[Expr]:
        found = _body(g, body, [*given[count:], *scope(given[:count])])
        return [*given[:count], *(_tensor(g, v) for v in found)]

    out = Call(while_loop(alive, variables, once), [*(more[k] for k in where), *state])
    return [TupleGetItem(out, k + count) for k in range(len(state))]


def _computed(g: TorchGraph, values: Sequence[Any]) -> list[int]:
    """Which values a body would compute in every turn if it had them as expressions."""
    is_known = lambda v: not isinstance(v, Expr) or isinstance(v, (Constant, Var)) or g.symbolic(v) is not None
    return [k for k, v in enumerate(values) if not is_known(v)]


def _steady(g: TorchGraph, node: AtenNode, body: Fx, types: list[TensorType], more: list[Any]) -> list[TensorType]:
    """The types of a state that a turn keeps, once extents that it changes are open."""
    for _ in range(1 + sum(len(t.shape) for t in types)):
        given = [Var(f"state{k}", t) for k, t in enumerate(types)]
        after = [g.tensor(_tensor(g, v)) for v in _body(g, body, [*given, *more])]
        for before, new in zip(types, after):
            if before.dtype != new.dtype or len(before.shape) != len(new.shape):
                raise node.error(f"a turn makes {new} of {before}", "import.loop")
        wider = [_wider(*pair) for pair in zip(types, after)]
        if wider == types:
            return types
        types = wider
    raise node.error("a turn changes the type of the state", "import.loop")


def _wider(before: TensorType, after: TensorType) -> TensorType:
    dims = [b if type(b) is AnyDim or b == a else AnyDim() for b, a in zip(before.shape, after.shape)]
    return before if all(d is b for d, b in zip(dims, before.shape)) else TensorType(dims, before.dtype)


@converts("scan")
def scan(
    g: TorchGraph, node: AtenNode, body: Fx, init: Sequence[Any], xs: Sequence[Expr], more: Sequence[Any] = ()
) -> list[Any]:
    """Turn by turn over the rows of `xs`: the last state, and the rows that the turns give."""
    state = [_tensor(g, s) for s in init]
    turns = g.dims(xs[0])[0]
    if is_open(turns) or turns > LONGEST:
        return _open_scan(g, body, state, xs, more)
    if turns < 1:
        raise node.error("a loop that never turns has outputs of unknown shape", "import.loop")
    rows: list[list[Expr]] = []
    for t in range(turns):
        found = _body(g, body, [*state, *(op.take(x, const(t, "int64"), axis=0) for x in xs), *more])
        state = found[: len(state)]
        rows.append([_tensor(g, v) for v in found[len(state) :]])
    return [*state, *(op.stack(list(row), 0) for row in zip(*rows))]


def _open_scan(g: TorchGraph, body: Fx, state: list[Expr], xs: Sequence[Expr], more: Sequence[Any]) -> list[Expr]:
    """The same for a number of rows that only run time knows, or many: a loop."""
    where = _computed(g, more)

    def turn(t: Expr, shared: list[Expr], values: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        rows = [op.take(x, t, axis=0) for x in shared[1 : 1 + len(xs)]]
        read = dict(zip(where, shared[1 + len(xs) :]))
        found = _body(g, body, [*values, *rows, *(read.get(k, m) for k, m in enumerate(more))])
        return found[: len(state)], [_tensor(g, v) for v in found[len(state) :]]

    shared = [turns_of(xs[0], 0), *xs, *(more[k] for k in where)]
    kept, rows = open_loop(g, shared, state, turn, g.dims(xs[0])[0])
    return [*kept, *rows]


@converts("map_impl")
def mapped(g: TorchGraph, node: AtenNode, body: Fx, xs: Sequence[Expr], more: Sequence[Any] = ()) -> list[Any]:
    """What a body gives for each row: a scan without a state."""
    return scan(g, node, body, (), xs, more)
