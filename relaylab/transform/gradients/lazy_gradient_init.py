"""LazyGradientInit: tensors of zeros and ones, of which gradients are full, are not made before they are read.

Inside a function every tensor is a cell of `gradient.rly`: a tensor, or zeros or ones to be made on demand. Sums and
products of cells know zeros and ones; other operators read their arguments. From outside nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from relaylab.ir.adt import Clause, Constructor, Match, map_pattern, pattern_vars
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, FunctionWithFields, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, op_name
from relaylab.ir.trail import derived, made_from
from relaylab.ir.types import FuncType, RefType, TensorType, TupleType, Type, TypeCall, TypeVar, renew_type, type_leaves
from relaylab.ir.visit import children, rewrite, walk
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import ModulePass, create, is_optimizable
from relaylab.transform.engine.renewal import accounted, copied

_LAZY = {"zeros": "Zero", "zeros_like": "Zero", "ones": "One", "ones_like": "One"}
_SUMS = {"add": "AddGradCell", "multiply": "MultiplyGradCell"}


class _Cells:
    """The data type of cells and its functions, and values in and out of it."""

    def __init__(self, mod: IRModule):
        self.header, *constructors = mod.get_type("GradCell")
        self.make = {cast(Constructor, c).name_hint: cast(Constructor, c) for c in constructors}
        self.mod, self.global_var = mod, mod.get_global_var

    def type(self, t: Type) -> Type:
        """The type with cells in the place of tensors; data types stay as they are declared."""

        def at(part: Type) -> Type | None:
            if isinstance(part, TensorType):
                return TypeCall(self.header, (part,))
            return None if isinstance(part, (TupleType, FuncType, RefType)) else part

        return renew_type(t, at)

    def into(self, value: Expr, t: Type | None) -> Expr:
        """A value of the type `t` with cells for its tensors."""
        match t:
            case TensorType():
                return Call(self.make["Raw"], (value,))
            case TupleType(fields=(_, *_)):
                return Tuple([self.into(TupleGetItem(value, i), f) for i, f in enumerate(t.fields)])
            case FuncType():
                params = [_param(i, self.type(p), t) for i, p in enumerate(t.arg_types)]
                args = [self.out_of(v, p) for v, p in zip(params, t.arg_types)]
                return _wrapped(
                    value, lambda f: Function(params, self.into(Call(f, args), t.ret_type), None, t.type_params)
                )
            case _:
                return self._same(value, t)

    def out_of(self, value: Expr, t: Type | None) -> Expr:
        """A value with cells as one of the type `t`."""
        match t:
            case TensorType():
                return Call(self.global_var("FromGradCell"), (value,), None, (t,))
            case TupleType(fields=(_, *_)):
                return Tuple([self.out_of(TupleGetItem(value, i), f) for i, f in enumerate(t.fields)])
            case FuncType():
                params = [_param(i, p, t) for i, p in enumerate(t.arg_types)]
                args = [self.into(v, p) for v, p in zip(params, t.arg_types)]
                return _wrapped(
                    value, lambda f: Function(params, self.out_of(Call(f, args), t.ret_type), None, t.type_params)
                )
            case _:
                return self._same(value, t)

    def _same(self, value: Expr, t: Type | None) -> Expr:
        if t is not None and self.type(t) is not t:
            raise RelayValueError(
                f"a {t} cannot go in or out of a function",
                code="pass.lazy-reference",
                help="LazyGradientInit keeps references to tensors within one function",
            )
        return value


def _generic(t: Type, known: tuple[TypeVar, ...] = ()) -> bool:
    return any(isinstance(part, TypeVar) and part not in known for part in type_leaves(t))


def _param(i: int, t: Type, of: FuncType) -> Var:
    """A parameter of a function of the type `of`; what stands for type variables of others is inferred."""
    return Var(f"x{i}", None if _generic(t, of.type_params) else t)


def _wrapped(value: Expr, wrap: Callable[[Expr], Expr]) -> Expr:
    """A function around a function value, which is computed before it, not at each of its calls."""
    if isinstance(value, (Var, GlobalVar, Constructor, Op, Function)):
        return wrap(value)
    name = Var("f")
    return Let(name, value, wrap(name))


class _Lazy:
    """Rewrites one typed function."""

    def __init__(self, func: Function, cells: _Cells):
        self.func, self.cells = func, cells
        self.memo: dict[Expr, Expr] = {}

    def run(self) -> Function:
        for node in walk((self.func,)):
            for var in bound_by(node):
                t = type_of(var)
                if t is not None and self.cells.type(t) is not t:
                    self.memo[var] = copied(Var(var.name_hint, self.cells.type(t), span=var.span), var)
        inside = {p: self.memo.setdefault(p, p) for p in self.func.params}
        body = rewrite(self.func.body, self._at, keep=_is_kernel, memo=self.memo)
        whole = type_of(self.func)  # a body that is the name of another function has no type of its own
        result = whole.ret_type if isinstance(whole, FuncType) else type_of(self.func.body)
        with made_from(self.func.body):
            plain = accounted(self.cells.out_of(body, result), self.func.body, stop=(body,))
        for param, cell in reversed(inside.items()):
            if isinstance(cell, Var) and cell is not param:
                with made_from(param):
                    plain = Let(cell, accounted(self.cells.into(param, type_of(param)), param), plain)
                    copied(plain, param)
        return derived(FunctionWithFields(self.func, body=plain), self.func)

    def _at(self, new: Expr, old: Expr) -> Expr:
        return accounted(self._changed(new, old), old, stop=(new, *children(new)))

    def _changed(self, new: Expr, old: Expr) -> Expr:
        match old, new:
            case Constant(), _:
                return self.cells.into(old, type_of(old))
            case GlobalVar(), _:
                func = self.cells.mod.functions.get(old)
                return self.cells.into(old, type_of(old) or (func and type_of(func)))
            case Call(), Call():
                return self._call(new, old)
            case Let(value=Constructor(belong_to=header)), Let() if not self.cells.mod[header].type_vars:
                return Let(new.var, self.cells.into(old.value, type_of(old.var)), new.body, span=new.span)
            case Let(value=Function() as kernel), Let() if _is_kernel(kernel):  # as PartialEvaluate names them
                return Let(new.var, self.cells.into(kernel, type_of(old.var)), new.body, span=new.span)
            case If(), If():
                cond = self.cells.out_of(new.cond, type_of(old.cond))
                return If(cond, new.true_branch, new.false_branch, span=new.span)
            case Match(), Match():
                return self._match(new, old)
            case Function(), Function() if not _is_kernel(old):
                ret = None if new.ret_type is None else self.cells.type(new.ret_type)
                return FunctionWithFields(new, ret_type=ret)
            case _:
                return new

    def _call(self, new: Call, old: Call) -> Expr:
        op = old.op
        direct = isinstance(op, (Op, Constructor, GlobalVar)) or (isinstance(op, Function) and _is_kernel(op))
        types, name = [type_of(a) for a in old.args], op_name(old)
        if not direct:
            return self._closure(new, old, types)
        if name in _SUMS and types[0] == types[1] == type_of(old):
            return self._sum(new, old, _SUMS[name])
        names = (Constructor, GlobalVar)  # as arguments they are what they were
        args = [b if isinstance(b, names) else self.cells.out_of(a, t) for a, b, t in zip(new.args, old.args, types)]
        plain = Call(op, args, old.attrs, old.type_args, span=new.span)
        if name in _LAZY:
            return Call(self.cells.make[_LAZY[name]], (Function((), plain, type_of(old)),), span=new.span)
        return self.cells.into(plain, type_of(old))

    def _closure(self, new: Call, old: Call, types: Sequence[Type | None]) -> Expr:
        """A call of a function value: where its type has variables, these stand for ordinary types."""
        known = type_of(old.op)
        if not isinstance(known, FuncType) or not known.type_params:
            return Call(new.op, new.args, new.attrs, (), span=new.span)
        into, out_of = self.cells.into, self.cells.out_of
        declared = zip(new.args, types, known.arg_types)
        args = [into(out_of(a, t), p) if _generic(p) else a for a, t, p in declared]
        made = Call(new.op, args, new.attrs, new.type_args, span=new.span)
        return into(out_of(made, known.ret_type), type_of(old)) if _generic(known.ret_type) else made

    def _sum(self, new: Call, old: Call, name: str) -> Expr:
        t = cast(Type, type_of(old))
        a, b = Var("a", t), Var("b", t)
        by = Function((a, b), Call(old.op, (a, b), old.attrs), t)
        return Call(self.cells.global_var(name), (by, *new.args), None, (t,), span=new.span)

    def _match(self, new: Match, old: Match) -> Expr:
        """Patterns take data apart, which holds ordinary tensors: the variables are cells from there on."""
        clauses: list[Clause] = []
        for clause, before in zip(new.clauses, old.clauses):
            plain = {v: v for v in pattern_vars(clause.lhs)}
            body = clause.rhs
            for v, was in zip(pattern_vars(clause.lhs), pattern_vars(before.lhs)):
                if v is not was:
                    plain[v] = Var(v.name_hint, type_of(was), span=v.span)
                    body = Let(v, self.cells.into(plain[v], type_of(was)), body)
            clauses.append(Clause(map_pattern(clause.lhs, lambda v, known=plain: known[v]), body))
        return Match(self.cells.out_of(new.data, type_of(old.data)), clauses, new.complete, span=new.span)


def _is_kernel(node: Expr) -> bool:
    return isinstance(node, Function) and bool(node.is_primitive or node.attr("Compiler"))


@pass_(level=2)
class LazyGradientInit(ModulePass):
    """Makes tensors of zeros and ones only where they are read; the signatures of functions stay."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        mod = create("InferType")(mod)
        new = mod.shallow_copy()
        new.import_from_std("gradient.rly")
        origin = next(iter(mod.functions.values()), None)
        cells, lazy = _Cells(new), dict[GlobalVar, Function]()
        library = {*_SUMS.values(), "FromGradCell"}
        for gv, func in new.functions.items():
            kept = gv.name_hint in library or not is_optimizable(func) or func.is_primitive
            lazy[gv] = func if kept else _Lazy(func, cells).run()
        after = create("InferType")(new.with_functions(lazy))
        for gv, func in after.functions.items():
            if origin is not None and gv.name_hint in library:
                for node in walk((func,)):
                    copied(node, origin)  # the library's nodes come from none of the program
        return after
