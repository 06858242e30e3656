"""Probabilities of classes from those of pairs of classes.

Wu, Lin, Weng: Probability estimates for multi-class classification by pairwise coupling, 2004, their second method with
the end that LIBSVM has for it: a row that has come near enough stays as it is.
"""

from __future__ import annotations

from functools import reduce

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.ir import Call, Expr, TensorType, TupleGetItem, Var, const
from relaylab.ir.scope_builder import while_loop

MOST_TURNS = 100
_NEAR = 0.005


def coupled(g: Graph, pairs: dict[tuple[int, int], Expr], count: int) -> Expr:
    """`(rows, classes)` from the probability `(rows, 1)` of i against j for every pair i != j."""
    rows = []
    for i in range(count):
        own = reduce(op.add, (op.multiply(p, p) for (j, at), p in pairs.items() if at == i))
        cells = [own if i == j else op.negative(op.multiply(pairs[j, i], pairs[i, j])) for j in range(count)]
        rows.append(op.concatenate(cells, axis=1))
    matrix = op.stack(rows, 1)
    start = op.add(op.multiply(rows[0], g.const(0, rows[0])), g.const(1 / count, rows[0]))
    done = op.not_equal(op.strided_slice(start, [0], [1], axes=[1]), g.const(1 / count, start))
    scalar = TensorType((), "int64")
    state = [Var("turn", scalar)]
    state += [Var(n, g.tensor(v)) for n, v in (("matrix", matrix), ("estimate", start), ("done", done))]

    def goes_on(turn: Expr, matrix: Expr, estimate: Expr, done: Expr) -> Expr:
        return op.logical_and(op.less(turn, const(MOST_TURNS, "int64")), op.logical_not(op.all(done)))

    def turn_once(turn: Expr, matrix: Expr, estimate: Expr, done: Expr) -> list[Expr]:
        new, near = _turn(g, matrix, estimate, count)
        done = op.logical_or(done, near)
        return [op.add(turn, const(1, "int64")), matrix, op.where(done, estimate, new), done]

    loop = while_loop(goes_on, state, turn_once)
    return TupleGetItem(Call(loop, [const(0, "int64"), matrix, start, done]), 2)


def _turn(g: Graph, matrix: Expr, p: Expr, count: int) -> tuple[Expr, Expr]:
    """Every class set once to its best, and whether nothing was far from it before."""
    c = lambda value: g.const(value, p)
    row = lambda k: op.squeeze(op.strided_slice(matrix, [k], [k + 1], axes=[1]), axis=[1])
    cell = lambda x, k: op.strided_slice(x, [k], [k + 1], axes=[1])
    q = op.sum(op.multiply(matrix, op.expand_dims(p, 1)), axis=[2])
    total = op.sum(op.multiply(p, q), axis=[1], keepdims=True)
    apart = op.max(op.abs(op.subtract(q, total)), axis=[1], keepdims=True)
    for k in range(count):
        own, at = cell(row(k), k), cell(q, k)
        step = op.divide(op.subtract(total, at), own)
        scale = op.add(c(1), step)
        more = op.multiply(step, op.add(op.multiply(step, own), op.multiply(c(2), at)))
        total = op.divide(op.divide(op.add(total, more), scale), scale)
        q = op.divide(op.add(q, op.multiply(step, row(k))), scale)
        raised = [op.add(cell(p, j), step) if j == k else cell(p, j) for j in range(count)]
        p = op.divide(op.concatenate(raised, axis=1), scale)
    return p, op.less(apart, g.const(_NEAR / count, apart))
