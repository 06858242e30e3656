"""Continuation-passing style: what is done with a result is a function that the callee is given (Plotkin, 1975).

Every function gets a parameter `k` of the type `fn (result) -> answer` and returns what `k` makes of its result;
`answer` is one more type parameter. Operators, constructors and kernels are called as before. Built on A-normal form.
"""

from __future__ import annotations

from typing import NamedTuple

from relaylab.ir.adt import Clause, Constructor, Match, map_pattern
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, FunctionWithFields, GlobalVar, If, Let, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, Type, TypeVar, renew_type, substitute_type
from relaylab.ir.visit import children, let_chain, rebuild, walk
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.conversions import Conversions, refuse_data_with_functions
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.normal_forms.eta_expand import with_lambdas


class _Block(NamedTuple):
    """A body, a branch or a clause, with the variable of the continuation that takes its value."""

    body: Expr
    k: Var


def cps_type(t: Type, answer: Type) -> Type:
    """The type with a continuation added to every function type in it."""

    def with_continuation(t: Type) -> Type:
        if not isinstance(t, FuncType):
            return t
        return FuncType((*t.arg_types, FuncType((t.ret_type,), answer)), answer, t.type_params)

    return renew_type(t, lambda part: None, with_continuation)


class _Globals(Conversions):
    """The functions of a module in continuation-passing style."""

    def direct(self, callee: Expr) -> bool:
        """Whether a call of it takes no continuation."""
        if isinstance(callee, GlobalVar):
            return callee not in self.mod.functions or _foreign(self.mod.functions[callee])
        return isinstance(callee, (Op, Constructor)) or (isinstance(callee, Function) and _foreign(callee))


class _Converter:
    """Converts one function; blocks are found from outside in, and built from inside out."""

    def __init__(self, func: Function, known: _Globals):
        self.globals, self.answer = known, TypeVar("answer")
        self.func = typed(name_values(with_lambdas(func, known.mod)), known.mod)
        refuse_data_with_functions(self.func)
        self.vars: dict[Expr, Var] = {}
        self.k: dict[Expr, Var] = {}
        self.built: dict[_Block, Expr] = {}

    def run(self) -> Function:
        for var in {v: None for n in walk((self.func,)) for v in bound_by(n)}:
            t = type_of(var)
            self.vars[var] = var if t is None or (new := cps_type(t, self.answer)) is t else Var(var.name_hint, new)
        blocks = self._blocks()
        for block in reversed(blocks):
            self.built[block] = self._block(*block)
        made = self._function(self.func)
        return FunctionWithFields(made, ty_params=(*self.func.type_params, self.answer))

    def _blocks(self) -> list[_Block]:
        """All blocks, each after the one that it stands in."""
        found = [self._enter(self.func)]
        for body, k in found:
            lets, tail = let_chain(body)
            for let in lets:
                value = let.value
                if isinstance(value, Function) and not _foreign(value):
                    found.append(self._enter(value))
                elif isinstance(value, (If, Match)):
                    self.k[value] = k if let is lets[-1] and let.var is tail else self._continuation(value)
                    found += [_Block(b, self.k[value]) for b in _branches(value)]
        return found

    def _enter(self, func: Function) -> _Block:
        self.k[func] = self._continuation(func.body)
        return _Block(func.body, self.k[func])

    def _continuation(self, value: Expr) -> Var:
        t = type_of(value)
        return Var("k", None if t is None else FuncType((cps_type(t, self.answer),), self.answer))

    def _block(self, body: Expr, k: Var) -> Expr:
        lets, tail = let_chain(body)
        last = lets[-1] if lets else None
        if last is not None and last.var is tail and self._is_serious(last.value):
            done = self._serious(last.value, k)  # a tail call passes its own continuation on
            lets.pop()
        else:
            done = Call(k, (self._simple(tail),))
        for let in reversed(lets):
            var = self.vars[let.var]
            if not self._is_serious(let.value):
                done = Let(var, self._value(let.value), done)
                continue
            rest = Function((var,), done, self.answer)
            if isinstance(let.value, Call):
                done = self._serious(let.value, rest)
            else:
                done = Let(self.k[let.value], rest, self._serious(let.value, self.k[let.value]))
        return done

    def _is_serious(self, value: Expr) -> bool:
        """Whether the value reaches what comes after it through a continuation."""
        return isinstance(value, (If, Match)) or (isinstance(value, Call) and not self.globals.direct(value.op))

    def _serious(self, value: Expr, k: Expr) -> Expr:
        match value:
            case If():
                return If(self._simple(value.cond), *(self.built[_Block(b, self.k[value])] for b in _branches(value)))
            case Match():
                built = [self.built[_Block(b, self.k[value])] for b in _branches(value)]
                patterns = (map_pattern(c.lhs, lambda v: self.vars[v]) for c in value.clauses)
                clauses = [Clause(p, b) for p, b in zip(patterns, built)]
                return Match(self._simple(value.data), clauses, value.complete)
            case _:
                return self._call(value, k)

    def _call(self, call: Expr, k: Expr) -> Expr:
        assert isinstance(call, Call)
        op, types = self._simple(call.op), [cps_type(t, self.answer) for t in call.type_args or ()]
        if isinstance(call.op, GlobalVar):
            op = self.globals.name(call.op)
            types = [*types, self.answer] if len(types) == len(self._type_params(call.op)) else []
        return Call(op, (*map(self._simple, call.args), k), None, types)

    def _type_params(self, gv: GlobalVar) -> tuple[TypeVar, ...]:
        return self.globals.mod.functions[gv].type_params

    def _value(self, value: Expr) -> Expr:
        if isinstance(value, Function):
            return self._kernel(value) if _foreign(value) else self._function(value)
        new = rebuild(self._simple(value), [self._simple(c) for c in children(value)])
        if isinstance(new, Call) and new.type_args:
            return Call(new.op, new.args, new.attrs, [cps_type(t, self.answer) for t in new.type_args])
        return new

    def _function(self, func: Function) -> Function:
        params, k = [self.vars[p] for p in func.params], self.k[func]
        return Function((*params, k), self.built[_Block(func.body, k)], self.answer, func.type_params, func.attrs)

    def _kernel(self, func: Function) -> Function:
        """A function around a kernel, which knows no continuations."""
        params, k = [Var(p.name_hint, p.type_annotation) for p in func.params], self._continuation(func.body)
        return Function((*params, k), Call(k, (Call(func, params),)), self.answer, func.type_params)

    def _simple(self, atom: Expr) -> Expr:
        return self.vars.get(atom, atom)


def _branches(value: If | Match) -> tuple[Expr, ...]:
    return (value.true_branch, value.false_branch) if isinstance(value, If) else tuple(c.rhs for c in value.clauses)


def _foreign(func: Function) -> bool:
    return bool(func.is_primitive or func.attr("Compiler") or func.attr("Extern", 0))


@checked
def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """A function in continuation-passing style: it takes a function `k` more, and returns what `k` makes of its result.

    The functions of `mod` that it calls are converted too, and put into `mod` under their names with `_cps`. Raises
    `DiagnosticError` for a program that has no types, `RelayValueError` if a data type is declared to hold functions.
    """
    known = _Globals(IRModule() if mod is None else mod, "cps")
    made = _Converter(func, known).run()
    known.finish(lambda callee: _Converter(callee, known).run())
    return made


@checked
def ToCPS(expr: Function, mod: IRModule | None = None) -> Function:
    """A function in continuation-passing style: the same as `to_cps`."""
    return to_cps(expr, mod)


@checked
def un_cps(func: Function) -> Function:
    """The function of ordinary style that calls one in continuation-passing style and returns its result.

    Raises `RelayTypeError` for a function whose last parameter is no continuation.
    """
    k = type_of(func.params[-1]) if func.params else None
    if (
        not isinstance(k, FuncType)
        or len(k.arg_types) != 1
        or not func.type_params
        or k.ret_type != func.type_params[-1]
    ):
        raise RelayTypeError(
            "the last parameter of this function is no continuation fn (result) -> answer",
            code="cps.no-continuation",
            help="give what to_cps returned",
        )
    own = [TypeVar(t.name_hint, t.kind) for t in func.type_params[:-1]]
    change: dict[Type, Type] = dict(zip(func.type_params, own))
    renew = lambda t: substitute_type(t, change)
    result = renew(k.arg_types[0])
    params = [Var(p.name_hint, None if (t := type_of(p)) is None else renew(t)) for p in func.params[:-1]]
    x = Var("x", result)
    call = Call(func, (*params, Function((x,), x, result)), None, (*own, result))
    return Function(params, call, result, own)
