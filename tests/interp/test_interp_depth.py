"""The evaluator on deep programs: recursion, chains and lists without limit, values dropped after their last use."""

from __future__ import annotations

import numpy as np
import pytest
from test_interpreter import INT, X, N, HEADER, CONS, NIL, LISTS, ONES, add, sub, less, run, down, negative

import relaylab.op  # noqa: F401
from relaylab.interp import Interpreter, map_arrays
from relaylab.ir import (
    OPERATORS,
    Call,
    Clause,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    Var,
    const,
)

pytestmark = pytest.mark.slow


def test_deep_recursion() -> None:
    f = GlobalVar("f")
    mod = IRModule({f: down(f, lambda rest: add(const(1), rest))})
    assert Interpreter(mod).evaluate(f)(100_000) == 100_000


def test_long_chain_and_let_chain() -> None:
    e = X
    for _ in range(100_000):
        e = negative(e)
    np.testing.assert_array_equal(run(Function([X], e), ONES), ONES)
    names = [X, *(Var(f"v{k}") for k in range(50_000))]
    body = names[-1]
    for k in reversed(range(1, len(names))):
        body = Let(names[k], add(names[k - 1], X), body)
    np.testing.assert_array_equal(run(Function([X], body), ONES), 50_001 * ONES)


def test_long_lists() -> None:
    build, length = GlobalVar("build"), GlobalVar("length")
    t, xs = Var("t"), Var("xs", HEADER(INT))
    mod = LISTS.shallow_copy()
    mod[build] = Function([N], If(less(N, const(1)), Call(NIL, []), Call(CONS, [N, Call(build, [sub(N, const(1))])])))
    mod[length] = Function(
        [xs],
        Match(
            xs,
            [
                Clause(PatternConstructor(NIL, []), const(0)),
                Clause(PatternConstructor(CONS, [PatternWildcard(), PatternVar(t)]), add(const(1), Call(length, [t]))),
            ],
        ),
    )
    value = Interpreter(mod).evaluate(build)(20_000)
    assert repr(value).startswith("Cons(20000, Cons(19999,") and len(repr(value)) < 1000
    assert Interpreter(mod).evaluate(length)(value) == 20_000
    assert map_arrays(value, lambda a: a + 1).fields[0] == 20_001


def test_diamond() -> None:
    e = X
    for _ in range(30):
        e = add(e, e)
    np.testing.assert_array_equal(run(Function([X], e), ONES), 2.0**30 * ONES)


def test_values_are_dropped_after_their_last_use(monkeypatch) -> None:
    alive: set[int] = set()
    most = 0
    definition = OPERATORS["negative"].definition

    class Tracked(np.ndarray):
        def __del__(self):
            alive.discard(id(self))

    def reference(record, x):
        nonlocal most
        value = np.negative(x).view(Tracked)
        alive.add(id(value))
        most = max(most, len(alive))
        return value

    monkeypatch.setattr(definition, "reference", reference)
    e = X
    for _ in range(100):
        e = negative(e)
    run(Function([X], e), ONES)
    assert most <= 3
