"""FoldConstant: what is known before the program runs is computed now, with the reference semantics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, TypeAlias, cast

import numpy as np

from relaylab.analysis.infer import infer_type_local
from relaylab.interp.sizes import with_known_sizes
from relaylab.ir.adt import Match
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.types import TensorType, TupleType, Type, dtype_name, is_dynamic
from relaylab.ir.visit import LEAVES, children, kinds_in, rewrite, walk
from relaylab.op.rounding import evaluated
from relaylab.support.errors import DiagnosticError
from relaylab.support.memory import made_read_only
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import FunctionPass, create
from relaylab.transform.engine.purity import acts
from relaylab.transform.engine.recipes import computed_later, note_recipe

_SHAPES = ("shape_of", "vm.shape_of", "ndarray_size")
_PLACED = ("device_copy", "annotation.compiler_begin", "annotation.compiler_end", "annotation.stop_fusion", "on_device")


Value: TypeAlias = "np.ndarray | tuple[Value, ...]"
_FILLED = ("zeros", "ones")
_SMALL = 1 << 16  # elements of a product of filled tensors that may become a constant
_LARGE = 1 << 26  # elements of a constant that is made only if the constants it is made of are as large
_RANK = 32  # the most elements that a tensor which is a shape has
_SCOPES = (Let, Match, Function)
_PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")


def _is_known(expr: Expr) -> bool:
    return isinstance(expr, Constant) or (isinstance(expr, Tuple) and all(map(_is_known, expr.fields)))


def _is_filled(expr: Expr) -> bool:
    """Is it a tensor of one value? Alone such a call stays: the constant would only be larger."""
    return isinstance(expr, Call) and op_name(expr) in _FILLED


def _is_small(typ: Type | None) -> bool:
    return isinstance(typ, TensorType) and not typ.is_dynamic and math.prod(typ.concrete_shape) <= _SMALL


def _value(expr: Expr) -> Value:
    if isinstance(expr, Tuple):
        return tuple(map(_value, expr.fields))
    if isinstance(expr, Call):
        return facets(expr).reference()
    return cast(Constant, expr).data.numpy()


def _literal(value: object, typ: Type | None) -> Expr:
    """The constant (or tuple of constants) for a value of a type."""
    if isinstance(value, (tuple, list)):
        fields = typ.fields if isinstance(typ, TupleType) else [None] * len(value)
        return Tuple(map(_literal, value, fields))
    array = np.asarray(value)
    if isinstance(typ, TensorType) and dtype_name(array.dtype) != typ.dtype:
        array = array.astype(typ.dtype)
    return Constant(made_read_only(array))


class ConstantFolder:
    """Folds one expression; `fold_qnn` also folds operators that are rewritten before code is made."""

    def __init__(self, fold_qnn: bool = False):
        self.fold_qnn = fold_qnn
        self.computing: set[Expr] = set()
        self.acting: set[Expr] = set()

    def __call__(self, expr: Expr) -> Expr:
        if isinstance(expr, Function) and kinds_in(expr).isdisjoint(_SCOPES):
            return rewrite(expr, self.node)
        return rewrite_lets(expr, self.node, self._bind, lambda n: isinstance(n, Function) and n.is_primitive)

    def _bind(self, let: Let, value: Expr, recursive: bool) -> Expr | None:
        return value if isinstance(value, Constant) else None

    def node(self, new: Expr, old: Expr) -> Expr:
        """What one node, its parts being folded, becomes; `old` is the node with the types."""
        if type(new) in LEAVES:
            return new
        match new:
            case Call(op=Op() as op):
                return self._call(new, op, old)
            case If(cond=Constant() as cond):
                return new.true_branch if bool(cond.data) else new.false_branch
            case TupleGetItem(tuple_value=Tuple() as made) if self._only_computes(made):
                return made.fields[new.index]
            case _:
                return new

    def _only_computes(self, made: Tuple) -> bool:
        """Whether no field of a tuple has an effect: then those that nobody asks for can go."""
        if made not in self.acting:
            nodes = list(walk((made,), lambda n: () if n in self.computing or isinstance(n, Function) else children(n)))
            (self.acting.add(made) if any(map(acts, nodes)) else self.computing.update(nodes))
        return made not in self.acting

    def _call(self, call: Call, op: Op, old: Expr) -> Expr:
        name = op_name(call)
        if name in _SHAPES:
            shape = _shape_known(call, old)
            return call if shape is None else shape
        known = all(map(_is_known, call.args))
        if not known and name not in _PRODUCTS:
            return call
        definition = op.definition
        if not call.args or definition.stateful or name in _PLACED or not (definition.computes or self.fold_qnn):
            return call
        if known:
            return self._evaluate(call, old)
        if name in _PRODUCTS and _is_small(type_of(old)) and all(_is_known(a) or _is_filled(a) for a in call.args):
            return self._evaluate(call, old)  # the first step of a recurrent network, whose state is zeros
        return call

    def _evaluate(self, call: Call, old: Expr) -> Expr:
        typ = type_of(old) or _local_type(call)
        record = facets(call)
        # sizes with names are known when the program runs
        if record.fields and with_known_sizes(record, {}) is not record:
            return call
        # a program must not grow by its constants: a call of `full` is a few bytes, its value may be gigabytes
        count = _elements(typ)
        if count > _LARGE and count > max(_elements(type_of(a)) for a in call.args):
            return call
        if (later := computed_later(call, record, typ)) is not None:
            return later
        values = list(map(_value, call.args))
        try:
            with np.errstate(all="ignore"):
                if typ is not None and is_dynamic(typ) and not _reach(values) <= _LARGE:
                    return call
                value = evaluated(record, values, typ)
        except (IndexError, ValueError, MemoryError):  # running it says what is wrong, and where
            return call
        made = _literal(value, typ)
        note_recipe(made, record, call.args, typ)
        return made


def _elements(typ: Type | None) -> int:
    """The elements of a value of a type, as far as they are known; a tuple has those of its fields."""
    if type(typ) is TensorType:
        return 0 if typ.is_dynamic else math.prod(typ.concrete_shape)
    fields = typ.fields if isinstance(typ, TupleType) else (typ,)
    return sum(math.prod(t.concrete_shape) for t in fields if isinstance(t, TensorType) and not t.is_dynamic)


def _reach(values: list[Value]) -> float:
    """A bound of the elements of a result whose shape depends on values: their sizes, times the numbers in those
    that may be a shape, a repeat count, a limit or a step.
    """
    reach = 1.0
    arrays = itertools.chain(*(v if isinstance(v, tuple) else (v,) for v in values))
    for array in cast(Iterable[np.ndarray], arrays):
        reach *= max(array.size, 1)
        if array.size <= _RANK and array.dtype.name != "bool":
            # a step of 0.001 makes as many elements as a limit of 1000
            sizes = np.abs(array.astype("float64"))
            reach *= np.prod(np.maximum(sizes, 1 / np.maximum(sizes, 1e-300)), where=sizes > 0)
    return float(reach)


def _local_type(call: Call) -> Type | None:
    return infer_type_local(call) if all(isinstance(a, Constant) for a in call.args) else None


def _shape_known(call: Call, old: Expr) -> Expr | None:
    """The shape (or the number of elements) of a tensor of static type, as a constant."""
    source = type_of(call.args[0]) or type_of(cast(Call, old).args[0])
    if not isinstance(source, TensorType) or source.is_dynamic:
        return None
    shape = np.array(source.concrete_shape, dtype=facets(call).dtype or "int32")
    return Constant(np.prod(shape, dtype=shape.dtype) if op_name(call) == "ndarray_size" else shape)


def typed_if_told(mod: IRModule) -> IRModule:
    """A module with its types: what is folded away may have told some. Without them where only folding tells them."""
    if any(f.inferred is None for f in mod.functions.values()):
        with suppress(DiagnosticError):
            return create("InferType")(mod)
    return mod


@pass_(level=2, idempotent=True)
class FoldConstant(FunctionPass):
    """Evaluates calls of operators on constants, decides conditionals on them, and inlines lets bound to them."""

    fold_qnn: Annotated[bool, "Also fold operators that are rewritten before code is made: the quantized dialect."] = (
        False
    )

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return super().apply(typed_if_told(mod), ctx)

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return ConstantFolder(self.fold_qnn)(func)


def FoldConstantExpr(expr: Expr, mod: IRModule, fold_qnn: bool = False) -> Expr:
    """One expression folded."""
    return ConstantFolder(fold_qnn)(expr)
