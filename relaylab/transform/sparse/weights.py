"""What the passes to sparse weights share: three parameters in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylab.ir import Call, Expr, Function, FunctionWithFields, TensorType, Var, rewrite, walk
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.infer_type import dtype_of
from relaylab.transform.engine.renewal import copied

Made = Callable[[Call, tuple[Expr, Expr, Expr]], Expr]
"""The call that takes the place of a call, with the three parts of its weight."""


def _parts(weight: Var, extents: Sequence[int]) -> tuple[Var, Var, Var]:
    if len(extents) != 5:
        raise RelayValueError(
            f"the shape of the sparse weight {weight.name_hint} has {len(extents)} extents, not 5",
            code="sparse.shape",
            help="three of its data, one of its indices, one of its indptr: as process_params gives them",
        )
    types = {
        "data": TensorType(extents[:3], dtype_of(weight)),
        "indices": TensorType(extents[3:4], "int32"),
        "indptr": TensorType(extents[4:], "int32"),
    }
    data, indices, indptr = (
        copied(Var(f"{weight.name_hint}.{part}", t, span=weight.span), weight) for part, t in types.items()
    )
    return data, indices, indptr


def with_sparse_weights(
    func: Function, names: Sequence[str], shapes: Sequence[Sequence[int]], fits: Callable[[Call], bool], made: Made
) -> Function:
    """`func` with the calls that fit and read one of the named weights made sparse."""
    if len(names) != len(shapes):
        raise RelayValueError(
            f"{len(names)} names of weights with {len(shapes)} shapes", code="sparse.shape", help="give one for each"
        )
    known = dict(zip(names, shapes))
    parts = {p: _parts(p, known[p.name_hint]) for p in func.params if p.name_hint in known}
    used: set[Expr] = set()

    def at(new: Expr, old: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or len(old.args) < 2 or not fits(old):
            return new
        weight = old.args[1]
        if not isinstance(weight, Var) or weight not in parts:
            return new
        used.add(weight)
        return made(new, parts[weight])

    body = rewrite(func.body, at)
    left = {n for n in walk((body,)) if isinstance(n, Var)}
    params = [v for p in func.params for v in (((p,) if p in left else ()) + parts[p] if p in used else (p,))]
    return derived(FunctionWithFields(func, params=params, body=body), func)
