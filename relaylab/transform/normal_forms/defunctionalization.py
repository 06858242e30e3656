"""Defunctionalization: function values become data, and calling one a match on it (Reynolds, 1972).

First every polymorphic function is copied for the types that it is called with. Then each type of functions becomes a
data type with a constructor for every lambda, which holds what the lambda captured, and a function that applies it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, cast

from relaylab.analysis.kind import constructor_type
from relaylab.ir.adt import Clause, Constructor, Match, PatternConstructor, PatternVar
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, FunctionWithFields, GlobalVar, Let, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply, NameSupply
from relaylab.ir.op import Op
from relaylab.ir.types import (
    FuncType,
    GlobalTypeVar,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    renew_type,
    substitute_type,
    type_leaves,
    type_parts,
    type_text,
)
from relaylab.ir.visit import walk
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.conversions import refuse_data_with_functions
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.renewal import as_function, renewed, rewrite_function
from relaylab.transform.normal_forms.eta_expand import with_lambdas
from relaylab.transform.normal_forms.lambda_lift import free_variables


def _refused(what: str, help: str) -> RelayValueError:
    return RelayValueError(what, code="defunctionalize.refused", help=help)


def _is_function(t: Type | None) -> bool:
    return isinstance(t, FuncType)


def _foreign(func: Function) -> bool:
    return bool(func.is_primitive or func.attr("Compiler") or func.attr("Extern", 0))


def _with_types(func: Function, change: Mapping[Type, Type]) -> Function:
    """A copy of a typed function with type variables replaced, in annotations and type arguments too."""
    renew = lambda t: None if t is None else substitute_type(t, change)
    memo: dict[Expr, Expr] = {}
    for node in walk((func,)):
        for v in bound_by(node):
            memo.setdefault(v, Var(v.name_hint, renew(type_of(v)), span=v.span))

    def at(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and new.type_args:
            return Call(new.op, new.args, new.attrs, [substitute_type(t, change) for t in new.type_args], span=new.span)
        return FunctionWithFields(new, ret_type=renew(new.ret_type)) if isinstance(new, Function) else new

    made = rewrite_function(func, at, memo=memo)
    return FunctionWithFields(made, ty_params=[v for v in func.type_params if v not in change])


class _Monomorphic:
    """Copies of polymorphic functions, one for each list of type arguments."""

    def __init__(self, mod: IRModule):
        self.mod, self.supply = mod, GlobalVarSupply(mod)
        self.names: dict[tuple[GlobalVar, tuple[Type, ...]], GlobalVar] = {}
        self.made: dict[GlobalVar, Function] = {}

    def run(self, func: Function) -> Function:
        """`func` calling copies without type parameters."""
        func = self._function(func, ())
        for (gv, types), name in (waiting := list(self.names.items())):
            self.made[name] = self._function(self.mod.functions[gv], types)
            waiting.extend(list(self.names.items())[len(waiting) :])
        return func

    def _function(self, func: Function, types: tuple[Type, ...]) -> Function:
        func = _with_types(func, dict(zip(func.type_params, types)))
        kernel = lambda n: isinstance(n, Function) and _foreign(n)
        func = typed(self._without_polymorphic_lets(with_lambdas(typed(func, self.mod), self.mod)), self.mod)
        func = typed(rewrite_function(func, self._instantiated, kernel), self.mod)
        return rewrite_function(func, self._named, kernel)

    def _without_polymorphic_lets(self, func: Function) -> Function:
        """A lambda with type parameters stands where it is used, so that each use has its own types."""

        def bind(let: Let, value: Expr, recursive: bool) -> Expr | None:
            return value if isinstance(value, Function) and value.type_params and not recursive else None

        return as_function(rewrite_lets(func, lambda new, old: new, bind))

    def _instantiated(self, new: Expr, old: Expr) -> Expr:
        """A call whose lambdas have the types that the call asks for."""
        if not isinstance(new, Call) or not isinstance(old, Call) or isinstance(new.op, Op):
            return new
        op, expected = new.op, self._type(old.op)
        if isinstance(expected, FuncType) and expected.type_params:
            expected = expected.instantiate(new.type_args or ())
        if isinstance(op, Function) and op.type_params:
            op = _with_types(op, dict(zip(op.type_params, new.type_args or ())))
        wanted = expected.arg_types if isinstance(expected, FuncType) else ()
        args = [_as_type(a, t) for a, t in zip(new.args, wanted)] or new.args
        types = new.type_args if isinstance(op, (GlobalVar, Constructor)) else None
        return Call(op, args, new.attrs, types, span=new.span)

    def _named(self, new: Expr, old: Expr) -> Expr:
        """A call of the copy for its type arguments."""
        if isinstance(new, Call) and isinstance(new.op, GlobalVar) and new.op in self.mod.functions:
            return Call(self._name(new.op, new.type_args or ()), new.args, new.attrs, span=new.span)
        return new

    def _type(self, callee: Expr) -> Type | None:
        if isinstance(callee, Constructor):
            return constructor_type(callee, self.mod)
        func = self.mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
        return type_of(callee) if func is None else func.annotated_type() or func.inferred

    def _name(self, gv: GlobalVar, types: tuple[Type, ...]) -> GlobalVar:
        if _foreign(self.mod.functions[gv]):
            return gv
        if (gv, types) not in self.names:
            words = "".join(re.sub(r"\W+", "_", type_text(t)).strip("_") for t in types)
            self.names[gv, types] = self.supply.fresh_global(f"{gv.name_hint}_{words}" if words else gv.name_hint)
        return self.names[gv, types]


def _as_type(value: Expr, wanted: Type) -> Expr:
    """A polymorphic lambda for the types that its place has."""
    if not isinstance(value, Function) or not value.type_params or not isinstance(wanted, FuncType):
        return value
    found: dict[Type, Type] = {}
    stack: list[tuple[Type | None, Type]] = [
        (type_of(p) or p.type_annotation, t) for p, t in zip(value.params, wanted.arg_types)
    ]
    stack.append((value.ret_type, wanted.ret_type))
    while stack:
        have, want = stack.pop()
        if isinstance(have, TypeVar):
            found.setdefault(have, want)
        elif have is not None:
            stack.extend(zip(type_parts(have), type_parts(want)))
    return _with_types(value, {v: found[v] for v in value.type_params if v in found})


class _Lambda(NamedTuple):
    """A function value: what makes it, what it captured, its name within itself, its code."""

    constructor: Constructor
    captured: tuple[Var, ...]
    own: Var | None
    func: Function


class _Kind:
    """A type of functions: the data type of its values and the function that applies them."""

    def __init__(self, number: int, typ: FuncType, supply: GlobalVarSupply, types: NameSupply):
        self.typ, self.lambdas = typ, list[_Lambda]()
        self.header = GlobalTypeVar(types.fresh_name(f"Function{number}"))
        self.apply = supply.fresh_global(f"apply_{self.header.name_hint}")
        self.stands_for = TypeCall(self.header, ())


class _Closures:
    """Turns the function values of monomorphic functions into data."""

    def __init__(self, mod: IRModule, supply: GlobalVarSupply):
        self.mod, self.supply = mod, supply
        self.types = NameSupply()
        for header in mod.type_definitions:
            self.types.reserve_name(header.name_hint)
            for ctor in mod[header].constructors:
                self.types.reserve_name(ctor.name_hint)
        self.kinds: dict[Type, _Kind] = {}
        self.vars: dict[Expr, Expr] = {}

    def type(self, t: Type) -> Type:
        """The type with data in the place of functions."""
        return renew_type(t, lambda part: self.kind(part).stands_for if isinstance(part, FuncType) else None)

    def kind(self, t: Type | None) -> _Kind:
        """What stands for a type of functions."""
        if not isinstance(t, FuncType) or t.type_params or any(isinstance(p, TypeVar) for p in type_leaves(t)):
            help = "give functions that are values one type each"
            raise _refused(f"a function of the type {t} is used as a value", help)
        if t not in self.kinds:
            self.kinds[t] = _Kind(len(self.kinds), t, self.supply, self.types)
        return self.kinds[t]

    def function(self, func: Function) -> Function:
        """A function without function values; what it captured is collected."""
        free = free_variables(func)
        names: dict[Expr, Var] = {n.value: n.var for n in walk((func,)) if isinstance(n, Let)}
        called = {n.op for n in walk((func,)) if isinstance(n, Call) and isinstance(n.op, Function)}
        for var in {v: None for n in walk((func,)) for v in bound_by(n)}:
            t = type_of(var) or var.type_annotation
            if t is not None and (new := self.type(t)) is not t:
                self.vars[var] = Var(var.name_hint, new, span=var.span)

        def at(new: Expr, old: Expr) -> Expr:
            if isinstance(new, Call) and isinstance(old, Call):
                return self._call(new, old)
            if not isinstance(new, Function) or _foreign(new):
                return new
            new = FunctionWithFields(new, ret_type=None if new.ret_type is None else self.type(new.ret_type))
            return new if old is func or old in called else self._value(new, old, free[old], names.get(old))

        return rewrite_function(func, at, lambda n: isinstance(n, Function) and _foreign(n), dict(self.vars))

    def _call(self, new: Call, old: Call) -> Expr:
        if isinstance(old.op, (Op, GlobalVar, Function)):
            return new
        types = [self.type(t) for t in new.type_args or ()]
        if isinstance(old.op, Constructor):
            return Call(new.op, new.args, new.attrs, types, span=new.span)
        return Call(self.kind(type_of(old.op)).apply, (new.op, *new.args), span=new.span)

    def _value(self, func: Function, old: Expr, free: tuple[Var, ...], own: Var | None) -> Expr:
        kind = self.kind(type_of(old))
        captured = tuple(cast(Var, self.vars.get(v, v)) for v in free if v is not own)
        types = [v.type_annotation or type_of(v) for v in captured]
        if any(t is None for t in types):
            raise _refused("a captured variable has no type", "run InferType first")
        name = self.types.fresh_name(f"Lambda{len(kind.lambdas)}_{kind.header.name_hint}")
        constructor = Constructor(name, cast("list[Type]", types), kind.header)
        itself = None if own is None else cast(Var, self.vars.get(own, own))
        kind.lambdas.append(_Lambda(constructor, captured, itself, func))
        return Call(constructor, captured, span=func.span)

    def define(self) -> None:
        """Put the data types and the functions that apply them into the module."""
        applied: list[Function] = []
        for kind in (waiting := list(self.kinds.values())):
            applied.append(self._apply(kind))  # which may speak of types of functions that no program makes
            waiting += list(self.kinds.values())[len(waiting) :]
        for kind in waiting:
            self.mod[kind.header] = TypeData(kind.header, (), [item.constructor for item in kind.lambdas])
        for kind, func in zip(waiting, applied):
            self.mod[kind.apply] = func

    def _apply(self, kind: _Kind) -> Function:
        given = Var("f", kind.stands_for)
        args = [Var(f"x{i}", self.type(t)) for i, t in enumerate(kind.typ.arg_types)]
        clauses: list[Clause] = []
        for constructor, captured, own, func in kind.lambdas:
            inner = [Var(v.name_hint, v.type_annotation) for v in captured]
            binds: dict[Expr, Expr] = {**dict(zip(captured, inner)), **dict(zip(func.params, args))}
            if own is not None:
                binds[own] = given
            clauses.append(Clause(PatternConstructor(constructor, map(PatternVar, inner)), renewed(func.body, binds)))
        # where no lambda has the type there is no value to call this with
        body = Match(given, clauses) if clauses else Call(kind.apply, (given, *args))
        return Function((given, *args), body, self.type(kind.typ.ret_type))


def _check_first_order(func: Function) -> None:
    stated = [*(p.type_annotation or type_of(p) for p in func.params), func.ret_type]
    if func.type_params or any(_is_function(p) for t in stated if t is not None for p in type_leaves(t)):
        raise _refused(
            "a function that takes or returns functions, or has type parameters, cannot be made first-order alone",
            "defunctionalize one that calls it with what it needs",
        )


@checked
def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """A function that calls and makes no function values, which computes what `func` computes.

    What it needs is put into `mod`: copies of the functions that it calls for the types that they are called with, a
    data type for each type of functions, whose constructors stand for lambdas, and a function that applies its values.
    Raises `RelayValueError` if `func` itself takes or returns functions, or has type parameters, or if a data type is
    declared to hold functions.
    """
    _check_first_order(func)
    copies = _Monomorphic(mod)
    plain = copies.run(func)
    known = mod.shallow_copy()
    known.functions.update(copies.made)
    made = {gv: typed(f, known) for gv, f in copies.made.items()}
    plain = typed(plain, known)
    for callee in (plain, *made.values()):
        refuse_data_with_functions(callee)
    closures = _Closures(mod, copies.supply)
    converted = {gv: closures.function(f) for gv, f in made.items()}
    result = closures.function(plain)
    closures.define()
    for gv, callee in converted.items():
        mod[gv] = callee
    return result
