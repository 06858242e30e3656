"""A second evaluator of whole programs, for the search: plain Python that walks the tree and goes as deep as it is.

    Walker(mod).run(array, …)

Tensors are arrays, tuples tuples, functions Python functions, cells lists of one element, data `(constructor, fields)`.
Operators mean what `support.plain` says. A node that is shared is evaluated once in each activation of its function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.plain import Values

from relaylab.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)

Env = dict[Any, Any]


class Walker:
    """Evaluates `main` of a typed module."""

    def __init__(self, mod: IRModule):
        self.mod = mod
        self.tensors = Values({}, wide="")

    def run(self, *arrays: Any) -> Any:
        return self.closure(self.mod["main"], {})(*arrays)

    def closure(self, func: Function, env: Env) -> Callable[..., Any]:
        bound = {k: v for k, v in env.items() if isinstance(k, Var)}

        def call(*args: Any) -> Any:
            return self.eval(func.body, {**bound, **dict(zip(func.params, args))})

        return call

    def eval(self, e: Expr, env: Env) -> Any:
        if e not in env:
            value = self.found(e, env)
            if isinstance(e, Var):
                return value
            env[e] = value
        return env[e]

    def found(self, e: Expr, env: Env) -> Any:
        match e:
            case Constant():
                return e.data.numpy()
            case Tuple():
                return tuple(self.eval(f, env) for f in e.fields)
            case TupleGetItem():
                return self.eval(e.tuple_value, env)[e.index]
            case Function():
                return self.closure(e, env)
            case GlobalVar():
                return self.closure(self.mod[e], {})
            case If():
                return self.eval(e.true_branch if self.eval(e.cond, env) else e.false_branch, env)
            case Let():
                return self.let(e, env)
            case Match():
                return self.match(e, env)
            case Call():
                return self.call(e, env)
            case RefCreate():
                return [self.eval(e.value, env)]
            case RefRead():
                return self.eval(e.ref, env)[0]
            case RefWrite():
                cell = self.eval(e.ref, env)
                cell[0] = self.eval(e.value, env)
                return ()
        raise TypeError(f"no meaning for {type(e).__name__}")

    def let(self, e: Let, env: Env) -> Any:
        if isinstance(e.value, Function):  # it may call itself by the variable's name
            func, bound = e.value, {k: v for k, v in env.items() if isinstance(k, Var)}

            def call(*args: Any) -> Any:
                return self.eval(func.body, {**bound, e.var: call, **dict(zip(func.params, args))})

            env[e.var] = call
        else:
            env[e.var] = self.eval(e.value, env)
        return self.eval(e.body, env)

    def match(self, e: Match, env: Env) -> Any:
        data = self.eval(e.data, env)
        for clause in e.clauses:
            if (bound := fits(clause.lhs, data)) is not None:
                env.update(bound)
                return self.eval(clause.rhs, env)
        raise ValueError("no clause fits")

    def call(self, e: Call, env: Env) -> Any:
        if isinstance(e.op, Op):
            return self.tensors.call(e, [self.eval(a, env) for a in e.args])
        if isinstance(e.op, Constructor):
            return e.op, [self.eval(a, env) for a in e.args]
        func = self.eval(e.op, env)
        return func(*[self.eval(a, env) for a in e.args])


def fits(pattern: Pattern, value: Any) -> Env | None:
    """What the variables of a pattern are bound to; None if it does not fit."""
    if isinstance(pattern, PatternVar):
        return {pattern.var: value}
    if isinstance(pattern, PatternConstructor):
        constructor, parts = value
        if constructor is not pattern.constructor and constructor != pattern.constructor:
            return None
        inside = zip(pattern.patterns or (), parts)
    elif isinstance(pattern, PatternTuple):
        inside = zip(pattern.patterns, value)
    else:
        return {}
    bound: Env = {}
    for p, v in inside:
        more = fits(p, v)
        if more is None:
            return None
        bound |= more
    return bound
