"""Sizes that a program takes for equal where only a call says whether they are: one of them stands for both.

A sum of `n` and `m` has a size that no type tells: either may be 1. Almost always both are equal, so the program is
compiled for numbers of which that is true, and others are refused (`types.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from relaylab.codegen.specialize import tensors_of, with_body
from relaylab.ir.dims import AnyDim, Dim, SizeVar, SymbolicDim
from relaylab.ir.expr import Call, Expr, Var
from relaylab.ir.free import sizes_in, with_sizes
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, op_name
from relaylab.ir.types import TensorType, TupleType
from relaylab.ir.visit import rewrite, substitute, walk
from relaylab.op.base import OpPattern
from relaylab.transform.engine.build import call

MOST_ROUNDS = 16
"""How often what is equal may tell a size that has to be equal to others: types are inferred anew for each."""
Shape = tuple[Dim, ...]


def with_equal_sizes(mod: IRModule) -> IRModule:
    """A typed module without sizes that are unknown only because two expressions of sizes need not be equal."""
    for _ in range(MOST_ROUNDS):
        meetings = [m for node in walk((mod["main"].body,)) for m in _meetings(node)]
        if not meetings:
            break
        known = _chosen([(a, c) for _, a, c in meetings])
        params = {p: _reshaped(p, known) for p in mod["main"].params if known.keys() & {*sizes_in(_dims(p))}}
        # What no parameter has is told where it is used.
        mod = with_body(mod, substitute(mod["main"].body, params) if params else _spread(mod, meetings))
    return mod


def _meetings(node: Expr) -> Iterator[tuple[Call, SymbolicDim, SymbolicDim]]:
    """The pairs of dimensions of which a call makes one that is unknown."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or not isinstance(node.checked_type, TensorType):
        return
    shapes = [t.shape for a in node.args for t in tensors_of(a.checked_type) or ()]
    if op_name(node) == "nn.batch_matmul":
        shapes = [shape[:1] for shape in shapes]
    elif node.op.definition.pattern > OpPattern.BROADCAST:
        return
    out = node.checked_type.shape[: 1 if op_name(node) == "nn.batch_matmul" else None]
    for k, n in enumerate(reversed(out)):
        if type(n) is AnyDim:
            met = dict.fromkeys(shape[-1 - k] for shape in shapes if k < len(shape))
            first, *others = [d for d in met if isinstance(d, SymbolicDim)] or [None]
            if not any(type(d) is AnyDim for d in met):
                yield from ((node, first, d) for d in others if isinstance(first, SymbolicDim) and d is not None)


def _chosen(pairs: Sequence[tuple[SymbolicDim, SymbolicDim]]) -> Mapping[SizeVar, Dim]:
    """For sizes with names the expressions that stand for them, of which none has such a name in it."""
    known: dict[SizeVar, Dim] = {}
    for pair in pairs:
        a, c = (with_sizes(d, known) for d in pair)
        for size, other in ((c, a), (a, c)):
            if isinstance(size, SizeVar) and size not in sizes_in([other]):
                known = {n: with_sizes(d, {size: other}) for n, d in known.items()} | {size: other}
                break
    return known


def _dims(p: Var) -> list[Dim]:
    return [d for t in tensors_of(p.checked_type) or () for d in t.shape]


def _reshaped(p: Var, known: Mapping[SizeVar, Dim]) -> Expr:
    """A parameter with other expressions of its sizes: the same elements."""
    t = p.checked_type
    if isinstance(t, TupleType):
        return p
    return cast(Expr, call("reshape", p, newshape=tuple(with_sizes(d, known) for d in cast(TensorType, t).shape)))


def _spread(mod: IRModule, meetings: Sequence[tuple[Call, SymbolicDim, SymbolicDim]]) -> Expr:
    """The body with operands whose dimensions are those of what they meet."""
    equal: dict[Expr, dict[Dim, Dim]] = {}
    for node, first, other in meetings:
        equal.setdefault(node, {})[other] = first

    def post(new: Expr, old: Expr) -> Expr:
        if old not in equal or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        args = [_renamed(a, cast(TensorType, was.checked_type), equal[old]) for a, was in zip(new.args, old.args)]
        return Call(new.op, args, new.attrs, span=new.span)

    return rewrite(mod["main"].body, post)


def _renamed(value: Expr, t: TensorType, equal: Mapping[Dim, Dim]) -> Expr:
    """A value whose dimensions have other expressions; broadcasting is nothing within a kernel, a reshape outside."""
    if not any(d in equal for d in t.shape):
        return value
    shape = tuple(equal.get(d, d) for d in t.shape)
    return cast(Expr, call("broadcast_to", value, shape=shape))
