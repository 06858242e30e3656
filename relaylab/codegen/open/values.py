"""The values of small tensors as far as sizes tell: what shapes are computed from is followed as expressions of sizes.

A value is an array of objects: numbers, sizes and expressions of them, sizes divided as floats have it (`Share`), and
`UNKNOWN` for what data decides. Operators that only move elements move these as they move any others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

from relaylab.ir.attrs import Attrs
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim, UndecidedSize, differ, dim, larger, smaller
from relaylab.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem
from relaylab.ir.op import facets, op_name
from relaylab.ir.types import TensorType
from relaylab.op.base import Operator
from relaylab.op.shapes import times_in
from relaylab.support.errors import RelayError

Values = np.ndarray
"""Numbers and expressions of sizes, as objects."""
MOST = 64
"""How many elements are followed at most: shapes have fewer."""
FINEST = 64
"""The largest divisor of a factor that is followed; with powers of two products of floats are exact."""
UNKNOWN = AnyDim()
FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64")
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Share:
    """An expression of sizes divided by a number, as floats have it."""

    whole: SymbolicDim
    by: int = 1

    def __mul__(self, factor: object) -> Share:
        exact = Fraction(cast(float, factor)) if isinstance(factor, (int, float)) else Fraction(0)
        if not 0 < exact.denominator * self.by <= FINEST or exact <= 0:
            raise UndecidedSize("a size times what is no such factor", code="type.symbolic")
        return Share(cast(SymbolicDim, self.whole * exact.numerator), exact.denominator * self.by)

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> Share:
        if not isinstance(divisor, (int, float)) or divisor != int(divisor) or not 0 < divisor * self.by <= FINEST:
            raise UndecidedSize("a size divided by what is no such number", code="type.symbolic")
        return Share(self.whole, self.by * int(divisor))

    def down(self) -> Dim:
        """The next whole number that is not more."""
        return self.whole // self.by

    def up(self) -> Dim:
        """The next whole number that is not less."""
        return cast(SymbolicDim, self.whole + (self.by - 1)) // self.by


@dataclass(frozen=True)
class Alike:
    """Whether two sizes are equal, where only a run tells it."""

    left: Any
    right: Any

    def of(self, a: object, b: object) -> bool:
        """Whether it is asked of these two."""
        return (a, b) in ((self.left, self.right), (self.right, self.left))


def kept(make: Callable[[], Kept]) -> Kept | None:
    """What `make` gives; None where it is no expression of sizes."""
    try:
        return make()
    except (UndecidedSize, RelayError, LookupError, ValueError, TypeError, ArithmeticError):
        return None


class Followed:
    """What is known of the values in a typed program; nodes are looked at in order, operands first."""

    def __init__(self, nodes: Iterable[Expr]) -> None:
        self.found: dict[Expr, Values | list[Values]] = {}
        for node in nodes:
            value = self._of(node)
            if value is not None:
                self.found[node] = value

    def values(self, node: Expr) -> Values | None:
        """What is known of a tensor; None for one that is not followed."""
        found = self.found.get(node)
        return found if found is not None and not isinstance(found, list) else _nothing(node)

    def known(self, node: Expr) -> Values | None:
        """The values of a tensor if all of them are numbers or expressions of sizes."""
        found = self.found.get(node)
        if found is None or isinstance(found, list):
            return None
        return None if any(type(v) is AnyDim for v in found.flat) else found

    def numbers(self, *nodes: Expr) -> list[Any]:
        """The only value of each tensor; UndecidedSize where it is not known."""
        found = [self.known(node) for node in nodes]
        if any(x is None or x.size != 1 for x in found):
            raise UndecidedSize("a value that data decides", code="type.symbolic")
        return [x.item() for x in found if x is not None]

    def _of(self, node: Expr) -> Values | list[Values] | None:
        if isinstance(node, Constant):
            small = node.data.size <= MOST and node.data.dtype.name in (*INTEGERS, *FLOATS, "bool")
            return node.data.numpy().astype(object) if small else None
        if isinstance(node, Tuple):
            parts = [self.values(f) for f in node.fields]
            return cast("list[Values]", parts) if parts and not any(p is None for p in parts) else None
        if isinstance(node, TupleGetItem):
            whole = self.found.get(node.tuple_value)
            return whole[node.index] if isinstance(whole, list) else None
        return self._called(node) if isinstance(node, Call) else None

    def _called(self, node: Call) -> Values | list[Values] | None:
        name = op_name(node)
        if name == "shape_of":
            return _dims(node.args[0])
        if name == "ndarray_size":
            dims = _dims(node.args[0])
            return None if dims is None else np.array(_folded(_RULES["multiply"], dims), object)
        if name not in _FOLLOWED:
            return None
        args = [self.found.get(a) if isinstance(a, Tuple) else self.values(a) for a in node.args]
        if any(a is None for a in args):
            return None
        given = cast("list[Any]", args)
        if name in _MOVES:
            return kept(lambda: _moved(facets(node), _MOVES[name], given))
        found = kept(lambda: self._computed(node, name, given))
        return None if found is None or found.size > MOST else found

    def _computed(self, node: Call, name: str, args: list[Values]) -> Values | None:
        record: Any = facets(node)
        if name in _FOLDS:
            return _reduced(record, _RULES[_FOLDS[name]], args[0])
        if name == "full":
            return np.full([int(n) for n in record.shape], _as(record.dtype or "", args[0].item()), object)
        if name == "cast":
            return _each(lambda v: _as(record.dtype, v), *args)
        dtype = cast(TensorType, node.checked_type).dtype
        return _each(lambda *v: _fits(dtype, _chosen(*v) if name == "where" else _RULES[name](*v)), *args)


def _nothing(node: Expr) -> Values | None:
    """Unknown values in the shape of a small tensor; None for other values."""
    t = node.inferred
    if not isinstance(t, TensorType) or t.dtype not in (*INTEGERS, *FLOATS, "bool") or t.is_dynamic:
        return None
    shape = t.concrete_shape
    return np.full(shape, UNKNOWN, object) if math.prod(shape) <= MOST else None


def _dims(node: Expr) -> Values | None:
    t = node.inferred
    if not isinstance(t, TensorType):
        return None
    found = np.empty(len(t.shape), object)
    found[:] = [int(d) if isinstance(d, int) else d for d in t.shape]
    return found


def _each(change: Callable[..., object], *arrays: Values) -> Values:
    """Element by element; what is no expression of sizes is unknown."""

    def one(*values: object) -> object:
        found = kept(lambda: change(*values))
        return UNKNOWN if found is None else found

    return np.asarray(np.frompyfunc(one, len(arrays), 1)(*arrays), object)


def _fits(dtype: str, value: object) -> object:
    """A value as an element of the data type; numbers that wrap around there, and rounded ones, are not followed."""
    if isinstance(value, (bool, np.bool_)) or dtype not in INTEGERS:
        return value if isinstance(value, (bool, np.bool_, AnyDim, Share, Alike)) else UNKNOWN
    return UNKNOWN if isinstance(value, int) and abs(value) >= 2 ** (int(dtype[3:]) - 1) else value


def _as(dtype: str, value: object) -> object:
    """A value in another data type: as floats, what is computed from sizes is followed too."""
    if dtype in FLOATS:
        return Share(value) if isinstance(value, SymbolicDim) else value
    if dtype not in INTEGERS:
        return value if isinstance(value, (bool, np.bool_)) else UNKNOWN
    if isinstance(value, Share):
        return value.down()
    return int(value) if isinstance(value, (int, float, np.bool_)) else value


def _known(values: Sequence[Any]) -> Sequence[Any]:
    """Values that data does not decide."""
    if any(type(v) is AnyDim for v in values):
        raise UndecidedSize("a value that data decides", code="type.symbolic")
    return values


def _same(*pair: object) -> bool | Alike:
    a, b = _known(pair)
    if a == b:
        return True
    if isinstance(a, Share) or isinstance(b, Share):
        raise UndecidedSize("floats", code="type.symbolic")
    return False if differ(*(d if isinstance(d, SymbolicDim) else dim(d) for d in (a, b))) else Alike(a, b)


def _less(*pair: object) -> bool:
    a, b = _known(pair)
    return bool(a < b)


def _chosen(condition: object, a: object, b: object) -> object:
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    if isinstance(condition, Alike) and condition.of(a, b):
        return b  # which `a` is where it is taken
    return a if _same(a, b) is True else UNKNOWN


def _divided(*pair: object) -> object:
    """Rounded down, where nothing is negative; floats as shares."""
    a, b = _known(pair)
    if isinstance(a, Share):
        return a / b
    if isinstance(b, SymbolicDim):
        return times_in(a, b)
    if not (a >= 0 and b > 0):
        raise UndecidedSize("a quotient of negative sizes", code="type.symbolic")
    return a // b


def _down(*pair: object) -> object:
    a, b = _known(pair)
    if isinstance(b, SymbolicDim):
        return times_in(a, b)
    if isinstance(a, Share):
        return Share(cast(SymbolicDim, (a / b).down()))
    return a // b


def _between(choose: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """The larger or smaller of two; of floats only where both are whole."""

    def of(*pair: object) -> object:
        a, b = _known(pair)
        if a == b:
            return a
        parts = [v.whole if isinstance(v, Share) and v.by == 1 else v for v in (a, b)]
        if any(isinstance(p, Share) or p != p or p in (math.inf, -math.inf) for p in parts):
            raise UndecidedSize("shares", code="type.symbolic")
        whole = [int(p) if isinstance(p, (int, float)) else p for p in parts]
        found = choose(*whole)
        return Share(found) if isinstance(a, Share) and isinstance(found, SymbolicDim) else found

    return of


def _not(decide: Callable[[Any, Any], object], turned: bool = False) -> Callable[[Any, Any], object]:
    def of(a: object, b: object) -> object:
        found = decide(b, a) if turned else decide(a, b)
        return not found if isinstance(found, bool) else UNKNOWN

    return of


def _rounded(value: object, up: bool) -> object:
    if isinstance(value, Share):
        whole = value.up() if up else value.down()
        return Share(whole) if isinstance(whole, SymbolicDim) else float(cast(int, whole))
    return UNKNOWN


def _arithmetic(change: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    def of(*pair: object) -> object:
        a, b = _known(pair)
        return change(a, b)

    return of


_RULES: Mapping[str, Callable[..., object]] = {
    "add": _arithmetic(lambda a, b: a + b), "subtract": _arithmetic(lambda a, b: a - b),
    "multiply": _arithmetic(lambda a, b: a * b),
    "divide": _divided, "floor_divide": _down, "trunc_divide": _divided,
    "mod": lambda a, b: a - _divided(a, b) * b, "floor_mod": lambda a, b: a - _down(a, b) * b,
    "maximum": _between(larger), "minimum": _between(smaller),
    "negative": lambda a: -a, "floor": lambda a: _rounded(a, False), "ceil": lambda a: _rounded(a, True),
    "equal": _same, "not_equal": _not(_same), "less": _less, "greater": lambda a, b: _less(b, a),
    "greater_equal": _not(_less), "less_equal": _not(_less, True),
    "logical_not": lambda a: not a if isinstance(a, (bool, np.bool_)) else UNKNOWN,
}  # fmt: skip

_FOLDS: Mapping[str, str] = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}

_MOVES: Mapping[str, int] = {
    "reshape": 1, "squeeze": 1, "expand_dims": 1, "transpose": 1, "strided_slice": 1, "reverse": 1, "copy": 1,
    "concatenate": 1, "stack": 1, "split": 1, "take": 1, "broadcast_to": 1, "tile": 1, "repeat": 1,
}  # fmt: skip
"""Of how many operands the elements are moved; the values of the others say how."""

_FOLLOWED = {*_RULES, *_FOLDS, *_MOVES, "cast", "full", "where"}


def _moved(record: Attrs, count: int, args: Sequence[Any]) -> Values | list[Values] | None:
    """What an operator that only moves elements makes of them: it moves their numbers."""
    every: list[object] = []

    def numbered(x: Values | list[Values]) -> object:
        if isinstance(x, list):
            return tuple(map(numbered, x))
        first = len(every)
        every.extend(x.reshape(-1))
        return np.arange(first, len(every)).reshape(x.shape)

    rest = [a.astype("int64") for a in args[count:]]
    found: Any = cast(Operator, record).reference(*map(numbered, args[:count]), *rest)
    pool = np.empty(len(every) + 1, object)
    pool[:-1] = every
    back = lambda at: pool[np.reshape(at, -1).astype("int64")].reshape(np.shape(at))
    if isinstance(found, (list, tuple)):
        return list(map(back, found))
    return back(found) if np.size(found) <= MOST else None


def _folded(rule: Callable[..., object], values: Iterable[object]) -> object:
    """All of them in one; unknown where one is."""
    total: object = None
    for value in values:
        made = value if total is None else kept(lambda now=total, new=value: rule(now, new))
        total = UNKNOWN if made is None else made
    return 1 if total is None else total


def _reduced(attrs: Attrs, rule: Callable[..., object], x: Values) -> Values | None:
    record = cast(Any, attrs)
    if getattr(record, "exclude", False) or not x.size:
        return None
    axes = range(x.ndim) if record.axis is None else [a % x.ndim for a in np.atleast_1d(record.axis)]
    for axis in sorted(axes, reverse=True):
        rows = np.moveaxis(x, axis, -1)
        flat = [_folded(rule, row) for row in rows.reshape(-1, x.shape[axis])]
        x = np.array([*flat, None], object)[:-1].reshape(rows.shape[:-1])
    return np.expand_dims(x, tuple(axes)) if record.keepdims else x
