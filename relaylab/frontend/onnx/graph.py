"""The graph while it is imported: the Relay expression of every ONNX value, typed and folded as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from relaylab.analysis.infer.report import Report
from relaylab.analysis.infer.typer import Typer
from relaylab.frontend.onnx.node import Node
from relaylab.ir import Any as Unknown
from relaylab.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Let,
    Op,
    TensorType,
    TupleWrapper,
    Type,
    Var,
    children,
    free_vars,
    is_dynamic,
    rebuild,
    walk,
)
from relaylab.ir.node import set_field
from relaylab.ir.visit import substitute
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform.fold_constant import ConstantFolder

SHARED = (Var, GlobalVar, Op, Constructor)  # stand for one thing wherever they are, also in other programs
_FOLD = ConstantFolder(fold_qnn=True)


class Graph:
    """What converters know: types of expressions, values of constants.

    `params` are variables that have a value (initializers that stay parameters); one typer serves the whole import, so
    that every expression is looked at once.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})
        self.params: dict[Var, np.ndarray] = {}
        self.random = np.random.default_rng(0)
        self._typer = Typer(None, Report(), {})
        self._settled: dict[Expr, Expr] = {}
        self.convert_body: Any = None

    # ---- types

    def type(self, expr: Expr) -> Type:
        """The type of an expression. Raises `DiagnosticError` for calls that operators refuse."""
        if isinstance(expr, Constant):
            return expr.type
        self._typer.run(expr)
        report = self._typer.report
        if report:
            self._typer.report, self._typer.tainted = Report(), False
            report.raise_if_any({"": expr})
        return self._typer.solver.resolve(self._typer.types[expr])

    def tensor(self, expr: Expr) -> TensorType:
        """The type of a tensor."""
        found = self.type(expr)
        if not isinstance(found, TensorType):
            raise RelayValueError(f"a tensor is needed here, not {found}", code="import.not-a-tensor")
        return found

    def dims(self, expr: Expr) -> tuple:
        """The dimensions: ints, and `Any` where they are not known."""
        return tuple(d if is_open(d) else int(d) for d in self.tensor(expr).shape)

    def shape(self, expr: Expr) -> tuple[int, ...]:
        """The dimensions, which must be known."""
        found = self.tensor(expr)
        if found.is_dynamic:
            raise RelayValueError(f"the shape must be known here, it is {found}", code="import.dynamic",
                                  help="give the shapes of the model's inputs: from_onnx(model, shape={name: (…)})")
        return found.concrete_shape

    def is_static(self, expr: Expr) -> bool:
        """Whether all dimensions are known."""
        return not is_dynamic(self.tensor(expr))

    def rank(self, expr: Expr) -> int:
        """The number of dimensions."""
        return len(self.tensor(expr).shape)

    def dtype(self, expr: Expr) -> str:
        """The data type."""
        return self.tensor(expr).dtype

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
        return found.data.numpy() if isinstance(found, Constant) else None

    def known(self, expr: Expr, what: str) -> np.ndarray:
        """The value of an expression, which must be known."""
        found = self.value(expr)
        if found is None:
            raise RelayValueError(f"`{what}` must be known when the model is loaded; it is computed from inputs", code="import.dynamic",
                                  help="give the shapes of the model's inputs: from_onnx(model, shape={name: (…)})")
        return found

    def ints(self, expr: Expr, what: str) -> list[int]:
        """The integers of a vector (or scalar) that must be known."""
        return [int(v) for v in self.known(expr, what).reshape(-1)]

    def const(self, value: Any, like: Expr | str) -> Constant:
        """A constant of the data type `like`, or of that of an expression."""
        return Constant(np.asarray(value, dtype=like if isinstance(like, str) else self.dtype(like)))

    # ---- finishing

    def settle(self, expr: Expr, node: Node | None = None) -> Expr:
        """The expression with what is constant in it folded; new nodes get the place of `node`."""
        done = self._settled
        fresh = walk((expr,), lambda e: () if e in done or isinstance(e, Function) else _parts(e))
        for old in list(fresh):
            if old not in done:
                new = rebuild(old, [done.get(c, c) for c in children(old)])
                if node is not None and not isinstance(new, SHARED):
                    set_field(new, "span", node.span)
                folded = self._fold(new)
                done[old] = done[folded] = folded
        return done[expr]

    def _fold(self, expr: Expr) -> Expr:
        if not isinstance(expr, Call) or not expr.args:
            return _FOLD.node(expr, expr)
        self.type(expr)  # refuses what operators refuse, before anything is computed
        return _FOLD.node(expr, expr)


def is_open(dim: Any) -> bool:
    """Whether a dimension is not known."""
    return isinstance(dim, Unknown)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The operands; what a `let` binds is settled as one, when the module is finished."""
    return () if isinstance(expr, Let) else children(expr)


def outputs_of(result: Any) -> list[Any]:
    """What a converter returned, as a list of expressions (None: an output that it cannot give)."""
    if isinstance(result, TupleWrapper):
        return list(result)
    if isinstance(result, (list, tuple)):
        return [r for x in result for r in (outputs_of(x) if isinstance(x, TupleWrapper) else [x])]
    return [result]


def as_relay_error(error: Exception, node: Node) -> RelayError:
    """An error in a converter as one about the node: what its operands cannot do, in the user's words."""
    if isinstance(error, RelayError):
        place = f"  --> {node.place}"
        if node.place in error.place:
            return error
        return RelayValueError(error.message if error.message.startswith(node.op_type) else f"{node.op_type}: {error.message}",
                               code=error.code, place=place, help=error.help)
    return node.error(f"the node cannot be read: {error}", code="import.malformed", help=f"raised as {type(error).__name__}")

