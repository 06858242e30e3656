"""What a typed program knows and its text would not say: type arguments that follow from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylab.analysis.infer.report import ErrorReport
from relaylab.analysis.infer.typed import SHARED, Rebuilder
from relaylab.analysis.infer.typer import Typer
from relaylab.ir.adt import Constructor, Match
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, RefCreate, Tuple, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.trail import unrecorded
from relaylab.ir.types import FuncType, Type, TypeVar, type_leaves
from relaylab.ir.visit import children, remake, rewrite, users


def untold(root: Expr, mod: IRModule | None = None) -> set[Expr]:
    """The calls below `root` whose type arguments have to be written: inference would not find them again.

    None where `root` refers to functions and `mod`, which would say their types, is not given.
    """
    told: set[Expr] = set()
    above = users(root)
    if mod is None and any(isinstance(node, GlobalVar) for node in above):
        return told
    if all(_is_told(node, above, mod) for node in above if _has_given(node)):
        return told
    with unrecorded():
        while found := _unresolved(root, mod, told):
            told |= found
    return told


def _has_given(node: Expr) -> bool:
    return isinstance(node, Call) and not isinstance(node.op, Op) and bool(node.type_args)


# ---- a look around, which tells nearly all


def _is_told(call: Expr, above: Mapping[Expr, list[Expr]], mod: IRModule | None) -> bool:
    """Whether the arguments of a call, or what it is put into, plainly say its type arguments."""
    if isinstance(call, Call) and isinstance(call.op, (Constructor, GlobalVar)):
        if len(_known(call, _parameters(call, mod))) == len(call.type_args):
            return True
    stack = [call]
    while stack:
        value = stack.pop()
        for user in above[value]:
            if _tells(user, value, mod):
                return True
            if _passes_on(user, value):
                stack.append(user)
    return False


def _passes_on(user: Expr, value: Expr) -> bool:
    """Whether the type of `value` is told with that of `user`."""
    match user:
        case If() | Tuple() | RefCreate():
            return True
        case Let():
            return user.body is value
        case Match():
            return user.data is not value
    return False


def _tells(user: Expr, value: Expr, mod: IRModule | None) -> bool:
    match user:
        case Let():
            return user.value is value and user.var.type_annotation is not None
        case Function():
            return user.ret_type is not None
        case Call():
            wanted = _parameters(user, mod)
            own = [t for t, arg in zip(wanted, user.args) if arg is value]
            return bool(own) and set().union(*map(_variables, own)) <= _known(user, wanted)
    return False


def _known(call: Call, wanted: Sequence[Type | None]) -> set[TypeVar]:
    """The type parameters that follow from arguments whose types are written or computed."""
    given = (t for t, arg in zip(wanted, call.args) if _is_solid(arg))
    return set().union(*map(_variables, given))


def _is_solid(arg: Expr) -> bool:
    return isinstance(arg, Constant) or (isinstance(arg, Var) and arg.type_annotation is not None)


def _parameters(call: Call, mod: IRModule | None) -> Sequence[Type | None]:
    """The types that what is called takes, as far as they are written."""
    match call.op:
        case Constructor():
            return call.op.inputs
        case GlobalVar() if mod is not None and call.op.name_hint in mod:
            return [p.type_annotation for p in mod[call.op.name_hint].params]
        case Function():
            return [p.type_annotation for p in call.op.params]
        case Var(type_annotation=FuncType() as known):
            return known.arg_types
    return ()


def _variables(t: Type | None) -> set[TypeVar]:
    return set() if t is None else {part for part in type_leaves(t) if isinstance(part, TypeVar)}


# ---- and inference, which tells the rest


def _unresolved(root: Expr, mod: IRModule | None, told: set[Expr]) -> set[Expr]:
    """The calls whose types are not found if only the type arguments of `told` are written."""
    bare: dict[Expr, Expr] = {}

    def untyped(new: Expr, old: Expr) -> Expr:
        if isinstance(old, (*SHARED, Var)):
            return new
        if isinstance(new, Call) and _has_given(old) and old not in told:
            new = Call(new.op, new.args, new.attrs)
            bare[new] = old
            return new
        return remake(new, children(new))

    plain, report = rewrite(root, untyped), ErrorReport(mod)
    known = {} if mod is None else {gv.name_hint: f.inferred or f.annotated_type() for gv, f in mod.functions.items()}
    typer = Typer(mod, report, {name: t for name, t in known.items() if t is not None})
    typer.run(plain)
    rebuilder = Rebuilder(typer)
    rebuilder.rebuild(plain)
    if not report:
        rebuilder.report_open(plain)
    return {bare[site] for code, _, site, _ in report.found.values() if code == "unresolved" and site in bare}
