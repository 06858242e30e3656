"""Random programs of the whole language: those of `support.programs` and what the search adds to them."""

from __future__ import annotations

from fuzz.choices import Choices
from support.programs import FEATURES, INT, ProgramMaker

from relaylab.analysis import infer_module
from relaylab.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    const,
)
from relaylab.op.base import call_operator

CHAIN, ITEM = GlobalTypeVar("Chain"), TypeVar("T")
END = Constructor("End", [], CHAIN)
LINK = Constructor("Link", [ITEM, TypeCall(CHAIN, [ITEM])], CHAIN)


class Maker(ProgramMaker):
    """Adds names for names, functions that take and give functions, a recursive type, functions that call each other,
    cells that functions share, patterns in patterns, conditions of conditions."""

    def makers(self, depth: int) -> list:
        more = [self.alias, self.flag]
        if depth > 0:
            more += [self.higher, self.curried, self.counter, self.tuples, self.turns]
            more += [self.chain, self.chain] if "adt" in self.features else []
            more += [self.shared_cell, self.handed] if "ref" in self.features else []
        return super().makers(depth) + more

    def bind(self, lets: list, value: Expr, stem: str, t: Type | None = None) -> Expr:
        var = self.var(t, stem)
        lets.append((var, value))
        return var

    def alias(self, scope: list, lets: list, depth: int) -> object:
        value, t = self.draw(scope[-6:])
        return self.bind(lets, value, "z"), t

    def flag(self, scope: list, lets: list, depth: int) -> object:
        op = self.draw(["logical_and", "logical_or", "logical_xor"])
        both = call_operator(op, self.condition(scope), self.condition(scope))
        if self.rng.random() < 0.5:
            both = self.bind(lets, call_operator("logical_not", both), "c")
        t = self.shape()
        return If(both, self.pick(scope, t), self.coerce(scope, t)), t

    def higher(self, scope: list, lets: list, depth: int) -> object:
        """A function that applies its argument twice."""
        t = self.shape()
        f, x, y = self.var(FuncType([t], t) if self.rng.random() < 0.5 else None, "f"), self.var(t), self.var(t)
        twice: Expr = Function([f, x], Call(f, [Call(f, [x])]), t)
        twice = self.bind(lets, twice, "twice") if self.rng.random() < 0.5 else twice
        inner: Expr = Function([y], self.inner([*scope, (y, t)], t, depth), t)
        return Call(twice, [inner, self.pick(scope, t)]), t

    def curried(self, scope: list, lets: list, depth: int) -> object:
        """A function that gives a function; both calls of the inner one see the same."""
        t, u = self.shape(), self.shape()
        x, y = self.var(t), self.var(u)
        body = self.body([*scope, (x, t), (y, u)], u, 2, 0)
        make = Function([x], Function([y], body, u))
        made = self.bind(lets, Call(make, [self.pick(scope, t)]), "g")
        return Call(made, [Call(made, [self.pick(scope, u)])]), u

    def counter(self, scope: list, lets: list, depth: int) -> object:
        """Recursion that carries a tuple."""
        t, loop = self.shape(), self.var(None, "loop")
        i, s = self.var(INT, "i"), self.var(None, "s")
        a, n = TupleGetItem(s, 0), TupleGetItem(s, 1)
        more = Tuple([self.body([*scope, (a, t), (n, INT)], t, 2, 0), call_operator("add", n, i)])
        again = Call(loop, [call_operator("subtract", i, const(1)), more])
        stop = call_operator("less_equal", i, const(0))
        func = Function([i, s], If(stop, s, again) if self.rng.random() < 0.5 else If(stop, s, self.held(again)))
        start = Tuple([self.pick(scope, t), self.pick(scope, INT)])
        run = Call(loop, [const(int(self.rng.integers(0, 4))), start])
        return Let(loop, func, TupleGetItem(run, 0)), t

    def held(self, value: Expr) -> Expr:
        var = self.var(None, "h")
        return Let(var, value, var)

    def tuples(self, scope: list, lets: list, depth: int) -> object:
        """A match of nested tuples."""
        t, want = self.shape(), self.shape()
        a, n = self.var(None, "a"), self.var(None, "n")
        data = Tuple([Tuple([self.pick(scope, t), self.pick(scope, INT)]), self.pick(scope, t)])
        pattern = PatternTuple([PatternTuple([PatternVar(a), PatternVar(n)]), PatternWildcard()])
        return Match(data, [Clause(pattern, self.body([*scope, (a, t), (n, INT)], want, 2, 0))]), want

    def turns(self, scope: list, lets: list, depth: int) -> object:
        """Two global functions that call each other."""
        t = self.shape()
        self.names += 1
        names = [GlobalVar(f"even{self.names}"), GlobalVar(f"odd{self.names}")]
        for here, there in (names, names[::-1]):
            i, s = self.var(INT, "i"), self.var(t, "s")
            again = Call(there, [call_operator("subtract", i, const(1)), self.body([(i, INT), (s, t)], t, 2, 0)])
            self.mod[here] = Function([i, s], If(call_operator("less", i, const(1)), s, again), t)
        return Call(names[0], [const(int(self.rng.integers(0, 5))), self.pick(scope, t)]), t

    def chain(self, scope: list, lets: list, depth: int) -> object:
        """A chain that is built, then folded by a polymorphic function or taken apart by patterns in patterns."""
        t = self.shape()
        made: Expr = Call(END, [])
        for _ in range(int(self.rng.integers(0, 4))):
            longer = Call(LINK, [self.pick(scope, t), made])
            made = If(self.condition(scope), longer, made) if self.rng.random() < 0.3 else longer
        made = self.bind(lets, made, "c", TypeCall(CHAIN, [t]))
        if self.rng.random() < 0.5:
            return Call(self.mod.get_global_var("last"), [made, self.pick(scope, t)]), t
        a, b, c = self.var(None, "a"), self.var(None, "b"), self.var(None, "c")
        two = PatternConstructor(LINK, [PatternVar(a), PatternConstructor(LINK, [PatternVar(b), PatternWildcard()])])
        one = PatternConstructor(LINK, [PatternVar(c), PatternWildcard()])
        clauses = [
            Clause(two, self.body([*scope, (a, t), (b, t)], t, 2, 0)),
            Clause(one, self.body([*scope, (c, t)], t, 1, 0)),
            Clause(PatternConstructor(END, []) if self.rng.random() < 0.5 else PatternWildcard(), self.pick(scope, t)),
        ]
        return Match(made, clauses), t

    def handed(self, scope: list, lets: list, depth: int) -> object:
        """A function that changes a cell, given to another in a tuple or by itself; what that gives is unused."""
        t = self.shape()
        kind, x = FuncType([t], t), self.var(t)
        cell = self.bind(lets, RefCreate(self.pick(scope, t)), "cell")
        write = RefWrite(cell, self.body([*scope, (x, t)], t, 2, 0))
        change = self.bind(lets, Function([x], Let(self.var(None, "u"), write, x), t), "change")
        held, given = self.draw([(TupleType([kind]), Tuple([change])), (kind, change)])
        self.names += 1
        name, box, y = GlobalVar(f"use{self.names}"), self.var(held, "box"), self.var(t)
        taken = box if held is kind else TupleGetItem(box, 0)
        self.mod[name] = Function([box, y], Call(taken, [y]), t)
        self.bind(lets, Call(name, [given, self.pick(scope, t)]), "n")
        return RefRead(cell), t

    def shared_cell(self, scope: list, lets: list, depth: int) -> object:
        """A cell that a function changes each time it is called."""
        t = self.shape()
        cell = self.bind(lets, RefCreate(self.pick(scope, t)), "cell")
        y, done = self.var(t, "y"), self.var(None, "u")
        write = RefWrite(cell, call_operator("tanh", call_operator("add", RefRead(cell), y)))
        func = self.bind(lets, Function([y], Let(done, write, RefRead(cell)), t), "bump")
        first = self.bind(lets, Call(func, [self.pick(scope, t)]), "b")
        second = self.bind(lets, Call(func, [self.pick(scope, t)]), "b")
        return call_operator("subtract", second, first), t

    def module(self) -> IRModule:
        if "adt" in self.features:
            self.mod[CHAIN] = TypeData(CHAIN, [ITEM], [END, LINK])
            a = TypeVar("A")
            last, c, d, x, rest = (
                GlobalVar("last"),
                self.var(TypeCall(CHAIN, [a])),
                self.var(a),
                self.var(None),
                self.var(None),
            )
            more = Clause(PatternConstructor(LINK, [PatternVar(x), PatternVar(rest)]), Call(last, [rest, x]))
            self.mod[last] = Function([c, d], Match(c, [more, Clause(PatternConstructor(END, []), d)]), a, [a])
        return super().module()


def functional_program(draw: Choices, most: int = 10, without: frozenset[str] = frozenset()) -> IRModule:
    """A typed program of one to `most` steps of some features."""
    dropped = {f for f in sorted(FEATURES - {"let", "graph"}) if draw.chance(0.2)}
    size = 1 + draw.randrange(most)
    return infer_module(Maker(draw.generator(), size, FEATURES - dropped - without).module())
