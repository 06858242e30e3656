"""Choices and loops of a program in which data decides sizes: each becomes a call of a function of its own.

What is computed for certain, whichever branch is taken, stays outside, so that both branches read it. A choice or loop
is then a step between parts, as what data decides is (`cut.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from relaylab.codegen.specialize import with_body
from relaylab.ir.attrs import Attrs
from relaylab.ir.dims import AnyDim, Dim, SizeVar, SymbolicDim
from relaylab.ir.expr import Call, Constant, Expr, Function, FunctionWithFields, GlobalVar, If, Let, Tuple, Var
from relaylab.ir.free import free_vars, sizes_in, types_in
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType, Type, type_leaves
from relaylab.ir.visit import children, rewrite, substitute, walk
from relaylab.support.errors import RelayError, RelayTypeError
from relaylab.transform import InferType
from relaylab.transform.engine.renewal import as_function
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

FIXED = (Constant, Function, GlobalVar, Op)


def with_choices_apart(mod: IRModule) -> IRModule:
    """A typed module whose `main` is a graph that calls a function for each choice and loop; it is typed anew."""
    if not any(_is_control(n) for n in walk((mod["main"].body,))):
        return mod
    entry = mod.get_global_var("main")
    if any(n is entry for n in walk(mod.functions.values())):
        raise RelayTypeError("a program that calls `main`", code="codegen.open-operator")
    mod = InferType()(mod.with_functions({**mod.functions, entry: as_function(to_gnf(mod["main"]))}))
    body = mod["main"].body
    inside, controls = _certain(body)
    inside |= {*mod["main"].params}
    args = {c: _read(c, inside) for c in controls}
    memo: dict[Expr, Expr] = {}

    def post(new: Expr, old: Expr) -> Expr:
        return _called(old, args[old], [memo[a] for a in args[old]]) if old in args else new

    return with_body(mod, rewrite(body, post, memo=memo))


def is_apart(node: Expr) -> bool:
    """Whether a node is a call of what was a choice or loop."""
    return isinstance(node, Call) and isinstance(node.op, Function) and not node.op.is_primitive


def around(node: Expr) -> Sequence[Expr]:
    """What is below a node, without what is in a function that it calls."""
    return node.args if isinstance(node, Call) and is_apart(node) else children(node)


def _is_control(node: Expr) -> bool:
    return isinstance(node, If) or (isinstance(node, Call) and isinstance(node.op, (GlobalVar, Let, Var)))


def _certain(body: Expr) -> tuple[set[Expr], list[Expr]]:
    """What is computed whichever branches are taken, and the choices and loops among it."""
    both: dict[Expr, list[Expr]] = {}

    def below(node: Expr) -> Sequence[Expr]:
        if isinstance(node, If):
            return (node.cond, *both.get(node, ()))
        if isinstance(node, Function):
            return ()
        return node.args if isinstance(node, Call) else children(node)

    for node in walk((body,), lambda n: () if isinstance(n, Function) else children(n)):  # inner ones first
        if isinstance(node, If):
            true, false = ({*walk((b,), below)} for b in (node.true_branch, node.false_branch))
            same = {n for n in true & false if not isinstance(n, FIXED)}
            reached = walk((node.true_branch, node.false_branch), lambda n, same=same: () if n in same else children(n))
            both[node] = [n for n in reached if n in same]
    nodes = [*walk((body,), below)]
    return {n for n in nodes if not isinstance(n, FIXED)}, [n for n in nodes if _is_control(n)]


def _read(control: Expr, inside: set[Expr]) -> list[Expr]:
    """What a choice or loop reads of what is computed for certain."""
    start = (control.op, *control.args) if isinstance(control, Call) else children(control)
    reached = walk(start, lambda n: () if n in inside else children(n))
    return [n for n in reached if n in inside]


def _called(control: Expr, read: Sequence[Expr], args: Sequence[Expr]) -> Call:
    """The call of a function that is the choice or loop."""
    params = [Var(f"p{k}", r.checked_type) for k, r in enumerate(read)]
    memo: dict[Expr, Expr] = dict(zip(read, params))
    function = Function(params, rewrite(control, lambda new, _: new, memo=memo))
    if free_vars(function):
        raise RelayTypeError("a loop that reads what is not computed before it", code="codegen.open-operator")
    return Call(function, args, span=control.span)


def with_types_of_arguments(mod: IRModule) -> IRModule:
    """A typed module whose choices and loops take what they are given: sizes have got names, or are expressions."""
    body = mod["main"].body
    told = {n for n in walk((body,), around) if is_apart(n) and not _takes(cast(Call, n))}

    def post(new: Expr, old: Expr) -> Expr:
        if old not in told or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        function = cast(Function, new.op)
        params = [Var(p.name_hint, a.checked_type) for p, a in zip(function.params, old.args)]
        try:
            renewed = program_of(mod, function.body, params, dict(zip(function.params, params)))
        except RelayError:
            return new  # branches that give different sizes: as long as one has no name, neither has what they give
        return Call(renewed["main"], new.args, span=new.span)

    return with_body(mod, rewrite(body, post)) if told else mod


def _takes(call: Call) -> bool:
    params = cast(Function, call.op).params
    return all(p.type_annotation == a.checked_type for p, a in zip(params, call.args))


def program_of(mod: IRModule, body: Expr, params: Sequence[Var], values: dict[Var, Expr]) -> IRModule:
    """A typed module whose `main` is a choice or loop of other values.

    Its types are inferred anew: what is called with known sizes has them. Where a turn of a loop changes a size, what
    was said of it stays.
    """
    entry = mod.get_global_var("main")
    made = lambda e: InferType()(mod.with_functions({**mod.functions, entry: Function(params, e)}))
    try:
        return made(with_params(body, values))
    except RelayError:
        return made(substitute(body, values))


def with_params(expr: Expr, params: dict[Var, Expr]) -> Expr:
    """A choice or loop of other values, with types to be inferred anew: what is called with known sizes has them."""

    def post(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Var) and _is_unknown(new.type_annotation):
            return Var(new.name_hint, span=new.span)
        if isinstance(new, Function) and _is_unknown(new.ret_type):
            return FunctionWithFields(new, ret_type=None)
        return new

    return rewrite(expr, post, memo={**params})


@dataclass(eq=False)
class Turning:
    """A loop as programs of its own: the state before the first turn, whether there is another one, the state after it,
    and what the loop gives, each but the first of the variables of the state.
    """

    variables: list[Var]
    first: Expr
    goes_on: Expr
    turn: Expr
    result: Expr


def turning(loop: Expr) -> Turning | None:
    """A call of a recursive function that calls itself last, once; None for any other expression."""
    if not isinstance(loop, Call) or not isinstance(loop.op, Let) or loop.op.body is not loop.op.var:
        return None
    name, function = loop.op.var, loop.op.value
    if not isinstance(function, Function) or not isinstance(function.body, If):
        return None
    choice = function.body
    again, last = choice.true_branch, choice.false_branch
    if not isinstance(again, Call) or again.op is not name or name in {*walk((*again.args, last, choice.cond))}:
        return None
    return Turning(list(function.params), Tuple(loop.args), choice.cond, Tuple(again.args), last)


def sizes_said(expr: Expr) -> set[SizeVar]:
    """The sizes in what is written in an expression: types and attributes, not what types are inferred to have."""
    said: list[Dim] = [d for t in types_in(expr) for leaf in type_leaves(t) for d in getattr(leaf, "shape", ())]
    for node in walk((expr,)):
        said += dims_said(node)
    return {*sizes_in([d for d in said if isinstance(d, SymbolicDim)])}


def dims_said(node: Expr) -> list[SymbolicDim]:
    """The dimensions in the attributes of a call."""
    values = [v for _, v in node.attrs.items()] if isinstance(node, Call) and isinstance(node.attrs, Attrs) else ()
    parts = [part for v in values for part in (cast("tuple[object, ...]", v) if isinstance(v, tuple) else (v,))]
    return [part for part in parts if isinstance(part, SymbolicDim)]


def _is_unknown(t: Type | None) -> bool:
    leaves = () if t is None else type_leaves(t)
    return any(type(d) is AnyDim for leaf in leaves if isinstance(leaf, TensorType) for d in leaf.shape)
