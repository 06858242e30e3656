"""The evaluator of loop programs: statement by statement, the lanes of a vectorized loop as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from relaylab.loop.evaluate import guarded_only, reduce_box
from relaylab.loop.expr import (
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    ScalarExpr,
    Size,
    Tensor,
    children,
    post_order,
)
from relaylab.loop.program import (
    SIZES,
    Accumulate,
    Define,
    For,
    IfThenElse,
    LoopProgram,
    Prefetch,
    Prepared,
    Statement,
    Store,
    check_depth,
    identity,
    statements,
)
from relaylab.loop.scalar import SCALAR_OPS, Array, compute_dtype, convert
from relaylab.support.errors import RelayIndexError, RelayTypeError

PREPARED = 1 << 20  # elements that are filled at once
Environment = dict[ScalarExpr, Array]
Memory = dict[Tensor, Array]


def run(program: LoopProgram, buffers: Memory, items: tuple[int, int] | None = None) -> None:
    """Do the work items [begin, end) of a program (all by default) on flat arrays, in place.

    Every nest does its share of the items, as native code does. A read or a store outside a buffer raises
    `RelayIndexError`.
    """
    check_depth(program)
    lengths = {t: t.shape[0] if t.size is None else _length(t.size, buffers) for t in program.private}
    memory = {t: a if a.itemsize == np.dtype(t.dtype).itemsize else a.view(t.dtype) for t, a in buffers.items()}
    memory |= {t: np.zeros(n, t.dtype) for t, n in lengths.items()}
    memory |= {part.buffer: prepare(part, buffers) for part in program.prepared}
    total = _length(program.items, memory)
    begin, end = items or (0, total)
    for nest in program.nests:
        first, last = (x * _length(nest.items, memory) // max(total, 1) for x in (begin, end))
        stop = min(last * nest.grain, _length(nest.loop.axis.length, memory))
        with np.errstate(all="ignore"):
            _loop(nest.loop, first * nest.grain, stop, {}, memory)


def prepare(part: Prepared, buffers: Memory) -> Array:
    """What is filled when a program is built, from the flat arrays of operands that are known then."""
    loops: list[For] = []
    statement: Statement = part.fill
    while isinstance(statement, For):
        loops.append(statement)
        (statement,) = statement.body
    assert isinstance(statement, Store), "the schedule made sure of it"
    found = np.zeros(part.buffer.shape, part.buffer.dtype)
    shape = [loop.axis.extent for loop in loops]
    inner = math.prod(shape[1:])
    step = max(1, PREPARED // inner)
    for first in range(0, shape[0], step):  # a block of turns at once
        turns = [np.arange(first, min(first + step, shape[0])), *map(np.arange, shape[1:])]
        env: Environment = dict(zip((loop.axis for loop in loops), np.ix_(*turns)))
        where, value = (value_of(e, env, buffers) for e in (statement.address, statement.value))
        _check(part.buffer, found, where, "written")
        found[where] = convert(value, part.buffer.dtype)
    return found


def _length(value: ScalarExpr | int, memory: Memory) -> int:
    """A number, or what an expression of sizes gives for those in the memory."""
    return value if isinstance(value, int) else int(value_of(value, {}, memory))


def _loop(loop: For, low: int, high: int, env: Environment, memory: Memory) -> None:
    """The turns low .. high-1; the accumulators around the loop are updated in `env`."""
    if loop.kind == "vectorized":
        if low < high:
            _lanes(loop, np.arange(low, high), env, memory)
        return
    for i in range(low, high):
        inner = env | {loop.axis: np.asarray(i)}
        _body(loop.body, inner, memory)
        env.update((x, inner[x]) for x in env if isinstance(x, Local))


def _lanes(loop: For, turns: Array, env: Environment, memory: Memory) -> None:
    """All turns at once: every lane adds to a sum of its own, and the sums are folded at the end."""
    sums = {s.local: s.kind for s in statements(loop.body) if isinstance(s, Accumulate) and s.local in env}
    start = {x: np.asarray(identity(kind, compute_dtype(x.dtype)).value, env[x].dtype) for x, kind in sums.items()}
    inner = env | start | {loop.axis: turns}
    _body(loop.body, inner, memory)
    for local, kind in sums.items():
        own = reduce_box(kind, np.broadcast_to(inner[local], turns.shape), (0,)).reshape(())
        env[local] = _combined(kind, env[local], own)


def _body(body: tuple[Statement, ...], env: Environment, memory: Memory) -> None:
    """Run statements in `env`, which holds the axes and registers around them and takes those that they define."""
    for statement in body:
        match statement:
            case Define(local, value):
                env[local] = value_of(value, env, memory)
            case Accumulate(local, kind, value):
                env[local] = _combined(kind, env[local], value_of(value, env, memory))
            case Store(buffer, address, value):
                where = value_of(address, env, memory)
                _check(buffer, memory[buffer], where, "written")
                stored = convert(value_of(value, env, memory), buffer.dtype)
                memory[buffer][np.broadcast_to(where, stored.shape) if stored.ndim else where] = stored
            case For(axis):
                end = _length(axis.length, memory)
                stop = end if statement.stop is None else int(value_of(statement.stop, env, memory))
                _loop(statement, 0, min(stop, end), env, memory)
            case IfThenElse(condition, then, otherwise):
                own = dict(env)
                _body(then if value_of(condition, env, memory).item() else otherwise, own, memory)
                env.update((x, own[x]) for x in env if isinstance(x, Local))
            case Prefetch():
                pass


def _combined(kind: str, total: Array, amount: Array) -> Array:
    if kind == "last":
        return amount
    return reduce_box(kind, np.stack(np.broadcast_arrays(total, amount)), (0,))[0]


def value_of(root: ScalarExpr, env: Environment, memory: Memory) -> Array:
    """The value of an expression of a program, for the axes and registers in `env`.

    A read outside a buffer is an error where no guard keeps it from the value.
    """
    done: Environment = {}
    astray: dict[ScalarExpr, tuple[Tensor, Array]] = {}  # values that come from outside of a buffer, and in which lanes
    for node, below, guarded in _order(root):
        done[node] = _node(node, [done[c] for c in below], env, memory, guarded)
        if astray or guarded and isinstance(node, Load):
            for tensor, lanes in _astray(node, done, astray, memory):
                if lanes.any():
                    astray[node] = tensor, lanes | astray[node][1] if node in astray else lanes
    if root in astray:
        raise _outside(astray[root][0], memory[astray[root][0]], "read")
    return done[root]


def _astray(
    node: ScalarExpr, done: Environment, astray: Mapping[ScalarExpr, tuple[Tensor, Array]], memory: Memory
) -> Iterator[tuple[Tensor, Array]]:
    """The lanes of a value that come from outside of a buffer, and of which."""
    match node:
        case Load(tensor, (address,)) if memory[tensor].size:
            yield tensor, (done[address] < 0) | (done[address] >= memory[tensor].size)
        case Guard(condition, value) if value in astray:
            yield astray[value][0], astray[value][1] & done[condition]
        case _:
            pass
    used = (node.condition, node.otherwise) if isinstance(node, Guard) else children(node)
    yield from (astray[c] for c in used if c in astray)


@lru_cache(maxsize=1024)
def _order(root: ScalarExpr) -> tuple[tuple[ScalarExpr, tuple[ScalarExpr, ...], bool], ...]:
    """The nodes of an expression, each after its children, with these and whether it stands behind a guard only."""
    guarded = guarded_only(root)
    return tuple((node, children(node), id(node) in guarded) for node in post_order(root))


def _node(node: ScalarExpr, args: list[Array], env: Environment, memory: Memory, guarded: bool) -> Array:
    match node:
        case Axis() | Local():
            return env[node]
        case Size(_, slot):
            return next(array for tensor, array in memory.items() if tensor.name == SIZES)[slot]
        case Const(value, dtype):
            return np.asarray(value, compute_dtype(dtype))
        case Load(tensor):
            return _read(tensor, memory[tensor], args[0], guarded)
        case Apply(op):
            return np.asarray(SCALAR_OPS[op].meaning(*args))
        case Cast(_, dtype):
            return convert(args[0], dtype)
        case Guard():
            return np.where(*args)
        case _:
            raise RelayTypeError(f"not part of a loop program: {node!r}", code="loop.not-an-expression")


def _read(tensor: Tensor, array: Array, at: Array, guarded: bool) -> Array:
    if array.size == 0:
        return np.zeros(at.shape, compute_dtype(tensor.dtype))
    if guarded:
        at = np.clip(at, 0, array.size - 1)
    else:
        _check(tensor, array, at, "read")
    return np.asarray(array[at]).astype(compute_dtype(tensor.dtype))


def _check(tensor: Tensor, array: Array, at: Array, what: str) -> None:
    if at.size and (at.min() < 0 or at.max() >= array.size):
        raise _outside(tensor, array, what)


def _outside(tensor: Tensor, array: Array, what: str) -> RelayIndexError:
    return RelayIndexError(f"`{tensor.name}` is {what} outside its {array.size} elements", code="loop.out-of-bounds")
