"""Scalar expressions of the loop level: the value of one element, given its index.

A closed union of nine frozen kinds of nodes, each with a `dtype`: `Const`, `Size`, `Axis`, `Load`,
`Apply`, `Cast`, `Guard`, `Reduce`, and `Local`, which only loop programs have. Expressions are DAGs: a shared
node is computed once.
Integer index arithmetic is folded while it is built, so that `(i * 1 + 0) // 1` is `i`.
`part` says which member of a fused group a node comes from (1, 2 ...; 0: none in particular).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylab.loop.scalar import DTYPES, SCALAR_OPS, NoNumber, compute_dtype, convert, is_float, is_integer
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, shown

INDEX = "int64"
Number = int | float | bool


class ScalarExpr(NoNumber):
    """A scalar value with a `dtype`; Python numbers take the dtype of the other side of an operator."""

    __slots__ = ()
    dtype: str

    def __add__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("add", self, other)

    def __radd__(self, other: Number) -> ScalarExpr:
        return apply("add", other, self)

    def __sub__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("sub", self, other)

    def __rsub__(self, other: Number) -> ScalarExpr:
        return apply("sub", other, self)

    def __mul__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("mul", self, other)

    def __rmul__(self, other: Number) -> ScalarExpr:
        return apply("mul", other, self)

    def __truediv__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("div", self, other)

    def __rtruediv__(self, other: Number) -> ScalarExpr:
        return apply("div", other, self)

    def __floordiv__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("floordiv", self, other)

    def __rfloordiv__(self, other: Number) -> ScalarExpr:
        return apply("floordiv", other, self)

    def __mod__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("floormod", self, other)

    def __rmod__(self, other: Number) -> ScalarExpr:
        return apply("floormod", other, self)

    def __lt__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("lt", self, other)

    def __le__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("le", self, other)

    def __gt__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("gt", self, other)

    def __ge__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("ge", self, other)

    def __and__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("land" if self.dtype == "bool" else "band", self, other)

    def __or__(self, other: ScalarExpr | Number) -> ScalarExpr:
        return apply("lor" if self.dtype == "bool" else "bor", self, other)

    def __neg__(self) -> ScalarExpr:
        return apply("neg", self)

    def __invert__(self) -> ScalarExpr:
        return apply("lnot" if self.dtype == "bool" else "bnot", self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dtype}>"

    def __divmod__(self, other: ScalarExpr | Number) -> tuple[ScalarExpr, ScalarExpr]:
        return self // other, self % other


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(ScalarExpr):
    """A number."""

    value: Number
    dtype: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Size(ScalarExpr):
    """An extent known when a kernel runs: element `slot` of its operand "sizes"; it stands for a number in shapes."""

    name: str
    slot: int
    dtype: str = INDEX


MOST_SIZE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axis(ScalarExpr):
    """A loop index over 0 .. extent-1, or to a `size` below; two axes are the same only if they are one object."""

    name: str
    extent: int
    dtype: str = INDEX
    size: ScalarExpr | None = None

    @property
    def length(self) -> ScalarExpr | int:
        """How many turns there are, exactly."""
        return self.extent if self.size is None else self.size


def axis_over(name: str, length: ScalarExpr | int) -> Axis:
    """An axis as long as a dimension of a shape."""
    return Axis(name, MOST_SIZE, size=length) if isinstance(length, ScalarExpr) else Axis(name, int(length))


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor that can be read: `x(i, j)` is its element; `shape` is static.

    Private memory that is as long as sizes say has a `size` below that of its shape.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: ScalarExpr | None = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __call__(self, *indices: ScalarExpr | int) -> Load:
        if len(indices) != len(self.shape):
            message = f"`{self.name}` has {len(self.shape)} axes but is read with {len(indices)} indices"
            raise RelayValueError(message, code="loop.index-count")
        return Load(self, tuple(map(as_index, indices)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Load(ScalarExpr):
    """One element of a tensor. The indices must be inside the shape, except under a `Guard` that is false."""

    tensor: Tensor
    indices: tuple[ScalarExpr, ...]
    part: int = 0
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.tensor.dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Apply(ScalarExpr):
    """A function of the table `SCALAR_OPS` applied to its arguments."""

    op: str
    args: tuple[ScalarExpr, ...]
    dtype: str
    part: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(ScalarExpr):
    """A value converted to another dtype (saturating from float to integer)."""

    value: ScalarExpr
    dtype: str
    part: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guard(ScalarExpr):
    """`value` where `condition` holds, else `otherwise`; the loads of `value` happen only where it holds."""

    condition: ScalarExpr
    value: ScalarExpr
    otherwise: ScalarExpr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.value.dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Local(ScalarExpr):
    """A named register of a loop program: a value computed before, or an accumulator."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reduce(ScalarExpr):
    """`value` combined over the box of `axes`: sum, prod, max, min, any, all, or argmax and argmin, which give the flat
    index of the first extreme."""

    kind: str
    axes: tuple[Axis, ...]
    value: ScalarExpr
    part: int = 0
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", INDEX if self.kind.startswith("arg") else self.value.dtype)


def const(value: Number, dtype: str) -> Const:
    """A number rounded to `dtype`; unknown dtypes raise `RelayTypeError`, integers out of range `RelayValueError`."""
    if dtype == INDEX and type(value) is int and -(2**63) <= value < 2**63:  # nearly every constant; numpy is slow
        return Const(value, dtype)
    _check_dtype(dtype)
    if is_integer(dtype) and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise RelayValueError(f"{value} is not a value of {dtype}", code="loop.constant-range")
    with np.errstate(all="ignore"):
        return Const(np.asarray(value).astype(dtype).item(), dtype)


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise RelayTypeError(f"the loop level has no dtype `{dtype}`", code="loop.unknown-dtype")


def as_index(value: ScalarExpr | int) -> ScalarExpr:
    """An int64 expression from a Python integer or any integer expression."""
    if isinstance(value, ScalarExpr):
        if value.dtype == INDEX:
            return value
        if is_integer(value.dtype):
            return cast(value, INDEX)
        raise RelayTypeError(f"an index must be an integer, not {value.dtype}", code="loop.index-dtype")
    if not is_a(value, int, np.integer):
        help = "every axis has its own: write x(*i, k)" if isinstance(value, tuple) else "give a whole number"
        message = f"an index is an expression or a whole number, not {shown(value)}"
        raise RelayTypeError(message, code="loop.index-kind", help=help)
    return Const(int(value), INDEX)


def limited(index: ScalarExpr, extent: int) -> ScalarExpr:
    """An index limited to 0 .. extent-1."""
    return apply("max", apply("min", as_index(index), extent - 1), 0)


def cast(value: ScalarExpr, dtype: str) -> ScalarExpr:
    """`value` as `dtype`; itself if it is that already."""
    if value.dtype == dtype:
        return value
    _check_dtype(dtype)
    if isinstance(value, Const):
        with np.errstate(all="ignore"):
            return const(convert(np.asarray(value.value, value.dtype), dtype).item(), dtype)
    return Cast(value, dtype)


def apply(op: str, *args: ScalarExpr | Number) -> ScalarExpr:
    """A scalar function of `SCALAR_OPS` applied, type-checked, and folded if all is constant."""
    rule = SCALAR_OPS.lookup(op)
    if len(args) != rule.arity:
        raise RelayValueError(f"`{op}` takes {rule.arity} arguments, not {len(args)}", code="loop.argument-count")
    exprs = _agree(op, args) if rule.kind != "select" else (*_agree(op, args[:1]), *_agree(op, args[1:]))
    _check_kind(op, rule.kind, exprs)
    constants = [e for e in exprs if isinstance(e, Const)]
    if len(constants) == len(exprs):
        return _fold(op, constants)
    if exprs[0].dtype == INDEX and len(exprs) == 2:
        simpler = _index_identity(op, exprs[0], exprs[1])
        if simpler is not None:
            return simpler
    return Apply(op, exprs, rule.result(exprs[-1].dtype))


def _agree(op: str, args: tuple[ScalarExpr | Number, ...]) -> tuple[ScalarExpr, ...]:
    """The arguments as expressions of one dtype."""
    dtypes = dict.fromkeys([a.dtype for a in args if isinstance(a, ScalarExpr)])
    if len(dtypes) != 1:
        found = " and ".join(dtypes) or "only Python numbers"
        raise RelayTypeError(
            f"the arguments of `{op}` must have one dtype, got {found}",
            code="loop.dtype-mismatch",
            help="convert one side with b.cast, or make a constant with b.const(value, dtype)",
        )
    (dtype,) = dtypes
    return tuple([a if isinstance(a, ScalarExpr) else const(a, dtype) for a in args])


_BOOL_ARITHMETIC = ("add", "mul", "max", "min", "abs")
_TAKES: dict[str, Callable[[str], bool]] = {
    "float": is_float, "ordinal": is_float, "int": lambda dtype: not is_float(dtype),
    "logic": lambda dtype: dtype == "bool", "select": lambda dtype: dtype == "bool",
    "bytes": lambda dtype: dtype == "int32", "word": lambda dtype: dtype in ("uint32", "uint64"),
}  # fmt: skip


def _check_kind(op: str, kind: str, args: tuple[ScalarExpr, ...]) -> None:
    dtype = args[0].dtype
    right = kind not in _TAKES or _TAKES[kind](dtype)
    if kind == "same":
        right = dtype != "bool" or op in _BOOL_ARITHMETIC
    if not right:
        names = {"same": "numbers", "float": "a float", "ordinal": "a float", "int": "an integer", "bytes": "an int32"}
        names["word"] = "a uint32 or uint64"
        wanted = names.get(kind, "a bool")
        raise RelayTypeError(f"`{op}` needs {wanted}, not {dtype}", code="loop.dtype-kind")


_INTEGER_FOLDS: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def _fold(op: str, args: list[Const]) -> Const:
    values = [a.value for a in args]
    if args[0].dtype == INDEX and op in _INTEGER_FOLDS:
        return const(_INTEGER_FOLDS[op](*values), INDEX)
    with np.errstate(all="ignore"):
        arrays = [np.asarray(v, compute_dtype(a.dtype)) for v, a in zip(values, args)]
        result = np.asarray(SCALAR_OPS[op].meaning(*arrays))
    return const(result.item(), SCALAR_OPS[op].result(args[-1].dtype))


def _index_identity(op: str, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr | None:
    """The simpler form of `x + 0`, `x - 0`, `x * 1`, `x * 0`, `x // 1`, `x % 1` in index arithmetic."""
    left = a.value if isinstance(a, Const) else None
    right = b.value if isinstance(b, Const) else None
    match op:
        case "add":
            return b if left == 0 else a if right == 0 else None
        case "sub":
            return a if right == 0 else None
        case "mul":
            if left == 0 or right == 0:
                return Const(0, INDEX)
            return b if left == 1 else a if right == 1 else None
        case "floordiv" | "truncdiv":
            return a if right == 1 else None
        case "floormod" | "truncmod":
            return Const(0, INDEX) if right == 1 else None
        case _:
            return None


def children(node: ScalarExpr) -> tuple[ScalarExpr, ...]:
    """The expressions that a node is built from (the axes of a `Reduce` are not among them)."""
    match node:
        case Apply():
            return node.args
        case Const() | Axis() | Local() | Size():
            return ()
        case Load():
            return node.indices
        case Cast() | Reduce():
            return (node.value,)
        case Guard():
            return (node.condition, node.value, node.otherwise)
        case _:
            raise RelayTypeError(f"not a scalar expression: {type(node).__name__}", code="loop.not-an-expression")


def post_order(*roots: ScalarExpr, known: Container[ScalarExpr] = ()) -> Iterator[ScalarExpr]:
    """Every node under the roots once, each after its children; no recursion. Nodes in `known` are left out, with
    what only they lead to."""
    seen: set[ScalarExpr] = set()
    stack: list[Any] = [*reversed(roots)]  # None: all below the node under it has been given
    if None in stack:
        raise RelayTypeError(
            "not a scalar expression: None",
            code="loop.not-an-expression",
            help="does the form of the operator, `scalar` or `lower`, lack a `return`?",
        )
    while stack:
        node = stack.pop()
        if node is None:
            yield stack.pop()
        elif node not in seen and node not in known:
            seen.add(node)
            if below := node.args if type(node) is Apply else children(node):
                stack += (node, None)
                stack += below[::-1]
            else:
                yield node


def rebuild(node: ScalarExpr, new: tuple[ScalarExpr, ...]) -> ScalarExpr:
    """`node` with other children; the same object when they are the same."""
    if new == children(node):  # nodes are equal only if they are one
        return node
    match node:
        case Load():
            return Load(node.tensor, new, node.part)
        case Apply():
            return of_part(apply(node.op, *new), node.part)
        case Cast():
            return of_part(cast(new[0], node.dtype), node.part)
        case Reduce():
            return Reduce(node.kind, node.axes, new[0], node.part)
        case Guard():
            return guard(*new)
        case _:
            return node


def of_part(node: ScalarExpr, part: int) -> ScalarExpr:
    """`node` as one that comes from `part`, if it is not from another one already."""
    if not part or getattr(node, "part", part):
        return node
    match node:
        case Load(tensor, indices):
            return Load(tensor, indices, part)
        case Apply(op, args, dtype):
            return Apply(op, args, dtype, part)
        case Cast(value, dtype):
            return Cast(value, dtype, part)
        case Reduce(kind, axes, value):
            return Reduce(kind, axes, value, part)
        case _:
            return node


def guard(condition: ScalarExpr, value: ScalarExpr, otherwise: ScalarExpr) -> ScalarExpr:
    """`Guard`, or one side of it when the condition is constant."""
    if isinstance(condition, Const):
        return value if condition.value else otherwise
    return Guard(condition, value, otherwise)
