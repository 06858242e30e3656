"""How many elements ranges have, as far as sizes tell: `arange` from shapes of inputs gets a length with a name.

The type of `arange` knows its length if its limits are constants. Here the values of small tensors that are
computed from shapes are followed as expressions of sizes; a size times one half, rounded down, is one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

from relaylab.codegen.specialize import with_body
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim, UndecidedSize, dim
from relaylab.ir.expr import Call, Constant, Expr
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, op_name
from relaylab.ir.types import TensorType
from relaylab.ir.visit import rewrite, walk
from relaylab.support.errors import RelayError

Values = np.ndarray
"""Numbers and expressions of sizes, as objects."""
MOST = 64
FINEST = 64
"""The largest divisor of a factor that is followed; with powers of two products of floats are exact."""
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Share:
    """An expression of sizes divided by a number, as floats have it."""

    whole: SymbolicDim
    by: int

    def __mul__(self, factor: object) -> Share:
        exact = Fraction(cast(float, factor)) if isinstance(factor, (int, float)) else Fraction(0)
        if not 0 < exact.denominator * self.by <= FINEST or exact <= 0:
            raise UndecidedSize("a size times what is no such factor", code="type.symbolic")
        return Share(cast(SymbolicDim, self.whole * exact.numerator), exact.denominator * self.by)

    __rmul__ = __mul__

    def down(self) -> Dim:
        """The next whole number that is not more."""
        return self.whole // self.by


def with_counted_ranges(mod: IRModule) -> IRModule:
    """A typed module whose `main` has ranges of known length wherever sizes decide it."""
    main = mod["main"]
    known: dict[Expr, Values] = {}
    counts: dict[Expr, object] = {}
    for node in walk((main.body,)):
        found, count = _followed(node, known), _count(node, known)
        if found is not None:
            known[node] = found
        if count is not None:
            counts[node] = count

    def post(new: Expr, old: Expr) -> Expr:
        if old not in counts or not isinstance(new, Call):
            return new
        record = facets(new)
        return Call(new.op, new.args, type(record)(**{**dict(record.items()), "count": (counts[old],)}), span=new.span)

    return with_body(mod, rewrite(main.body, post))


def _count(node: Expr, known: Mapping[Expr, Values]) -> object:
    """The length of a range with step 1 that has none yet."""
    if op_name(node) != "arange" or not isinstance(node, Call) or not isinstance(node.checked_type, TensorType):
        return None
    if not isinstance(node.checked_type.shape[0], AnyDim) or not all(a in known for a in node.args):
        return None
    first, stop, step = (known[a].reshape(-1)[0] for a in node.args)
    return None if step != 1 else _kept(lambda: dim(stop - first))


def _kept(make: Callable[[], Kept]) -> Kept | None:
    """What `make` gives; None where it is no expression of sizes."""
    try:
        return make()
    except (UndecidedSize, RelayError, IndexError, ValueError, TypeError, OverflowError):
        return None


def _followed(node: Expr, known: Mapping[Expr, Values]) -> Values | None:
    """The values of a node, where they follow from sizes."""
    if isinstance(node, Constant):
        small = node.data.size <= MOST and node.data.dtype.name in ("int32", "int64", "float32", "float64")
        return node.data.numpy().astype(object) if small else None
    name = op_name(node)
    if not isinstance(node, Call) or name is None:
        return None
    if name == "shape_of":
        t = node.args[0].checked_type
        if not isinstance(t, TensorType) or not all(isinstance(d, (int, SymbolicDim)) for d in t.shape):
            return None
        return np.array([int(d) if isinstance(d, int) else d for d in t.shape], object)
    rule = _RULES.get(name)
    if rule is None or not all(a in known for a in node.args):
        return None
    found = _kept(lambda: rule(facets(node), *(known[a] for a in node.args)))
    return None if found is None else np.asarray(found, object)


def _each(change: Callable[[Any], object], x: Values) -> Values:
    return np.array([change(v) for v in x.reshape(-1)] + [None], object)[:-1].reshape(x.shape)


def _cast(dtype: str, x: Values) -> Values | None:
    """The values in another data type: as floats, what is computed from them is followed too."""
    if dtype in ("float32", "float64"):
        return _each(lambda v: Share(v, 1) if isinstance(v, SymbolicDim) else v, x)
    whole = lambda v: v.down() if isinstance(v, Share) else int(v) if isinstance(v, float) else v
    return _each(whole, x) if dtype in ("int32", "int64") else None


_RULES: Mapping[str, Callable[..., Values | None]] = {
    "add": lambda _, a, b: a + b, "subtract": lambda _, a, b: a - b, "multiply": lambda _, a, b: a * b,
    "reshape": lambda record, x: x.reshape([int(n) for n in record.newshape]),
    "strided_slice": lambda record, x: x[tuple(record.slices(x.ndim))],
    "take": lambda record, x, at: np.take(x, at.astype("int64"), axis=record.axis),
    "cast": lambda record, x: _cast(record.dtype, x),
    "floor": lambda _, x: _each(lambda v: v.down() if isinstance(v, Share) else math.floor(v), x),
    "squeeze": lambda record, x: np.squeeze(x, None if record.axis is None else tuple(record.axis)),
    "expand_dims": lambda record, x: np.expand_dims(x, record.axis),
}  # fmt: skip
