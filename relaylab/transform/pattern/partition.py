"""Partitioning: each match of a pattern becomes a call of a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylab.ir import Call, Expr, Function, If, Let, Match, Op, Tuple, TupleGetItem, Var, rebuild, rewrite
from relaylab.ir import children as parts_of
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.renewal import copied
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.group import PatternGroup, groups
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.tried import tried


def partition(
    pattern: DFPattern, expr: Expr, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] | None = None
) -> Expr:
    """`expr` with each match of `pattern` (for which `check` holds) called as a function.

    The functions have the attribute `PartitionedFromPattern`, which lists what is inside, and `attrs`.
    """
    tried([pattern])
    found = {
        g.root: (number, _whole(g))
        for number, g in enumerate(groups(pattern, expr))
        if g.root not in g.inputs and (check is None or check(g.root))
    }
    memo: dict[Expr, Expr] = {}

    def replace(new: Expr, old: Expr) -> Expr:
        if old not in found:
            return new
        number, group = found[old]
        return derived(Call(_function(group, number, attrs or {}), [memo[i] for i in group.inputs], span=old.span), new)

    return rewrite(expr, replace, memo=memo) if found else expr


def _whole(group: PatternGroup) -> PatternGroup:
    if isinstance(group.root, Op):
        raise RelayTypeError(
            f"the pattern matches the operator `{group.root.name}` itself, not a call of it",
            code="pattern.operator-alone",
            help=f'write is_op("{group.root.name}")(wildcard(), …), with a pattern for each argument',
        )
    return group


def _function(group: PatternGroup, number: int, attrs: Mapping[str, Any]) -> Function:
    params = {node: _param(node, f"FunctionVar_{number}_{i}") for i, node in enumerate(group.inputs)}
    made: dict[Expr, Expr] = dict(params)
    for node in group.inside:
        if node not in made:
            made[node] = derived(rebuild(node, [made.get(c, c) for c in parts_of(node)]), node)
    name = "".join(_label(node) for node in group.inside if node not in params)
    return Function(
        tuple(params.values()), made[group.root], attrs={"PartitionedFromPattern": name, **attrs}, span=group.root.span
    )


def _param(node: Expr, name: str) -> Var:
    return copied(Var(name, span=node.span), node)


def _label(node: Expr) -> str:
    match node:
        case Call(op=Op() as op):
            return f"{op.name}_"
        case Call():
            return "Call_"
        case TupleGetItem():
            return f"TupleGetItem{node.index}_"
        case Tuple() | If() | Let() | Match():
            return f"{type(node).__name__}_"
        case Function():
            return "Function"
        case _:
            return ""


pn.engine.partition = partition
