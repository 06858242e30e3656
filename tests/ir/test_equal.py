"""Structural equality and hashing: up to names, sensitive to sharing, and in step with each other."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import FEATURES, random_program

from relaylab.ir import (
    AnyDim,
    Call,
    Clause,
    Constructor,
    DictAttrs,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IncompleteType,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    SizeVar,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeData,
    TypeKind,
    TypeVar,
    Var,
    assert_structural_equal,
    children,
    const,
    get_first_structural_mismatch,
    post_order,
    rebuild,
    structural_equal,
    structural_hash,
    var,
)
from relaylab.ir.types import substitute_type
from relaylab.ir.visit import remake
from relaylab.op.base import call_operator
from relaylab.support.errors import RelayValueError

pytestmark = pytest.mark.slow

F3 = TensorType((3,))


def add(a, b):
    return call_operator("add", a, b)


def copy(expr):
    """A program with all nodes and variables new."""
    memo = {}
    for node in post_order(expr):
        parts = [memo[c] for c in children(node)]
        if isinstance(node, Var):
            memo[node] = Var(node.name_hint + "_copy", node.type_annotation)
        else:
            memo[node] = remake(node, parts) if parts else node
    return memo[expr]


def same(a, b, **how):
    """Equal both ways, and then with one hash."""
    forth, back = structural_equal(a, b, **how), structural_equal(b, a, **how)
    assert forth == back
    if forth:
        assert structural_hash(a, **how) == structural_hash(b, **how)
    return forth


def fn(make, names=("x", "y"), t=F3):
    params = [Var(n, t) for n in names]
    return Function(params, make(*params))


def shared(x, y):
    z = add(x, y)
    return add(z, z)


def twice(x, y):
    return add(add(x, y), add(x, y))


A, B = TypeVar("A"), TypeVar("B")
LIST = GlobalTypeVar("List")
CONS, NIL = Constructor("Cons", [A, LIST(A)], LIST), Constructor("Nil", [], LIST)


def match(swap=False, wild=False, name="h"):
    h, t = Var(name), Var("t")
    clauses = [
        Clause(PatternConstructor(CONS, [PatternVar(h), PatternVar(t)]), h),
        Clause(PatternWildcard() if wild else PatternConstructor(NIL, []), const(0)),
    ]
    return Match(LISTED, clauses[::-1] if swap else clauses)


LISTED = Var("l", LIST(TensorType((), "int32")))
FREE = Var("free", F3)

EQUAL = {
    "nan": (fn(shared).with_attr("a", float("nan")), fn(shared).with_attr("a", float("nan"))),
    "names": (fn(shared), fn(shared, ("p", "q"))),
    "projections are no graph nodes": (
        fn(lambda x, y: (lambda t: add(TupleGetItem(t, 0), TupleGetItem(t, 0)))(Tuple([x, y]))),
        fn(lambda x, y: (lambda g: add(g, g))(TupleGetItem(Tuple([x, y]), 0))),
    ),
    "constants are no graph nodes": (
        fn(lambda x, y: add(add(x, const(1.0)), const(1.0))),
        fn(lambda x, y: (lambda c: add(add(x, c), c))(const(1.0))),
    ),
    "empty tuples are no graph nodes": (Tuple([Tuple([]), Tuple([])]), (lambda e: Tuple([e, e]))(Tuple([]))),
    "let": (Let(v := Var("v"), const(1), v), Let(w := Var("w"), const(1), w)),
    "pattern variables": (match(), match(name="other")),
    "type parameters": (Function([p := Var("x", A)], p, A, [A]), Function([q := Var("x", B)], q, B, [B])),
    "inferred arguments of operators": (add(FREE, FREE), Call(add(FREE, FREE).op, [FREE, FREE], None, [F3, F3])),
    "refs": (RefRead(RefCreate(FREE)), RefRead(RefCreate(FREE))),
    "attribute order": (fn(shared).with_attr({"a": 1, "b": "x"}), fn(shared).with_attr({"b": "x", "a": 1})),
    "floats in attributes": (fn(shared).with_attr("e", 1.0000000005), fn(shared).with_attr("e", 1.0000000004)),
}
UNEQUAL = {
    "sharing": (fn(shared), fn(twice)),
    "annotation": (fn(shared), fn(shared, t=TensorType((4,)))),
    "missing annotation": (fn(shared), fn(shared, t=None)),
    "number of parameters": (fn(shared), fn(lambda x, y, z: shared(x, y), ("x", "y", "z"))),
    "swapped parameters": (fn(lambda x, y: Tuple([x, y])), fn(lambda x, y: Tuple([y, x]))),
    "result type": (fn(shared), Function([x := Var("x", F3), y := Var("y", F3)], shared(x, y), F3)),
    "free variables": (Var("x", F3), Var("x", F3)),
    "constants": (const(1), const(2)),
    "constant types": (const(1, "int32"), const(1, "int64")),
    "negative zero": (const(0.0), const(-0.0)),
    "projection": (TupleGetItem(FREE, 0), TupleGetItem(FREE, 1)),
    "operators": (add(FREE, FREE), call_operator("multiply", FREE, FREE)),
    "kinds": (Tuple([FREE]), FREE),
    "function attributes": (fn(shared), fn(shared).with_attr("Primitive", 1)),
    "one and true": (fn(shared).with_attr("a", 1), fn(shared).with_attr("a", True)),
    "clauses": (match(), match(swap=True)),
    "patterns": (match(), match(wild=True)),
    "globals": (GlobalVar("f")(FREE), GlobalVar("f")(FREE)),
    "tuple length": (Tuple([FREE]), Tuple([FREE, FREE])),
    "type parameter count": (Var("f", FuncType([F3], F3, [A])), Var("f", FuncType([F3], F3))),
    "constructors": (Constructor("C", [F3], LIST)(FREE), Constructor("C", [TensorType((4,))], LIST)(FREE)),
    "type arguments": (Call(CONS, [FREE, FREE], None, [F3]), Call(CONS, [FREE, FREE], None, [TensorType(())])),
}


@pytest.mark.parametrize("case", EQUAL)
def test_equal(case) -> None:
    assert same(*EQUAL[case])


@pytest.mark.parametrize("case", UNEQUAL)
def test_unequal(case) -> None:
    a, b = UNEQUAL[case]
    assert not same(a, b)
    assert get_first_structural_mismatch(a, b) is not None


def test_polymorphic_annotations() -> None:
    f, g = Function([Var("f", FuncType([A], A, [A]))], const(1)), Function([Var("f", FuncType([B], B, [B]))], const(1))
    assert same(f, g)
    assert not same(f, Function([Var("f", FuncType([B], F3, [B]))], const(1)))


def test_free_variables_map_to_each_other_once() -> None:
    x, y, a, b = (Var(n, F3) for n in "xyab")
    assert not same(add(x, y), add(a, b))
    assert same(add(x, y), add(a, b), map_free_vars=True)
    assert not same(add(x, x), add(a, b), map_free_vars=True)
    assert not same(add(x, y), add(a, a), map_free_vars=True)
    assert same(GlobalVar("f")(x), GlobalVar("f")(a), map_free_vars=True)
    assert not same(GlobalVar("f")(x), GlobalVar("g")(x), map_free_vars=True)
    assert same(Var("v", IncompleteType()), Var("v", IncompleteType()), map_free_vars=True)


def test_a_bound_variable_is_not_a_free_one() -> None:
    x = Var("x", F3)
    assert not same(Function([x], x), Function([Var("y", F3)], x))


def test_sharing_across_scopes() -> None:
    x, c = Var("x", F3), Var("c", TensorType((), "bool"))

    def both(one):
        z = add(x, x)
        return Function([x, c], If(c, z, z if one else add(x, x)))

    assert same(both(True), both(True))
    assert not same(both(True), both(False))


TYPES = [
    F3,
    TensorType((AnyDim(), 2), "int8"),
    TupleType([]),
    TupleType([F3]),
    TupleType([F3, F3]),
    FuncType([F3], F3),
    FuncType([A], A, [A]),
    FuncType([A, B], A, [A, B]),
    FuncType([A, B], B, [A, B]),
    LIST(F3),
    LIST(TensorType(())),
    A,
    B,
]


@pytest.mark.parametrize("t", TYPES, ids=str)
def test_types(t) -> None:
    assert [u is t for u in TYPES] == [same(t, u) for u in TYPES]


def test_types_up_to_names() -> None:
    assert same(FuncType([A, B], A, [A, B]), FuncType([B, A], B, [B, A]))
    assert FuncType([A], A, [A]) == FuncType([B], B, [B])
    assert hash(FuncType([A], A, [A])) == hash(FuncType([B], B, [B]))


def test_modules_match_functions_by_name() -> None:
    def module(order):
        mod = IRModule()
        for name in order:
            mod[name] = fn(shared if name == "f" else twice)
        return mod

    assert same(module("fg"), module("gf"))
    assert not same(module("fg"), module("f"))
    assert not same(module("fg"), module("fh"))
    assert not same(module("f"), module("f").with_attr("k", 1))


def test_what_functions_of_a_module_share_does_not_count() -> None:
    def module(parts: list) -> IRModule:
        mod = IRModule()
        for name, part in zip("fgh", parts):
            x = Var("x", TensorType((2,)))
            mod[GlobalVar(name)] = Function([x], add(x, part))
        return mod

    def part() -> Let:
        v = Var("v", TensorType(()))
        return Let(v, add(const(1.0), const(2.0)), add(v, v))

    one = part()
    assert_structural_equal(module([one] * 3), module([part() for _ in range(3)]))
    assert structural_hash(module([one] * 3)) == structural_hash(module([part() for _ in range(3)]))
    assert not structural_equal(module([one, one]), module([one, add(const(1.0), const(2.0))]))


def test_modules_compare_data_types() -> None:
    def module(t):
        a = TypeVar("A")
        header = GlobalTypeVar("Box")
        return IRModule({}, {header: TypeData(header, [a], [Constructor("Box", [a if t is None else t], header)])})

    assert same(module(None), module(None))
    assert not same(module(None), module(F3))


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_equal_their_copies(seed) -> None:
    main = random_program(seed, features=FEATURES - {"function", "poly"})["main"]
    assert same(main, copy(main))
    assert same(main, main)


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_differ_after_one_change(seed) -> None:
    main = random_program(seed, features=FEATURES - {"function", "poly"})["main"]
    rng = np.random.default_rng(seed)
    adds = [n for n in post_order(main) if isinstance(n, Call) and getattr(n.op, "name", "") == "add"]
    if not adds:
        pytest.skip("no add in this program")
    changed = adds[int(rng.integers(len(adds)))]
    memo = {}
    for node in post_order(main):
        new = rebuild(node, [memo[c] for c in children(node)])
        memo[node] = call_operator("subtract", *new.args) if node is changed else new
    assert not same(main, memo[main])


def test_assert_says_where() -> None:
    assert_structural_equal(fn(shared), fn(shared))
    with pytest.raises(RelayValueError, match="add and multiply") as caught:
        assert_structural_equal(fn(add), fn(lambda x, y: call_operator("multiply", x, y)))
    assert caught.value.code == "ir.not-equal"


def test_long_programs() -> None:
    def chain(x, y):
        for _ in range(100_000):
            x = add(x, y)
        return x

    def lets(x, y):
        names = [Var(f"v{k}") for k in range(30_000)]
        body = names[-1]
        for k in reversed(range(len(names))):
            body = Let(names[k], add(names[k - 1] if k else x, y), body)
        return body

    assert structural_equal(fn(chain), fn(chain))
    assert same(fn(lets), fn(lets))


def test_hash_is_of_content() -> None:
    assert structural_hash(fn(shared)) == structural_hash(fn(shared))
    assert structural_hash(fn(shared)) != structural_hash(fn(twice))
    assert structural_hash(DictAttrs({"b": 1, "a": 2.0})) == structural_hash(DictAttrs({"a": 2.0, "b": 1}))
    assert structural_hash(var("x", shape=(2,))) != structural_hash(var("x", shape=(3,)))


def test_the_kinds_of_type_parameters_count() -> None:
    a, b, c = TypeVar("a"), TypeVar("b", TypeKind.ShapeVar), TypeVar("c")
    first, shape, again = (FuncType([], v, [v]) for v in (a, b, c))
    assert first == again and structural_equal(first, again)
    assert first != shape and not structural_equal(first, shape)
    assert TupleType([first]) != TupleType([shape])


def test_plain_values_are_compared_as_attributes_are() -> None:
    one, two = np.arange(3.0), np.array([0.0, 1.0, 3.0])
    assert structural_equal(one, one.copy()) and not structural_equal(one, two)
    assert structural_equal([1, (one,)], [1, (one.copy(),)]) and not structural_equal([1], [True])


def test_attributes_that_are_not_written_hash_as_none_do() -> None:
    x, f = var("x", shape=(2,)), GlobalVar("f")
    for a, b in (
        (Function([x], x), Function([x], x, attrs=DictAttrs({}))),
        (Function([x], Call(f, [x])), Function([x], Call(f, [x], DictAttrs({})))),
    ):
        assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)


def test_sizes_of_one_name_correspond() -> None:
    def reshaped(first: SizeVar, second: SizeVar) -> Function:
        x, y = var("x", shape=(first, 2)), var("y", shape=(second * 2 + 1,))
        return Function([x, y], Tuple([call_operator("reshape", x, newshape=(first * 2,)), y]))

    n, other, k = SizeVar("n"), SizeVar("n"), SizeVar("k")
    assert structural_equal(reshaped(n, n), reshaped(other, other))
    assert structural_equal(reshaped(n, k), reshaped(other, k))
    assert structural_hash(reshaped(n, n)) == structural_hash(reshaped(other, other))
    for wrong in (reshaped(n, other), reshaped(other, n), reshaped(k, k), reshaped(n, k)):
        assert not structural_equal(reshaped(n, n), wrong) and not structural_equal(wrong, reshaped(n, n))
    one, two = TensorType((n,)), TensorType((other,))  # free, as variables are
    assert not structural_equal(one, two) and structural_equal(one, two, map_free_vars=True)


def doubled(leaf: Type, levels: int = 60) -> list[Type]:
    """Types of tuples, of cells in them and of functions that hold the one before twice."""
    made = [leaf, leaf, leaf]
    for _ in range(levels):
        a, b, c = made
        made = [TupleType([a, a]), TupleType([b, RefType(b)]), FuncType([c], c)]
    return made


def test_types_with_shared_parts_are_walked_once() -> None:
    """Each level doubles: built apart they were compared, hashed, replaced and written part by part, forever."""
    for a, b, c in zip(doubled(F3), doubled(TensorType((3,))), doubled(TensorType((2,)))):
        assert a == b and structural_equal(a, b) and structural_hash(a) == structural_hash(b)
        assert a != c and not structural_equal(a, c) and structural_hash(a) != structural_hash(c)
        assert str(a).endswith("…")
    var = TypeVar("A")
    for a, b in zip(doubled(var), doubled(F3)):
        assert substitute_type(a, {var: F3}) == b


@pytest.mark.parametrize("other", [TensorType((2,), "float32"), PatternVar(Var("p")), [], 3, None, IRModule({})])
def test_things_of_different_kinds_differ(other: object) -> None:
    for mine in (Var("x"), TensorType((3,), "float32")):
        assert not structural_equal(mine, other) and not structural_equal(other, mine)
