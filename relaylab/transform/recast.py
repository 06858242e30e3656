"""recast: some operators of a program computed in another data type, between casts there and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relaylab.ir import Call, Expr, Tuple, op_name, rewrite, walk
from relaylab.support.checked import checked
from relaylab.support.errors import RelayIndexError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.infer_type import dtype_of, typed


def _skipped(count: int, layers: Iterable[int]) -> set[int]:
    for layer in (layers := tuple(layers)):
        if not -count <= layer < count:
            raise RelayIndexError(
                f"there is no layer {layer} to skip: {count} calls are recast",
                code="recast.no-layer",
                help="layers count from 0 in the order of execution, or from -1 backwards",
            )
    return {layer % count for layer in layers}


@checked
def recast(
    expr: Expr, dtype: str, out_dtype: str, ops: Sequence[str] | None = None, skip_layers: Sequence[int] | None = None
) -> Expr:
    """`expr` with calls of `ops` (default: nn.conv2d) computed on arguments cast to `dtype`, the results cast back.

    An operator that has an attribute `out_dtype` accumulates in `out_dtype`. `skip_layers` are the numbers of calls to
    leave, in the order of execution, negative ones from the last. Raises `RelayIndexError` for a layer that there is
    not, `RelayTypeError` for a name that is no data type.
    """
    chosen = set(ops or ("nn.conv2d",))
    known = dict(zip(walk((expr,)), walk((typed(expr),))))
    layers = [n for n in known if isinstance(n, Call) and op_name(n) in chosen]
    skip = _skipped(len(layers), skip_layers or ())
    wanted = {layer for i, layer in enumerate(layers) if i not in skip}

    def cast(value: Expr) -> Expr:
        return Tuple([cast(f) for f in value.fields]) if isinstance(value, Tuple) else call("cast", value, dtype=dtype)

    def at(new: Expr, old: Expr) -> Expr:
        if old not in wanted or not isinstance(new, Call):
            return new
        attrs = new.attrs
        if attrs is not None and "out_dtype" in attrs.keys():
            attrs = attrs.replace(out_dtype=out_dtype)
        made = Call(new.op, [cast(a) for a in new.args], attrs, span=new.span)
        return call("cast", made, dtype=dtype_of(known[old]))

    return rewrite(expr, at)
