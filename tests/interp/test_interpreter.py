"""The evaluator: every construct by hand, sharing and effects counted, errors named."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import random_program

import relaylab.op  # noqa: F401
from relaylab.analysis import infer_expr, infer_module
from relaylab.interp import (
    ConstructorValue,
    EvaluationError,
    Interpreter,
    RefValue,
    create_executor,
    random_inputs,
    random_value,
)
from relaylab.ir import (
    OPERATORS,
    AnyDim,
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalTypeVar,
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
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeData,
    TypeVar,
    Var,
    children,
    const,
    fold,
    scalar_type,
)
from relaylab.ir.visit import remake
from relaylab.op.base import call_operator
from relaylab.support.errors import RelayAttributeError, RelayTypeError

pytestmark = pytest.mark.slow

F3, INT = TensorType((3,)), scalar_type("int32")
X, N, C = Var("x", F3), Var("n", INT), Var("c", scalar_type("bool"))
A = TypeVar("A")
HEADER = GlobalTypeVar("List")
CONS, NIL = Constructor("Cons", [A, HEADER(A)], HEADER), Constructor("Nil", [], HEADER)
LISTS = IRModule({}, {HEADER: TypeData(HEADER, [A], [CONS, NIL])})
ONES = np.ones(3, "float32")
V, W, F, G, R, S, H, T, U = (Var(n) for n in "vwfgrshtu")


def add(a, b):
    return call_operator("add", a, b)


def sub(a, b):
    return call_operator("subtract", a, b)


def less(a, b):
    return call_operator("less", a, b)


def run(expr: Expr, *args, mod=LISTS):
    return (
        Interpreter(mod).evaluate(expr)(*args)
        if args or isinstance(expr, Function)
        else Interpreter(mod).evaluate(expr)
    )


def numbers(*values):
    out = Call(NIL, [])
    for v in reversed(values):
        out = Call(CONS, [const(v), out])
    return out


def down(loop, then):
    return Function([N], If(less(N, const(1)), const(0), then(Call(loop, [sub(N, const(1))]))))


VALUES = {
    "constant": (const(3), 3),
    "operator": (add(const(1), const(2)), 3),
    "let": (Let(V, const(2), add(V, V)), 4),
    "shadowed scopes": (Let(V, Let(W, const(1), add(W, W)), add(V, const(1))), 3),
    "if": (If(const(False), const(1), const(2)), 2),
    "projection": (TupleGetItem(Tuple([const(1), const(2)]), 1), 2),
    "function": (Call(Function([V], add(V, V)), [const(3)]), 6),
    "closure": (Let(V, const(2), Let(F, Function([W], add(V, W)), add(Call(F, [const(1)]), Call(F, [V])))), 7),
    "closure of a closure": (Call(Call(Function([V], Function([W], sub(V, W))), [const(5)]), [const(2)]), 3),
    "function argument": (Call(Function([F], Call(F, [Call(F, [const(1)])])), [Function([V], add(V, V))]), 4),
    "recursion": (Let(F, down(F, lambda rest: add(N, rest)), Call(F, [const(4)])), 10),
    "operator as a value": (Let(F, OPERATORS["negative"], Call(F, [const(4)])), -4),
    "constructor as a value": (
        Match(
            Call(Function([F], Call(F, [const(7), Call(NIL, [])])), [CONS]),
            [Clause(PatternConstructor(CONS, [PatternVar(H), PatternWildcard()]), H)],
            False,
        ),
        7,
    ),
    "match": (
        Match(
            numbers(1, 2),
            [
                Clause(PatternConstructor(NIL, []), const(0)),
                Clause(PatternConstructor(CONS, [PatternVar(H), PatternVar(T)]), H),
            ],
        ),
        1,
    ),
    "first clause that fits": (
        Match(numbers(1), [Clause(PatternWildcard(), const(5)), Clause(PatternVar(H), const(6))]),
        5,
    ),
    "nested pattern": (
        Match(
            numbers(1, 2),
            [
                Clause(
                    PatternConstructor(
                        CONS, [PatternWildcard(), PatternConstructor(CONS, [PatternVar(H), PatternWildcard()])]
                    ),
                    H,
                )
            ],
            False,
        ),
        2,
    ),
    "tuple pattern": (
        Match(Tuple([const(1), const(2)]), [Clause(PatternTuple([PatternVar(H), PatternVar(T)]), sub(T, H))]),
        1,
    ),
    "reference": (Let(R, RefCreate(const(1)), Let(U, RefWrite(R, const(2)), RefRead(R))), 2),
    "old value": (
        Let(R, RefCreate(const(1)), Let(V, RefRead(R), Let(U, RefWrite(R, const(5)), sub(RefRead(R), V)))),
        4,
    ),
    "reference in a closure": (
        Let(
            R,
            RefCreate(const(0)),
            Let(
                F,
                Function([V], RefWrite(R, add(RefRead(R), V))),
                Let(U, Call(F, [const(2)]), Let(S, Call(F, [const(3)]), RefRead(R))),
            ),
        ),
        5,
    ),
    "aliases": (Let(R, RefCreate(const(0)), Let(S, R, Let(U, RefWrite(S, const(9)), RefRead(R)))), 9),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("typed", [False, True])
def test_value(name, typed) -> None:
    expr, expected = VALUES[name]
    value = run(infer_expr(expr, LISTS) if typed else expr)
    assert isinstance(value, np.ndarray) and value.shape == () and value == expected


def test_results_of_other_kinds() -> None:
    assert run(Tuple([])) == () and run(RefWrite(RefCreate(const(1)), const(2))) == ()
    listed = run(numbers(1, 2))
    assert isinstance(listed, ConstructorValue) and listed.tag == CONS.tag and listed.constructor is CONS
    assert repr(listed) == "Cons(1, Cons(2, Nil))" and listed.fields[1].fields[1].fields == ()
    ref = run(RefCreate(const(3)))
    assert isinstance(ref, RefValue) and ref.value == 3
    f = run(Call(Function([V], Function([W], add(V, W))), [const(1)]))
    assert f(2) == 3 and run(Function([F], Call(F, [const(5)])), f) == 6


class Counter:
    """Counts how often an operator is evaluated."""

    def __init__(self, monkeypatch, name="negative"):
        self.count = 0
        definition = OPERATORS[name].definition
        original = definition.reference

        def reference(record, *args):
            self.count += 1
            return original(record, *args)

        monkeypatch.setattr(definition, "reference", reference)


def negative(x):
    return call_operator("negative", x)


def shared_value():
    return negative(X)


@pytest.mark.parametrize(
    ("make", "times"),
    [
        (lambda z: add(z, z), 1),
        (lambda z: If(C, z, add(z, z)), 1),
        (lambda z: add(z, If(C, z, X)), 1),
        (lambda z: If(C, X, z), 0),
        (lambda z: Let(V, z, add(V, add(V, z))), 1),
        (lambda z: Let(F, Function([W], add(W, z)), add(z, Call(F, [Call(F, [X])]))), 1),
        (lambda z: Let(F, Function([W], add(W, z)), Call(F, [Call(F, [X])])), 2),
        (lambda z: Tuple([If(C, z, X), If(C, z, X)]), 1),
        (lambda z: Let(V, z, X), 1),
    ],
)
def test_a_shared_node_is_computed_once_per_activation_of_its_scope(monkeypatch, make, times) -> None:
    counter = Counter(monkeypatch)
    run(Function([X, C], make(shared_value())), ONES, True)
    assert counter.count == times


def test_arguments_are_evaluated_from_left_to_right() -> None:
    def bump(k):
        return TupleGetItem(Tuple([RefRead(R), RefWrite(R, add(RefRead(R), const(k)))]), 0)

    assert [int(v) for v in run(Let(R, RefCreate(const(0)), Tuple([bump(1), bump(10), RefRead(R)])))] == [0, 1, 11]


# ---- arguments


def test_arguments_in_many_forms() -> None:
    f = Interpreter().evaluate(Function([X, N], add(X, call_operator("cast", N, dtype="float32"))))

    class Wrapped:
        def numpy(self):
            return ONES

    for x in (ONES, [1, 1, 1], (1.0, 1.0, 1.0), Wrapped()):
        np.testing.assert_array_equal(f(x, 2), 3 * ONES)
    np.testing.assert_array_equal(f(ONES, n=np.int32(2)), 3 * ONES)
    np.testing.assert_array_equal(f(n=2, x=ONES), 3 * ONES)
    bits = Interpreter().evaluate(Function([X], call_operator("reinterpret", X, dtype="int32")))
    assert bits(ONES.astype(">f4")).tolist() == [0x3F800000] * 3


@pytest.mark.parametrize(
    ("args", "kwargs", "code"),
    [
        ((ONES,), {}, "missing"),
        ((ONES, 1, 2), {}, "too-many"),
        ((ONES, 1), {"y": 1}, "unknown"),
        ((ONES, 1), {"x": ONES}, "duplicate"),
        ((np.ones(4, "float32"), 1), {}, "wrong"),
        ((np.ones(3), 1), {}, "wrong"),
        ((ONES, np.ones(1, "int32")), {}, "wrong"),
    ],
)
def test_wrong_arguments(args, kwargs, code) -> None:
    with pytest.raises(RelayTypeError) as caught:
        Interpreter().evaluate(Function([X, N], X))(*args, **kwargs)
    assert caught.value.code.startswith(f"interp.{code}")


@pytest.mark.parametrize(
    ("given", "dtype"),
    [(None, "bool"), ("a", "bool"), (object(), "bool"), (2, "bool"), (None, "float32"), ("7", "int64"), (1.5, "int64")],
)
def test_what_is_no_number_of_the_data_type_is_refused(given, dtype) -> None:
    x = Var("x", TensorType((), dtype))
    identity = Interpreter().evaluate(Function([x], x))
    with pytest.raises(RelayTypeError) as caught:
        identity(given)
    assert caught.value.code == "interp.wrong-argument"
    for number in (1, 1.0, True):
        assert identity(number) == 1


def test_tuples_unknown_dimensions_and_polymorphism() -> None:
    t = Var("t", TupleType([INT, TensorType((AnyDim(), 2))]))
    value = run(Function([t], Tuple([TupleGetItem(t, 1), TupleGetItem(t, 0)])), (1, np.zeros((5, 2), "float32")))
    assert value[0].shape == (5, 2) and value[1] == 1
    v = Var("v", A)
    identity = Interpreter().evaluate(Function([v], v, A, [A]))
    assert identity(3) == 3 and identity(ONES) is ONES


def test_executor() -> None:
    mod = infer_module(IRModule.from_expr(Function([X, Var("w", F3)], add(X, X))))
    w = mod["main"].params[1]
    mod["main"] = Function(mod["main"].params, add(mod["main"].params[0], w))
    executor = create_executor("debug", mod, params={"w": ONES})
    np.testing.assert_array_equal(executor.evaluate()(ONES), 2 * ONES)
    np.testing.assert_array_equal(executor.evaluate(mod.get_global_var("main"))(ONES, 2 * ONES), 3 * ONES)
    np.testing.assert_array_equal(executor.evaluate(add(X, X), {X: const(ONES)}), 2 * ONES)
    with pytest.raises(RelayAttributeError, match="executor"):
        create_executor("debugg", mod)


def test_results_can_be_wrapped() -> None:
    wrapped = Interpreter(LISTS, wrap=lambda a: ("array", int(a)))
    assert wrapped.evaluate(Tuple([const(1), Tuple([const(2)])])) == (("array", 1), (("array", 2),))
    assert wrapped.evaluate(numbers(4)).fields[0] == ("array", 4)


# ---- errors


def test_a_failing_operator_is_named_with_its_place() -> None:
    bad = add(X, const(np.ones(2, "float32")))
    with pytest.raises(EvaluationError) as caught:
        Interpreter(IRModule.from_expr(Function([X], negative(bad)))).evaluate()(ONES)
    text = str(caught.value)
    assert "add failed" in text and "Tensor[(3), float32], Tensor[(2), float32]" in text and "in @main" in text


def test_a_result_of_another_type_is_refused(monkeypatch) -> None:
    typed = infer_expr(Function([X], negative(X)))
    monkeypatch.setattr(OPERATORS["negative"].definition, "reference", lambda self, x: x.astype("float64"))
    with pytest.raises(EvaluationError, match="its type is Tensor"):
        run(typed, ONES)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (Var("free"), "%free has no value"),
        (
            Match(
                numbers(), [Clause(PatternConstructor(CONS, [PatternWildcard(), PatternWildcard()]), const(0))], False
            ),
            "no clause matches Nil",
        ),
        (Call(const(1), [const(2)]), "not a function"),
        (Call(Function([V], V), [const(1), const(2)]), "1 parameters is given 2"),
        (TupleGetItem(Tuple([const(1)]), 3), "no field 3"),
    ],
)
def test_errors(expr, message) -> None:
    with pytest.raises(EvaluationError, match=message):
        run(expr)


def test_an_interpreter_is_usable_after_an_error() -> None:
    interpreter = Interpreter()
    with pytest.raises(EvaluationError):
        interpreter.evaluate(Var("free"))
    assert interpreter.evaluate(const(1)) == 1


# ---- random programs


@pytest.mark.parametrize("seed", range(30))
def test_types_do_not_change_the_meaning(seed) -> None:
    mod = random_program(seed)
    args = random_inputs(mod["main"], seed)
    expected = Interpreter(mod).evaluate()(*args)
    assert np.isfinite(expected).all() and expected.shape == (2, 3)
    np.testing.assert_array_equal(Interpreter(random_program(seed, typed=False)).evaluate()(*args), expected)


@pytest.mark.parametrize("seed", range(20))
def test_sharing_does_not_change_the_meaning_of_programs_without_effects_and_binders(seed) -> None:
    """A copy of every node for each of its uses is slower, but gives the same value."""
    mod = random_program(seed, features={"graph", "if", "tuple", "function", "poly"})
    args = random_inputs(mod["main"], seed)
    expected = Interpreter(mod).evaluate()(*args)
    if max(fold(f, lambda n, below: 1 + sum(below)) for f in mod.functions.values()) > 20_000:
        pytest.skip("too large without sharing")
    copied = mod.shallow_copy()
    copied.functions.update({gv: unshared(f) for gv, f in mod.functions.items()})
    np.testing.assert_array_equal(Interpreter(copied).evaluate()(*args), expected)


def unshared(expr: Expr) -> Expr:
    return remake(expr, [c if isinstance(c, Var) else unshared(c) for c in children(expr)]) if children(expr) else expr


# ---- seeded inputs


def test_random_inputs() -> None:
    params = [
        Var("a", F3),
        Var("b", INT),
        Var("c", scalar_type("bool")),
        Var("d", TupleType([TensorType((AnyDim(), 2), "uint8"), F3])),
        Var("r", RefType(INT)),
    ]
    func = Function(params, params[0])
    one, two = random_inputs(func, 1), random_inputs(func, 1)
    assert [type(v) for v in one] == [np.ndarray, np.ndarray, np.ndarray, tuple, RefValue]
    assert one[0].dtype == "float32" and one[3][0].shape == (3, 2) and one[3][0].dtype == "uint8" and one[1].shape == ()
    np.testing.assert_array_equal(one[0], two[0])
    assert not np.array_equal(one[0], random_inputs(func, 2)[0])
    with pytest.raises(RelayTypeError):
        random_value(HEADER(INT), np.random.default_rng(0))
    with pytest.raises(RelayTypeError, match="no type"):
        random_inputs(Function([Var("x")], const(1)))
