"""The scalar builder `b`: what the `lower` method of an operator writes its element with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn
from typing import cast as typed

from relaylab.loop.expr import (
    INDEX,
    Const,
    Number,
    Reduce,
    ScalarExpr,
    apply,
    as_index,
    axis_over,
    cast,
    const,
    guard,
    limited,
)
from relaylab.loop.scalar import highest, lowest
from relaylab.support.errors import RelayAttributeError, RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean


@dataclass(frozen=True, slots=True)
class OutSpec:
    """What is computed: the static shape and dtype of an output, and which output of several it is."""

    shape: tuple[int, ...]
    dtype: str
    field: int = 0

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


ScalarLike = ScalarExpr | Number


def _unary(op: str) -> Callable[[Builder, ScalarExpr], ScalarExpr]:
    def method(self: Builder, x: ScalarExpr) -> ScalarExpr:
        return apply(op, x)

    method.__doc__ = f"The scalar function `{op}` of `x` (see `relaylab.loop.scalar`)."
    return method


def _binary(op: str) -> Callable[[Builder, ScalarLike, ScalarLike], ScalarExpr]:
    def method(self: Builder, a: ScalarLike, c: ScalarLike) -> ScalarExpr:
        return apply(op, a, c)

    method.__doc__ = f"The scalar function `{op}` of `a` and `c` (see `relaylab.loop.scalar`)."
    return method


class Builder:
    """Builds scalar expressions; Python numbers take the dtype of the expressions next to them."""

    def __getattr__(self, name: str) -> NoReturn:
        known = [n for n in dir(type(self)) if not n.startswith("_")]
        help = did_you_mean(name, known) or f"it has: {', '.join(known)}"
        raise RelayAttributeError(f"the builder has no `{name}`", code="loop.no-builder-function", help=help)

    # ---- values
    def const(self, value: Number, dtype: str) -> ScalarExpr:
        """A number of a dtype."""
        return const(value, dtype)

    def number(self, value: Number | ScalarExpr, dtype: str) -> ScalarExpr:
        """A number, or a size that is known when a kernel runs, as a value of a dtype."""
        return cast(value, dtype) if isinstance(value, ScalarExpr) else const(value, dtype)

    def lowest(self, dtype: str) -> ScalarExpr:
        """The least value of a dtype (-inf for floats)."""
        return const(lowest(dtype), dtype)

    def highest(self, dtype: str) -> ScalarExpr:
        """The greatest value of a dtype (inf for floats)."""
        return const(highest(dtype), dtype)

    def cast(self, x: ScalarExpr, dtype: str) -> ScalarExpr:
        """`x` as another dtype: integers wrap, float to integer saturates (NaN gives 0), to bool is `x != 0`."""
        return cast(x, dtype)

    def index(self, x: ScalarExpr | int) -> ScalarExpr:
        """`x` as an index: an int64 expression."""
        return as_index(x)

    def load_index(self, x: ScalarExpr) -> ScalarExpr:
        """An element that is to be used as an index, as int64; uint64 saturates."""
        return as_index(apply("min", x, const(2**63 - 1, "uint64")) if x.dtype == "uint64" else x)

    def clamp_index(self, x: ScalarExpr, extent: int) -> ScalarExpr:
        """An index limited to 0 .. extent-1."""
        return limited(x, extent)

    # ---- choice
    def select(self, condition: ScalarExpr, then: ScalarLike, otherwise: ScalarLike) -> ScalarExpr:
        """`then` where the condition holds, else `otherwise`; both are evaluated."""
        if isinstance(condition, Const):
            chosen, other = (then, otherwise) if condition.value else (otherwise, then)
            return chosen if isinstance(chosen, ScalarExpr) else const(chosen, _dtype_of(other))
        return apply("select", condition, then, otherwise)

    def guard(self, condition: ScalarExpr, thunk: Callable[[], ScalarLike], otherwise: ScalarLike) -> ScalarExpr:
        """`thunk()` where the condition holds, else `otherwise`; reads of the thunk are not done elsewhere."""
        value = thunk()
        if not isinstance(value, ScalarExpr):
            value = const(value, _dtype_of(otherwise))
        if not isinstance(otherwise, ScalarExpr):
            otherwise = const(otherwise, value.dtype)
        if value.dtype != otherwise.dtype:
            message = f"the sides of a guard have dtypes {value.dtype} and {otherwise.dtype}"
            raise RelayTypeError(message, code="loop.dtype-mismatch")
        return guard(condition, value, otherwise)

    # ---- comparison (`<` and friends are operators of expressions)
    def eq(self, a: ScalarLike, c: ScalarLike) -> ScalarExpr:
        """Whether two values are equal."""
        return apply("eq", a, c)

    def ne(self, a: ScalarLike, c: ScalarLike) -> ScalarExpr:
        """Whether two values differ."""
        return apply("ne", a, c)

    def all_of(self, *conditions: ScalarExpr) -> ScalarExpr:
        """Whether every condition holds; true without conditions."""
        known: ScalarExpr = const(True, "bool")
        for condition in conditions:
            if isinstance(condition, Const):
                if not condition.value:
                    return condition
            else:
                known = condition if isinstance(known, Const) else apply("land", known, condition)
        return known

    def inside(self, i: ScalarExpr, extent: int) -> ScalarExpr:
        """Whether an index lies in 0 .. extent-1."""
        return self.all_of(i >= 0, i < extent)

    # ---- reductions
    def _reduce(self, kind: str, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        extents = (extents,) if isinstance(extents, (int, ScalarExpr)) else tuple(extents)
        axes = tuple(axis_over(f"k{d}" if len(extents) > 1 else "k", n) for d, n in enumerate(extents))
        value = body(*axes)
        if not isinstance(value, ScalarExpr):
            raise RelayTypeError(f"the body of `{kind}` must be an expression", code="loop.not-an-expression")
        if kind in ("any", "all") and value.dtype != "bool":
            raise RelayTypeError(f"`{kind}` needs a bool body, not {value.dtype}", code="loop.dtype-kind")
        if kind.startswith("arg") and 0 in extents:
            raise RelayValueError(f"`{kind}` over an empty box has no result", code="loop.empty-reduction")
        if not axes:
            return const(0, INDEX) if kind.startswith("arg") else value
        return Reduce(kind, axes, value)

    def sum(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The sum of `body(k...)` over a box; 0 when empty."""
        return self._reduce("sum", extents, body)

    def prod(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The product of `body(k...)` over a box; 1 when empty."""
        return self._reduce("prod", extents, body)

    def rmax(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The maximum over a box, NaN if any is NaN; the lowest value when empty."""
        return self._reduce("max", extents, body)

    def rmin(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The minimum over a box, NaN if any is NaN; the highest value when empty."""
        return self._reduce("min", extents, body)

    def argmax(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The flat int64 index in the box of the first maximum (the first NaN if there is one)."""
        return self._reduce("argmax", extents, body)

    def argmin(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """The flat int64 index in the box of the first minimum (the first NaN if there is one)."""
        return self._reduce("argmin", extents, body)

    def any(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """Whether any bool of the box is true."""
        return self._reduce("any", extents, body)

    def all(self, extents: Sequence[int] | int, body: Callable[..., ScalarLike]) -> ScalarExpr:
        """Whether every bool of the box is true."""
        return self._reduce("all", extents, body)

    # ---- the scalar functions (`relaylab.loop.scalar`)
    abs = _unary("abs")
    neg = _unary("neg")
    exp = _unary("exp")
    log = _unary("log")
    log2 = _unary("log2")
    log10 = _unary("log10")
    sqrt = _unary("sqrt")
    rsqrt = _unary("rsqrt")
    tanh = _unary("tanh")
    sigmoid = _unary("sigmoid")
    erf = _unary("erf")
    sin = _unary("sin")
    cos = _unary("cos")
    tan = _unary("tan")
    asin = _unary("asin")
    acos = _unary("acos")
    atan = _unary("atan")
    sinh = _unary("sinh")
    cosh = _unary("cosh")
    asinh = _unary("asinh")
    acosh = _unary("acosh")
    atanh = _unary("atanh")
    floor = _unary("floor")
    ceil = _unary("ceil")
    round = _unary("round")
    roundeven = _unary("roundeven")
    trunc = _unary("trunc")
    lnot = _unary("lnot")
    bnot = _unary("bnot")
    isnan = _unary("isnan")
    isinf = _unary("isinf")
    isfinite = _unary("isfinite")
    ordinal = _unary("ordinal")
    bits = _unary("bits")
    of_bits = _unary("of_bits")

    def dot4(self, total: ScalarExpr, x: ScalarExpr, w: ScalarExpr) -> ScalarExpr:
        """`total` and the four products of the unsigned bytes of `x` and the signed bytes of `w`, all int32."""
        return apply("dot4", total, x, w)

    max = _binary("max")
    min = _binary("min")
    pow = _binary("pow")
    floordiv = _binary("floordiv")
    floormod = _binary("floormod")
    truncdiv = _binary("truncdiv")
    truncmod = _binary("truncmod")
    land = _binary("land")
    lor = _binary("lor")
    lxor = _binary("lxor")
    band = _binary("band")
    bor = _binary("bor")
    bxor = _binary("bxor")
    shl = _binary("shl")
    shr = _binary("shr")
    add = _binary("add")
    sub = _binary("sub")
    mul = _binary("mul")
    div = _binary("div")


def most(a: ScalarExpr | int, c: ScalarExpr | int) -> int:
    """The larger of two extents."""
    return _chosen("max", a, c)


def least(a: ScalarExpr | int, c: ScalarExpr | int) -> int:
    """The smaller of two extents."""
    return _chosen("min", a, c)


def both(a: ScalarExpr | bool, c: ScalarExpr | bool) -> ScalarExpr | bool:
    """Whether two conditions on extents hold."""
    if isinstance(a, bool):
        return c if a else False
    return (a if c else False) if isinstance(c, bool) else apply("land", a, c)


def _chosen(op: str, a: ScalarExpr | int, c: ScalarExpr | int) -> int:
    if isinstance(a, ScalarExpr) or isinstance(c, ScalarExpr):
        return typed(int, apply(op, a, c))
    return max(a, c) if op == "max" else min(a, c)


def _dtype_of(value: ScalarLike) -> str:
    if isinstance(value, ScalarExpr):
        return value.dtype
    raise RelayTypeError(
        "both sides are Python numbers, so their dtype is unknown",
        code="loop.unknown-dtype",
        help="make one of them with b.const(value, dtype)",
    )


b = Builder()
