"""Control flow: If, Loop and Scan, whose bodies are graphs in attributes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open
from relaylab.frontend.onnx.model import nodes_below
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.sequences import OpenSequence
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.open_loops import open_loop, turns_of
from relaylab.ir import AnyDim, Call, Constant, Expr, If, TensorType, Tuple, TupleGetItem, Var, const
from relaylab.ir.scope_builder import while_loop
from relaylab.support.errors import RelayError, RelayValueError

LONGEST = 4096
"""How many turns of a loop are written out at most."""


def _captured(g: Graph, node: OnnxNode) -> dict[str, Expr]:
    """What the body of a loop reads of what is computed around it: as an expression in the body it would be computed
    in every turn. Inputs and constants are there anyway, and sizes have to be known in the body.
    """
    graph = node.need("body")
    own = {i.name for i in graph.input}
    read = dict.fromkeys(name for _, _, n in nodes_below(graph) for name in n.input)
    found = {name: node.scope[name] for name in read if name in node.scope and name not in own}
    is_computed = lambda v: isinstance(v, Expr) and not isinstance(v, (Constant, Var)) and g.symbolic(v) is None
    return {name: value for name, value in found.items() if is_computed(value)}


def _body(g: Graph, node: OnnxNode, name: str, scope: dict[str, Any]) -> list[Any]:
    graph = node.need(name)
    if not hasattr(graph, "node"):
        raise node.error(f"the attribute `{name}` is no graph", code="import.attribute")
    return g.convert_body(graph, {**node.scope, **scope}, f"`{name}` of {node.name}")


@converts("If")
def conditional(g: Graph, node: OnnxNode, condition: Expr) -> list[Any]:
    """A condition that is known chooses now; otherwise both branches become part of the program."""
    known = g.value(condition)
    chosen = None if known is None else "then_branch" if known.reshape(-1)[0] else "else_branch"
    if chosen is not None:
        for name in ("then_branch", "else_branch"):  # both are read, so that neither is left over
            node.get(name)
        return _body(g, node, chosen, {})
    branches = [_branch(g, node, name) for name in ("then_branch", "else_branch")]
    condition = op.reshape(condition, ()) if g.rank(condition) else condition
    if not len(branches[0]) == len(branches[1]) == len(node.outputs):
        raise node.error("the branches have different numbers of outputs", code="import.arity")
    pairs = [_of_one_shape(g, condition, *_of_one_rank(g, *pair)) for pair in zip(*branches)]
    branches = [list(b) for b in zip(*pairs)]
    if len(node.outputs) == 1:
        return [If(condition, branches[0][0], branches[1][0])]
    both = If(condition, Tuple(branches[0]), Tuple(branches[1]))
    return [TupleGetItem(both, k) for k in range(len(node.outputs))]


def _branch(g: Graph, node: OnnxNode, name: str) -> list[Any]:
    try:
        return _body(g, node, name, {})
    except RelayError as error:
        way = "if it is never taken, give what decides: from_onnx(model, values={name: value})"
        error.help = f"{error.help}; {way}" if error.help else way
        raise


def _of_one_rank(g: Graph, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The results of two branches; a single element is given the axes of length 1 that the other one has."""
    if not isinstance(a, Expr) or not isinstance(b, Expr):
        raise RelayValueError(
            "a branch that depends on data gives a sequence", code="import.not-a-tensor", help=g.remedy
        )
    ranks = g.rank(a), g.rank(b)
    if ranks[0] == ranks[1] or not all(g.is_static(v) and math.prod(g.shape(v)) == 1 for v in (a, b)):
        return a, b
    shape = (1,) * max(ranks)
    return op.reshape(a, shape), op.reshape(b, shape)


def _of_one_shape(g: Graph, condition: Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The results of two branches; extents in which they differ are open, as the condition says how many there are."""
    pairs, none = list(zip(g.dims(a), g.dims(b))), const(0, "int64")
    if g.rank(a) != g.rank(b):
        return a, b
    for axis, (n, m) in enumerate(pairs):
        if n != m and AnyDim not in (type(n), type(m)):
            many = [const(d, "int64") if isinstance(d, int) else turns_of(x, axis) for d, x in ((n, a), (m, b))]
            counts = op.where(condition, many[0], none), op.where(condition, none, many[1])
            a, b = (op.take(x, op.arange(c, dtype="int64"), axis=axis) for x, c in zip((a, b), counts))
    return a, b


@converts("Loop")
def loop(g: Graph, node: OnnxNode, trips: Expr | None, condition: Expr | None, *state: Expr | list[Expr]) -> list[Any]:
    """Written out if it is known how often it turns; otherwise a recursive function, for the virtual machine."""
    count, made = g.value(trips), len(node.need("body").output)
    if made <= len(state):
        raise node.error(f"the body has {made} outputs for a condition and {len(state)} states", code="import.arity")
    if (trips is None or count is not None) and (condition is None or g.value(condition) is not None):
        found = _written_out(g, node, None if count is None else int(count.reshape(-1)[0]), condition, list(state))
        if found is not None:
            return found
    return _while(g, node, trips, condition, list(state))


def _named(node: OnnxNode, values: list[Any]) -> dict[str, Any]:
    names = [i.name for i in node.need("body").input]
    if len(names) != len(values):
        raise node.error(f"the body takes {len(names)} inputs, {len(values)} are given", code="import.arity")
    return dict(zip(names, values))


def _written_out(
    g: Graph, node: OnnxNode, count: int | None, condition: Expr | None, state: list[Any]
) -> list[Any] | None:
    """The turns one after another; None as soon as a condition depends on data."""
    alive = condition is None or bool(g.known(condition, "cond").reshape(-1)[0])
    scanned: list[list[Expr]] = [[] for _ in node.need("body").output[1 + len(state) :]]
    turn = 0
    while alive and (count is None or turn < count):
        if turn >= LONGEST:
            raise node.error(f"more than {LONGEST} turns of a loop", code="import.loop")
        outs = _body(
            g, node, "body", _named(node, [Constant(np.array(turn, "int64")), Constant(np.array(True)), *state])
        )
        known = g.value(outs[0])
        if known is None:
            return None
        alive, turn, state = bool(known.reshape(-1)[0]), turn + 1, outs[1 : 1 + len(state)]
        for rows, row in zip(scanned, outs[1 + len(state) :]):
            rows.append(row)
    if any(not rows for rows in scanned):
        raise node.error("a loop that never turns has outputs of unknown shape", code="import.loop")
    return [*state, *(op.stack(rows, 0) for rows in scanned)]


def _while(g: Graph, node: OnnxNode, trips: Expr | None, condition: Expr | None, state: list[Any]) -> list[Any]:
    """A recursive function over (turn, alive, state, rows collected so far); extents that a turn changes are open."""
    sequences = {k: s for k, s in enumerate(state) if isinstance(s, list)}
    state = [s for s in state if not isinstance(s, list)]
    captured = _captured(g, node)
    if trips is not None:
        captured[""] = op.reshape(trips, ()) if g.rank(trips) else trips  # no value of the body is called so
    shared = [Var(name or "limit", g.tensor(value)) for name, value in captured.items()]
    types, grown = _steady(g, node, [g.tensor(s) for s in state], dict(zip(captured, shared)), [*sequences])
    variables = [Var("turn", TensorType((), "int64")), Var("alive", TensorType((), "bool")), *shared]
    variables += [Var(f"state{k}", t) for k, t in enumerate(types)]
    variables += [Var(f"rows{k}", t.type) for k, t in enumerate(grown)]

    def goes_on(turn: Expr, alive: Expr, *given: Expr) -> Expr:
        return alive if trips is None else op.logical_and(alive, op.less(turn, given[len(shared) - 1]))

    def turn_once(turn: Expr, alive: Expr, *given: Expr) -> list[Expr]:
        same, values = given[: len(shared)], given[len(shared) :]
        kept, collected = values[: len(state)], values[len(state) :]
        again, new, rows = _once(g, node, dict(zip(captured, same)), [turn, alive, *kept], [*sequences])
        longer = [op.concatenate([c, r.value], r.joined or 0) for c, r in zip(collected, rows)]
        return [op.add(turn, const(1, "int64")), again, *same, *new, *longer]

    first = const(True, "bool") if condition is None else op.reshape(condition, ()) if g.rank(condition) else condition
    begun = [_begun(node, *pair) for pair in zip([*sequences.values(), *[[]] * len(grown)], grown)]
    out = Call(
        while_loop(goes_on, variables, turn_once), [const(0, "int64"), first, *captured.values(), *state, *begun]
    )
    fields: list[Any] = [TupleGetItem(out, k + 2 + len(shared)) for k in range(len(state) + len(grown))]
    found, rows = fields[: len(state)], fields[len(state) :]
    for k, whole, grows in zip(sequences, rows, grown):
        found.insert(k, OpenSequence(whole, grows.joined))
    return [*found, *rows[len(sequences) :]]


@dataclass(frozen=True)
class _Grown:
    """What a turn adds to rows: along a new first axis, or joined to those before along an axis."""

    value: Expr
    type: TensorType
    joined: int | None = None


def _once(
    g: Graph, node: OnnxNode, scope: dict[str, Any], given: list[Any], sequences: list[int]
) -> tuple[Expr, list[Expr], list[_Grown]]:
    """One turn: whether another follows, the next state, and what is added to sequences and to collected outputs."""
    for k in sequences:
        given.insert(2 + k, OpenSequence(None))
    outs = _body(g, node, "body", scope | _named(node, given))
    again, count = op.reshape(outs[0], ()) if g.rank(outs[0]) else outs[0], len(given) - 2
    state = [v for k, v in enumerate(outs[1 : 1 + count]) if k not in sequences]
    rows = [_added(g, node, outs[1 + k]) for k in sequences]
    collected = [_added(g, node, OpenSequence(None, None, [v])) for v in outs[1 + count :]]
    if any(r.joined is not None for r in collected):  # rows lie along an axis of their own
        raise node.error("the shapes of what a loop collects must be known", "import.dynamic", g.remedy)
    return again, state, rows + collected


def _added(g: Graph, node: OnnxNode, sequence: object) -> _Grown:
    """The tensors that a turn inserts at the end of a sequence."""
    if not isinstance(sequence, OpenSequence) or sequence.whole is not None or not sequence:
        raise node.error("a turn does more with a sequence than to add to it", "import.not-a-tensor", g.remedy)
    types = [g.tensor(v) for v in sequence]
    shapes = {t.shape for t in types}
    if len(shapes) == 1 and not types[0].is_dynamic:
        return _Grown(op.stack(list(sequence), 0), TensorType((AnyDim(), *types[0].shape), types[0].dtype))
    axes = [k for k, dims in enumerate(zip(*shapes)) if len({*dims}) > 1 or is_open(dims[0])]
    if len(axes) != 1 or len({len(t.shape) for t in types}) > 1:
        raise node.error("the shapes of what a loop collects must be known", "import.dynamic", g.remedy)
    dims = [AnyDim() if k == axes[0] else d for k, d in enumerate(types[0].shape)]
    return _Grown(op.concatenate(list(sequence), axes[0]), TensorType(dims, types[0].dtype), axes[0])


def _begun(node: OnnxNode, sequence: list[Expr], grown: _Grown) -> Expr:
    """What is collected before the first turn."""
    parts = [] if getattr(sequence, "whole", None) is None else [getattr(sequence, "whole")]  # noqa: B009
    if parts and getattr(sequence, "joined", None) != grown.joined:
        raise node.error("a turn adds tensors of other shapes to a sequence", "import.loop")
    if sequence:
        items = list(sequence)
        parts.append(op.stack(items, 0) if grown.joined is None else op.concatenate(items, grown.joined))
    empty = [d if isinstance(d, int) else 0 for d in grown.type.shape]
    parts = parts or [Constant(np.zeros(empty, grown.type.dtype))]
    return parts[0] if len(parts) == 1 else op.concatenate(parts, grown.joined or 0)


def _steady(
    g: Graph, node: OnnxNode, types: list[TensorType], scope: dict[str, Any], sequences: list[int]
) -> tuple[list[TensorType], list[_Grown]]:
    """The types of the state that a turn keeps, once extents that it changes are open; what it collects."""
    for _ in range(1 + sum(len(t.shape) for t in types)):
        values = [Var("turn", TensorType((), "int64")), Var("alive", TensorType((), "bool"))]
        _, state, rows = _once(g, node, scope, [*values, *(Var(f"s{k}", t) for k, t in enumerate(types))], sequences)
        wider = [_wider(node, t, g.tensor(v)) for t, v in zip(types, state)]
        if wider == types:
            return types, rows
        types = wider
    raise node.error("a turn changes the type of the state", code="import.loop")


def _wider(node: OnnxNode, before: TensorType, after: TensorType) -> TensorType:
    """The type of both, open where they differ."""
    if before.dtype != after.dtype or len(before.shape) != len(after.shape):
        raise node.error(f"a turn makes {after} of {before}", code="import.loop")
    dims = [b if isinstance(b, AnyDim) or b == a else AnyDim() for b, a in zip(before.shape, after.shape)]
    return before if all(d is b for d, b in zip(dims, before.shape)) else TensorType(dims, before.dtype)


@converts("Scan", since=8)
def scan_batch(g: Graph, node: OnnxNode, lengths: Expr | None, *ins: Expr) -> list[Expr]:
    """The first form: the first axis of everything is a batch, each of whose sequences is scanned alone."""
    batch = g.shape(ins[0])[0]
    if lengths is not None:
        raise node.error("sequences of lengths of their own are not imported", code="import.input")
    if not 0 < batch <= LONGEST or any(node.ints("directions") or []):
        raise node.error(f"a batch of {batch}, or backwards", code="import.loop")
    alone = [scan(g, node, *(op.take(x, const(k, "int64"), axis=0) for x in ins)) for k in range(batch)]
    return [op.stack(list(parts), 0) for parts in zip(*alone)]


@converts("Scan", since=9)
def scan(g: Graph, node: OnnxNode, *ins: Expr) -> list[Expr]:
    """Turn by turn over the slices of the scanned inputs."""
    count, body = node.need("num_scan_inputs"), node.need("body")
    fixed = len(ins) - count
    state, scanned = list(ins[:fixed]), list(ins[fixed:])
    outs = len(body.output) - fixed
    back, axes = (node.ints(n) or [0] * count for n in ("scan_input_directions", "scan_input_axes"))
    out_back, out_axes = (node.ints(n) or [0] * outs for n in ("scan_output_directions", "scan_output_axes"))
    axes = [g.axis(a, g.rank(x)) for a, x in zip(axes, scanned)]
    if any(is_open(g.dims(x)[a]) for a, x in zip(axes, scanned)):
        return _open_scan(g, node, state, list(zip(scanned, axes, back)), list(zip(out_back, out_axes)))
    turns = {g.dims(x)[a] for a, x in zip(axes, scanned)}
    if len(turns) != 1 or max(turns) > LONGEST or min(turns) < 1:
        raise node.error(f"scanned inputs of {sorted(turns)} slices", code="import.loop")
    rows: list[list[Expr]] = [[] for _ in range(outs)]
    for t in range(turns.pop()):
        slices = [
            op.take(x, const(g.dims(x)[a] - 1 - t if b else t, "int64"), axis=a) for x, a, b in zip(scanned, axes, back)
        ]
        found = _body(g, node, "body", _named(node, [*state, *slices]))
        state = found[:fixed]
        for row, value in zip(rows, found[fixed:]):
            row.append(value)
    return [*state, *(op.stack(r[::-1] if b else r, a) for r, b, a in zip(rows, out_back, out_axes))]


def _open_scan(
    g: Graph, node: OnnxNode, state: list[Expr], ins: list[tuple[Expr, int, int]], outs: list[tuple[int, int]]
) -> list[Expr]:
    """The same for a number of slices that only run time knows: a loop."""
    x, axis, _ = ins[0]
    count, steps = turns_of(x, axis), g.dims(x)[axis]
    captured = _captured(g, node)

    def turn(t: Expr, shared: list[Expr], values: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        behind = op.subtract(op.subtract(shared[0], const(1, "int64")), t)
        slices = [op.take(x, behind if back else t, axis=a) for x, (_, a, back) in zip(shared[1:], ins)]
        scope = dict(zip(captured, shared[1 + len(ins) :]))
        found = _body(g, node, "body", scope | _named(node, [*values, *slices]))
        return found[: len(state)], found[len(state) :]

    shared = [count, *(x for x, _, _ in ins), *captured.values()]
    kept, rows = open_loop(g, shared, state, turn, steps, [bool(back) for back, _ in outs])
    moved = [_first_axis_to(g, r, axis) for r, (_, axis) in zip(rows, outs)]
    return [*kept, *moved]


def _first_axis_to(g: Graph, x: Expr, axis: int) -> Expr:
    order = list(range(1, g.rank(x)))
    order.insert(g.axis(axis, g.rank(x)), 0)
    return op.transpose(x, order)
