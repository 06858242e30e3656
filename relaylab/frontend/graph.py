"""A program while it is imported: the Relay expression of every value, typed and folded as soon as it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from relaylab import op
from relaylab.analysis.infer.report import ErrorReport
from relaylab.analysis.infer.typer import Typer
from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.dims import SymbolicDim
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, Let, Tuple, Var
from relaylab.ir.free import free_vars
from relaylab.ir.module import IRModule
from relaylab.ir.node import set_field
from relaylab.ir.op import Op, facets, is_call_to
from relaylab.ir.types import AnyDim, TensorType, Type, is_dynamic
from relaylab.ir.visit import children, rebuild, substitute, walk
from relaylab.runtime.ndarray import NDArray, kept
from relaylab.support.errors import RelayValueError
from relaylab.support.source import AnySpan
from relaylab.transform.engine.infer_type import InferType
from relaylab.transform.simplify.dynamic_to_static import DynamicToStatic
from relaylab.transform.simplify.fold_constant import ConstantFolder

SHARED = (Var, GlobalVar, Op, Constructor)  # stand for one thing wherever they are, also in other programs
_FOLD = ConstantFolder(fold_qnn=True)
FARTHEST = 2**31 - 1
"""As far as an end of a slice goes in Relay's attributes."""
WRAPPED = {"int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64"}
"""By way of which integers floats become small ones: what is beyond their range wraps, as in numpy and torch."""
MOST_SYMBOLS = 64
"""How many values of a constant take part in expressions of sizes."""


class Graph:
    """What converters know: types of expressions, values of constants.

    `params` are variables that have a value (initializers that stay parameters); one typer serves the whole import, so
    that every expression is looked at once. `remedy` is what to do where a shape or value is needed that is not known.
    """

    remedy = "give the shapes, or the values, of the model's inputs: from_onnx(model, shape={name: (…)}, values={…})"

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})
        self.params: dict[Var, np.ndarray] = {}
        self.random = np.random.default_rng(0)
        self._typer = Typer(None, ErrorReport(), {})
        self._settled: dict[Expr, Expr] = {}
        self.symbols: dict[Expr, np.ndarray] = {}
        """Values that are expressions of open sizes: arrays of ints and sizes."""
        self.layers: dict[Expr, Callable[[Expr], Expr | None]] = {}
        """Matrices that are known in a smaller form: what multiplies with it, if it can."""
        self.convert_body: Callable[[Any, Mapping[str, Expr], str], list[Expr]]

    # ---- types

    def type(self, expr: Expr) -> Type:
        """The type of an expression. Raises `DiagnosticError` for calls that operators refuse."""
        if isinstance(expr, Constant):
            return expr.type
        self._typer.run(expr)
        report = self._typer.report
        if report:
            self._typer.report, self._typer.tainted = ErrorReport(), False
            report.raise_if_any({"": expr})
        return self._typer.solver.resolve(self._typer.types[expr])

    def tensor(self, expr: Expr) -> TensorType:
        """The type of a tensor."""
        found = self.type(expr)
        if not isinstance(found, TensorType):
            raise RelayValueError(f"a tensor is needed here, not {found}", code="import.not-a-tensor")
        return found

    def dims(self, expr: Expr) -> tuple[Any, ...]:
        """The dimensions: ints, and `Any` where they are not known."""
        return tuple(d if isinstance(d, AnyDim) else int(d) for d in self.tensor(expr).shape)

    def shape(self, expr: Expr) -> tuple[int, ...]:
        """The dimensions, which must be known."""
        found = self.tensor(expr)
        if found.is_dynamic:
            raise RelayValueError(
                f"the shape must be known here, it is {found}", code="import.dynamic", help=self.remedy
            )
        return found.concrete_shape

    def extents(self, expr: Expr, first: int = 0) -> tuple[int, ...]:
        """The dimensions from one on, which must be known; those before may be open."""
        found = self.dims(expr)[first:]
        return found if not any(map(is_open, found)) else self.shape(expr)

    def named(self, expr: Expr) -> tuple[Any, ...]:
        """The dimensions as numbers and sizes with names, with which one can count; the others must be known."""
        found = self.dims(expr)
        return found if not any(type(d) is AnyDim for d in found) else self.shape(expr)

    def is_static(self, expr: Expr) -> bool:
        """Whether all dimensions are known."""
        return not is_dynamic(self.tensor(expr))

    def rank(self, expr: Expr) -> int:
        """The number of dimensions."""
        return len(self.tensor(expr).shape)

    def dtype(self, expr: Expr) -> str:
        """The data type."""
        return self.tensor(expr).dtype

    def converted(self, x: Expr, dtype: str) -> Expr:
        """A tensor in a data type, itself if it has it; what is not zero is true."""
        own = self.dtype(x)
        if own == dtype:
            return x
        if dtype == "bool":
            return op.not_equal(x, Constant(np.zeros((), own)))
        return op.cast(op.cast(x, WRAPPED[dtype]) if "float" in own and dtype in WRAPPED else x, dtype)

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < max(rank, 1):
            raise RelayValueError(f"there is no axis {axis} among {rank}", code="import.axis")
        return axis % max(rank, 1)

    def axes(self, axes: Iterable[int], rank: int) -> list[int]:
        """Axes counted from the front, each once."""
        found = [self.axis(int(a), rank) for a in axes]
        if len(set(found)) < len(found):
            raise RelayValueError(f"an axis is named twice: {found}", code="import.axis")
        return found

    # ---- values

    def value(self, expr: Expr | None) -> np.ndarray | None:
        """The value of an expression that is known now; None if it is not (or there is no expression)."""
        if expr is None:
            return None
        found = self.settle(expr)
        if not isinstance(found, Constant) and self.params and all(v in self.params for v in free_vars(found)):
            found = self.settle(substitute(found, {v: Constant(a) for v, a in self.params.items()}))
        below = found
        while isinstance(below, Call) and len(below.args) == 1:
            below = below.args[0]
        if isinstance(below, Call) and _quantized_weight(below):
            found = _FOLD(found)
        return found.data.numpy() if isinstance(found, Constant) else None

    def known(self, expr: Expr, what: str) -> np.ndarray:
        """The value of an expression, which must be known."""
        found = self.value(expr)
        if found is None:
            raise RelayValueError(
                f"`{what}` must be known when the model is loaded; it is computed from inputs",
                code="import.dynamic",
                help=self.remedy,
            )
        return found

    def ints(self, expr: Expr, what: str) -> list[int]:
        """The integers of a vector (or scalar) that must be known."""
        return [int(v) for v in self.known(expr, what).reshape(-1)]

    def symbolic(self, expr: Expr) -> np.ndarray | None:
        """The values of an expression of integers as numbers and expressions of sizes; None if they are not known."""
        found = self.symbols.get(expr)
        if found is not None:
            return found
        known = self.value(expr) if isinstance(expr, Constant) else None
        return known.astype(object) if known is not None and known.size <= MOST_SYMBOLS else None

    def sizes(self, expr: Expr) -> list[Any] | None:
        """The numbers and sizes in a vector; None if they are known only at run time."""
        known = self.value(expr)
        if known is not None:
            return [int(v) for v in known.reshape(-1)]
        found = self.symbols.get(expr)
        told = found is not None and all(isinstance(v, (int, SymbolicDim)) for v in found.flat)
        return list(cast(np.ndarray, found).reshape(-1)) if told else None

    def const(self, value: npt.ArrayLike, like: Expr | str) -> Constant:
        """A constant of the data type `like`, or of that of an expression."""
        return Constant(np.asarray(value, dtype=like if isinstance(like, str) else self.dtype(like)))

    # ---- finishing

    def settle(self, expr: Expr, place: AnySpan | None = None) -> Expr:
        """The expression with what is constant in it folded; new nodes get the place as their span."""
        done = self._settled
        fresh = walk((expr,), lambda e: () if e in done or isinstance(e, Function) else _parts(e))
        for old in list(fresh):
            if old not in done:
                new = rebuild(old, [done.get(c, c) for c in children(old)])
                if place is not None and not isinstance(new, SHARED):
                    set_field(new, "span", place)
                folded = self._fold(new)
                done[old] = done[folded] = folded
        return done[expr]

    def _fold(self, expr: Expr) -> Expr:
        if not isinstance(expr, Call) or not expr.args:
            return _FOLD.node(expr, expr)
        self.type(expr)  # refuses what operators refuse, before anything is computed
        return expr if _quantized_weight(expr) else _FOLD.node(expr, expr)


def _quantized_weight(expr: Call) -> bool:
    """Is it a dequantized matrix of bytes? As one of floats it would be four times as large, its products slower."""
    if not is_call_to(expr, "qnn.dequantize") or not isinstance(data := expr.args[0], Constant):
        return False
    return len(data.data.shape) > 1 and data.data.dtype.itemsize == 1


def rounded_up(
    g: Graph, x: Expr, reach: Sequence[int], strides: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> tuple[int, ...]:
    """`ceil_mode` as padding behind the spatial axes of `x`: a last window counts if it begins before that there does.

    Of an open extent n the windows are ceil((n + before) / stride), or fewer where the padding ends before: what is
    padded for that is the same for every n.
    """
    out, sizes = list(after), g.dims(x)[2:]
    if any(is_open(n) and a >= r for n, a, r in zip(sizes, after, reach)):
        sizes = g.extents(x, 2)  # which says what is missing
    for k, n in enumerate(sizes):
        if is_open(n):
            out[k] = min(after[k] + strides[k], reach[k]) - 1
            continue
        padded = n + before[k] + after[k] - reach[k]
        count = -(-padded // strides[k]) + 1
        if (count - 1) * strides[k] >= n + before[k]:
            count -= 1
        out[k] += max((count - 1) * strides[k] - padded, 0)
    return tuple(out)


def of_count(numbers: Expr, count: object) -> Expr:
    """A call of `arange` that says in its attributes how many numbers there are; any other expression as it is."""
    if not is_call_to(numbers, "arange"):
        return numbers
    return _with(cast(Call, numbers), count=(count,))


def numbered(many: Expr, count: object) -> Expr:
    """0, 1, 2, ... below a number of int64 that run time knows, `count` as a dimension."""
    numbers = op.arange(many, dtype="int64")
    return of_count(numbers, count) if isinstance(count, SymbolicDim) else numbers


def elements(x: Expr, begin: Mapping[int, int], count: Mapping[int, Any], fewer: bool = False) -> Expr:
    """So many elements along axes from `begin` on, numbers or sizes; a tensor that has not so many is refused, or gives
    `fewer`.
    """
    axes = list(begin)
    call = op.strided_slice(x, [begin[a] for a in axes], [FARTHEST] * len(axes), [1] * len(axes), axes=axes)
    return _with(call, count=tuple(count[a] for a in axes), **({"fewer": True} if fewer else {}))


def _with(call: Call, **attrs: object) -> Expr:
    """A call with some attributes of these values."""
    record = facets(call)
    return Call(call.op, call.args, type(record)(**{**dict(record.items()), **attrs}), span=call.span)


def is_open(dim: object) -> bool:
    """Whether a dimension is not known."""
    return isinstance(dim, AnyDim)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The operands; what a `let` binds is settled as one, when the module is finished."""
    return () if isinstance(expr, Let) else children(expr)


def module_of(
    inputs: Sequence[Var], outputs: Sequence[Expr], known: Mapping[Var, np.ndarray]
) -> tuple[IRModule, dict[str, NDArray]]:
    """`main` with the inputs in the model's order, then the parameters that are used, and their values by name."""
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    used = set(free_vars(body))
    params = [v for v in known if v in used]
    mod = IRModule.from_expr(Function([*inputs, *params], body))
    return InferType()(DynamicToStatic()(InferType()(mod))), {v.name_hint: kept(known[v]) for v in params}
