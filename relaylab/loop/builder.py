"""The scalar builder `b`: what the `lower` method of an operator writes its element with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.loop.expr import (
    INDEX,
    REDUCTIONS,
    Axis,
    Const,
    Expr,
    Number,
    Reduce,
    apply,
    as_index,
    cast,
    const,
    guard,
    limited,
)
from relaylab.loop.scalar import highest, lowest
from relaylab.support.errors import RelayTypeError, RelayValueError


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


Value = Expr | Number


class Builder:
    """Builds scalar expressions; Python numbers take the dtype of the expressions next to them."""

    # ---- values
    def const(self, value: Number, dtype: str) -> Expr:
        """A number of a dtype."""
        return const(value, dtype)

    def lowest(self, dtype: str) -> Expr:
        """The least value of a dtype (-inf for floats)."""
        return const(lowest(dtype), dtype)

    def highest(self, dtype: str) -> Expr:
        """The greatest value of a dtype (inf for floats)."""
        return const(highest(dtype), dtype)

    def cast(self, x: Expr, dtype: str) -> Expr:
        """`x` as another dtype: integers wrap, float to integer saturates (NaN gives 0), to bool is `x != 0`."""
        return cast(x, dtype)

    def index(self, x: Value) -> Expr:
        """`x` as an index: an int64 expression."""
        return as_index(x)

    def load_index(self, x: Expr) -> Expr:
        """An element that is to be used as an index, as int64; uint64 saturates."""
        return as_index(apply("min", x, const(2**63 - 1, "uint64")) if x.dtype == "uint64" else x)

    def clamp_index(self, x: Expr, extent: int) -> Expr:
        """An index limited to 0 .. extent-1."""
        return limited(x, extent)

    # ---- choice
    def select(self, condition: Expr, then: Value, otherwise: Value) -> Expr:
        """`then` where the condition holds, else `otherwise`; both are evaluated."""
        if isinstance(condition, Const):
            chosen, other = (then, otherwise) if condition.value else (otherwise, then)
            return chosen if isinstance(chosen, Expr) else const(chosen, _dtype_of(other))
        return apply("select", condition, then, otherwise)

    def guard(self, condition: Expr, thunk: Callable[[], Value], otherwise: Value) -> Expr:
        """`thunk()` where the condition holds, else `otherwise`; reads of the thunk are not done elsewhere."""
        value = thunk()
        if not isinstance(value, Expr):
            value = const(value, _dtype_of(otherwise))
        if not isinstance(otherwise, Expr):
            otherwise = const(otherwise, value.dtype)
        if value.dtype != otherwise.dtype:
            message = f"the sides of a guard have dtypes {value.dtype} and {otherwise.dtype}"
            raise RelayTypeError(message, code="loop.dtype-mismatch")
        return guard(condition, value, otherwise)

    # ---- comparison (`<` and friends are operators of expressions)
    def eq(self, a: Value, c: Value) -> Expr:
        """Whether two values are equal."""
        return apply("eq", a, c)

    def ne(self, a: Value, c: Value) -> Expr:
        """Whether two values differ."""
        return apply("ne", a, c)

    def all_of(self, *conditions: Expr) -> Expr:
        """Whether every condition holds; true without conditions."""
        known: Expr = const(True, "bool")
        for condition in conditions:
            if isinstance(condition, Const):
                if not condition.value:
                    return condition
            else:
                known = condition if isinstance(known, Const) else apply("land", known, condition)
        return known

    def inside(self, i: Expr, extent: int) -> Expr:
        """Whether an index lies in 0 .. extent-1."""
        return self.all_of(i >= 0, i < extent)

    # ---- reductions
    def _reduce(self, kind: str, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        extents = (extents,) if isinstance(extents, int) else tuple(extents)
        axes = tuple(Axis(f"k{d}" if len(extents) > 1 else "k", int(n)) for d, n in enumerate(extents))
        value = body(*axes)
        if not isinstance(value, Expr):
            raise RelayTypeError(f"the body of `{kind}` must be an expression", code="loop.not-an-expression")
        if kind in ("any", "all") and value.dtype != "bool":
            raise RelayTypeError(f"`{kind}` needs a bool body, not {value.dtype}", code="loop.dtype-kind")
        if kind.startswith("arg") and 0 in extents:
            raise RelayValueError(f"`{kind}` over an empty box has no result", code="loop.empty-reduction")
        if not axes:
            return const(0, INDEX) if kind.startswith("arg") else value
        return Reduce(kind, axes, value)

    def sum(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The sum of `body(k...)` over a box; 0 when empty."""
        return self._reduce("sum", extents, body)

    def prod(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The product of `body(k...)` over a box; 1 when empty."""
        return self._reduce("prod", extents, body)

    def rmax(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The maximum over a box, NaN if any is NaN; the lowest value when empty."""
        return self._reduce("max", extents, body)

    def rmin(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The minimum over a box, NaN if any is NaN; the highest value when empty."""
        return self._reduce("min", extents, body)

    def argmax(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The flat int64 index in the box of the first maximum (the first NaN if there is one)."""
        return self._reduce("argmax", extents, body)

    def argmin(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """The flat int64 index in the box of the first minimum (the first NaN if there is one)."""
        return self._reduce("argmin", extents, body)

    def any(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """Whether any bool of the box is true."""
        return self._reduce("any", extents, body)

    def all(self, extents: Sequence[int] | int, body: Callable[..., Value]) -> Expr:
        """Whether every bool of the box is true."""
        return self._reduce("all", extents, body)


def _dtype_of(value: Value) -> str:
    if isinstance(value, Expr):
        return value.dtype
    raise RelayTypeError(
        "both sides are Python numbers, so their dtype is unknown",
        code="loop.unknown-dtype",
        help="make one of them with b.const(value, dtype)",
    )


def _method(op: str, arity: int) -> Callable[..., Expr]:
    if arity == 1:

        def unary(self: Builder, x: Expr) -> Expr:
            return apply(op, x)

        unary.__doc__ = f"The scalar function `{op}` of `x` (see `relaylab.loop.scalar`)."
        return unary

    def binary(self: Builder, a: Value, c: Value) -> Expr:
        return apply(op, a, c)

    binary.__doc__ = f"The scalar function `{op}` of `a` and `c` (see `relaylab.loop.scalar`)."
    return binary


_UNARY = (
    *("abs", "neg", "exp", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("floor", "ceil", "round", "trunc", "lnot", "bnot", "isnan", "isinf", "isfinite"),
)
_BINARY = (
    *("max", "min", "pow", "floordiv", "floormod", "truncdiv", "truncmod"),
    *("land", "lor", "lxor", "band", "bor", "bxor", "shl", "shr", "add", "sub", "mul", "div"),
)
for _name in (*_UNARY, *_BINARY):
    setattr(Builder, _name, _method(_name, 1 if _name in _UNARY else 2))

b = Builder()

__all__ = ["INDEX", "REDUCTIONS", "Builder", "OutSpec", "b"]
