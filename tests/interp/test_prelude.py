"""The standard library against Python: its types, and its functions on lists, options and trees."""

from __future__ import annotations

import itertools

import pytest

import relaylab.op  # noqa: F401
import relaylab.text  # noqa: F401
from relaylab.analysis import infer_module
from relaylab.interp import ConstructorValue, Interpreter
from relaylab.ir import Function, If, IRModule, Tuple, Var, const, scalar_type
from relaylab.op.base import call_operator

INT = scalar_type("int32")


@pytest.fixture(scope="module")
def mod() -> IRModule:
    module = IRModule()
    module.import_from_std("prelude.rly")
    return infer_module(module)


def calling(mod: IRModule, name: str, *args):
    return Interpreter(mod).evaluate(mod.get_global_var(name)(*args))


def listed(mod: IRModule, values):
    _, cons, nil = mod.get_type("List")
    out = nil()
    for v in reversed(values):
        out = cons(v if not isinstance(v, int) else const(v), out)
    return out


def plain(value):
    """Lists as Python lists, numbers as ints, tuples as tuples."""
    if isinstance(value, ConstructorValue):
        out = []
        while value.fields:
            out.append(plain(value.fields[0]))
            value = value.fields[1]
        return out
    return tuple(map(plain, value)) if isinstance(value, tuple) else value.item()


def fn(make, count):
    params = [Var(f"a{k}", INT) for k in range(count)]
    return Function(params, make(*params))


def add(a, b):
    return call_operator("add", a, b)


def sub(a, b):
    return call_operator("subtract", a, b)


DOUBLE = fn(lambda a: add(a, a), 1)
LISTS = [[], [4], [3, 1, 2], [5, 5, 0, -2]]


@pytest.mark.parametrize("xs", LISTS, ids=str)
def test_lists(mod, xs) -> None:
    rel = listed(mod, xs)
    assert plain(calling(mod, "map", DOUBLE, rel)) == [2 * x for x in xs]
    assert calling(mod, "length", rel) == len(xs) and calling(mod, "sum", rel) == sum(xs)
    assert plain(calling(mod, "rev", rel)) == xs[::-1]
    assert plain(calling(mod, "concat", rel, listed(mod, [7, 8]))) == [*xs, 7, 8]
    assert plain(calling(mod, "filter", fn(lambda a: call_operator("greater", a, const(1)), 1), rel)) == [
        x for x in xs if x > 1
    ]
    assert plain(calling(mod, "zip", rel, listed(mod, [1, 2, 3]))) == list(zip(xs, [1, 2, 3]))
    assert calling(mod, "foldl", fn(sub, 2), const(10), rel) == 10 - sum(xs)
    folded = 10
    for x in reversed(xs):
        folded = x - folded
    assert calling(mod, "foldr", fn(sub, 2), const(10), rel) == folded


@pytest.mark.parametrize("xs", LISTS[1:], ids=str)
def test_places(mod, xs) -> None:
    rel = listed(mod, xs)
    assert calling(mod, "hd", rel) == xs[0] and plain(calling(mod, "tl", rel)) == xs[1:]
    for k in range(len(xs)):
        assert calling(mod, "nth", rel, const(k)) == xs[k]
        assert plain(calling(mod, "update", rel, const(k), const(99))) == [*xs[:k], 99, *xs[k + 1 :]]


def test_accumulation(mod) -> None:
    step = fn(lambda acc, x: Tuple([add(acc, x), acc]), 2)
    total, seen = plain(calling(mod, "map_accuml", step, const(0), listed(mod, [1, 2, 3])))
    assert total == 6 and seen == [0, *itertools.accumulate([1, 2])]


def test_functions(mod) -> None:
    run = Interpreter(mod)
    assert run.evaluate(mod.get_global_var("iterate")(DOUBLE, const(5))(const(3))) == 96
    assert run.evaluate(mod.get_global_var("compose")(DOUBLE, fn(lambda a: add(a, const(1)), 1))(const(3))) == 8
    assert run.evaluate(mod.get_global_var("flip")(fn(sub, 2))(const(3), const(10))) == 7
    assert run.evaluate(mod.get_global_var("id"))(4) == 4


def test_trees(mod) -> None:
    _, rose = mod.get_type("Tree")
    tree = rose(
        const(1),
        listed(mod, [rose(const(2), listed(mod, [])), rose(const(3), listed(mod, [rose(const(4), listed(mod, []))]))]),
    )
    assert calling(mod, "size", tree) == 4
    doubled = calling(mod, "tmap", DOUBLE, tree)
    assert doubled.fields[0] == 2 and doubled.fields[1].fields[0].fields[0] == 4


def test_unfolding(mod) -> None:
    _, some, none = mod.get_type("Option")
    count = fn(lambda a: If(call_operator("greater", a, const(0)), some(Tuple([sub(a, const(1)), a])), none()), 1)
    assert plain(calling(mod, "unfoldr", count, const(3))) == [3, 2, 1]
    assert plain(calling(mod, "unfoldl", count, const(3))) == [1, 2, 3]


def test_its_types_are_inferred_once(mod) -> None:
    assert infer_module(mod) is mod
    assert str(mod["map"].checked_type) == "fn [A, B](fn (A) -> B, List[A]) -> List[B]"


def test_nat() -> None:
    nat = IRModule()
    nat.import_from_std("prelude.rly")
    nat.import_from_std("nat.rly")
    nat = infer_module(nat)
    _, zero, succ = nat.get_type("nat")
    value = Interpreter(nat).evaluate(nat.get_global_var("nat_double")(succ(succ(succ(zero())))))
    depth = 0
    while value.fields:
        depth, (value,) = depth + 1, value.fields
    assert depth == 6
