"""The program while it is imported: what converters of ATen operators ask for besides types and values."""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, of_count
from relaylab.frontend.pytorch.node import AtenNode, Size
from relaylab.ir import AnyDim, Constant, Expr, IntImm, SizeVar, is_call_to
from relaylab.ir.dims import Dim, SymbolicDim
from relaylab.support.errors import RelayError

Operand = Expr | bool | int | float
"""A tensor or a number."""
Dims = Sequence[int] | int | None
"""Axes: some, one, or all."""


class TorchGraph(Graph):
    """Types, values, and torch's conversions; sizes that are not known are expressions of type int64."""

    remedy = "export the model with that size fixed, or give its number in input_infos"

    def __init__(self, names: Mapping[str, str] | None = None, ranges: Mapping[Any, Any] | None = None) -> None:
        super().__init__()
        self.ranges = ranges or {}
        """What torch says how large the sizes in its formulas are."""
        self.names = names or {}
        """What a user calls the open dimensions, by torch's names."""
        self.written: dict[Expr, int] = {}
        """How many planes were written into tensors, one after another, since a kernel gave them."""
        self.open: dict[str, int | SymbolicDim] = {}
        """The open dimensions of inputs by torch's names, and the numbers that are given for them."""

    def opened(self, formula: Size, given: Dim) -> int | AnyDim:
        """A dimension of an input: a number, which may be `given`, a size with its name, or `Any`."""
        if isinstance(formula, int):
            return IntImm(formula)
        if not formula.is_Symbol:
            return given
        symbol = str(formula)
        found = given if isinstance(given, (int, SymbolicDim)) else SizeVar(self.names.get(symbol, symbol))
        known = self.open.setdefault(symbol, found)
        return found if isinstance(found, int) else known

    def dim(self, formula: Size) -> int | SymbolicDim | None:
        """A formula of torch, or a dimension, as a number or an expression of open sizes; None if it is none."""
        if not hasattr(formula, "args"):
            return formula if isinstance(formula, (int, SymbolicDim)) else None
        only = _only_value(formula, self.ranges) if formula.args else None
        if only is not None:
            return only
        found: dict[Any, Any] = {}
        for part in _parts_first(formula):
            below = [found[a] for a in part.args]
            if part.is_Integer:
                found[part] = int(part)
            elif part.is_Symbol:
                found[part] = self.open.get(str(part))
            elif None in below:
                found[part] = None
            else:
                found[part] = _of_dims(type(part).__name__, below)
        return found[formula]

    def follow(self, x: Expr, known: object) -> Expr:
        """The same scalar, with what it is noted where that is an expression of open sizes."""
        if isinstance(known, SymbolicDim):
            self.symbols[x] = np.array(known, object)
        return x

    def known_dim(self, x: object) -> int | SymbolicDim | None:
        """A number, or a scalar that is an expression of open sizes; None for any other."""
        if isinstance(x, Expr):
            return self.symbols[x].item() if x in self.symbols else None
        return x if isinstance(x, int) else None

    def to(self, x: Operand, dtype: str) -> Expr:
        """A tensor or a number in a data type; what is not zero is true."""
        if not isinstance(x, Expr):
            return Constant(np.asarray(x).astype(dtype))
        return self.converted(x, dtype)

    def size(self, x: Expr, axis: int) -> int | Expr:
        """The extent of an axis: a number if it is known, else a scalar expression."""
        found = self.dims(x)[axis]
        if not isinstance(found, AnyDim):
            return found
        place = Constant(np.array(axis % self.rank(x), "int64"))
        return self.follow(op.take(op.shape_of(x, "int64"), place, axis=0), found)

    def all_sizes(self, x: Expr) -> list[int | Expr]:
        """The extents of all axes."""
        return [self.size(x, k) for k in range(self.rank(x))]

    def counted(self, many: int | Expr) -> Expr:
        """The numbers from 0 on."""
        if isinstance(many, int):
            return Constant(np.arange(many))
        return self.refined(op.arange(many, dtype="int64"), [self.known_dim(many)])

    def extent(self, x: Expr, axis: int) -> int:
        """The extent of an axis, which must be known."""
        found = self.dims(x)[axis]
        return found if isinstance(found, int) else self.shape(x)[axis]  # which says what is missing

    def sizes(self, sizes: Sequence[Operand]) -> tuple[int, ...]:
        """A shape: numbers, or a vector of int64 if one of them is not known, which operators take in its place."""
        dims = [self.known_dim(s) for s in sizes]
        if all(d is not None for d in dims):
            return cast("tuple[int, ...]", tuple(dims))
        return self.limits(sizes)

    def limits(self, sizes: Sequence[Operand]) -> tuple[int, ...]:
        """The same for operators that take numbers, or a vector, and no sizes with names."""
        if all(isinstance(s, int) for s in sizes):
            return tuple(int(s) for s in sizes if isinstance(s, int))
        return cast("tuple[int, ...]", op.concatenate([op.reshape(self.to(s, "int64"), (1,)) for s in sizes], axis=0))

    def refined(self, x: Expr, sizes: Sequence[Size]) -> Expr:
        """`x` with the dimensions that torch knows said by its type."""
        known = [self.dim(s) for s in sizes]
        wanted = lambda d, s: s is not None and (type(d) is AnyDim or isinstance(d, AnyDim) and isinstance(s, int))
        if not any(wanted(d, s) for d, s in zip(self.dims(x), known)):
            return x
        if is_call_to(x, "arange"):
            return of_count(x, known[0])
        # 0: as it is, whatever that is
        return op.reshape(x, [0 if s is None else s for s in known])

    def reshaped(self, x: Expr, before: Sequence[Size], after: Sequence[Size], target: Sequence[Any]) -> Expr:
        """`x` in a new shape: by Relay's codes where formulas tell which sizes are kept, merged or split."""
        if list(before) == list(after):
            return x
        open_ = [k for k, s in enumerate(after) if not isinstance(s, int)]
        if len(open_) < 2 and not (open_ and 0 in after):
            return op.reshape(x, [-1 if k in open_ else s for k, s in enumerate(after)])
        codes = _codes(list(before), list(after))
        if codes is not None:
            return op.reshape(x, codes)
        return self.refined(op.reshape(x, self.sizes(list(target))), after)

    def axes_of(self, x: Expr, dim: Dims) -> list[int]:
        """Axes counted from the front; all for None or an empty list."""
        rank = self.rank(x)
        given = [dim] if isinstance(dim, int) else list(dim or range(rank))
        return self.axes(given, rank) if rank else []


def _only_value(formula: Size, ranges: Mapping[Any, Any]) -> int | None:
    """What a formula is for all sizes that torch allows, if it is one number: `Max(0, 1 - n)` is 0 from n = 1 on."""
    if not any(type(part).__name__ in ("Max", "Min") for part in _parts_first(formula)):
        return None
    from torch.utils._sympy.value_ranges import bound_sympy

    if not formula.free_symbols <= ranges.keys():
        return None
    found = bound_sympy(formula, dict(ranges))
    return int(found.lower) if found.is_int and found.is_singleton() else None


def _parts_first(formula: Size) -> list[Size]:
    """A formula of sympy and all that it is made of, parts before what they are in."""
    found: list[Size] = []
    stack = [formula]
    while stack:
        part = stack.pop()
        found.append(part)
        stack += part.args
    return found[::-1]


def _of_dims(kind: str, args: Sequence[Size]) -> Size:
    """A function of sympy or torch of dimensions; None for those that dimensions have not."""
    try:
        match kind:
            case "Add":
                return sum(args[1:], args[0])
            case "Mul":
                return math.prod(args[1:], start=args[0])
            case "Pow" if isinstance(args[1], int) and 0 < args[1] <= 4:
                return math.prod([args[0]] * (args[1] - 1), start=args[0])
            case "FloorDiv" | "CleanDiv" if isinstance(args[1], int) and args[1] > 0:
                return args[0] // args[1]
    except RelayError:
        pass
    return None


def _codes(before: list[Size], after: list[Size]) -> list[int] | None:
    """newshape with 0 (kept), -3 (two merged) and -4 (split in two); None if that does not say it."""
    codes: list[int] = []
    while after:
        if before and before[0] == after[0]:
            codes, before, after = [*codes, 0], before[1:], after[1:]
        elif before and before[0] == 1:
            return None
        elif len(before) > 1 and _times(before[0], before[1]) == after[0]:
            codes, before, after = [*codes, -3], before[2:], after[1:]
        elif before and len(after) > 1 and _times(after[0], after[1]) == before[0]:
            parts = [s if isinstance(s, int) else -1 for s in after[:2]]
            if parts == [-1, -1]:
                return None
            codes, before, after = [*codes, -4, *parts], before[1:], after[2:]
        else:
            return None
    return codes if not before else None


def _times(a: Size, b: Size) -> Size:
    product = a * b
    return product if isinstance(product, int) else product.expand()


def pair(values: Sequence[int] | int, n: int) -> tuple[int, ...]:
    """A number for each of n axes; one stands for all."""
    given = [values] if isinstance(values, int) else list(values)
    return tuple(given * n if len(given) == 1 else given)


def chosen(node: AtenNode, given: object, known: Sequence[Any], what: str) -> None:
    """Refuse an option that is not among the known ones."""
    if given not in known:
        raise node.error(f"{what}={given!r} is not imported; known are {', '.join(map(repr, known))}", "import.option")
