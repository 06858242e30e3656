"""A program with open sizes as a static one: the sizes of given inputs, and the values that decide shapes, put in.

What remains is an ordinary program with numbers for sizes, which the static pipeline compiles. The values put in are
those of small inputs of integers (or conditions) from which shapes and branches are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from relaylab.analysis.infer.sizes import sized
from relaylab.codegen.network.network import is_static_graph
from relaylab.codegen.unrolled import unrolled
from relaylab.interp.sizes import with_known_sizes
from relaylab.ir.dims import IntImm, SizeVar
from relaylab.ir.expr import Call, Constant, Expr, Function, FunctionWithFields, If, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.trail import derived
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import children, rewrite, substitute, walk
from relaylab.support.errors import RelayTypeError
from relaylab.transform import DynamicToStatic, InferType
from relaylab.transform.normal_forms.first_order import first_order

_SIZES_ONLY = ("shape_of", "ndarray_size", "vm.shape_of")


def tensors_of(t: Type | None) -> list[TensorType] | None:
    """The tensor types in the type of a parameter, left to right; None if there is anything else in it."""
    if isinstance(t, TupleType):
        parts = [tensors_of(f) for f in t.fields]
        return None if None in parts else [leaf for part in parts for leaf in part or ()]
    return [t] if isinstance(t, TensorType) else None


def input_tensors(params: Sequence[Var]) -> list[tuple[Var, TensorType]]:
    """The tensors that parameters are made of, left to right."""
    return [(p, t) for p in params for t in tensors_of(p.inferred or p.type_annotation) or ()]


def is_open(mod: IRModule) -> bool:
    """Whether a typed `main` of tensors may become a static graph when its sizes are known, and is none yet."""
    if "main" not in mod or mod["main"].type_params:
        return False
    main = mod["main"]
    if any(tensors_of(p.inferred or p.type_annotation) is None for p in main.params):
        return False
    return tensors_of(main.ret_type or main.body.inferred) is not None and not is_static_graph(mod)


def deciding_inputs(mod: IRModule) -> tuple[int, ...]:
    """The parameters of `main` whose values, not only shapes, decide shapes or branches, by number."""
    main = first_order(mod)["main"]
    conditions: list[Expr] = []
    shapes: list[Expr] = []
    for node in walk((main.body,)):
        if isinstance(node, If):
            conditions.append(node.cond)
        elif isinstance(node, Call) and isinstance(node.op, Op) and _is_open(node.inferred):
            shapes += _shape_operands(node, node.op)
    reached = {*walk(conditions, _behind(_is_whole)), *walk(shapes, _behind(_is_factor))}
    types = [p.inferred or p.type_annotation if p in reached else None for p in main.params]
    return tuple(k for k, t in enumerate(types) if isinstance(t, TensorType) and _is_factor(t))


def _behind(counts: Callable[[Type | None], bool]) -> Callable[[Expr], tuple[Expr, ...]]:
    """What a number is counted from: not data, nor a tensor of which only the shape is asked for."""

    def below(node: Expr) -> tuple[Expr, ...]:
        return children(node) if op_name(node) not in _SIZES_ONLY and counts(node.inferred) else ()

    return below


def _shape_operands(call: Call, op: Op) -> list[Expr]:
    """The operands of which an operator takes a shape, sizes or limits, not data."""
    if op.name == "arange":
        return list(call.args)
    names: tuple[str, ...] = getattr(op.definition, "values", ()) if op.name.startswith("dyn.") else ()
    return [a for name, a in zip(op.definition.inputs, call.args) if name in names]


def _is_open(t: Type | None) -> bool:
    return t is not None and is_dynamic(t)


def _is_whole(t: Type | None) -> bool:
    """Whole numbers and truth values: shapes, sizes, axes, limits, flags. Tuples may hold them."""
    if not isinstance(t, TensorType):
        return t is None or isinstance(t, TupleType)
    return len(t.shape) <= 2 and not t.dtype.startswith(("float", "bfloat"))


def _is_factor(t: Type | None) -> bool:
    """These, or a few factors."""
    small = isinstance(t, TensorType) and len(t.shape) <= 1 and not t.is_dynamic
    return _is_whole(t) or (small and math.prod(cast(TensorType, t).concrete_shape) <= 8)


Shape = tuple[int, ...]


def sizes_of(params: Sequence[Var], shapes: Sequence[Shape]) -> dict[SizeVar, IntImm]:
    """The numbers that named sizes have for the shapes of the inputs' tensors, left to right.

    `RelayTypeError` `vm.sizes` names the size, the axes and the inputs where two of them disagree.
    """
    found: dict[SizeVar, tuple[int, str]] = {}
    for (p, t), shape in zip(input_tensors(params), shapes):
        for axis, (size, n) in enumerate(zip(t.shape, shape)):
            if isinstance(size, SizeVar):
                _agree(found, size, n, f"axis {axis} of the input `{p.name_hint}`")
    return {size: IntImm(n) for size, (n, _) in found.items()}


def _agree(found: dict[SizeVar, tuple[int, str]], size: SizeVar, n: int, place: str) -> None:
    known, first = found.setdefault(size, (n, place))
    if known != n:
        raise RelayTypeError(
            f"the size `{size}` is {known} in {first} and {n} in {place}",
            code="vm.sizes",
            help="give arrays that agree in the dimensions they share",
        )


def specialized(mod: IRModule, shapes: Sequence[Shape], values: Mapping[int, np.ndarray]) -> IRModule:
    """A typed module whose `main` takes inputs whose tensors have these shapes, left to right.

    `values` are those of parameters, by number, that are put in as constants; the parameters stay. Raises RelayError
    where the shapes do not fit the program.
    """
    main = mod["main"]
    rest = iter(shapes)
    params = [Var(p.name_hint, _concrete(p.inferred or p.type_annotation, rest)) for p in main.params]
    known = sizes_of(main.params, shapes)
    binds: dict[Var, Expr] = {}
    for k, (old, new) in enumerate(zip(main.params, params)):
        binds[old] = Constant(values[k]) if k in values else derived(new, old)
    body = _with_numbers(substitute(main.body, binds), known)
    fresh = derived(Function(params, body, attrs=main.attrs), main)
    made = mod.with_functions({**mod.functions, mod.get_global_var("main"): fresh})
    typed = InferType()(DynamicToStatic()(first_order(InferType()(made))))
    plain = unrolled(typed["main"].body)
    if plain is typed["main"].body:
        return typed
    return InferType()(DynamicToStatic()(with_body(typed, plain)))


def with_body(mod: IRModule, body: Expr) -> IRModule:
    """A typed module whose `main` has another body, with types anew if it is another."""
    main = mod["main"]
    if body is main.body:
        return mod
    fresh = derived(FunctionWithFields(main, body=body, ret_type=None), main)
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): fresh}))


def _concrete(t: Type | None, shapes: Iterator[Shape]) -> Type:
    """The type with the next shapes."""
    if isinstance(t, TupleType):
        return TupleType([_concrete(f, shapes) for f in t.fields])
    return TensorType(next(shapes), cast(TensorType, t).dtype)


def _with_numbers(body: Expr, sizes: Mapping[SizeVar, IntImm]) -> Expr:
    """Numbers in place of sizes, in the attributes of operators and in the types that are written down."""
    if not sizes:
        return body

    def post(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Var) and new.type_annotation is not None and is_dynamic(new.type_annotation):
            return Var(new.name_hint, sized(new.type_annotation, sizes), span=new.span)
        if isinstance(new, Function) and new.ret_type is not None and is_dynamic(new.ret_type):
            return FunctionWithFields(new, ret_type=sized(new.ret_type, sizes))
        if isinstance(new, Call) and isinstance(new.op, Op) and new.attrs is not None:
            record = facets(new)
            numbered = with_known_sizes(record, sizes)
            return new if numbered is record else Call(new.op, new.args, numbered, new.type_args, span=new.span)
        return new

    return rewrite(body, post)


def reason_of(mod: IRModule) -> str:
    """Why a typed module is no static graph though its inputs have their sizes."""
    for node in walk((mod["main"].body,)):
        if isinstance(node, Call) and _is_open(node.inferred) and all(not _is_open(a.inferred) for a in node.args):
            return f"the shape that {op_name(node) or 'a call'} gives depends on data"
    return "it has control flow, references or data types"
