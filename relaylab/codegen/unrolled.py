"""Loops whose conditions are known, written out: recursive functions `let f = fn(…) { if c { f(…) } else { … } }`.

A program whose sizes have become numbers knows how often its loops over them turn; written out they are a graph.
"""

from __future__ import annotations

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import facets, op_name
from relaylab.ir.visit import children, rebuild, rewrite, walk
from relaylab.op import concatenate
from relaylab.transform.simplify.fold_constant import ConstantFolder

LONGEST = 4096
"""How many turns of a loop are written out at most."""


def unrolled(body: Expr) -> Expr:
    """`body` with the calls of such loops replaced by what their turns compute; the others stay as they are."""
    loops: dict[Expr, Expr] = {n.var: n.value for n in walk((body,)) if isinstance(n, Let) and _is_loop(n.var, n.value)}
    if not loops:
        return body

    def post(new: Expr, old: Expr) -> Expr:
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        if not isinstance(new, Call):
            return new
        op = new.op
        name, func = (op.var, op.value) if isinstance(op, Let) and op.var is op.body else (op, loops.get(op))
        found = _turns(func, name, new) if isinstance(func, Function) else None
        return new if found is None else found

    return rewrite(body, post)


def _is_loop(name: Var, value: Expr) -> bool:
    return (
        isinstance(value, Function)
        and isinstance(value.body, If)
        and any(isinstance(n, Call) and n.op is name for n in (value.body.true_branch, value.body.false_branch))
    )


def _turns(func: Function, name: Expr, call: Call) -> Expr | None:
    """The value of a call of a loop; None if a condition depends on data, or there are too many turns."""
    body = func.body
    if not isinstance(body, If) or len(call.args) != len(func.params):
        return None
    writer, values = _Turns(func), list(call.args)
    for _ in range(LONGEST):
        writer.begin(values)
        known = writer.at(body.cond)
        if not isinstance(known, Constant):
            return None
        branch = body.true_branch if bool(np.all(known.data.numpy())) else body.false_branch
        if not (isinstance(branch, Call) and branch.op is name):
            result = writer.at(branch)
            return Tuple(list(map(_joined, result.fields))) if isinstance(result, Tuple) else _joined(result)
        values = [writer.at(a) for a in branch.args]
    return None


class _Turns:
    """Copies of a loop's expressions with values in place of its variables, folded; the rest is shared by all turns."""

    def __init__(self, func: Function):
        self.params, self.folder = func.params, ConstantFolder()
        self.varying: dict[Expr, list[Expr]] = {}
        self.turn: dict[Expr, Expr] = {}

    def begin(self, values: list[Expr]) -> None:
        """The next turn, in which the variables have these values."""
        self.turn = dict(zip(self.params, values))

    def at(self, expr: Expr) -> Expr:
        """The expression in this turn."""
        done = self.turn
        for node in self.nodes(expr):
            if node not in done:
                done[node] = self.folder.node(rebuild(node, [done.get(c, c) for c in children(node)]), node)
        return done.get(expr, expr)

    def nodes(self, expr: Expr) -> list[Expr]:
        """The parts of an expression in which a variable occurs, sub-expressions first."""
        if expr not in self.varying:
            found: set[Expr] = set(self.params)
            order: list[Expr] = []
            for node in walk((expr,)):
                if node not in found and any(c in found for c in children(node)):
                    found.add(node)
                    order.append(node)
            self.varying[expr] = order
        return self.varying[expr]


def _joined(expr: Expr) -> Expr:
    """Rows that were put behind or before each other one by one, put together at once."""
    parts: list[Expr] = []
    behind: list[Expr] = []
    node, axis = expr, None
    while (pair := _pair(node)) is not None and axis in (None, pair[2]):
        first, last, axis = pair
        if _pair(first) is not None or _pair(last) is None:
            node = first
            behind.append(last)
        else:
            node = last
            parts.append(first)
    if axis is None or len(parts) + len(behind) < 2:
        return expr
    return concatenate([*parts, node, *reversed(behind)], axis)


def _pair(expr: Expr) -> tuple[Expr, Expr, int] | None:
    """Two tensors that are put together, and along which axis."""
    if not isinstance(expr, Call) or op_name(expr) != "concatenate" or not isinstance(expr.args[0], Tuple):
        return None
    fields = expr.args[0].fields
    return (fields[0], fields[1], int(facets(expr).axis)) if len(fields) == 2 else None
