"""Legalize: operators are replaced by others that a target can run, as registered with each operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast, overload

from relaylab.ir import Call, Expr, Function, IRModule, Op, Tuple, facets, rewrite
from relaylab.ir.visit import operators_in
from relaylab.support.errors import RelayTypeError, kind_of
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass

Replacement = Callable[[Any, Any, Any], Expr | None]

FACETS = {"FTVMQnnCanonicalize": "canonicalize", "FTVMQnnLegalize": "legalize", "FTVMLegalize": "legal"}
"""The method of an operator's class that answers when nothing is registered: `method(inputs, types)`."""


@overload
def register_legalize(
    op_name: str, replacement: Replacement, level: int = 10, attr: str = "FTVMLegalize"
) -> Replacement: ...
@overload
def register_legalize(
    op_name: str, replacement: None = None, level: int = 10, attr: str = "FTVMLegalize"
) -> Callable[[Replacement], Replacement]: ...
def register_legalize(
    op_name: str, replacement: Replacement | None = None, level: int = 10, attr: str = "FTVMLegalize"
) -> object:
    """Register `replacement(attrs, inputs, types) -> Expr or None` for an operator; usable as a decorator."""

    def register(function: Replacement) -> Replacement:
        Op.get(op_name).set_attr(attr, function, level)
        return function

    return register(replacement) if replacement is not None else register


def _answers(op: Op, attr: str) -> bool:
    """Whether something is registered with an operator under `attr`, or its class has the method in its place."""
    return op.has_attr(attr) or hasattr(op.definition, FACETS.get(attr, ""))


def _replaced(new: Expr, old: Call, attr: str) -> Expr:
    if not isinstance(new, Call):
        return new
    types = [type_of(arg) for arg in old.args] + [type_of(old)]
    op = cast(Op, old.op)
    function = op.get_attr(attr)
    if function is not None:
        after = cast("Callable[..., Expr | None]", function)(facets(new), list(new.args), types)
    else:
        after = getattr(facets(new), FACETS[attr])(list(new.args), types)
    return new if after is None else _checked(after, op.name)


def _checked(after: Expr, name: str) -> Expr:
    if not isinstance(after, (Call, Tuple)):
        text = f"the legalization of {name} returned {kind_of(after)}, not a call or a tuple"
        raise RelayTypeError(
            text, code="legalize.not-a-call", help="return a Call, a Tuple, or None to leave the operator alone"
        )
    return after


@pass_(level=1, requires=("InferType",))
class Legalize(FunctionPass):
    """Replaces operators by what `register_legalize` (or the operator's attribute of that name) says."""

    legalize_map_attr_name: Annotated[str, "Under which attribute of an operator its replacement is registered."] = (
        "FTVMLegalize"
    )

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        attr = self.legalize_map_attr_name
        asked = {op for op in operators_in(func) if _answers(op, attr)}

        def at(new: Expr, old: Expr) -> Expr:
            return _replaced(new, old, attr) if isinstance(old, Call) and old.op in asked else new

        return rewrite(func, at) if asked else func


def register_qnn_legalize(qnn_op_name: str, legal_op: Replacement | None = None, level: int = 10) -> object:
    """As `register_legalize`, for `relay.qnn.transform.Legalize`: quantized operators by others that run."""
    return _registering(qnn_op_name, legal_op, level, "FTVMQnnLegalize")


def register_qnn_canonicalize(qnn_op_name: str, legal_op: Replacement | None = None, level: int = 10) -> object:
    """As `register_legalize`, for `relay.qnn.transform.CanonicalizeOps`: quantized operators by plain ones."""
    return _registering(qnn_op_name, legal_op, level, "FTVMQnnCanonicalize")


def _registering(name: str, rule: Replacement | None, level: int, attr: str) -> object:
    return (
        register_legalize(name, level=level, attr=attr) if rule is None else register_legalize(name, rule, level, attr)
    )
