"""Seeded random Relay programs that are well-typed by construction, for the property tests of every room.

    from support.programs import FEATURES, random_program

    @pytest.mark.parametrize("seed", range(30))
    def test_pass(seed):
        mod = random_program(seed)                      # a typed module

    random_program(7)                                   # every feature, typed
    random_program(7, features={"graph", "let"})        # first-order straight-line programs
    random_program(7, features=FEATURES - {"ref"})      # pure programs
    random_program(7, size=40, typed=False)             # larger; as built, before InferType

`main` takes float32 tensors and one int32 scalar; `relaylab.interp.random_inputs(mod["main"], seed)`
makes its arguments. Values stay small and finite, conditions are made of integers only, so results
may be compared with a tolerance after any reordering of float arithmetic.

Features
    graph      shared nodes (several users of one expression, also across scopes)
    let        let-bound values
    if         branches on integer conditions
    tuple      tuples, projections, operators that return tuples
    closure    functions as values that capture variables or shared nodes
    function   global functions, called from main and from each other
    poly       a polymorphic global function
    recursion  recursive closures with a counter
    adt        a data type, its constructors and matches
    ref        cells that are written and read in the order of lets
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.analysis import infer_module
from relaylab.ir import (
    OPERATORS,
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    const,
)
from relaylab.op.base import call_operator

FEATURES = frozenset({"graph", "let", "if", "tuple", "closure", "function", "poly", "recursion", "adt", "ref"})
INT = TensorType((), "int32")
SHAPES = [(), (3,), (1, 3), (2, 1), (2, 3)]
"""All shapes that occur; each broadcasts with each, and the result is again one of them."""
UNARY = ["negative", "abs", "tanh", "sigmoid", "nn.relu", "cos", "sin", "floor", "copy"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
BOX = GlobalTypeVar("Box")
ITEM = TypeVar("T")
EMPTY = Constructor("Empty", [], BOX)
ONE = Constructor("Single", [ITEM], BOX)
PAIR = Constructor("Pair", [ITEM, ITEM], BOX)


def random_program(seed: int, size: int = 12, features: Iterable[str] = FEATURES, typed: bool = True) -> IRModule:
    """A module with a function `main`; the same for the same arguments. `size` bounds the steps of each body."""
    return drawn_program(np.random.default_rng(seed), size, features, typed)


def drawn_program(rng: Any, size: int = 12, features: Iterable[str] = FEATURES, typed: bool = True) -> IRModule:
    """The module that a generator, or what draws like one, gives."""
    mod = ProgramMaker(rng, size, frozenset(features)).module()
    return infer_module(mod) if typed else mod


def programs(count: int, size: int = 12, features: Iterable[str] = FEATURES, typed: bool = True) -> list[IRModule]:
    """`count` programs with the seeds 0, 1 …"""
    return [random_program(seed, size, features, typed) for seed in range(count)]


Scope = list[tuple[Expr, Type]]


class ProgramMaker:
    """Grows programs: a body extends its scope step by step, then makes a value of the wanted type from it."""

    def __init__(self, rng: Any, size: int, features: frozenset[str]):
        self.rng, self.size, self.features = rng, size, features
        self.mod = IRModule()
        self.names = 0
        self.calls: list[tuple[GlobalVar, list[Type], Type]] = []

    # ---- drawing

    def draw(self, items: list):
        return items[int(self.rng.integers(len(items)))]

    def shape(self) -> TensorType:
        return TensorType(self.draw(SHAPES))

    def var(self, t: Type | None, stem: str = "v") -> Var:
        self.names += 1
        return Var(f"{stem}{self.names}", t)

    def constant(self, t: TensorType) -> Expr:
        if t.dtype == "int32":
            return const(self.rng.integers(-2, 4, t.concrete_shape).astype("int32"))
        return const(self.rng.uniform(-1, 1, t.concrete_shape).astype("float32"))

    def pick(self, scope: Scope, t: Type) -> Expr:
        """A value of type `t`: from the scope, or a new constant."""
        found = [e for e, u in scope if u == t]
        if found and (not isinstance(t, TensorType) or self.rng.random() < 0.9):
            return self.draw(found[-6:])
        return self.constant(t)  # type: ignore[arg-type]

    def tensor(self, scope: Scope) -> tuple[Expr, TensorType]:
        """Any float tensor of the scope, recent ones first."""
        found = [(e, t) for e, t in scope if isinstance(t, TensorType) and t.dtype == "float32"]
        return self.draw(found[-8:]) if found else (self.constant(t := self.shape()), t)

    def coerce(self, scope: Scope, t: TensorType) -> Expr:
        """A value of type `t` that depends on a recent value of the scope if shapes allow."""
        value, found = self.tensor(scope)
        if found == t:
            return value
        if broadcast(found, t) == t:
            return call_operator("add", value, self.pick(scope, t))
        return call_operator("tanh", self.pick(scope, t))

    def condition(self, scope: Scope) -> Expr:
        return call_operator(self.draw(["less", "greater", "equal"]), self.pick(scope, INT), self.constant(INT))

    # ---- bodies

    def body(self, scope: Scope, want: TensorType, steps: int, depth: int) -> Expr:
        """An expression of type `want` over the variables of `scope`."""
        scope = list(scope)
        lets: list[tuple[Var, Expr]] = []
        for _ in range(steps):
            self.step(scope, lets, depth)
        result = self.coerce(scope, want)
        for var, value in reversed(lets):
            result = Let(var, value, result)
        return result

    def step(self, scope: Scope, lets: list, depth: int) -> None:
        made = self.draw(self.makers(depth))(scope, lets, depth)
        if made is None:
            return
        value, t = made
        if "let" in self.features and (not {"graph"} & self.features or self.rng.random() < 0.4):
            var = self.var(t if self.rng.random() < 0.5 else None)
            lets.append((var, value))
            value = var
        scope.append((value, t))

    def makers(self, depth: int) -> list[Callable]:
        out: list[Callable] = [self.unary, self.binary, self.binary, self.integer, self.shaped]
        deep = {"if": self.branch, "closure": self.closure, "recursion": self.recursion, "adt": self.match}
        flat = {"tuple": self.tuple, "function": self.call, "poly": self.identity}
        out += [m for f, m in flat.items() if f in self.features]
        if depth > 0:
            out += [m for f, m in deep.items() if f in self.features]
            out += [self.cell] if "ref" in self.features else []
        return out

    # ---- steps: each gives a value and its type, or None

    def unary(self, scope: Scope, lets: list, depth: int):
        value, t = self.tensor(scope)
        return call_operator(self.draw(known(UNARY)), value), t

    def binary(self, scope: Scope, lets: list, depth: int):
        (a, t), (b, u) = self.tensor(scope), self.tensor(scope)
        value = call_operator(self.draw(known(BINARY)), a, b)
        return call_operator("tanh", value), broadcast(t, u)

    def integer(self, scope: Scope, lets: list, depth: int):
        return call_operator(self.draw(["add", "subtract"]), self.pick(scope, INT), self.constant(INT)), INT

    def shaped(self, scope: Scope, lets: list, depth: int):
        value, t = self.tensor(scope)
        rank = len(t.shape)
        if rank == 0:
            return None
        kind = self.draw(["sum", "mean", "max", "concatenate", "dense"])
        if kind == "concatenate" and t.shape == (1, 3):
            return call_operator("concatenate", Tuple([value, self.pick(scope, t)]), axis=0), TensorType((2, 3))
        if kind == "dense" and t.shape == (2, 3):
            return call_operator(
                "tanh", call_operator("nn.dense", value, self.constant(TensorType((3, 3))), units=None)
            ), t
        if rank == 2 and kind in ("sum", "mean", "max"):
            kept = call_operator(kind, value, axis=[1], keepdims=True)
            return kept, TensorType((t.shape[0], 1)) if t.shape[0] == 2 else TensorType((1, 1))
        return call_operator("max", value), TensorType(())

    def tuple(self, scope: Scope, lets: list, depth: int):
        (a, t), (b, u) = self.tensor(scope), self.tensor(scope)
        if t.shape == (2, 3) and self.rng.random() < 0.5:
            return TupleGetItem(
                call_operator("split", a, indices_or_sections=2, axis=0), int(self.rng.integers(2))
            ), TensorType((1, 3))
        both = Tuple([a, Tuple([b, self.pick(scope, INT)])])
        if "let" in self.features and self.rng.random() < 0.5:
            var = self.var(None, "t")
            lets.append((var, both))
            both = var  # type: ignore[assignment]
        return (TupleGetItem(both, 0), t) if self.rng.random() < 0.5 else (TupleGetItem(TupleGetItem(both, 1), 0), u)

    def branch(self, scope: Scope, lets: list, depth: int):
        want, cond = self.shape(), self.condition(scope)
        return If(cond, self.inner(scope, want, depth), self.inner(scope, want, depth)), want

    def inner(self, scope: Scope, want: TensorType, depth: int) -> Expr:
        return self.body(scope, want, int(self.rng.integers(1, 1 + max(2, self.size // 3))), depth - 1)

    def closure(self, scope: Scope, lets: list, depth: int):
        takes, gives = self.shape(), self.shape()
        param = self.var(takes, "p")
        func: Expr = Function(
            [param], self.inner([*scope, (param, takes)], gives, depth), gives if self.rng.random() < 0.5 else None
        )
        if "let" in self.features and self.rng.random() < 0.7:
            name = self.var(None, "f")
            lets.append((name, func))
            func = name
        value = Call(func, [self.pick(scope, takes)])
        return (Call(func, [self.coerce([(value, gives)], takes)]) if self.rng.random() < 0.3 else value), gives

    def recursion(self, scope: Scope, lets: list, depth: int):
        t = self.shape()
        loop, count, state = self.var(None, "loop"), self.var(INT, "i"), self.var(t, "s")
        inner = self.body([*scope, (count, INT), (state, t)], t, 2, 0)
        again = Call(loop, [call_operator("subtract", count, const(1)), inner])
        func = Function([count, state], If(call_operator("less", count, const(1)), state, again), t)
        run = Call(loop, [const(int(self.rng.integers(0, 4))), self.pick(scope, t)])
        return Let(loop, func, run), t

    def match(self, scope: Scope, lets: list, depth: int):
        t, want = self.shape(), self.shape()
        made: Expr = self.draw(
            [lambda: One(self.pick(scope, t)), lambda: Pair(self.pick(scope, t), self.pick(scope, t))]
        )()
        if self.rng.random() < 0.5:
            made = If(self.condition(scope), made, EMPTY())
        a, b, c = self.var(None, "a"), self.var(None, "b"), self.var(None, "c")
        clauses = [
            Clause(
                PatternConstructor(PAIR, [PatternVar(a), PatternVar(b)]),
                self.body([*scope, (a, t), (b, t)], want, 2, 0),
            ),
            Clause(PatternConstructor(ONE, [PatternVar(c)]), self.body([*scope, (c, t)], want, 2, 0)),
            Clause(
                PatternWildcard() if self.rng.random() < 0.5 else PatternConstructor(EMPTY, []),
                self.inner(scope, want, depth),
            ),
        ]
        return Match(made, clauses), want

    def cell(self, scope: Scope, lets: list, depth: int):
        t = self.shape()
        ref, done, seen = self.var(None, "r"), self.var(None, "u"), self.var(None, "s")
        later = call_operator("tanh", call_operator("add", RefRead(ref), self.pick(scope, t)))
        write: Expr = RefWrite(ref, later)
        if self.rng.random() < 0.4:
            write = If(self.condition(scope), write, RefWrite(ref, self.pick(scope, t)))
        last = call_operator("add", RefRead(ref), seen)
        return Let(ref, RefCreate(self.pick(scope, t)), Let(seen, RefRead(ref), Let(done, write, last))), t

    def call(self, scope: Scope, lets: list, depth: int):
        if not self.calls:
            return None
        gv, takes, gives = self.draw(self.calls)
        return Call(gv, [self.pick(scope, t) for t in takes]), gives

    def identity(self, scope: Scope, lets: list, depth: int):
        value, t = self.draw(scope[-6:])
        return Call(self.mod.get_global_var("id"), [value]), t

    # ---- modules

    def module(self) -> IRModule:
        if "adt" in self.features:
            self.mod[BOX] = TypeData(BOX, [ITEM], [EMPTY, ONE, PAIR])
        if "poly" in self.features:
            a = TypeVar("A")
            x = Var("x", a)
            self.mod[GlobalVar("id")] = Function([x], x, a, [a])
        for k in range(int(self.rng.integers(1, 4)) if "function" in self.features else 0):
            self.function(f"f{k}")
        self.function("main")
        return self.mod

    def function(self, name: str) -> None:
        takes: list[Type] = [self.shape() for _ in range(int(self.rng.integers(1, 4)))]
        takes.append(INT)
        gives = TensorType((2, 3)) if name == "main" else self.shape()
        params = [self.var(t, "x") for t in takes]
        steps = self.size if name == "main" else max(2, self.size // 3)
        body = self.body(list(zip(params, takes)), gives, steps, 2 if name == "main" else 1)
        gv = GlobalVar(name)
        self.mod[gv] = Function(params, body, gives if self.rng.random() < 0.5 else None)
        self.calls.append((gv, takes, gives))


def known(names: list[str]) -> list[str]:
    """Those of the operators that are registered."""
    return [n for n in names if n in OPERATORS]


def broadcast(t: TensorType, u: TensorType) -> TensorType:
    """The type of an elementwise operator on two tensors."""
    return TensorType(np.broadcast_shapes(t.concrete_shape, u.concrete_shape))


def One(x: Expr) -> Call:
    return Call(ONE, [x])


def Pair(x: Expr, y: Expr) -> Call:
    return Call(PAIR, [x, y])


def box_of(t: Type) -> TypeCall:
    """`Box[t]`, the data type of the programs."""
    return TypeCall(BOX, [t])
