"""FlexibleShapeDispatch: one program for several sizes of an axis, each size with code of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from relaylab.ir import (
    AnyDim,
    Call,
    Expr,
    Function,
    FunctionWithFields,
    GlobalVar,
    GlobalVarSupply,
    If,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    const,
)
from relaylab.ir.trail import derived, made_from
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass, create
from relaylab.transform.engine.renewal import accounted, copied, fresh, renewed

__all__ = ["FlexibleShapeDispatch", "flexible_dispatch", "override_shape", "specialize_body"]


def _refused(what: str, help: str) -> RelayValueError:
    return RelayValueError(what, code="dispatch.options", help=help)


@checked
def override_shape(tensor_type: TensorType, axis: int, dim: object) -> TensorType:
    """The type with another extent of one axis. Raises `RelayValueError` for an axis that it does not have."""
    shape = tensor_type.shape
    if not -len(shape) <= axis < len(shape):
        raise _refused(f"{tensor_type} has no axis {axis}", "choose another axis, or other inputs")
    at = axis % len(shape)
    return TensorType((*shape[:at], dim, *shape[at + 1 :]), tensor_type.dtype)


def _overridden(param: Var, axis: int, dim: object) -> Var:
    typ = param.type_annotation
    if not isinstance(typ, TensorType):
        raise _refused(f"%{param.name_hint} is no tensor of a known type", "annotate it, or choose other inputs")
    return copied(Var(param.name_hint, override_shape(typ, axis, dim), span=param.span), param)


def _parameters(function: Function, axis: int, dim: object, chosen: Sequence[int]) -> list[Var]:
    params = list(function.params)
    for i in chosen:
        if not 0 <= i < len(params):
            raise _refused(f"there is no input {i} of {len(params)}", "inputs count from 0")
        params[i] = _overridden(params[i], axis, dim)
    return [fresh(p) if p in function.params else p for p in params]


@checked
def specialize_body(
    mod: IRModule, function: Function, axis: int, dim: object, input_indices: Sequence[int], affects_output: bool = True
) -> tuple[GlobalVar, list[Type | None]]:
    """Add a copy of `function` to `mod` whose inputs of these numbers have the extent `dim` along `axis`.

    Returns its name (`main_` and the extent, `main_any` for an unknown one) and the types of its inputs. With
    `affects_output` the type of the result is inferred anew. Raises `RelayValueError` for inputs or axes that there
    are not.
    """
    params = _parameters(function, axis, dim, input_indices)
    body = renewed(function.body, dict(zip(function.params, params)))
    result = None if affects_output else function.ret_type
    made = Function(params, body, result, function.type_params)
    name = f"main_{'any' if isinstance(dim, AnyDim) else dim}"
    gv = GlobalVarSupply(mod).fresh_global(name)
    mod[gv] = copied(made, function)
    return gv, [p.type_annotation for p in params]


class _Dispatch:
    """Builds the new `main`, which asks for the extent of the first chosen input."""

    def __init__(self, mod: IRModule, options: FlexibleShapeDispatch):
        self.mod, self.options, self.main = mod, options, mod["main"]
        chosen = options.input_indices
        self.chosen = list(range(len(self.main.params)) if chosen is None else chosen)
        if not self.chosen or not options.buckets or any(b < 1 for b in options.buckets):
            raise _refused("there is nothing to choose from", "give inputs, and positive extents as buckets")
        self.params = _parameters(self.main, options.axis, AnyDim(), self.chosen)
        shape = call("shape_of", self.params[self.chosen[0]], dtype="int32")
        self.extent = call("take", shape, const(self._axis(self.params[self.chosen[0]])), axis=0)

    def _axis(self, value: Expr) -> int:
        typ = value.inferred
        return self.options.axis % len(typ.shape) if isinstance(typ, TensorType) else self.options.axis

    def run(self) -> Function:
        options, main = self.options, self.main
        rest, _ = specialize_body(self.mod, main, options.axis, AnyDim(), self.chosen, options.affects_output)
        value: Expr = Call(rest, self.params)
        compare = "less_equal" if options.auto_pad else "equal"
        for bucket in sorted(set(options.buckets), reverse=True):
            gv, _ = specialize_body(self.mod, main, options.axis, bucket, self.chosen, options.affects_output)
            value = If(call(compare, self.extent, const(bucket)), self._branch(gv, bucket), value)
        return FunctionWithFields(main, params=self.params, body=value, ret_type=None)

    def _branch(self, gv: GlobalVar, bucket: int) -> Expr:
        if not self.options.auto_pad:
            return Call(gv, self.params)
        args: list[Expr] = list(self.params)
        for i in self.chosen:
            args[i] = self._padded(self.params[i], bucket)
        made = Call(gv, args)
        return self._cut(made, self.main.body.inferred) if self.options.affects_output else made

    def _padded(self, value: Var, bucket: int) -> Expr:
        typ = value.type_annotation
        assert isinstance(typ, TensorType)
        here = np.zeros((len(typ.shape), 2), "int32")
        here[self._axis(value), 1] = 1
        width = call("multiply", call("subtract", const(bucket), self.extent), const(here))
        return call("dyn.nn.pad", value, width, const(self.options.pad_value, typ.dtype))

    def _cut(self, value: Expr, typ: Type | None) -> Expr:
        """The part of a result that belongs to what was given."""
        if isinstance(typ, TupleType):
            return Tuple([self._cut(TupleGetItem(value, i), f) for i, f in enumerate(typ.fields)])
        if not isinstance(typ, TensorType) or not -len(typ.shape) <= self.options.axis < len(typ.shape):
            raise _refused(f"a result of the type {typ} has no such axis", "set affects_output=False")
        here = np.zeros(len(typ.shape), "int32")
        here[self.options.axis] = 1
        whole = call("multiply", call("shape_of", value, dtype="int32"), const(1 - here))
        end = call("add", whole, call("multiply", self.extent, const(here)))
        return call("dyn.strided_slice", value, const(0 * here), end, const(0 * here + 1))


def flexible_dispatch(
    mod: IRModule,
    buckets: Sequence[int],
    axis: int = 0,
    auto_pad: bool = False,
    pad_value: float = 0,
    input_indices: Sequence[int] | None = None,
    affects_output: bool = True,
) -> IRModule:
    """The module after `FlexibleShapeDispatch` with these options."""
    return FlexibleShapeDispatch(buckets, axis, auto_pad, pad_value, input_indices, affects_output)(mod)


@pass_(level=0, preserves=False, example={"buckets": []})
class FlexibleShapeDispatch(ModulePass):
    """Makes an axis of the inputs of `main` dynamic, and calls a copy of it for each extent that is known beforehand.

    Other extents are padded to the next larger bucket (`auto_pad`), or computed by a copy for any extent.
    """

    buckets: Annotated[Sequence[int], "The extents that get code of their own."]
    axis: Annotated[int, "The axis that varies."] = 0
    auto_pad: Annotated[bool, "Pad inputs to the next larger bucket, and cut the results."] = False
    pad_value: Annotated[float, "What is padded."] = 0.0
    input_indices: Annotated[Sequence[int] | None, "The numbers of the inputs that vary; None: all."] = None
    affects_output: Annotated[bool, "The axis varies in the results too."] = True

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if not self.buckets:
            return mod
        typed = create("InferType")(mod)
        new = typed.shallow_copy()
        main = typed["main"]
        with made_from(main):
            new["main"] = derived(accounted(_Dispatch(new, self).run(), main), main)
        return create("InferType")(new)
